//! The handle: start in any runtime, stop, restart, rewind, and the information for tests.
//!
//! They answer: can a test run a server in any runtime, and rely on the handle?
//! 1. `stop` and `restore` are seen from a client's side too, as an outage and as a rewind.
use std::net::TcpStream;

use informer_apiserver::{ApiServer, StartError};
use serde_json::json;

use crate::client::{config_map, get, server, watch};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn it_starts_on_a_runtime_with_a_paused_clock() {
    let server = ApiServer::builder().start().await.unwrap();
    assert_eq!(get(&server, "/readyz").text(), "ok");
}

#[test]
fn it_starts_inside_an_actix_system() {
    actix_web::rt::System::new().block_on(async {
        let server = ApiServer::builder().start().await.unwrap();
        assert_eq!(get(&server, "/readyz").text(), "ok");
    });
}

#[test]
fn a_port_in_use_is_reported() {
    let server = server();
    let refused = ApiServer::builder().port(server.addr().port()).start_blocking().unwrap_err();
    assert!(matches!(refused, StartError::Bind { port, .. } if port == server.addr().port()));
}

#[test]
fn stop_resets_connections_and_start_again_keeps_the_store() {
    let mut server = server();
    server.create(config_map("a", "x")).unwrap();
    let (addr, revision) = (server.addr(), server.revision());
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={revision}"));
    server.stop();
    assert_eq!(stream.event().unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    assert_eq!(TcpStream::connect(addr).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(server.watches("configmaps"), 0, "no stream outlives the server");
    server.create(config_map("b", "x")).unwrap();
    server.start_again().unwrap();
    assert_eq!(server.addr(), addr);
    let mut resumed = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={revision}"));
    assert_eq!(resumed.next_event().1, "b");
}

#[test]
fn a_restored_server_is_behind_and_silent_to_watches_from_its_lost_future() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let (backup, then) = (server.backup(), server.revision());
    server.create(config_map("b", "x")).unwrap();
    let future = server.revision();
    server.restore(&backup);
    assert_eq!((server.revision(), server.list("configmaps").unwrap().len()), (then, 1));
    let mut stream = watch(&server, &format!("{MAPS}?watch=1&resourceVersion={future}"));
    let again = server.create(config_map("c", "x")).unwrap();
    assert_eq!(again["metadata"]["resourceVersion"], future.to_string(), "versions are issued a second time");
    server.create(config_map("d", "x")).unwrap();
    assert_eq!(stream.next_event(), ("ADDED".into(), "d".into(), future + 1));
}

#[test]
fn requests_are_recorded_in_their_order() {
    let server = server();
    get(&server, &format!("{MAPS}?limit=5"));
    get(&server, "/apis/apps/v1/deployments?watch=1&timeoutSeconds=1");
    let seen = server.requests();
    let verbs: Vec<(&str, &str)> =
        seen.iter().map(|seen| (seen.verb.as_str(), seen.resource.as_str())).collect();
    assert_eq!(verbs, [("list", "configmaps"), ("watch", "deployments.apps")]);
    assert_eq!((seen[0].parameter("limit"), seen[0].path.as_str()), (Some("5"), MAPS));
    server.clear_requests();
    assert!(server.requests().is_empty());
}

#[test]
fn equal_seeds_give_equal_uids_and_names() {
    let make = || {
        let server = server();
        let made = server
            .create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-"},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}))
            .unwrap();
        (made["metadata"]["uid"].clone(), made["metadata"]["name"].clone())
    };
    assert_eq!(make(), make());
}

#[test]
fn the_kubeconfig_names_server_authority_and_token() {
    let server = ApiServer::builder().tls().token("t\"1").start_blocking().unwrap();
    let text = server.kubeconfig();
    assert!(server.url().starts_with("https://127.0.0.1:") && text.contains(&server.url()));
    assert!(text.contains("certificate-authority-data: ") && text.contains(r#"token: "t\"1""#));
    assert!(server.ca_pem().unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
}

#[test]
fn https_is_served_with_a_certificate_the_authority_signed() {
    use std::io::{Read as _, Write as _};
    use std::sync::Arc;

    let server = ApiServer::builder().tls().start_blocking().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    let pem = server.ca_pem().unwrap().as_bytes();
    use rustls::pki_types::pem::PemObject as _;
    roots.add(rustls::pki_types::CertificateDer::from_pem_slice(pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "127.0.0.1".try_into().unwrap();
    let mut session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(server.addr()).unwrap();
    let mut tls = rustls::Stream::new(&mut session, &mut socket);
    tls.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _closed = tls.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.ends_with(b"ok"));
}

#[test]
fn all_direct_calls_go_through_the_rules_of_the_api() {
    let server = server();
    let made = server.create(config_map("a", "x")).unwrap();
    assert_eq!(server.create(config_map("a", "x")).unwrap_err().reason(), "AlreadyExists");
    let mut stale = made.clone();
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(server.update(stale).unwrap_err().code(), 409);
    assert_eq!(server.update(made.clone()).unwrap(), made, "nothing changed, the old version");
    server.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})).unwrap();
    let running =
        server.merge_patch("pods/status", "default", "p", &json!({"status": {"phase": "Running"}})).unwrap();
    assert_eq!(running["status"]["phase"], "Running");
    assert_eq!(server.list("nopes").unwrap_err().code(), 404);
    assert_eq!(server.delete("configmaps", "", "a").unwrap()["metadata"]["name"], "a");
}
