//! What gives credentials that expire: a plugin, or an OpenID Connect login.
//!
//! Answers "how are they asked?" without blocking an arbiter. Invariants:
//! 1. A plugin runs on a thread of its own, which outlives a caller that stops waiting and the runtime that began it.
//!
//! Read next: `exec.rs`, `oidc.rs`; `material.rs`, which asks.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::exec::{Plugin, PluginCredentials};
use super::oidc::{Issuers, Oidc};
use crate::error::{Error, PluginError};

/// What gives credentials that expire.
pub(crate) enum Provider {
    Plugin(Plugin),
    /// A login that is given up after the limit.
    Oidc {
        login: Arc<Oidc>,
        limit: Duration,
        issuers: Issuers,
    },
}

impl Provider {
    /// Other credentials than those that the server has refused, if it has.
    pub(crate) async fn obtain(&self, is_refused: bool) -> Result<PluginCredentials, Error> {
        match self {
            Self::Oidc { login, limit, issuers } => {
                let obtaining = login.credentials(super::wall_time(), is_refused, *issuers);
                let obtaining = timeout(*limit, obtaining).await;
                Ok(obtaining.unwrap_or_else(|_| Err(login.late(*limit)))?)
            }
            Self::Plugin(plugin) => run(plugin.clone()).await,
        }
    }
}

async fn run(plugin: Plugin) -> Result<PluginCredentials, Error> {
    let command = plugin.command().to_owned();
    let (sender, answer) = oneshot::channel();
    let started = std::thread::Builder::new()
        .name("informer-plugin".to_owned())
        .spawn(move || drop(sender.send(plugin.run())));
    let answer = match started {
        Ok(_) => answer
            .await
            .unwrap_or_else(|_| Err(PluginError::Malformed("the thread that ran it panicked".to_owned()))),
        Err(error) => Err(PluginError::NotStarted { reason: error.to_string(), hint: None }),
    };
    answer.map_err(|source| Error::Plugin { command, source })
}
