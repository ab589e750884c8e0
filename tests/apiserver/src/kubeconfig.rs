//! The kubeconfig of a server, as YAML text.
//!
//! Answers: what does a client need to know to reach this server? One cluster, one user, one context.
//! 1. The token is written as a JSON string, which is a valid YAML string for any content.
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
