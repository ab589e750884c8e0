//! Leaves out the credentials that must not go to a server: when a client is made, and each time its
//! kubeconfig is read again. `way.rs` decides which.
//!
//! What is left out is named once. A credential that the program set, and the way cannot carry, is refused.

use super::config::Config;
use super::endpoint::Endpoint;
use super::error::Error;
use super::identity::material::Login;
use super::proxy::Proxy;
use super::way::{Credential, Fate, Way, fate};

pub(crate) struct Sent {
    pub(crate) config: Config,
    pub(crate) left_out: Vec<&'static str>,
}

pub(crate) fn sent(mut config: Config, way: Way) -> Result<Sent, Error> {
    let written = config.written.clone().unwrap_or_default();
    let mut left_out = Vec::new();
    let mut is_sent = |credential: Credential, is_of_kubeconfig| match fate(way, credential, is_of_kubeconfig)
    {
        Fate::Sent => Ok(true),
        Fate::LeftOut => {
            left_out.push(credential.name());
            Ok(false)
        }
        Fate::Refused => {
            let reason = "it can only be sent over https, and the server is reached over http".to_owned();
            Err(Error::Unusable { what: credential.name(), reason })
        }
    };
    if let Some(login) = &config.login {
        let credential = match login {
            Login::Token(_) => Credential::Token,
            Login::TokenFile { .. } => Credential::TokenFile,
            Login::Basic { .. } => Credential::Password,
        };
        if !is_sent(credential, written.login)? {
            config.login = None;
        }
    }
    if config.certificate.is_some() && !is_sent(Credential::Certificate, written.certificate)? {
        config.certificate = None;
    }
    let has_provider = config.exec.is_some() || config.oidc.is_some();
    if has_provider && !is_sent(Credential::Provider, true)? {
        (config.exec, config.oidc) = (None, None);
    }
    if !written.impersonation.is_empty() && !is_sent(Credential::Impersonation, true)? {
        config.impersonation = config.impersonation.without(&written.impersonation);
    }
    Ok(Sent { config, left_out })
}

impl Config {
    /// What of the kubeconfig is not used, one sentence each, for the person who starts the program. Empty
    /// unless a kubeconfig has credentials for a plain http endpoint. Its credentials are sent only over TLS,
    /// or to a server on this machine without a proxy. A client certificate is sent only over TLS.
    pub fn warnings(&self) -> Vec<String> {
        let endpoint = Endpoint::parse(&self.endpoint).ok();
        let way = endpoint.and_then(|endpoint| Some((self.proxy.of(&endpoint).ok()?, endpoint)));
        let left_out = way.and_then(|(proxy, endpoint)| explained(self, &endpoint, proxy.as_deref()));
        self.warnings.iter().cloned().chain(left_out).collect()
    }
}

fn explained(config: &Config, endpoint: &Endpoint, proxy: Option<&Proxy>) -> Option<String> {
    let left_out = sent(config.clone(), Way::to(endpoint, proxy)).ok()?.left_out;
    let cluster = &config.written.as_ref().filter(|_| !left_out.is_empty())?.cluster;
    let through = proxy.map(|proxy| format!(" through the proxy {}", proxy.name())).unwrap_or_default();
    Some(format!(
        "cluster {cluster:?} is reached over plain http at {}{through}: {} of its user {} not sent, because anybody on \
         the network path could read it; use an https server to send it",
        endpoint.authority,
        left_out.join(" and "),
        if left_out.len() == 1 { "is" } else { "are" },
    ))
}

#[cfg(test)]
mod tests {
    use crate::config::Written;

    use super::*;

    const SECURE: [&str; 2] = ["https://api.example", "https://127.0.0.1:6443"];
    const NEAR: [&str; 5] = [
        "http://127.0.0.1:8080",
        "http://[::1]:8080",
        "http://localhost",
        "http://x.localhost",
        "unix:///run/api.sock",
    ];
    const FAR: [&str; 4] =
        ["http://api.example", "http://10.0.0.1", "http://localhost.example", "http://0.0.0.0"];
    const ALL: [Credential; 6] = [
        Credential::Token,
        Credential::TokenFile,
        Credential::Password,
        Credential::Certificate,
        Credential::Provider,
        Credential::Impersonation,
    ];

