//! Checks when an identity is renewed, by whom and how often, on simulated time with real files and small plugins.
//!
//! Answers "does each caller get what is valid now, and does nobody cause work twice?" `tests/client/rotation.rs` checks
//! the same with servers that refuse what is outdated.

use std::path::Path;

use tokio::time::advance;

use super::Provider;
use super::exec::{ClusterInfo, LIMIT, Plugin, PluginConfig, PluginPolicy};
use super::material::{Login, Pem, TlsMaterial, Trust};
use super::*;

fn without_tls(login: Option<Login>, plugin: Option<Plugin>) -> Material {
    Material {
        tls: None,
        proxy_tls: None,
        login,
        provider: plugin.map(|plugin| Arc::new(Provider::Plugin(plugin))),
        again: None,
        has_read_token: Arc::default(),
    }
}

fn of_file(path: &Path) -> Identities {
    let material = without_tls(Some(Login::TokenFile { path: path.to_owned(), otherwise: None }), None);
    Identities::new(material).expect("a token file is read later")
}

fn plugin(script: &str) -> Plugin {
    let config: PluginConfig = serde_json::from_value(serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "Never",
        "command": "/bin/sh",
        "args": ["-c", script],
    }))
    .expect("a description");
    Plugin::new(&config, &ClusterInfo::default(), &PluginPolicy::AllowAll, LIMIT).expect("valid")
}

/// Counts its runs in a file, and gives the count as the token.
fn counting(directory: &Path, status: &str) -> Plugin {
    let file = directory.join("runs");
    let file = file.display();
    plugin(&format!(
        r#"echo >> {file}; printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
"status":{{"token":"%d"{status}}}}}' "$(wc -l < {file})""#
    ))
}

fn runs(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("runs")).unwrap_or_default().lines().count()
}

fn header(identity: &Identity) -> &str {
    let header = identity.authorization.as_ref().expect("a header");
    assert!(header.is_sensitive());
    header.to_str().expect("text")
}

async fn token(identities: &Identities) -> String {
    header(&identities.current().await.expect("credentials")).to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_token_beside_a_token_file_counts_only_until_the_file_was_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    let otherwise = Some("stale".to_owned().into());
    let login = Login::TokenFile { path: path.clone(), otherwise };
    let identities = Identities::new(without_tls(Some(login), None)).unwrap();
    assert_eq!(token(&identities).await, "Bearer stale");
    std::fs::write(&path, "new").unwrap();
    advance(FRESH).await;
    assert_eq!(token(&identities).await, "Bearer new");
    std::fs::remove_file(&path).unwrap();
    advance(FRESH).await;
    assert_eq!(token(&identities).await, "Bearer new");
}

// REST-18: given a token file rotated, when 1 min passes, then new requests carry the new token; on read
// error the old one stays.
// - a requests after 1 min carry the new token
// - b on read error the old one stays
// - c a token in the kubeconfig itself too:
//   `a_token_that_changes_in_the_kubeconfig_itself_is_used_after_a_refusal_without_a_new_client`
// - d but not another server's:
//   `what_a_kubeconfig_says_of_another_server_or_context_is_for_new_clients_and_never_sent_to_the_old_server`
#[tokio::test(start_paused = true)]
async fn rest_18_a_rotated_token_is_used_after_a_minute_and_a_read_error_keeps_the_old_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "one\n").unwrap();
    let file = of_file(&path);
    assert_eq!(token(&file).await, "Bearer one");
    std::fs::write(&path, "two").unwrap();
    advance(Duration::from_secs(59)).await;
    assert_eq!(token(&file).await, "Bearer one");
    advance(Duration::from_secs(1)).await;
    assert_eq!(token(&file).await, "Bearer two");
    std::fs::remove_file(&path).unwrap();
    advance(Duration::from_secs(61)).await;
    assert_eq!(token(&file).await, "Bearer two");
    std::fs::write(&path, "three").unwrap();
    advance(RETRY).await;
    assert_eq!(token(&file).await, "Bearer three");
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_read_again_at_once_and_only_a_new_one_is_tried() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "one").unwrap();
    let file = of_file(&path);
    let first = file.current().await.unwrap();
    assert!(file.after_refusal_of(first.version).await.is_none());
    std::fs::write(&path, "two").unwrap();
    // A refusal for each of a thousand requests is one look a second.
    assert!(file.after_refusal_of(first.version).await.is_none());
    advance(BETWEEN_REFUSALS).await;
    let second = file.after_refusal_of(first.version).await.expect("another token");
    assert_eq!(header(&second), "Bearer two");
    // Whoever was refused with the first one learns of the second without another look.
    std::fs::remove_file(&path).unwrap();
    assert_eq!(file.after_refusal_of(first.version).await.expect("the second").version, second.version);
}

