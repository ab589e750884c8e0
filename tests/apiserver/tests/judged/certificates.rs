//! Client certificates made by our server, used on both: which user do they name?
//!
//! They answer: does a kube-apiserver accept the certificates of our authority too, with every group in them?
//! 1. The real server is configured to trust our authority, so both check the same certificate.
use std::io::Write as _;

use informer_apiserver::{ApiServer, Credential, User};
use informer_control_plane::{Binaries, ControlPlane};
use serde_json::json;

use crate::harness::servers::{self, Lever, Subject};
use crate::harness::wire::Endpoint;
use crate::harness::{Request, judge_on};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// The same server asked with this certificate.
fn shown(subject: Subject, ca_pem: &str, credential: &Credential) -> Subject {
    let Credential::Certificate { certificate_pem, key_pem } = credential else {
        panic!("a certificate was issued");
    };
    let tls = Some(servers::showing(ca_pem, certificate_pem, key_pem));
    Subject { endpoint: Endpoint { tls, ..subject.endpoint }, ..subject }
}

#[test]
fn a_certificate_names_as_many_groups_as_its_user_has() {
    let ours = ApiServer::builder().tls().token("admin").rbac().start_blocking().expect("our server starts");
    let authority = ours.ca_pem().expect("it has an authority");
    let jane = User::new("jane").group("dev").group("system:masters").group("ops").group("a, b = ü");
    let jane = ours.issue_certificate(&jane).expect("a certificate");
    let endpoint = Endpoint { address: ours.addr(), tls: None };
    let (admin, powerless) = ("admin".to_owned(), "powerless".to_owned());
    let subject = Subject { endpoint, admin, powerless, kubeconfig: ours.kubeconfig(), lever: Lever::None };
    let mut trusted = tempfile::NamedTempFile::new().expect("a temporary file");
    trusted.write_all(authority.as_bytes()).expect("the authority is written");
    let plane = Binaries::find_or_skip().map(|binaries| {
        let flag = format!("--client-ca-file={}", trusted.path().display());
        ControlPlane::builder(binaries).apiserver_flag(flag).start().expect("the control plane starts")
    });
    let real = || plane.as_ref().map(|plane| shown(servers::subject(plane), plane.ca_pem(), &jane));
    judge_on(&shown(subject, authority, &jane), real, |s| {
        let me = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        s.send(Request::new("POST", REVIEWS).json(&me).anonymously());
    });
}
