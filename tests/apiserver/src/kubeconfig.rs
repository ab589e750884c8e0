//! The kubeconfig of a server, as YAML text.
//!
//! Answers: what does a client need to know to reach this server? One cluster, one user, one context.
//! 1. The token is written as a JSON string, which is a valid YAML string for any content.
//! 2. A file that holds it can be read by its owner only, also if it was there before with other rights.
use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What a client presents to identify itself.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credential {
    /// Nothing: the anonymous user.
    None,
    /// A bearer token.
    Token(String),
    /// A client certificate, as `ApiServer::issue_certificate` makes it.
    Certificate {
        /// The certificate, as PEM.
        certificate_pem: String,
        /// Its private key, as PEM.
        key_pem: String,
    },
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "Credential::None",
            Self::Token(_) => "Credential::Token(..)",
            Self::Certificate { .. } => "Credential::Certificate { .. }",
        })
    }
}

/// Writes a text that holds credentials. Blocks on the disk.
pub(crate) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    #[cfg(unix)]
    if file.metadata()?.is_file() {
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    }
    file.write_all(text.as_bytes())
}

pub(crate) fn text(url: &str, ca_pem: Option<&str>, credential: &Credential) -> String {
    let authority = ca_pem.map_or_else(String::new, |pem| {
        format!("    certificate-authority-data: {}\n", STANDARD.encode(pem))
    });
    let user = match credential {
        Credential::None => "  user: {}\n".to_owned(),
        Credential::Token(token) => {
            format!("  user:\n    token: {}\n", serde_json::Value::from(token.as_str()))
        }
        Credential::Certificate { certificate_pem, key_pem } => format!(
            "  user:\n    client-certificate-data: {}\n    client-key-data: {}\n",
            STANDARD.encode(certificate_pem),
            STANDARD.encode(key_pem)
        ),
    };
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: informer\nclusters:\n- name: informer\n  cluster:\n    server: {url}\n{authority}\
         users:\n- name: informer\n{user}contexts:\n- name: informer\n  context:\n    cluster: informer\n    user: informer\n    namespace: default\n"
    )
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn client_a_written_kubeconfig_can_be_read_by_its_owner_only_also_where_a_file_was_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("kubeconfig");
        for before in [None, Some(0o644), Some(0o600)] {
            if let Some(mode) = before {
                std::fs::write(&path, "a longer text than the one that comes").expect("a file");
                let rights = std::fs::Permissions::from_mode(mode);
                std::fs::set_permissions(&path, rights).expect("its owner");
            }
            write(&path, "token: t").expect("written");
            let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "after {before:?}");
            assert_eq!(std::fs::read_to_string(&path).expect("a text"), "token: t");
        }
    }
}
