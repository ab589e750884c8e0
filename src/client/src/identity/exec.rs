//! Credential plugins: programs that a kubeconfig names and that print credentials. Rules and field names are
//! client-go's (`plugin/pkg/client/auth/exec`, `clientcmd/api/v1.ExecConfig`,
//! `pkg/apis/clientauthentication.Cluster`, KEP-541, KEP-3331).
//!
//! A plugin that the policy, the terminal or the version refuses never starts. [`Plugin::run`] blocks for at
//! most its limit.

use std::ffi::OsStr;
use std::fmt;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use informer_core::words::quoted;
use jiff::Timestamp;
use secrecy::{SecretSlice, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;

use crate::error::PluginError;

mod process;

/// The default: a person may have to answer in a browser.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

const EXEC_INFO: &str = "KUBERNETES_EXEC_INFO";
const V1: &str = "client.authentication.k8s.io/v1";
const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";

/// Which credential plugins may be started.
///
/// A kubeconfig names programs that run with the rights of this process. The rule is kubectl's
/// `credentialPluginPolicy` (KEP-3331).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginPolicy {
    /// Any plugin, as kubectl does unless configured.
    #[default]
    AllowAll,
    /// None.
    DenyAll,
    /// Only these files. A name without a slash is the file that `PATH` finds for it; a path is that file.
    /// The command of the kubeconfig is resolved in the same way and must be the same file.
    Allow(Vec<String>),
}

impl PluginPolicy {
    /// For a list, returns the file without links, since a link may lead elsewhere later. Blocking.
    fn program(&self, command: &str) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        match self {
            Self::AllowAll => Some(command.into()),
            Self::DenyAll => None,
            Self::Allow(list) => {
                let file = looked_up(command, &path)?.canonicalize().ok()?;
                let is_it = |allowed: &String| {
                    looked_up(allowed, &path).and_then(|allowed| allowed.canonicalize().ok()).as_ref()
                        == Some(&file)
                };
                list.iter().any(is_it).then_some(file)
            }
        }
    }
}

/// Skips relative folders, as Go's `exec.LookPath`: they depend on where the process was started.
fn looked_up(name: &str, path: &OsStr) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| is_program(file));
    }
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|file| !name.is_empty() && is_program(file))
}

fn is_program(file: &Path) -> bool {
    #[cfg(unix)]
    let may_run =
        |file: &std::fs::Metadata| std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = |_: &std::fs::Metadata| true;
    std::fs::metadata(file).is_ok_and(|found| found.is_file() && may_run(&found))
}

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

#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// With `provideClusterInfo`.
#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ClusterInfo {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) server: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) tls_server_name: String,
    /// May contain user and password: the plugin must use the proxy, too.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) proxy_url: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) insecure_skip_tls_verify: bool,
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_base64")]
    pub(crate) certificate_authority_data: Vec<u8>,
    /// The cluster's extension for plugins; null if there is none.
    pub(crate) config: serde_json::Value,
}