    /// A configuration with this credential.
    fn having(credential: Credential, written: bool) -> Config {
        let mut config = Config::new("https://api.example").expect("an endpoint");
        config = match credential {
            Credential::Token => config.token("t"),
            Credential::TokenFile => config.token_file("/t"),
            Credential::Password => config.basic("u", "p"),
            Credential::Certificate => config.client_certificate("c", "k"),
            Credential::Impersonation => config.impersonate("jane").impersonate_group("a"),
            Credential::Provider => {
                let exec = serde_json::from_value(serde_json::json!({ "command": "p" })).expect("a plugin");
                config.exec = Some(std::sync::Arc::new((exec, Default::default())));
                config
            }
        };
        let (login, certificate) = (written, written);
        let impersonation = if written { config.impersonation.clone() } else { Default::default() };
        config.written = Some(Written { cluster: "a".to_owned(), login, certificate, impersonation });
        config
    }

    /// What becomes of the only credential of a configuration; `None` if what is said and what is done
    /// differ.
    fn happens(way: Way, credential: Credential, written: bool) -> Option<Fate> {
        let Ok(Sent { config, left_out }) = sent(having(credential, written), way) else {
            return Some(Fate::Refused);
        };
        let is_there = [
            config.login.is_some(),
            config.certificate.is_some(),
            config.exec.is_some() || config.oidc.is_some(),
            !config.impersonation.is_empty(),
        ];
        match (is_there.contains(&true), &left_out[..]) {
            (true, []) => Some(Fate::Sent),
            (false, [name]) if *name == credential.name() => Some(Fate::LeftOut),
            _ => None,
        }
    }

    #[test]
    fn of_an_impersonation_what_is_written_in_a_kubeconfig_is_left_out_and_what_the_program_has_set_is_sent()
    {
        let mut config = having(Credential::Impersonation, true);
        config = config.impersonate("joe").impersonate_group("b");
        let Sent { config, left_out } = sent(config, Way::PlainText).expect("a client");
        let acts_as = (config.impersonation.user.as_deref(), &config.impersonation.groups[..]);
        assert_eq!(
            (acts_as, &left_out[..]),
            ((Some("joe"), &["b".to_owned()][..]), &["the impersonation"][..])
        );
    }

    #[test]
    fn client_p3_where_credentials_go_by_endpoint_proxy_identity_and_scheme() {
        let proxies: Vec<_> = ["http://proxy:1", "https://proxy:1", "socks5://proxy:1", "http://127.0.0.1:1"]
            .map(|url| Proxy::parse(url).expect("a proxy"))
            .into_iter()
            .map(Some)
            .chain([None])
            .collect();
        let mut rows = 0;
        for url in SECURE.iter().chain(&NEAR).chain(&FAR) {
            let endpoint = Endpoint::parse(url).expect("an endpoint");
            for proxy in &proxies {
                let way = Way::to(&endpoint, proxy.as_ref());
                let (is_secure, is_near) = (SECURE.contains(url), NEAR.contains(url) && proxy.is_none());
                for credential in ALL {
                    let is_certificate = credential == Credential::Certificate;
                    let of_kubeconfig = match is_secure || (is_near && !is_certificate) {
                        true => Fate::Sent,
                        false => Fate::LeftOut,
                    };
                    let of_program = if is_secure || !is_certificate { Fate::Sent } else { Fate::Refused };
                    let found = [true, false].map(|written| fate(way, credential, written));
                    assert_eq!(found, [of_kubeconfig, of_program], "{url} {proxy:?} {credential:?}");
                    for (written, expected) in [(true, of_kubeconfig), (false, of_program)] {
                        // A plugin stands in a kubeconfig only.
                        if written || credential != Credential::Provider {
                            let found = happens(way, credential, written);
                            assert_eq!(found, Some(expected), "{url} {proxy:?} {credential:?}");
                        }
                    }
                    rows += 1;
                }
                assert_eq!(way.carries_secrets_of_logins(), is_secure || is_near, "{url} {proxy:?}");
            }
        }
        assert_eq!(rows, 11 * 5 * 6);
    }
}
