//! The configuration of a program that runs in a pod: the pod's service account.
//!
//! Answers "how does a pod reach its own cluster?" The variables and files are those of client-go
//! (`rest.InClusterConfig`). Invariants:
//! 1. Token and authority are named as files, which are read again while the client lives: the kubelet renews both.
//! 2. Nothing is read but the namespace; what else is missing is found by `Client::new` and the first request.
//!
//! Read next: `../identity.rs`.

use std::net::IpAddr;

use super::Config;
use crate::error::Error;

const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

impl Config {
    /// Uses the service account of the pod that this process runs in. Blocking.
    ///
    /// # Errors
    /// When this process does not run in a pod, or the service account is not mounted.
    pub fn in_cluster() -> Result<Self, Error> {
        let (host, port) = (variable(HOST)?, variable(PORT)?);
        let port: u16 = port
            .parse()
            .map_err(|_| Error::InCluster(format!("the variable {PORT} is not a port, but {port:?}")))?;
        let file = format!("{FOLDER}/namespace");
        let namespace = std::fs::read_to_string(&file)
            .map_err(|error| Error::InCluster(format!("the namespace {file:?} cannot be read: {error}")))?;
        Ok(Self::new(url(&host, port))?
            .default_namespace(namespace.trim())
            .certificate_authority_file(format!("{FOLDER}/ca.crt"))
            .token_file(format!("{FOLDER}/token")))
    }

    /// Whether the variables say that this process runs in a pod.
    pub(super) fn is_in_cluster() -> bool {
        std::env::var_os(HOST).is_some()
    }
}

fn variable(name: &str) -> Result<String, Error> {
    std::env::var(name).map_err(|_| Error::InCluster(format!("the variable {name} is not set")))
}

fn url(host: &str, port: u16) -> String {
    match host.parse() {
        Ok(IpAddr::V6(address)) => format!("https://[{address}]:{port}"),
        _ => format!("https://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_host_stands_in_brackets() {
        assert_eq!(url("10.0.0.1", 443), "https://10.0.0.1:443");
        assert_eq!(url("fd00::1", 6443), "https://[fd00::1]:6443");
        assert_eq!(url("kubernetes.default", 443), "https://kubernetes.default:443");
    }
}
