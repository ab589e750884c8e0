//! kube-client's errors about kubeconfigs, told without a word of the file.
//!
//! Answers "what may be told of this failure?" The errors of its YAML parser quote the lines around a mistake, in
//! their text and in Debug, and these lines are tokens and keys. Invariants:
//! 1. Of YAML only line and column are told; of other failures the names of contexts, clusters and files.
//! 2. kube-client's error goes no further: it is neither a cause nor a part of ours.

use std::path::Path;

use kube_client::config::KubeconfigError;

use crate::client::error::Error;

pub(super) fn of(error: KubeconfigError, path: Option<&Path>) -> Error {
    let what = match error {
        KubeconfigError::ReadConfig(source, path) => {
            return Error::File { what: "kubeconfig", path, source };
        }
        KubeconfigError::Parse(error) => match error.location() {
            Some(at) => format!(
                "line {}, column {}: not YAML, or not what a kubeconfig has there",
                at.line(),
                at.column()
            ),
            None => "it is not YAML, or not a kubeconfig".to_owned(),
        },
        // These quote at most names and paths, or are fixed texts.
        error @ (KubeconfigError::CurrentContextNotSet
        | KubeconfigError::KindMismatch
        | KubeconfigError::ApiVersionMismatch
        | KubeconfigError::LoadContext(_)
        | KubeconfigError::LoadClusterOfContext(_)
        | KubeconfigError::FindPath
        | KubeconfigError::MissingClusterUrl
        | KubeconfigError::ParseClusterUrl(_)
        | KubeconfigError::ParseProxyUrl(_)) => error.to_string(),
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            "its certificate authority cannot be loaded".to_owned()
        }
        KubeconfigError::LoadClientCertificate(_) => "its client certificate cannot be loaded".to_owned(),
        KubeconfigError::LoadClientKey(_) => "its client key cannot be loaded".to_owned(),
        #[allow(unreachable_patterns, reason = "features of kube-client add variants")]
        _ => "it is not accepted".to_owned(),
    };
    Error::Kubeconfig { path: path.map(Path::to_owned), what }
}
