//! The two servers of a comparison: ours, new for each script, and the real one, shared by all of them.
//!
//! Answers: where do requests go, and as which user?
//! 1. The real one is started when the first script needs it and ends with this process, however that ends: a guard
//!    process of the control plane ensures it.
//! 2. Without binaries there is only ours (`INFORMER_REQUIRE_CONTROL_PLANE=1` makes that a failure).
//! 3. A script that breaks its server for others (`Session::compact`) gets a real one of its own: `alone`.
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use informer_apiserver::{ApiServer, Builder, Faults, User};
use informer_control_plane::{Binaries, ControlPlane};
use rustls::client::WantsClientCert;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};

use super::wire::Endpoint;

/// One server, and the credentials of its users.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) endpoint: Endpoint,
    /// A user who may do everything.
    pub(crate) admin: String,
    /// A user who is known and has no permissions.
    pub(crate) powerless: String,
    /// The kubeconfig for programs; its user is the admin.
    pub(crate) kubeconfig: String,
    pub(crate) lever: Lever,
}

/// What a script may do to a server besides requests.
#[derive(Debug, Clone)]
pub(crate) enum Lever {
    Ours(Faults),
    Real(Arc<ControlPlane>),
    /// Other scripts use this server.
    None,
}

impl Lever {
    /// Makes the server compact everything before this version.
    pub(crate) fn compact(&self, version: u64) {
        match self {
            Self::Ours(faults) => faults.compact(),
            Self::Real(plane) => plane.compact_etcd(version).expect("etcd compacts"),
            Self::None => panic!("others use this server"),
        }
    }

    /// Makes the server drop its past events.
    pub(crate) fn forget_events(&self) {
        match self {
            Self::Ours(faults) => faults.compact(),
            Self::Real(plane) => plane.restart_apiserver().expect("the server starts again"),
            Self::None => panic!("others use this server"),
        }
    }
}

/// Our server for one script; ends when dropped.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) subject: Subject,
    _server: ApiServer,
}

pub(crate) fn ours() -> Ours {
    ours_with(|builder| builder)
}

/// The same with settings of its own.
pub(crate) fn ours_with(set: impl FnOnce(Builder) -> Builder) -> Ours {
    let powerless = User::new("powerless").uid("2");
    let builder = ApiServer::builder().tls().token("admin").user_token("powerless", powerless).rbac();
    let server = set(builder).start_blocking().expect("our server starts");
    let endpoint = Endpoint { address: server.addr(), tls: server.ca_pem().map(trusting) };
    let (admin, powerless) = ("admin".to_owned(), "powerless".to_owned());
    let lever = Lever::Ours(server.faults());
    let subject = Subject { endpoint, admin, powerless, kubeconfig: server.kubeconfig(), lever };
    Ours { subject, _server: server }
}

/// The control plane of this process, if there are binaries for one.
pub(crate) fn control_plane() -> Option<&'static ControlPlane> {
    static PLANE: OnceLock<Option<ControlPlane>> = OnceLock::new();
    let start = |binaries| ControlPlane::builder(binaries).start().expect("the control plane starts");
    PLANE.get_or_init(|| Binaries::find_or_skip().map(start)).as_ref()
}

/// The real server that all scripts share, if there are binaries for it.
pub(crate) fn real() -> Option<Subject> {
    control_plane().map(subject)
}

/// A real server for one script, with flags of its own; ends when dropped.
pub(crate) fn alone(flags: &[&str]) -> Option<Subject> {
    let builder = ControlPlane::builder(Binaries::find_or_skip()?);
    let builder = flags.iter().fold(builder, |builder, flag| builder.apiserver_flag(*flag));
    let plane = Arc::new(builder.start().expect("the control plane starts"));
    Some(Subject { lever: Lever::Real(Arc::clone(&plane)), ..subject(&plane) })
}

/// A running control plane as the subject of a script.
pub(crate) fn subject(plane: &ControlPlane) -> Subject {
    let address: SocketAddr =
        plane.url().trim_start_matches("https://").parse().expect("the address is a socket's");
    let endpoint = Endpoint { address, tls: Some(trusting(plane.ca_pem())) };
    let (admin, powerless) = (plane.admin_token().to_owned(), plane.powerless_token().to_owned());
    Subject { endpoint, admin, powerless, kubeconfig: plane.kubeconfig(), lever: Lever::None }
}

fn trusting(ca_pem: &str) -> Arc<ClientConfig> {
    Arc::new(trusting_builder(ca_pem).with_no_client_auth())
}

/// The same for a client with a certificate.
pub(crate) fn showing(ca_pem: &str, certificate_pem: &str, key_pem: &str) -> Arc<ClientConfig> {
    let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes()).expect("a key");
    let config = trusting_builder(ca_pem).with_client_auth_cert(vec![certificate], key);
    Arc::new(config.expect("the key is that of the certificate"))
}

fn trusting_builder(ca_pem: &str) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let authority = CertificateDer::from_pem_slice(ca_pem.as_bytes()).expect("the authority is PEM");
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("the authority is a certificate");
    let provider = rustls::crypto::ring::default_provider();
    ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default versions")
        .with_root_certificates(roots)
}
