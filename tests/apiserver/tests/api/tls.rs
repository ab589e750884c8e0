//! HTTPS: the server's authority, client certificates, HTTP/2 by ALPN (E18).
//!
//! They answer: can a client verify the server, and the server identify the client? The client is rustls on a blocking
//! socket.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use informer_apiserver::{ApiServer, Credential, User};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const WHO: &str = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";

fn config(server: &ApiServer, shown: &Credential, protocols: &[&[u8]]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.ca_pem().unwrap().as_bytes()).unwrap()).unwrap();
    let provider = rustls::crypto::ring::default_provider();
    let builder = ClientConfig::builder_with_provider(provider.into()).with_safe_default_protocol_versions();
    let builder = builder.unwrap().with_root_certificates(roots);
    let mut config = match shown {
        Credential::Certificate { certificate_pem, key_pem } => {
            let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    config
}

fn connected(server: &ApiServer, config: ClientConfig) -> StreamOwned<ClientConnection, TcpStream> {
    let socket = TcpStream::connect(server.addr()).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
}

fn who(server: &ApiServer, shown: &Credential) -> String {
    let mut stream = connected(server, config(server, shown, &[]));
    stream.write_all(WHO.as_bytes()).unwrap();
    let mut answer = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answer) {
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
    String::from_utf8(answer).unwrap()
}

#[test]
fn a_client_certificate_names_its_user_and_groups() {
    let server = ApiServer::builder().tls().rbac().start_blocking().unwrap();
    let jane =
        server.issue_certificate(&User::new("jane").group("dev").group("ops").group("a b, ü")).unwrap();
    let answer = who(&server, &jane);
    let user = r#""groups":["dev","ops","a b, ü","system:authenticated"],"username":"jane"}"#;
    assert!(answer.contains(user), "{answer}");
    let nobody = who(&server, &Credential::None);
    assert!(nobody.starts_with("HTTP/1.1 403"), "{nobody}");
}

#[test]
fn a_certificate_of_another_authority_is_401_not_a_broken_handshake() {
    let server = ApiServer::builder().tls().start_blocking().unwrap();
    let other = ApiServer::builder().tls().start_blocking().unwrap();
    let foreign = other.issue_certificate(&User::new("jane")).unwrap();
    assert!(who(&server, &foreign).starts_with("HTTP/1.1 401"));
}

#[test]
fn api_e18_the_protocol_is_chosen_by_alpn() {
    let server = ApiServer::builder().tls().start_blocking().unwrap();
    for (offered, chosen) in [(&[&b"h2"[..], b"http/1.1"][..], "h2"), (&[b"http/1.1"], "http/1.1")] {
        let mut stream = connected(&server, config(&server, &Credential::None, offered));
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).unwrap();
        }
        assert_eq!(stream.conn.alpn_protocol(), Some(chosen.as_bytes()));
    }
}
