//! Certificates: which servers the client trusts, what it presents, and its errors when it does not trust.
//!
//! Answers "who can be the server, and how does the client prove who it is?" with authorities made for each test.
//! [`Authority`] serves the other modules too.

use std::sync::Arc;

use actix_informer::client::{Client, Config, ResourceSource};
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

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for this name or address, and its key.
    pub(crate) fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    pub(crate) fn acceptor(&self, name: &str) -> TlsAcceptor {
        self.acceptor_asking(name, None)
    }

    pub(crate) fn acceptor_asking(&self, name: &str, clients: Option<&Self>) -> TlsAcceptor {
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

    /// Chooses HTTP/2.
    pub(crate) fn acceptor_of_http2(&self, name: &str) -> TlsAcceptor {
        let mut config = (**self.acceptor(name).config()).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    pub(crate) fn config(&self, url: &str) -> Config {
        Config::new(url).unwrap().certificate_authority(self.pem())
    }

    pub(crate) fn source(&self, url: &str) -> ResourceSource<ConfigMap> {
        Client::new(self.config(url)).unwrap().resource()
    }
}

pub(crate) async fn serve_empty_lists(mut connection: Connection) {
    while connection.request().await.is_some() {
        connection.write(answer("200 OK", "", &list_of(&[], "9"))).await;
    }
}

async fn version(config: Config) -> Result<String, ListWatchError> {
    let source = Client::new(config).unwrap().resource::<ConfigMap>();
    local(async { list(&made(source), latest()).await.map(|page| page.version) }).await
}

#[tokio::test]
async fn only_the_configured_authority_and_the_right_name_are_trusted() {
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

// REST-24: given an empty CA file, when connecting, then nothing is trusted (the system roots are not used
// either).
// - a nothing is trusted
// - b not the system roots either: `rest_24_an_empty_authority_leaves_no_root`
#[tokio::test]
async fn rest_24_an_empty_authority_trusts_nobody_wherever_it_is_configured() {
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
async fn the_name_of_the_server_may_differ_from_the_host_of_the_url() {
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
async fn without_an_authority_the_systems_are_trusted_and_nobody_elses() {
    let authority = Authority::new();
    let server = RawServer::start_tls(authority.acceptor("127.0.0.1"), serve_empty_lists).await;
    match Client::new(Config::new(server.url()).unwrap()) {
        Ok(client) => {
            let error = client.request(http::Method::GET, "/", None).await.unwrap_err();
            assert!(error.to_string().contains("certificate"), "{error}");
        }
        // A machine without any authority.
        Err(error) => assert!(error.to_string().contains("certificate authority"), "{error}"),
    }
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
async fn a_port_that_does_not_speak_tls_is_reported_as_such() {
    let server = RawServer::start(|mut connection: Connection| async move {
        connection.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        connection.gone().await;
    })
    .await;
    let authority = Authority::new();
    let error = version(authority.config(&server.url().replace("http://", "https://"))).await.unwrap_err();
    assert!(error.to_string().contains("does not speak TLS"), "{error}");
}

#[tokio::test]
async fn plain_http_to_a_port_for_tls_says_that_the_url_begins_with_https() {
    // What Go's server answers, and the alert of a server that has only TLS.
    let words = "Client sent an HTTP request to an HTTPS server.\n";
    for answered in [answer("400 Bad Request", "", words), "\u{15}\u{3}\u{3}\0\u{2}\u{2}F".to_owned()] {
        let server = RawServer::start(move |mut connection: Connection| {
            let answered = answered.clone();
            async move {
                while connection.request().await.is_some() {
                    connection.write(&answered).await;
                }
            }
        })
        .await;
        let client = Client::new(Config::new(server.url()).unwrap()).unwrap();
        let one = client.api::<ConfigMap>().namespaced("a").get("b").await.unwrap_err().to_string();
        let source = made(config_maps(&server.url()));
        let all = local(async move { list(&source, latest()).await.unwrap_err().to_string() }).await;
        for text in [one, all] {
            assert!(text.contains("speaks TLS on this port") && text.contains("https://"), "{text}");
        }
    }
}

#[tokio::test]
async fn client_an_unreadable_certificate_of_a_bundle_is_warned_of_once_in_ten_minutes() {
    crate::logs::keep();
    let unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let bundle = format!("{}\n{unreadable}", Authority::new().pem());
    let warned = || crate::logs::kept().matches("cannot be used and is left out").count();
    let before = warned();
    // A client reads its files again each minute, and makes its authorities anew.
    for _ in 0..10 {
        Client::new(Config::new("https://127.0.0.1:1").unwrap().certificate_authority(bundle.clone()))
            .unwrap();
    }
    // Another test may warn of something else meanwhile.
    let told = warned() - before;
    assert!(told <= 2 && warned() >= 1, "{told} of ten");
}
