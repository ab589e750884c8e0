//! Checks that credentials and authorities change while a client lives, and that no request fails because of it.
//!
//! Answers "what happens when a file that a client was made from changes?" Each test makes one client and then changes
//! its files; the servers refuse what is outdated. The other credentials (plugins, expiry, a minute that passes) are
//! tested beside `src/client/src/identity.rs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_informer::client::{Client, Config, Error};
use http::Method;

use crate::raw_server::*;
use crate::tls::Authority;

async fn get(client: &Client) -> Result<(), Error> {
    client.request(Method::GET, "/version", None).await.map(drop)
}

/// Serves requests with this token and refuses all others; counts what it refuses.
fn accepting(token: PathBuf, refused: Arc<AtomicUsize>) -> impl Fn(Connection) -> Served + Send + 'static {
    move |mut connection| {
        let (token, refused) = (token.clone(), Arc::clone(&refused));
        Box::pin(async move {
            while let Some(head) = connection.request().await {
                let valid = format!("Bearer {}", std::fs::read_to_string(&token).unwrap());
                let status = match head.lines().any(|line| line.ends_with(&valid)) {
                    true => "200 OK",
                    false => {
                        refused.fetch_add(1, Ordering::SeqCst);
                        "401 Unauthorized"
                    }
                };
                connection.write(answer(status, "", "{}")).await;
            }
        })
    }
}

type Served = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

#[tokio::test]
async fn a_request_that_is_refused_with_an_old_token_is_sent_again_with_the_one_that_is_in_the_file_now() {
    let folder = tempfile::tempdir().unwrap();
    let [file, valid] = ["token", "valid"].map(|name| folder.path().join(name));
    let write = |path: &Path, token: &str| std::fs::write(path, token).unwrap();
    write(&file, "one");
    write(&valid, "one");
    let refused = Arc::new(AtomicUsize::new(0));
    let server = RawServer::start(accepting(valid.clone(), Arc::clone(&refused))).await;
    let client = Client::new(Config::new(server.url()).unwrap().token_file(&file)).unwrap();
    get(&client).await.unwrap();
    write(&file, "two");
    write(&valid, "two");
    get(&client).await.unwrap();
    assert_eq!(
        refused.load(Ordering::SeqCst),
        1,
        "the old token was refused once, and the caller never saw it"
    );
    // Nothing newer is there: the refusal is the answer, after one attempt.
    write(&valid, "three");
    let Err(Error::Refused(status)) = get(&client).await else { panic!("it must be refused") };
    assert_eq!((status.code, refused.load(Ordering::SeqCst)), (401, 2));
}

// REST-21: given a request with an Authorization header of its own, when it is sent, then the header is left
// alone by token, basic and plugin credentials.
// - a the caller's header is sent, and a refusal of it is the answer
// - b a token of the kubeconfig wins over its plugin:
//   `rest_21_a_token_that_is_written_down_wins_over_the_plugin`
#[tokio::test]
async fn rest_21_a_request_with_its_own_authorization_is_left_alone_and_not_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let [file, valid] = ["token", "valid"].map(|name| folder.path().join(name));
    std::fs::write(&file, "mine").unwrap();
    std::fs::write(&valid, "mine").unwrap();
    let refused = Arc::new(AtomicUsize::new(0));
    let server = RawServer::start(accepting(valid, Arc::clone(&refused))).await;
    let client = Client::new(Config::new(server.url()).unwrap().token_file(&file)).unwrap();
    let own =
        http::Request::get("/version").header("authorization", "Bearer another").body(Vec::new()).unwrap();
    assert!(matches!(client.send(own).await, Err(Error::Refused(status)) if status.code == 401));
    assert_eq!(refused.load(Ordering::SeqCst), 1);
}

async fn serve(mut connection: Connection) {
    while connection.request().await.is_some() {
        connection.write(answer("200 OK", "", "{}")).await;
    }
}

// REST-23: given a server whose certificate is of a new authority, when the authority file is old, then
// requests fail; when the file is updated, then they succeed without a new client.
#[tokio::test]
async fn rest_23_a_new_authority_in_the_file_is_believed_at_once_by_the_client_that_there_is() {
    let (old, new) = (Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, old.pem()).unwrap();
    let server = RawServer::start_tls(new.acceptor("127.0.0.1"), serve).await;
    let client = Client::new(Config::new(server.url()).unwrap().certificate_authority_file(&file)).unwrap();
    let error = get(&client).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    tokio::time::resume();
    std::fs::write(&file, new.pem()).unwrap();
    // The client's own thread has its own time: a refusal is looked into once a second.
    let deadline = std::time::Duration::from_secs(20);
    tokio::time::timeout(deadline, async { while get(&client).await.is_err() {} }).await.unwrap();
}

