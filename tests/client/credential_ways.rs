//! Where credentials go: through which proxies, beside which others.
//!
//! Answers "who sees a secret of a kubeconfig?" by secrets that are marked, and a plain-text proxy that keeps every byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_informer::client::{Client, Config};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::*;
use crate::logs;
use crate::paths::kubeconfig;
use crate::raw_server::*;
use crate::tls::Authority;

/// A server that keeps the heads of its requests.
async fn keeping(tls: Option<tokio_rustls::TlsAcceptor>) -> (RawServer, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let script = move |mut connection: Connection| {
        let kept = Arc::clone(&kept);
        async move {
            while let Some(head) = connection.request().await {
                kept.lock().unwrap().push(head);
                connection.write(answer("200 OK", "", "{}")).await;
            }
        }
    };
    let server = match tls {
        Some(acceptor) => RawServer::start_tls(acceptor, script).await,
        None => RawServer::start(script).await,
    };
    (server, heads)
}

/// A proxy in plain text that keeps every byte that it is sent. Every name is this machine to it.
async fn recording_proxy() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(record(stream, Arc::clone(&kept)));
        }
    });
    (url, seen)
}

async fn record(mut near: TcpStream, seen: Arc<Mutex<Vec<u8>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(near.read_u8().await.unwrap());
    }
    seen.lock().unwrap().extend_from_slice(&head);
    let head = String::from_utf8(head).unwrap();
    let port = head.split(' ').nth(1).and_then(|target| target.rsplit(':').next()).unwrap();
    let mut far = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).await.unwrap();
    near.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    let ((mut from_near, mut to_near), (mut from_far, mut to_far)) = (near.split(), far.split());
    let sending = async {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = from_near.read(&mut piece).await {
            seen.lock().unwrap().extend_from_slice(&piece[..length]);
            let _ = to_far.write_all(&piece[..length]).await;
        }
    };
    tokio::select! {
        () = sending => {}
        _ = tokio::io::copy(&mut from_far, &mut to_near) => {}
    }
}

/// A token that lasts, with a mark in it.
fn jwt() -> String {
    format!("e30.{}.marked-secret", URL_SAFE_NO_PAD.encode(r#"{"exp":9999999999}"#))
}

/// Users with each kind of credentials; the word `marked-secret` is in each.
fn users(folder: &std::path::Path) -> Vec<String> {
    let file = folder.join("token");
    std::fs::write(&file, "marked-secret").unwrap();
    let credential = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"marked-secret"}}"#;
    let plugin = serde_json::json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/bin/sh",
        "args": ["-c", format!("printf '%s' '{credential}'")],
        "interactiveMode": "Never",
    });
    let login = serde_json::json!({
        "name": "oidc",
        "config": {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "me", "id-token": jwt()},
    });
    vec![
        "    token: marked-secret\n".to_owned(),
        format!("    tokenFile: {}\n", file.display()),
        "    username: me\n    password: marked-secret\n".to_owned(),
        "    as: marked-secret\n".to_owned(),
        format!("    exec: {plugin}\n"),
        format!("    auth-provider: {login}\n"),
    ]
}

/// Whether the mark, or the password as it is sent, is in these bytes.
fn is_marked(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.contains("marked-secret") || text.contains(&STANDARD.encode("me:marked-secret"))
}

async fn ask(config: Config) {
    Client::new(config).unwrap().request(Method::GET, "/version", None).await.unwrap();
}

#[tokio::test]
async fn client_p3_no_secret_of_a_kubeconfig_passes_a_plain_text_proxy_to_a_plain_http_server() {
    let folder = tempfile::tempdir().unwrap();
    let (server, heads) = keeping(None).await;
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let (proxy, seen) = recording_proxy().await;
    for user in users(folder.path()) {
        for host in ["127.0.0.1", "x.localhost", "localhost", "api.example"] {
            let text = kubeconfig(&format!("http://{host}:{port}"), &user);
            let config = Config::from_kubeconfig_text(&text, None).unwrap().proxy(&proxy).unwrap();
            let [warning] = &config.warnings()[..] else { panic!("{user}: {:?}", config.warnings()) };
            assert!(warning.contains("not sent") && !warning.contains("marked"), "{warning}");
            ask(config).await;
            let named = text.replace("    server:", &format!("    proxy-url: {proxy}\n    server:"));
            ask(Config::from_kubeconfig_text(&named, None).unwrap()).await;
        }
        assert!(!is_marked(&seen.lock().unwrap()), "{user}");
        // Without a proxy it stays on this machine, and is sent.
        heads.lock().unwrap().clear();
        let config = Config::from_kubeconfig_text(&kubeconfig(&server.url(), &user), None).unwrap();
        assert_eq!(config.warnings(), Vec::<String>::new());
        ask(config).await;
        assert!(is_marked(heads.lock().unwrap()[0].as_bytes()), "{user}");
    }
    assert_eq!(seen.lock().unwrap().windows(8).filter(|bytes| bytes == b"CONNECT ").count(), 6 * 4 * 2);
}