#[tokio::test]
async fn a_file_that_was_never_readable_is_a_typed_error_naming_it() {
    let error = of_file(Path::new("missing-token")).current().await.unwrap_err();
    let TransportError::Credentials(cause) = &error else { panic!("{error}") };
    assert!(matches!(&**cause, Error::File { what: "token file", .. }));
    assert!(error.to_string().contains("missing-token"));
}

// REST-19: given 100 concurrent callers and an empty cache, when a token is needed, then one read happens.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn rest_19_a_hundred_callers_cause_one_read() {
    // A FIFO can be read once for each time that it is written: a second read would wait for ever.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let file = Arc::new(of_file(&path));
    let callers = futures_util::future::join_all((0..100).map(|_| token(&file)));
    let writing = tokio::task::spawn_blocking(move || std::fs::write(path, "one").unwrap());
    let (tokens, written) = tokio::join!(callers, writing);
    written.unwrap();
    assert!(tokens.iter().all(|token| token == "Bearer one"));
}

#[tokio::test]
async fn rest_27_a_plugin_runs_once_for_a_hundred_callers_and_again_after_a_refusal() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = counting(directory.path(), "");
    let identities = Identities::new(without_tls(None, Some(plugin))).unwrap();
    assert_eq!(runs(directory.path()), 0, "no plugin runs before the first request");
    let tokens = futures_util::future::join_all((0..100).map(|_| token(&identities))).await;
    assert!(tokens.iter().all(|token| token == "Bearer 1"));
    let refused = identities.current().await.unwrap().version;
    let renewed =
        futures_util::future::join_all((0..100).map(|_| identities.after_refusal_of(refused))).await;
    assert!(renewed.iter().all(|renewed| header(renewed.as_ref().expect("a new token")) == "Bearer 2"));
    assert_eq!(runs(directory.path()), 2);
}

#[tokio::test]
async fn rest_27_credentials_that_have_expired_are_not_used_again() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = counting(directory.path(), r#","expirationTimestamp":"2001-01-01T00:00:00Z""#);
    let identities = Identities::new(without_tls(None, Some(plugin))).unwrap();
    assert_eq!(token(&identities).await, "Bearer 1");
    assert_eq!(token(&identities).await, "Bearer 2");
}

#[tokio::test(start_paused = true)]
async fn credentials_of_a_plugin_are_renewed_ahead_of_their_end() {
    let directory = tempfile::tempdir().unwrap();
    let end = wall_time() + jiff::SignedDuration::from_secs(3600);
    let plugin = counting(directory.path(), &format!(r#","expirationTimestamp":"{end:.0}""#));
    let identities = Identities::new(without_tls(None, Some(plugin))).unwrap();
    assert_eq!(token(&identities).await, "Bearer 1");
    advance(Duration::from_secs(3500)).await;
    assert_eq!(token(&identities).await, "Bearer 1");
    advance(Duration::from_secs(60)).await;
    // The first one is still valid: nobody waits for the second.
    until(&identities, "Bearer 1", "Bearer 2").await;
    assert_eq!(runs(directory.path()), 2);
}

/// Asks until there is the new token; before it, there is the old one.
async fn until(identities: &Identities, old: &str, new: &str) {
    loop {
        match token(identities).await {
            found if found == new => return,
            found => assert_eq!(found, old),
        }
        std::thread::yield_now();
    }
}

#[tokio::test(start_paused = true)]
async fn client_p7_whoever_begins_a_renewal_does_not_wait_for_it_while_the_old_credentials_are_valid() {
    let directory = tempfile::tempdir().unwrap();
    let gate = directory.path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let end = wall_time() + jiff::SignedDuration::from_secs(3600);
    let script = format!(
        r#"test -e {runs} && read x < {gate}; echo >> {runs}
printf '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
"status":{{"token":"%d","expirationTimestamp":"{end:.0}"}}}}' "$(wc -l < {runs})""#,
        runs = directory.path().join("runs").display(),
        gate = gate.display(),
    );
    let identities = Identities::new(without_tls(None, Some(plugin(&script)))).unwrap();
    assert_eq!(token(&identities).await, "Bearer 1");
    advance(Duration::from_secs(3570)).await;
    let began = Instant::now();
    for _ in 0..3 {
        assert_eq!(token(&identities).await, "Bearer 1");
    }
    assert!(began.elapsed() <= PATIENCE + Duration::from_millis(2), "{:?}", began.elapsed());
    std::fs::write(gate, "opened\n").unwrap();
    until(&identities, "Bearer 1", "Bearer 2").await;
}

#[tokio::test(start_paused = true)]
async fn client_p12_a_token_beside_a_token_file_counts_until_the_file_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    let login = Login::TokenFile { path: path.clone(), otherwise: Some("written".to_owned().into()) };
    let identities = Identities::new(without_tls(Some(login), None)).unwrap();
    assert_eq!(token(&identities).await, "Bearer written");
    std::fs::write(&path, "of the file").unwrap();
    advance(FRESH).await;
    assert_eq!(token(&identities).await, "Bearer of the file");
}