#[derive(Clone)]
pub(crate) struct Plugin {
    command: String,
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    api_version: &'static str,
    install_hint: Option<String>,
    mode: InteractiveMode,
    cluster: Option<serde_json::Value>,
    limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InteractiveMode {
    Never,
    IfAvailable,
    Always,
}

#[derive(Clone)]
pub(crate) struct ProvidedCredentials {
    pub(crate) token: Option<SecretString>,
    /// Certificate chain and key, both PEM.
    pub(crate) certificate: Option<(Vec<u8>, SecretSlice<u8>)>,
    pub(crate) expires: Option<Timestamp>,
}

impl Plugin {
    pub(crate) fn new(
        config: &PluginConfig,
        cluster: &ClusterInfo,
        policy: &PluginPolicy,
        limit: Duration,
    ) -> Result<Self, PluginError> {
        let invalid = |reason: &str| PluginError::Invalid(reason.to_owned());
        if config.command.is_empty() {
            return Err(invalid("it has no command"));
        }
        let program = policy.program(&config.command).ok_or(PluginError::NotAllowed)?;
        let api_version = match &*config.api_version {
            V1 => V1,
            V1BETA1 => V1BETA1,
            "" => return Err(invalid("it has no apiVersion")),
            other => {
                return Err(invalid(&format!("apiVersion {} is not {V1} or {V1BETA1}", quoted(other))));
            }
        };
        let mode = match (&*config.interactive_mode, api_version) {
            ("Never", _) => InteractiveMode::Never,
            ("IfAvailable", _) | ("", V1BETA1) => InteractiveMode::IfAvailable,
            ("Always", _) => InteractiveMode::Always,
            ("", _) => {
                return Err(invalid("interactiveMode is required with client.authentication.k8s.io/v1"));
            }
            _ => return Err(invalid("interactiveMode is not Never, IfAvailable or Always")),
        };
        if config.env.iter().any(|variable| variable.name.is_empty()) {
            return Err(invalid("an entry of env has no name"));
        }
        let cluster = config.provide_cluster_info.then(|| serde_json::to_value(cluster)).transpose();
        Ok(Self {
            command: config.command.clone(),
            program,
            args: config.args.clone(),
            env: config.env.iter().map(|entry| (entry.name.clone(), entry.value.clone())).collect(),
            api_version,
            install_hint: Some(config.install_hint.clone()).filter(|hint| !hint.is_empty()),
            mode,
            cluster: cluster
                .map_err(|_| invalid("the description of the cluster cannot be written as JSON"))?,
            limit,
        })
    }

    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    pub(crate) fn run(&self) -> Result<ProvidedCredentials, PluginError> {
        let interactive = self.is_interactive(std::io::stdin().is_terminal())?;
        let mut command = Command::new(&self.program);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::arg0(&mut command, &self.command);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env(EXEC_INFO, self.request(interactive).to_string());
        let output = process::output(command, interactive, self.limit).map_err(|error| match error {
            PluginError::NotStarted { reason, .. } => {
                PluginError::NotStarted { reason, hint: self.install_hint.clone() }
            }
            error => error,
        })?;
        parse(&output, self.api_version)
    }

    fn is_interactive(&self, has_terminal: bool) -> Result<bool, PluginError> {
        match self.mode {
            InteractiveMode::Never => Ok(false),
            InteractiveMode::IfAvailable => Ok(has_terminal),
            InteractiveMode::Always if has_terminal => Ok(true),
            InteractiveMode::Always => Err(PluginError::NotATerminal),
        }
    }

    fn request(&self, interactive: bool) -> serde_json::Value {
        let mut spec = json!({ "interactive": interactive });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
        }
        json!({ "apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec })
    }
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

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("command", &self.command).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    status: Option<AnswerStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerStatus {
    expiration_timestamp: Option<Timestamp>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Errors contain nothing of the text.
pub(crate) fn parse(output: &[u8], api_version: &str) -> Result<ProvidedCredentials, PluginError> {
    let malformed = |what: &str| PluginError::Malformed(what.to_owned());
    let answer: Answer = serde_json::from_slice(output).or_else(|error| {
        // client-go's decoder accepts YAML, too. The JSON parser's position is more exact, but its message
        // may quote a value.
        std::str::from_utf8(output)
            .ok()
            .filter(|text| !text.trim().is_empty())
            .and_then(|text| serde_saphyr::from_str(text).ok())
            .ok_or_else(|| {
                let (line, column) = (error.line(), error.column());
                PluginError::Malformed(format!(
                    "it is not an ExecCredential in JSON or YAML (line {line}, column {column})"
                ))
            })
    })?;
    if answer.kind != "ExecCredential" {
        return Err(malformed("its kind is not ExecCredential"));
    }
    if answer.api_version != api_version {
        return Err(PluginError::Malformed(format!("its apiVersion is not {api_version}, as was asked for")));
    }
    let status = answer.status.ok_or_else(|| malformed("it has no status"))?;
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let token = given(status.token).map(SecretString::from);
    let key = given(status.client_key_data).map(|key| SecretSlice::from(key.into_bytes()));
    let certificate = match (given(status.client_certificate_data), key) {
        (Some(certificate), Some(key)) => Some((certificate.into_bytes(), key)),
        (None, None) => None,
        (Some(_), None) => return Err(malformed("it has a clientCertificateData and no clientKeyData")),
        (None, Some(_)) => return Err(malformed("it has a clientKeyData and no clientCertificateData")),
    };
    if token.is_none() && certificate.is_none() {
        return Err(malformed("it has neither a token nor a client certificate"));
    }
    Ok(ProvidedCredentials { token, certificate, expires: status.expiration_timestamp })
}

informer_core::debug_as!(ProvidedCredentials, self, expires = self.expires);

#[cfg(test)]
mod tests;
