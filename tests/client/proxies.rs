//! Requests through proxies: HTTP, HTTPS and SOCKS5, to http and https servers.
//!
//! Answers "does a request reach the API server through a proxy, and what does the proxy learn of it?" What a proxy does
//! wrong is in `bad_proxies.rs`, which proxy an environment asks for in `proxy_rules.rs`.

use std::process::Command;
use std::sync::{Arc, Mutex};

use actix_informer::client::api::AttachParams;
use actix_informer::client::{Client, Config, Error, ProxyError, TransportError};
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};

use crate::harness::*;
use crate::paths::kubeconfig;
use crate::raw_server::*;
use crate::small_proxy::*;
use crate::tls::Authority;

/// A server of empty lists, and the heads of its requests.
async fn keeping(authority: Option<&Authority>) -> (RawServer, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let script = move |mut connection: Connection| {
        let kept = Arc::clone(&kept);
        async move {
            while let Some(head) = connection.request().await {
                kept.lock().unwrap().push(head);
                connection.write(answer("200 OK", "", &list_of(&[], "9"))).await;
            }
        }
    };
    let server = match authority {
        Some(authority) => RawServer::start_tls(authority.acceptor(NAME), script).await,
        None => RawServer::start(script).await,
    };
    (server, heads)
}

fn address(server: &RawServer) -> std::net::SocketAddr {
    server.url().rsplit('/').next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn rest_42_a_request_passes_each_kind_of_proxy_in_a_tunnel_to_http_and_to_https() {
    let authority = Authority::new();
    for kind in KINDS {
        for secure in [false, true] {
            let (server, heads) = keeping(secure.then_some(&authority)).await;
            let proxy = SmallProxy::start(kind);
            let trusted = format!("{}{}", authority.pem(), proxy.certificate());
            let config = Config::new(server.url()).unwrap().certificate_authority(trusted);
            let config = config.tls_server_name(NAME).token("s3cret").proxy(proxy.url()).unwrap();
            let client = Client::new(config).unwrap();
            for _ in 0..3 {
                client.request(Method::GET, "/version", None).await.unwrap();
            }
            let target = address(&server).to_string();
            assert_eq!(proxy.asked(), std::slice::from_ref(&target), "{kind:?}: one tunnel for all requests");
            for head in heads.lock().unwrap().iter() {
                let head = head.to_lowercase();
                assert!(head.starts_with("get /version http/1.1\r\n"), "{kind:?}: {head}");
                assert!(head.contains(&format!("host: {target}\r\n")) && !head.contains("proxy"), "{head}");
                assert!(head.contains("authorization: bearer s3cret\r\n"), "{head}");
            }
        }
    }
}

#[tokio::test]
async fn rest_42_a_list_passes_a_proxy_and_the_proxy_resolves_the_name_of_the_server() {
    let authority = Authority::new();
    for kind in KINDS {
        for secure in [false, true] {
            let (server, _) = keeping(secure.then_some(&authority)).await;
            let resolves = Some(address(&server));
            let proxy = SmallProxy::start_with(kind, Settings { resolves, ..Settings::default() });
            let trusted = format!("{}{}", authority.pem(), proxy.certificate());
            let url = if secure { format!("https://{NAME}:6443") } else { format!("http://{NAME}") };
            let config = Config::new(url).unwrap().certificate_authority(trusted).proxy(proxy.url()).unwrap();
            let source = Client::new(config).unwrap().resource::<ConfigMap>();
            let page = local(async { list(&made(source), latest()).await }).await.unwrap();
            assert_eq!(page.version, "9");
            let port = if secure { 6443 } else { 80 };
            assert_eq!(proxy.asked(), [format!("{NAME}:{port}")], "{kind:?}");
        }
    }
}

#[tokio::test]
async fn rest_42_a_proxy_is_logged_in_to_with_the_user_and_the_password_of_its_url() {
    let (server, _) = keeping(None).await;
    for kind in KINDS {
        let settings = Settings { login: Some(("me@home", "p:/ü")), ..Settings::default() };
        let proxy = SmallProxy::start_with(kind, settings);
        let get = async |userinfo: &str| {
            let config = Config::new(server.url()).unwrap().certificate_authority(proxy.certificate());
            let client = Client::new(config.proxy(proxy.url_of(userinfo)).unwrap()).unwrap();
            client.request(Method::GET, "/version", None).await
        };
        get("me%40home:p%3A%2F%C3%BC").await.unwrap();
        for (userinfo, given) in [("me%40home:wrong", true), ("you", true), ("", false)] {
            let error = get(userinfo).await.unwrap_err();
            let Error::Transport(TransportError::Proxy { source, .. }) = &error else {
                panic!("{kind:?} {userinfo}: {error:?}")
            };
            assert!(
                matches!(source, ProxyError::Login { is_given } if *is_given == given),
                "{kind:?} {source:?}"
            );
        }
        assert_eq!(proxy.asked().len(), 1, "nobody else was let through");
    }
}

#[tokio::test]
async fn rest_42_the_proxy_url_of_a_kubeconfig_is_used_unless_the_program_says_otherwise() {
    let (server, _) = keeping(None).await;
    let (proxy, other) = (SmallProxy::start(Kind::Http), SmallProxy::start(Kind::Socks5));
    let text = kubeconfig(&server.url(), "    token: t\n");
    let text = text.replace("    server:", &format!("    proxy-url: {}\n    server:", proxy.url()));
    let config = || Config::from_kubeconfig_text(&text, None).unwrap();
    for (config, through) in [
        (config(), [1, 0]),
        (config().proxy(other.url()).unwrap(), [1, 1]),
        (config().without_proxy(), [1, 1]),
    ] {
        Client::new(config).unwrap().request(Method::GET, "/version", None).await.unwrap();
        assert_eq!([proxy.asked().len(), other.asked().len()], through);
    }
    assert!(
        config().warnings()[0].contains("the token of its user is not sent"),
        "{:?}",
        config().warnings()
    );
}

// REST-42: given a proxy (HTTP, HTTPS or SOCKS5) that is named by hand or by `proxy-url` of a kubeconfig,
// when requests are sent to an http or https server, then each passes a tunnel (CONNECT also for http
// endpoints, where client-go sends whole requests to the proxy), the proxy sees neither requests nor
// credentials of the cluster and resolves the server's name, and informers follow through it.
// - a each kind of proxy to http and to https, one tunnel for all requests:
//   `rest_42_a_request_passes_each_kind_of_proxy_in_a_tunnel_to_http_and_to_https`
// - b the server's name is resolved by the proxy:
//   `rest_42_a_list_passes_a_proxy_and_the_proxy_resolves_the_name_of_the_server`
// - c the proxy is logged in to with the user and the password of its URL:
//   `rest_42_a_proxy_is_logged_in_to_with_the_user_and_the_password_of_its_url`
// - d `proxy-url` is used unless the program names another proxy or none:
//   `rest_42_the_proxy_url_of_a_kubeconfig_is_used_unless_the_program_says_otherwise`
// - e a kubeconfig with `proxy-url` works as for kubectl:
//   `a_kubeconfig_works_as_for_kubectl_or_is_refused_as_by_kubectl`
// - f commands in pods pass it, too
// - g informers follow through each kind, also when the tunnels break:
//   `rest_42_an_informer_follows_through_each_kind_of_proxy_and_through_broken_tunnels`
#[tokio::test]
async fn rest_42_a_command_in_a_pod_passes_each_kind_of_proxy() {
    let pod = serde_json::json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "example.org/web:1"}]}});
    for kind in KINDS {
        for secure in [false, true] {
            let builder = informer_apiserver::ApiServer::builder();
            let builder = if secure { builder.tls() } else { builder };
            let server = builder.start().await.unwrap();
            server.create(pod.clone()).unwrap();
            server.agent().container("default", "web", "main");
            let proxy = SmallProxy::start(kind);
            let trusted = format!("{}{}", server.ca_pem().unwrap_or_default(), proxy.certificate());
            let config = Config::new(server.url()).unwrap().certificate_authority(trusted);
            let client = Client::new(config.proxy(proxy.url()).unwrap()).unwrap();
            let pods = client.api::<Pod>().namespaced("default");
            let attached = pods.exec("web", ["echo", "hi"], &AttachParams::default()).await.unwrap();
            let (stdout, _, status) = attached.output(4096).await.unwrap();
            assert_eq!((&*stdout, status.code()), (&b"hi\n"[..], Some(0)), "{kind:?}");
            assert_eq!(proxy.asked(), [address_of(&server.url())], "{kind:?}: no way around it");
        }
    }
}

