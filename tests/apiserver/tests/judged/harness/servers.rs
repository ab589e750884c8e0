//! The two servers of a judgement: ours, new for each script, and the real one, shared by all of them.
//!
//! Answers: where do requests go, and as whom?
//! 1. The real one is started when the first script needs it and ends with this process, however that ends: a
//!    guard process of the control plane sees to it.
//! 2. Without binaries there is only ours (`INFORMER_REQUIRE_CONTROL_PLANE=1` makes that a failure).
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use informer_apiserver::{ApiServer, User};
use informer_control_plane::{Binaries, ControlPlane};
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};

use super::wire::Endpoint;

/// One server, and the credentials of its users.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) endpoint: Endpoint,
    /// May do everything.
    pub(crate) admin: String,
    /// Is known and may do nothing.
    pub(crate) powerless: String,
    /// For programs; the user is the admin.
    pub(crate) kubeconfig: String,
}

/// Our server for one script; ends when dropped.
#[derive(Debug)]
pub(crate) struct Ours {
    pub(crate) subject: Subject,
    _server: ApiServer,
}

pub(crate) fn ours() -> Ours {
    let powerless = User::new("powerless").uid("2");
    let builder = ApiServer::builder().tls().token("admin").user_token("powerless", powerless).rbac();
    let server = builder.start_blocking().expect("our server starts");
    let endpoint = Endpoint { address: server.addr(), tls: server.ca_pem().map(trusting) };
    let (admin, powerless) = ("admin".to_owned(), "powerless".to_owned());
    let subject = Subject { endpoint, admin, powerless, kubeconfig: server.kubeconfig() };
    Ours { subject, _server: server }
}

/// The control plane of this process, if there are binaries for one.
pub(crate) fn control_plane() -> Option<&'static ControlPlane> {
    static PLANE: OnceLock<Option<ControlPlane>> = OnceLock::new();
    let start = |binaries| ControlPlane::builder(binaries).start().expect("the control plane starts");
    PLANE.get_or_init(|| Binaries::find_or_skip().map(start)).as_ref()
}

/// The real server, if there are binaries for it.
pub(crate) fn real() -> Option<Subject> {
    let plane = control_plane()?;
    let address: SocketAddr =
        plane.url().trim_start_matches("https://").parse().expect("the address is a socket's");
    let endpoint = Endpoint { address, tls: Some(trusting(plane.ca_pem())) };
    let (admin, powerless) = (plane.admin_token().to_owned(), plane.powerless_token().to_owned());
    Some(Subject { endpoint, admin, powerless, kubeconfig: plane.kubeconfig() })
}

fn trusting(ca_pem: &str) -> Arc<ClientConfig> {
    let authority = CertificateDer::from_pem_slice(ca_pem.as_bytes()).expect("the authority is PEM");
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("the authority is a certificate");
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}
