//! Clients of the cluster that the environment or the home directory names, and of an issuer of tokens.

use futures_util::FutureExt as _;

use super::client::Client;
use super::config::Config;
use super::error::Error;
use super::identity::oidc::AskIssuer;

impl Client {
    /// The client of the cluster that the environment names: that of `KUBECONFIG`, or of the service account
    /// of the pod. Connects to nothing yet. Unlike kubectl it does not read `~/.kube/config`;
    /// [`Self::from_home`] does. [`Config`] has every other way.
    ///
    /// ```no_run
    /// let client = actix_informer::client::Client::from_environment()?;
    /// # Ok::<(), actix_informer::client::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotConfigured`] when neither is there; otherwise what is wrong with the one that is.
    pub fn from_environment() -> Result<Self, Error> {
        Self::new(Config::from_environment(None)?)
    }

    /// The client of the current context of `~/.kube/config`, kubectl's default: for programs on a person's
    /// machine. Connects to nothing yet.
    ///
    /// ```no_run
    /// use actix_informer::client::{Client, Error};
    ///
    /// let client = match Client::from_environment() {
    ///     Err(Error::NotConfigured) => Client::from_home()?, // as kubectl does
    ///     client => client?,
    /// };
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Config::from_home`].
    pub fn from_home() -> Result<Self, Error> {
        Self::new(Config::from_home(None)?)
    }

    /// Sends no credentials. `authority` must have signed the issuer's certificate.
    pub(super) fn to_issuer(url: &str, authority: Option<&[u8]>) -> Result<AskIssuer, Error> {
        let config = Config::new(url)?;
        let client =
            Self::new(authority.into_iter().fold(config, |config, pem| config.certificate_authority(pem)))?;
        Ok(Box::new(move |request| {
            let client = client.clone();
            async move { client.send(request).await }.boxed()
        }))
    }
}