#[tokio::test]
async fn rest_33_a_caller_who_stops_waiting_for_a_plugin_leaves_it_to_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let gate = directory.path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let script = format!(
        r#"echo >> {runs}; read token < {gate}; printf '{{"apiVersion":"client.authentication.k8s.io/v1",
"kind":"ExecCredential","status":{{"token":"%s"}}}}' "$token""#,
        runs = directory.path().join("runs").display(),
        gate = gate.display(),
    );
    let identities = Arc::new(Identities::new(without_tls(None, Some(plugin(&script)))).unwrap());
    assert!(token(&identities).now_or_never().is_none(), "the plugin waits at its gate");
    let other = tokio::spawn({
        let identities = Arc::clone(&identities);
        async move { token(&identities).await }
    });
    tokio::task::spawn_blocking(move || std::fs::write(gate, "opened\n").unwrap()).await.unwrap();
    assert_eq!(other.await.unwrap(), "Bearer opened");
    assert_eq!(runs(directory.path()), 1);
}

#[tokio::test]
async fn a_plugin_that_fails_is_an_error_that_names_it() {
    let identities = Identities::new(without_tls(None, Some(plugin("echo no login >&2; exit 1")))).unwrap();
    let error = identities.current().await.unwrap_err().to_string();
    assert!(error.contains("/bin/sh") && error.contains("no login"), "{error}");
}

#[test]
fn rest_21_a_token_that_is_written_down_wins_over_the_plugin() {
    let login = Login::Token("mine".to_owned().into());
    let identities = Identities::new(without_tls(Some(login), Some(plugin("exit 1")))).unwrap();
    // It may still give a certificate; without TLS there is nothing that it could give.
    let state = identities.step();
    assert!(matches!(state, Step::Use(identity) if header(&identity) == "Bearer mine"));
}

#[test]
fn a_user_and_a_password_are_sent_as_basic_authentication() {
    let login = Login::Basic { user: "user".to_owned(), password: "pass".to_owned().into() };
    let identities = Identities::new(without_tls(Some(login), None)).unwrap();
    assert!(matches!(identities.step(), Step::Use(identity) if header(&identity) == "Basic dXNlcjpwYXNz"));
}

fn authority() -> (String, rcgen::CertifiedKey<rcgen::KeyPair>) {
    let own = rcgen::generate_simple_self_signed(["authority".to_owned()]).expect("a certificate");
    (own.cert.pem(), own)
}

#[tokio::test(start_paused = true)]
async fn rest_26_changed_certificate_files_make_a_new_tls_configuration_and_equal_ones_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let [ca, chain, key] = ["ca", "chain", "key"].map(|name| directory.path().join(name));
    let write = |own: &rcgen::CertifiedKey<rcgen::KeyPair>| {
        std::fs::write(&chain, own.cert.pem()).unwrap();
        std::fs::write(&key, own.signing_key.serialize_pem()).unwrap();
    };
    let (pem, own) = authority();
    std::fs::write(&ca, &pem).unwrap();
    write(&own);
    let tls = TlsMaterial {
        server_name: "api.example".try_into().unwrap(),
        trust: Trust::Only(Pem::File(ca.clone())),
        certificate: Some((Pem::File(chain.clone()), Pem::File(key.clone()))),
    };
    let identities = Identities::new(Material { tls: Some(tls), ..without_tls(None, None) }).unwrap();
    let first = identities.current().await.unwrap();
    advance(FRESH).await;
    assert_eq!(identities.current().await.unwrap().version, first.version, "nothing has changed");
    write(&authority().1);
    advance(FRESH).await;
    let second = identities.current().await.unwrap();
    assert_eq!(
        (second.connections, identities.connections()),
        (first.connections + 1, first.connections + 1)
    );
    // A pair that does not fit is a rotation under way: the old one stays.
    std::fs::write(&key, authority().1.signing_key.serialize_pem()).unwrap();
    advance(FRESH).await;
    assert_eq!(identities.current().await.unwrap().connections, second.connections);
    std::fs::write(&ca, authority().0).unwrap();
    write(&authority().1);
    advance(RETRY).await;
    assert_eq!(identities.current().await.unwrap().connections, second.connections + 1);
}

#[test]
fn rest_17_no_debug_of_an_identity_shows_a_token() {
    let login = Login::Token("marked-secret".to_owned().into());
    let identities = Identities::new(without_tls(Some(login), None)).unwrap();
    let Step::Use(identity) = identities.step() else { panic!("it is known at once") };
    assert!(!format!("{identities:?} {identity:?}").contains("marked-secret"));
}
