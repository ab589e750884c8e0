//! Where requests go, and to which servers credentials are sent.
//!
//! Answers "can a name or a kubeconfig lead a request to another place than intended?"

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use actix_informer::client::{Client, Config, Error};
use http::Method;
use informer_actors::list_watch::ListWatch;
use informer_actors::runtime::Runtime;
use informer_apiserver::ApiServer;
use informer_core::meta::ObjectKey;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube_core::discovery::ApiResource;
use serde_json::json;

use crate::harness::*;
use crate::raw_server::*;

/// A kubeconfig of one cluster at this URL, whose user has these lines.
pub(crate) fn kubeconfig(server: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters:\n- name: the-cluster\n  cluster:\n    server: {server}\n\
         contexts:\n- name: a\n  context: {{cluster: the-cluster, user: a}}\nusers:\n- name: a\n  user:\n{user}"
    )
}

/// A server that records the heads of its requests.
async fn keeping() -> (RawServer, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let server = RawServer::start(move |mut connection: Connection| {
        let kept = Arc::clone(&kept);
        async move {
            while let Some(head) = connection.request().await {
                kept.lock().unwrap().push(head);
                connection.write(answer("200 OK", "", &config_map("x", 1))).await;
            }
        }
    })
    .await;
    (server, heads)
}

// REST-37: given a description or a name that would lead to another path, when it is used, then it is refused
// before anything is sent; a name that Kubernetes allows (spaces, letters of any language, `:`, `?`, `,`) is
// asked for by exactly that name, in a path and in a selector.
// - a an api version that is not group and version is refused
// - b `.`, `..` and names with `/` or `%` are refused before anything is sent:
//   `a_name_that_would_lead_to_another_path_is_refused_before_anything_is_sent`
// - c a name that Kubernetes allows is asked for by exactly that name:
//   `an_object_whose_name_needs_escapes_is_asked_for_by_exactly_that_name`
#[test]
fn rest_37_a_description_whose_api_version_is_not_its_group_and_version_is_refused() {
    let client = Client::new(Config::new("http://127.0.0.1:1").unwrap()).unwrap();
    let maps = ApiResource::erase::<ConfigMap>(&());
    let runtime = Runtime::threads().start().unwrap();
    for api_version in ["v1/namespaces/kube-system/secrets?", "apps/v1", "", "v2"] {
        let elsewhere = ApiResource { api_version: api_version.to_owned(), ..maps.clone() };
        let refused = client.dynamic(&elsewhere).source(&runtime);
        assert!(matches!(refused, Err(Error::Name { .. })), "{api_version}");
    }
    assert!(client.dynamic(&maps).source(&runtime).is_ok());
}

#[tokio::test]
async fn an_object_whose_name_needs_escapes_is_asked_for_by_exactly_that_name() {
    let server = ApiServer::builder().start_blocking().unwrap();
    let names = ["system:node proxy", "größe", "a,b=c\\d", "100?#[]\"<>", "a+b&c;d@e"];
    for name in names {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"of": "test"}}, "rules": []});
        server.create(role).unwrap();
    }
    let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
    let plain = made(client.resource::<ClusterRole>());
    let selected = made(client.resource::<ClusterRole>().labels("of=test"));
    local(async {
        let listed = list(&selected, latest()).await.unwrap().items;
        let listed: BTreeSet<_> =
            listed.iter().map(|item| item.rsplit_once('@').unwrap().0.to_owned()).collect();
        assert_eq!(listed, names.map(str::to_owned).into());
        for name in names {
            for source in [&plain, &selected] {
                let found = source.get(ObjectKey::cluster(name)).await.unwrap();
                assert_eq!(found.map(|role| role.key().name().to_owned()).as_deref(), Some(name));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_name_that_would_lead_to_another_path_is_refused_before_anything_is_sent() {
    let (server, heads) = keeping().await;
    local(async {
        let source = made(config_maps(&server.url()));
        for name in [".", "..", "a/b", "a%2fb"] {
            assert!(source.get(ObjectKey::namespaced("a", name)).await.is_err(), "{name}");
        }
    })
    .await;
    assert_eq!(*heads.lock().unwrap(), Vec::<String>::new());
}

/// Heads of the requests that a client of this kubeconfig sends; it reaches loopback under the name `host`.
async fn heads_to(host: &str, user: &str) -> (String, Config) {
    let (server, heads) = keeping().await;
    let url = server.url().replace("127.0.0.1", host);
    let config = Config::from_kubeconfig_text(&kubeconfig(&url, user), None).unwrap();
    let client = Client::new(config.clone()).unwrap();
    client.request(Method::GET, "/x", None).await.unwrap();
    let heads = heads.lock().unwrap().join("\n");
    (heads.to_lowercase(), config)
}

// REST-36: given a kubeconfig whose server is plain http, when it is used, then its token is sent to loopback
// and to nobody else, its client certificate to nobody, and what is left out is reported in a warning that
// names the cluster; a client certificate given by hand for http is refused.
// - a its token is sent to loopback and to nobody else
// - b what is left out, its certificate too, is reported in a warning that names the cluster:
//   `over_plain_http_credentials_are_left_out_with_a_warning_that_names_the_cluster`
// - c a certificate given by hand for http is refused:
//   `a_client_certificate_given_by_hand_for_a_plain_http_endpoint_is_refused`
#[cfg(target_os = "linux")]
#[tokio::test]
async fn rest_36_the_token_of_a_kubeconfig_is_sent_over_plain_http_only_to_loopback() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "of-a-file").unwrap();
    for user in ["    token: given\n".to_owned(), format!("    tokenFile: {}\n", file.display())] {
        for host in ["127.0.0.1", "localhost"] {
            let (heads, _) = heads_to(host, &user).await;
            assert!(heads.contains("authorization: bearer "), "{host}: {heads}");
        }
        // This machine by an address that is not loopback.
        let (heads, _) = heads_to("0.0.0.0", &user).await;
        assert!(!heads.contains("authorization"), "{heads}");
    }
}

#[test]
fn a_client_certificate_given_by_hand_for_a_plain_http_endpoint_is_refused() {
    let config = Config::new("http://127.0.0.1:1").unwrap().client_certificate("certificate", "key");
    let error = Client::new(config).unwrap_err();
    assert!(matches!(&error, Error::Unusable { .. }) && error.to_string().contains("https"), "{error}");
}

#[tokio::test]
async fn a_header_of_the_caller_replaces_ours_and_a_get_has_no_length() {
    let (server, heads) = keeping().await;
    let client = Client::new(Config::new(server.url()).unwrap().token("ours")).unwrap();
    let request = http::Request::get("/x")
        .header("Host", "virtual.example")
        .header("Accept-Encoding", "identity")
        .header("Authorization", "Bearer theirs")
        .header("User-Agent", "me")
        .header("X-Two", "1")
        .header("X-Two", "2");
    client.send(request.body(Vec::new()).unwrap()).await.unwrap();
    let head = heads.lock().unwrap().join("\n").to_lowercase();
    let of = |name: &str| {
        let prefix = format!("{name}: ");
        head.lines().filter_map(|line| line.strip_prefix(&prefix)).collect::<Vec<_>>()
    };
    assert_eq!(of("host"), ["virtual.example"], "{head}");
    assert_eq!(of("accept-encoding"), ["identity"], "{head}");
    assert_eq!(of("authorization"), ["bearer theirs"], "{head}");
    assert_eq!(of("user-agent"), ["me"], "{head}");
    assert_eq!(of("x-two"), ["1", "2"], "{head}");
    assert_eq!(of("content-length"), Vec::<&str>::new(), "a GET has no body: {head}");
}
