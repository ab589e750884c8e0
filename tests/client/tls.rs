//! Certificates: whom the client believes, what it presents, what it says when it does not.
//!
//! Answers "who can be the server, and who are we to it?" with authorities made for each test. [`Authority`] serves the
//! other modules too.

use std::sync::Arc;

use actix_informer::client::{Client, Config, ResourceSource};
use actix_informer::representation::Typed;
use informer_core::list_watch_error::ListWatchError;
use k8s_openapi::api::core::v1::ConfigMap;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::harness::*;
use crate::raw_server::*;

/// A certificate authority of its own.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for this name or address, and its key.
    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    pub(crate) fn acceptor(&self, name: &str) -> TlsAcceptor {
        self.acceptor_asking(name, None)
    }

    fn acceptor_asking(&self, name: &str, clients: Option<&Self>) -> TlsAcceptor {
        let (certificate, key) = self.issue(name);
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    fn config(&self, url: &str) -> Config {
        Config::new(url).unwrap().certificate_authority(self.pem())
    }

    pub(crate) fn source(&self, url: &str) -> ResourceSource<Typed<ConfigMap>> {
        Client::new(self.config(url)).unwrap().resource()
    }
}

async fn serve_empty_lists(mut connection: Connection) {
    while connection.request().await.is_some() {
        connection.write(answer("200 OK", "", &list_of(&[], "9"))).await;
    }
}

async fn version(config: Config) -> Result<String, ListWatchError> {
    let source = Client::new(config).unwrap().resource::<ConfigMap>();
    local(async { list(&made(source), latest()).await.map(|page| page.version) }).await
}

#[tokio::test]
async fn only_the_configured_authority_and_the_right_name_are_believed() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = RawServer::start_tls(authority.acceptor("127.0.0.1"), serve_empty_lists).await;
    assert_eq!(version(authority.config(&server.url())).await.unwrap(), "9");
    for config in
        [other.config(&server.url()), authority.config(&server.url()).tls_server_name("api.example")]
    {
        let error = version(config).await.unwrap_err();
        assert!(matches!(&error, ListWatchError::Connection { .. }), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    let careless = other.config(&server.url()).accept_invalid_certificates();
    assert_eq!(version(careless).await.unwrap(), "9");
}

#[tokio::test]
async fn rest_24_an_empty_authority_trusts_nobody_wherever_it_stands() {
    let authority = Authority::new();
    let server = RawServer::start_tls(authority.acceptor("127.0.0.1"), serve_empty_lists).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let kubeconfig = format!(
        "clusters: [{{name: c, cluster: {{server: '{}', certificate-authority: '{}'}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n\
         current-context: c\n",
        server.url(),
        file.path().display()
    );
    for config in [
        Config::new(server.url()).unwrap().certificate_authority(""),
        Config::from_kubeconfig_text(&kubeconfig, None).unwrap(),
    ] {
        let error = version(config).await.unwrap_err();
        assert!(matches!(&error, ListWatchError::Connection { .. }), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
}

#[tokio::test]
async fn the_servers_name_may_be_another_than_the_urls_host() {
    let authority = Authority::new();
    let server = RawServer::start_tls(authority.acceptor("api.example"), serve_empty_lists).await;
    assert!(version(authority.config(&server.url())).await.is_err());
    assert_eq!(version(authority.config(&server.url()).tls_server_name("api.example")).await.unwrap(), "9");
}

#[tokio::test]
async fn a_client_certificate_is_presented_on_every_connection() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let acceptor = authority.acceptor_asking("127.0.0.1", Some(&clients));
    let server = RawServer::start_tls(acceptor, serve_empty_lists).await;
    let (certificate, key) = clients.issue("someone");
    let config = authority.config(&server.url()).client_certificate(certificate.pem(), key.serialize_pem());
    assert_eq!(version(config.clone()).await.unwrap(), "9");
    assert_eq!(version(config).await.unwrap(), "9");
    assert!(version(authority.config(&server.url())).await.is_err());
    assert_eq!(server.accepted(), 3);
}

#[tokio::test]
async fn https_without_an_authority_is_refused_when_the_client_is_made() {
    let error = Client::new(Config::new("https://127.0.0.1:1").unwrap()).unwrap_err();
    assert!(
        error.to_string().starts_with("not supported: an https endpoint without a certificate authority")
    );
}

#[tokio::test]
async fn a_peer_that_is_silent_in_the_handshake_is_given_up() {
    let server = RawServer::start(|connection: Connection| connection.gone()).await;
    let url = server.url().replace("http://", "https://");
    let authority = Authority::new();
    let source = authority.source(&url);
    tokio::time::pause();
    let error = local(async { list(&made(source), latest()).await.unwrap_err() }).await;
    assert!(matches!(&error, ListWatchError::Timeout(_)), "{error}");
}

#[tokio::test]
async fn a_port_that_speaks_no_tls_is_called_that() {
    let server = RawServer::start(|mut connection: Connection| async move {
        connection.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        connection.gone().await;
    })
    .await;
    let authority = Authority::new();
    let error = version(authority.config(&server.url().replace("http://", "https://"))).await.unwrap_err();
    assert!(error.to_string().contains("does not speak TLS"), "{error}");
}
