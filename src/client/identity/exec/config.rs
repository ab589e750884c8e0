//! How a kubeconfig describes a credential plugin, and what a plugin receives about the cluster.
//!
//! Answers "which fields are there?" in the terms of client-go (`clientcmd/api/v1.ExecConfig`,
//! `pkg/apis/clientauthentication.Cluster`); `../exec.rs` checks what they hold. Invariants:
//! 1. Reading never fails because of a missing field; what is missing is empty.
//!
//! Read next: `../exec.rs`.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// The `exec` of a kubeconfig's user.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct PluginConfig {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<Variable>,
    pub(crate) api_version: String,
    pub(crate) install_hint: String,
    pub(crate) provide_cluster_info: bool,
    pub(crate) interactive_mode: String,
}

/// A variable for the environment of a plugin.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// What a plugin that asks for it receives about the cluster.
#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ClusterInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) server: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) tls_server_name: String,
    /// With user and password, if it has them: the plugin has to use it, too.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) proxy_url: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) insecure_skip_tls_verify: bool,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_base64")]
    pub(crate) certificate_authority_data: Vec<u8>,
    /// The cluster's extension for plugins, as it is; null if there is none.
    pub(crate) config: Value,
}

fn as_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

impl fmt::Debug for PluginConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments and variables may be secrets.
        f.debug_struct("PluginConfig").field("command", &self.command).finish_non_exhaustive()
    }
}