// REST-26: given client certificate files that change, when they are read again (each minute, and at once
// when the server refuses the certificate), then new connections present the new certificate; open watches
// move to one, and no other stream ends.
// - a changed files make a new TLS configuration, equal files do not:
//   `rest_26_changed_certificate_files_make_a_new_tls_configuration_and_equal_ones_do_not`
// - b after a refusal the new certificate is presented
// - c rotated each second under load, with authority and token, no request fails and no event is lost:
//   `rest_26_authority_certificate_and_token_rotated_each_second_fail_no_request_and_lose_no_event`
// - d watches move, other streams do not end:
//   `rest_26_a_renewed_certificate_ends_a_watch_and_no_other_stream`
#[tokio::test]
async fn rest_26_a_new_client_certificate_in_the_files_is_presented_when_the_old_one_is_refused() {
    let (authority, old, new) = (Authority::new(), Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let [chain, key] = ["chain", "key"].map(|name| folder.path().join(name));
    let write = |clients: &Authority| {
        let (certificate, own) = clients.issue("someone");
        std::fs::write(&chain, certificate.pem()).unwrap();
        std::fs::write(&key, own.serialize_pem()).unwrap();
    };
    write(&old);
    let server = RawServer::start_tls(authority.acceptor_asking("127.0.0.1", Some(&new)), serve).await;
    let config = Config::new(server.url()).unwrap().certificate_authority(authority.pem());
    let client = Client::new(config.client_certificate_files(&chain, &key)).unwrap();
    write(&new);
    get(&client).await.unwrap();
}

// REST-31: given a user, groups, a uid and extra values to act as, when a request is sent, then the headers
// carry them, and keys of extra values are escaped so that it can be undone.
// - a the headers: `rest_31_user_uid_groups_and_extra_values_become_headers`
// - b the escaping can be undone: `rest_31_the_escaping_of_extra_keys_can_be_undone`
// - c every request has them
#[tokio::test]
async fn rest_31_whom_to_act_as_is_sent_with_every_request() {
    let server = RawServer::start(|mut connection: Connection| async move {
        while let Some(head) = connection.request().await {
            let groups = head.lines().filter(|line| line.starts_with("impersonate-group: ")).count();
            let user = head.lines().any(|line| line == "impersonate-user: jane");
            let status = if user && groups == 2 { "200 OK" } else { "403 Forbidden" };
            connection.write(answer(status, "", "{}")).await;
        }
    })
    .await;
    let config = Config::new(server.url()).unwrap();
    let config = config.impersonate("jane").impersonate_group("a").impersonate_group("b");
    get(&Client::new(config).unwrap()).await.unwrap();
}

// REST-27: given credentials of a plugin, when they have expired or the server answers 401, then the plugin
// runs again, once for concurrent callers.
// - a after a 401
// - b once for concurrent callers:
//   `rest_27_a_plugin_runs_once_for_a_hundred_callers_and_again_after_a_refusal`
// - c after their end: `rest_27_credentials_that_have_expired_are_not_used_again`
#[tokio::test]
async fn rest_27_a_plugin_of_a_kubeconfig_logs_in_and_runs_again_when_its_token_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [plugin, valid, runs] = ["plugin.sh", "valid", "runs"].map(|name| folder.path().join(name));
    let script = format!(
        "#!/bin/sh\necho >> {runs}\nprintf '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\
         \"kind\":\"ExecCredential\",\"status\":{{\"token\":\"%s\"}}}}' \"$(cat {valid})\"\n",
        runs = runs.display(),
        valid = valid.display(),
    );
    std::fs::write(&plugin, script).unwrap();
    std::fs::write(&valid, "one").unwrap();
    let refused = Arc::new(AtomicUsize::new(0));
    let server = RawServer::start(accepting(valid.clone(), Arc::clone(&refused))).await;
    let kubeconfig = crate::paths::kubeconfig(
        &server.url(),
        &format!(
            "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: /bin/sh\n      \
             args: ['{}']\n      interactiveMode: Never\n",
            plugin.display()
        ),
    );
    let client = Client::new(Config::from_kubeconfig_text(&kubeconfig, None).unwrap()).unwrap();
    for _ in 0..3 {
        get(&client).await.unwrap();
    }
    let count = || std::fs::read_to_string(&runs).unwrap().lines().count();
    assert_eq!(count(), 1);
    std::fs::write(&valid, "two").unwrap();
    get(&client).await.unwrap();
    assert_eq!((count(), refused.load(Ordering::SeqCst)), (2, 1));
}

/// A kubeconfig of this server with this token.
fn with_token(server: &str, token: &str) -> String {
    crate::paths::kubeconfig(server, &format!("    token: {token}\n"))
}