fn address_of(url: &str) -> String {
    url.rsplit('/').next().unwrap().to_owned()
}

/// Set in the processes that run a test of this file again with another environment.
const INSIDE: &str = "INFORMER_TEST_INSIDE";

/// What a client says in a process with these variables.
fn in_environment(variables: &[(&str, &str)]) -> String {
    let name = "proxies::rest_43_without_a_named_proxy_the_environment_is_asked";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(INSIDE, "yes");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    String::from_utf8(command.envs(variables.iter().copied()).output().unwrap().stdout).unwrap()
}

#[tokio::test]
async fn rest_43_without_a_named_proxy_the_environment_is_asked() {
    if std::env::var_os(INSIDE).is_some() {
        let config = Config::new(format!("http://{NAME}:8080")).unwrap();
        let error = match Client::new(config) {
            Ok(client) => client.request(Method::GET, "/version", None).await.map(drop).err(),
            Err(error) => Some(error),
        };
        println!("{}", error.map_or_else(|| "answered".to_owned(), |error| error.to_string()));
        return;
    }
    let (server, _) = keeping(None).await;
    let settings = Settings { resolves: Some(address(&server)), ..Settings::default() };
    let proxy = SmallProxy::start_with(Kind::Http, settings);
    let url = proxy.url();
    // The server answers in this process, so that this thread may not block.
    let ask = |variables: Vec<(&'static str, String)>| {
        tokio::task::spawn_blocking(move || {
            let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
            in_environment(&variables)
        })
    };
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let said = ask(vec![(name, url.clone())]).await.unwrap();
        assert!(said.contains("answered"), "{name}: {said}");
    }
    assert_eq!(proxy.asked(), vec![format!("{NAME}:8080"); 3]);
    for variables in [
        vec![("HTTPS_PROXY", url.clone())],
        vec![("HTTP_PROXY", url.clone()), ("NO_PROXY", "a.example, .test".to_owned())],
    ] {
        let said = ask(variables).await.unwrap();
        assert!(said.contains(&format!("cannot connect to {NAME}:8080: ")), "{said}");
    }
    let said = ask(vec![("HTTP_PROXY", url.clone()), ("REQUEST_METHOD", "GET".to_owned())]).await.unwrap();
    assert!(said.contains("cannot be used: REQUEST_METHOD is set"), "{said}");
    assert_eq!(proxy.asked().len(), 3);
}
