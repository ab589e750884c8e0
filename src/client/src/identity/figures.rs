//! What is counted of the credentials of a client.

use std::time::Duration;

use super::material::Read;
use crate::error::{Error, PluginError};

/// How the credentials of a client are doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CredentialFigures {
    /// How long those of a plugin or login are still valid; zero if they have expired. `None` if they do not
    /// expire, or it is not known.
    pub expire_in: Option<Duration>,
    /// How often they were read or obtained again.
    pub renewals: u64,
    /// How often that failed.
    pub failures: u64,
    /// How often a plugin or the issuer of a login was called, by the outcome.
    pub calls: CallFigures,
}

/// The calls of a credential plugin, or of the issuer of a login, by their outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallFigures {
    /// It gave credentials.
    pub succeeded: u64,
    /// It could not be started, or may not be.
    pub not_started: u64,
    /// It ended without success, was killed, or the issuer refused.
    pub failed: u64,
    /// What it gave cannot be used.
    pub malformed: u64,
}

impl CallFigures {
    /// A file that could not be read comes before the call: no call is counted.
    pub(super) fn count(&mut self, called: Result<&Read, &Error>) {
        let outcome = match called {
            Ok(_) => &mut self.succeeded,
            Err(Error::Oidc(_)) => &mut self.failed,
            Err(Error::Plugin { source, .. }) => match source {
                PluginError::NotStarted { .. }
                | PluginError::Invalid(_)
                | PluginError::NotAllowed
                | PluginError::NotATerminal => &mut self.not_started,
                PluginError::Malformed(_) | PluginError::TooLarge(_) => &mut self.malformed,
                PluginError::Failed { .. } | PluginError::TimedOut(_) => &mut self.failed,
            },
            Err(_) => return,
        };
        *outcome += 1;
    }
}

impl CredentialFigures {
    /// Nothing expires that has ended.
    pub(crate) fn add(&mut self, ended: &Self) {
        self.renewals += ended.renewals;
        self.failures += ended.failures;
        let (calls, more) = (&mut self.calls, &ended.calls);
        calls.succeeded += more.succeeded;
        calls.not_started += more.not_started;
        calls.failed += more.failed;
        calls.malformed += more.malformed;
    }
}
