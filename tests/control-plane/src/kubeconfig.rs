//! Writes the kubeconfig of a control plane, with everything inline.
//!
//! Question: how does a program that knows only kubeconfig files reach this control plane, and as which user? It
//! writes text for kubectl and for our own loader; it does not read kubeconfigs.
//! 1. The contexts are `admin` (current) and `powerless`, by token, and `certificate` if there is one.
//! 2. No file is referred to, so the text may be moved.
//!
//! Read next: `control_plane.rs`.

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::identity::Identity;

/// The kubeconfig for a server at `url`.
pub(crate) fn render(url: &str, identity: &Identity) -> String {
    let ca = BASE64_STANDARD.encode(&identity.ca_pem);
    let mut users = vec![
        ("admin", format!("token: {}", identity.admin_token)),
        ("powerless", format!("token: {}", identity.powerless_token)),
    ];
    if let Some(client) = &identity.client {
        let certificate = BASE64_STANDARD.encode(client.certificate_pem());
        let key = BASE64_STANDARD.encode(client.key_pem());
        let credentials = format!("client-certificate-data: {certificate}\n    client-key-data: {key}");
        users.push(("certificate", credentials));
    }
    let mut text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: admin\nclusters:\n- name: test\n  cluster:\n    \
         server: {url}\n    certificate-authority-data: {ca}\ncontexts:\n"
    );
    for (name, _) in &users {
        text.push_str(&format!("- name: {name}\n  context:\n    cluster: test\n    user: {name}\n"));
    }
    text.push_str("users:\n");
    for (name, credentials) in &users {
        text.push_str(&format!("- name: {name}\n  user:\n    {credentials}\n"));
    }
    text
}
