//! The kubeconfig of a server, as YAML text.
//!
//! Answers: what does a client need to know to reach this server? One cluster, one user, one context.
//! 1. The token is written as a JSON string, which is a YAML string whatever it holds.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) fn text(url: &str, ca_pem: Option<&str>, token: Option<&str>) -> String {
    let authority = ca_pem.map_or_else(String::new, |pem| {
        format!("    certificate-authority-data: {}\n", STANDARD.encode(pem))
    });
    let user = token.map_or_else(
        || "  user: {}\n".to_owned(),
        |token| format!("  user:\n    token: {}\n", serde_json::Value::from(token)),
    );
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: informer\nclusters:\n- name: informer\n  cluster:\n    server: {url}\n{authority}\
         users:\n- name: informer\n{user}contexts:\n- name: informer\n  context:\n    cluster: informer\n    user: informer\n    namespace: default\n"
    )
}