#[tokio::test]
async fn client_p3_a_plain_text_proxy_sees_no_secret_on_its_way_to_an_https_server_which_receives_it() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (server, heads) = keeping(Some(authority.acceptor("127.0.0.1"))).await;
    let (proxy, seen) = recording_proxy().await;
    for user in users(folder.path()) {
        let config = Config::from_kubeconfig_text(&kubeconfig(&server.url(), &user), None).unwrap();
        ask(config.certificate_authority(authority.pem()).proxy(&proxy).unwrap()).await;
        assert!(is_marked(heads.lock().unwrap().pop().unwrap().as_bytes()), "{user}");
        assert!(!is_marked(&seen.lock().unwrap()), "{user}");
    }
}

#[tokio::test]
async fn client_p11_a_client_certificate_and_the_token_of_an_oidc_login_are_both_sent() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let (server, heads) = keeping(Some(authority.acceptor_asking("127.0.0.1", Some(&clients)))).await;
    let (certificate, key) = clients.issue("someone");
    let login = serde_json::json!({
        "name": "oidc",
        "config": {"idp-issuer-url": "https://127.0.0.1:1", "client-id": "me", "id-token": jwt()},
    });
    let user = format!(
        "    client-certificate-data: {}\n    client-key-data: {}\n    auth-provider: {login}\n",
        STANDARD.encode(certificate.pem()),
        STANDARD.encode(key.serialize_pem()),
    );
    let config = Config::from_kubeconfig_text(&kubeconfig(&server.url(), &user), None).unwrap();
    ask(config.certificate_authority(authority.pem())).await;
    let head = heads.lock().unwrap().pop().unwrap();
    assert!(head.contains(&format!("authorization: Bearer {}\r\n", jwt())), "{head}");
}

#[tokio::test]
async fn client_p4_the_user_that_a_request_acts_as_gets_no_group_of_the_client() {
    let (server, heads) = keeping(None).await;
    let config = Config::new(server.url()).unwrap();
    let config = config.impersonate("admin").impersonate_group("system:masters");
    let request =
        http::Request::get("/version").header("impersonate-user", "guest").body(Vec::new()).unwrap();
    Client::new(config).unwrap().send(request).await.unwrap();
    let head = heads.lock().unwrap().pop().unwrap();
    assert!(head.contains("impersonate-user: guest") && !head.contains("masters"), "{head}");
}

#[tokio::test]
async fn client_a_kubeconfig_that_is_gone_is_warned_of_once_in_ten_minutes() {
    logs::keep();
    let server = RawServer::start(|mut connection: Connection| async move {
        while connection.request().await.is_some() {
            connection.write(answer("200 OK", "", &list_of(&[], "9"))).await;
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone-kubeconfig");
    std::fs::write(&path, kubeconfig(&server.url(), "    token: t\n")).unwrap();
    let client = Client::new(Config::from_kubeconfig_file(&path, None).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let warned = || {
        let is_it =
            |line: &&str| line.contains("cannot be renewed; the old") && line.contains("gone-kubeconfig");
        logs::kept().lines().filter(is_it).count()
    };
    local(async {
        let source = made(client.resource::<ConfigMap>());
        for _ in 0..2 {
            let before = warned();
            // Tried again each 10 s, after the first minute.
            for _ in 0..60 {
                tokio::time::pause();
                tokio::time::advance(Duration::from_secs(10)).await;
                tokio::time::resume();
                list(&source, latest()).await.unwrap();
            }
            assert_eq!(warned(), before + 1);
        }
    })
    .await;
}