#[tokio::test]
async fn a_token_that_changes_in_the_kubeconfig_itself_is_used_after_a_refusal_without_a_new_client() {
    let folder = tempfile::tempdir().unwrap();
    let [file, valid] = ["kubeconfig", "valid"].map(|name| folder.path().join(name));
    let refused = Arc::new(AtomicUsize::new(0));
    let server = RawServer::start(accepting(valid.clone(), Arc::clone(&refused))).await;
    let write = |server: &str, token: &str| std::fs::write(&file, with_token(server, token)).unwrap();
    write(&server.url(), "one");
    std::fs::write(&valid, "one").unwrap();
    let client = Client::new(Config::from_kubeconfig_file(&file, None).unwrap()).unwrap();
    get(&client).await.unwrap();
    write(&server.url(), "two");
    std::fs::write(&valid, "two").unwrap();
    get(&client).await.unwrap();
    assert_eq!(
        refused.load(Ordering::SeqCst),
        1,
        "the old token was refused once, and the caller never saw it"
    );
}

#[tokio::test]
async fn what_a_kubeconfig_says_of_another_server_or_context_is_for_new_clients_and_never_sent_to_the_old_server()
 {
    for change in
        ["another server", "another current context", "a token chosen by hand", "a plugin for a token"]
    {
        let folder = tempfile::tempdir().unwrap();
        let [file, valid] = ["kubeconfig", "valid"].map(|name| folder.path().join(name));
        std::fs::write(&valid, "two").unwrap();
        let refused = Arc::new(AtomicUsize::new(0));
        let server = RawServer::start(accepting(valid, Arc::clone(&refused))).await;
        let old = with_token(&server.url(), "one");
        std::fs::write(&file, &old).unwrap();
        let mut config = Config::from_kubeconfig_file(&file, None).unwrap();
        let new = old.replace("token: one", "token: two");
        let plugin =
            "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: 'false'}";
        let new = match change {
            "another server" => new.replace(&server.url(), "http://127.0.0.1:9"),
            "another current context" => {
                new.replace("current-context: a", "current-context: b").replace("name: a", "name: b")
            }
            "a plugin for a token" => old.replace("token: one", plugin),
            _ => {
                config = config.token("one");
                new
            }
        };
        assert_ne!(new, old, "{change}");
        let client = Client::new(config).unwrap();
        std::fs::write(&file, new).unwrap();
        // `two` would be accepted: nobody but the old token may come.
        assert!(matches!(get(&client).await, Err(Error::Refused(status)) if status.code == 401), "{change}");
        assert_eq!(refused.load(Ordering::SeqCst), 1, "{change}");
    }
}

/// No Kubernetes takes passwords any more; proxies in front of one do.
#[tokio::test]
async fn a_user_and_a_password_are_sent_over_https_with_every_request() {
    let authority = Authority::new();
    let server =
        RawServer::start_tls(authority.acceptor("127.0.0.1"), |mut connection: Connection| async move {
            while let Some(head) = connection.request().await {
                let is_valid = head.lines().any(|line| line == "authorization: Basic dXNlcjpwYXNz");
                let status = if is_valid { "200 OK" } else { "401 Unauthorized" };
                connection.write(answer(status, "", "{}")).await;
            }
        })
        .await;
    let user = "    username: user\n    password: pass\n";
    let config = Config::from_kubeconfig_text(&crate::paths::kubeconfig(&server.url(), user), None).unwrap();
    let client = Client::new(config.certificate_authority(authority.pem())).unwrap();
    for _ in 0..2 {
        get(&client).await.unwrap();
    }
}

#[tokio::test]
async fn an_id_token_that_another_program_has_renewed_in_the_kubeconfig_is_used_after_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let [file, valid] = ["kubeconfig", "valid"].map(|name| folder.path().join(name));
    let refused = Arc::new(AtomicUsize::new(0));
    let server = RawServer::start(accepting(valid.clone(), Arc::clone(&refused))).await;
    // Its end is in the year 2286. Nobody answers at the issuer's address.
    let token = |name: &str| format!("e30.eyJleHAiOjk5OTk5OTk5OTl9.{name}");
    let write = |name: &str| {
        let login = serde_json::json!({ "name": "oidc", "config": {
            "idp-issuer-url": "https://127.0.0.1:1", "client-id": "me", "id-token": token(name),
        }});
        let text = crate::paths::kubeconfig(&server.url(), &format!("    auth-provider: {login}\n"));
        std::fs::write(&file, text).unwrap();
        std::fs::write(&valid, token(name)).unwrap();
    };
    write("one");
    let client = Client::new(Config::from_kubeconfig_file(&file, None).unwrap()).unwrap();
    get(&client).await.unwrap();
    write("two");
    get(&client).await.unwrap();
    assert_eq!(refused.load(Ordering::SeqCst), 1);
}
