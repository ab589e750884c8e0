//! Whether and when a failed request is tried again.
//!
//! 1. An error is final where waiting changes nothing: the request could not be made, or the server refuses
//!    the request itself, the caller's rights or the kind.
//! 2. Random waits only spread clients, so the standard library's numbers suffice. For a client in process
//!    they come from the seed of its runtime: a simulation repeats them.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use informer_core::backoff::{Backoff, BackoffPolicy};
use informer_core::list_watch_error::{ErrorClass, ListWatchError};
use kube_core::Resource;
use kube_core::params::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Api;
use crate::client::Client;
use crate::error::{Error, status};

/// How often, and after which waits, a write that meets a conflict is tried.
///
/// ```
/// use actix_informer::client::api::ConflictPolicy;
/// let patient = ConflictPolicy { attempts: 20, ..ConflictPolicy::default() };
/// assert_eq!(patient.backoff.base.as_millis(), 10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConflictPolicy {
    /// How many attempts there are in all; 0 counts as 1. Default 5.
    pub attempts: u32,
    /// The waits between them: from 10 to 20 ms, then doubled, the last from 0.5 to 1 s.
    pub backoff: BackoffPolicy,
}

impl Default for ConflictPolicy {
    fn default() -> Self {
        let backoff = BackoffPolicy { base: Duration::from_millis(10), cap: Duration::from_millis(500) };
        Self { attempts: 5, backoff }
    }
}

/// The attempts of one write.
#[derive(Debug, Clone)]
pub struct Conflicts {
    attempts: u32,
    backoff: Backoff,
}

impl Conflicts {
    /// Begins without a failed attempt.
    pub fn new(policy: ConflictPolicy) -> Self {
        Self { attempts: policy.attempts, backoff: Backoff::new(policy.backoff) }
    }

    /// An attempt met a conflict: returns the wait before the next one, or `None` if it was the last.
    pub fn handle_conflict(&mut self, chance: f64) -> Option<Duration> {
        let left = self.attempts.saturating_sub(self.backoff.attempts()).saturating_sub(1);
        (left > 0).then(|| self.backoff.next_wait(chance))
    }
}

/// A random number in [0, 1) for a wait of this client.
pub fn chance(client: &Client) -> f64 {
    client.draw().unwrap_or_else(from_system)
}

fn from_system() -> f64 {
    let number = u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default();
    f64::from(number) / (f64::from(u32::MAX) + 1.0)
}

pub(super) fn class_of(error: &Error) -> ErrorClass {
    match error {
        Error::Refused(refused) => match status::into_error(refused.status().clone(), false) {
            // A replica of the server that lags behind will catch up.
            ListWatchError::TooLargeVersion(_) => ErrorClass::Retry,
            error => error.class(),
        },
        _ => ErrorClass::Retry,
    }
}

pub(super) fn is_final(error: &Error) -> bool {
    match error {
        Error::Refused(refused) => {
            let is_of_the_request =
                (400..500).contains(&refused.code) && !matches!(refused.code, 408 | 409 | 410 | 429);
            is_of_the_request || matches!(class_of(error), ErrorClass::Denied | ErrorClass::Gone)
        }
        Error::Transport(_) | Error::Plugin { .. } | Error::Oidc(_) | Error::File { .. } => false,
        _ => true,
    }
}

impl Client {
    /// Calls `attempt` until it meets no conflict, as client-go's `retry.RetryOnConflict`. Each call must
    /// itself read the newest object, change it and write it. Other errors are returned at once, the last
    /// conflict after the last attempt.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::{ConflictPolicy, PostParams};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let written = client
    ///     .retry_on_conflict(ConflictPolicy::default(), || async {
    ///         let mut map = maps.get("prices").await?;
    ///         map.data.get_or_insert_default().insert("apple".to_owned(), "12".to_owned());
    ///         maps.replace("prices", &PostParams::default(), &map).await
    ///     })
    ///     .await?;
    /// # drop(written); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `attempt`.
    pub async fn retry_on_conflict<T, F>(
        &self,
        policy: ConflictPolicy,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut conflicts = Conflicts::new(policy);
        loop {
            let error = match attempt().await {
                Err(error) if error.is_conflict() => error,
                result => return result,
            };
            let Some(wait) = conflicts.handle_conflict(chance(self)) else { return Err(error) };
            self.sleep(wait).await?;
        }
    }
}

impl<K> Api<K>
where
    K: Resource + DeserializeOwned + Serialize,
{
    /// Gets an object, changes it and replaces it. If another writer was faster, it does so again with the
    /// newest object, five times in all. `change` may be called as often. For more attempts, or other
    /// subresources, see [`Client::retry_on_conflict`].
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::PostParams;
    /// use k8s_openapi::api::apps::v1::Deployment;
    ///
    /// let deployments = client.api::<Deployment>().namespaced("shop");
    /// let pause = |cart: &mut Deployment| cart.spec.get_or_insert_default().paused = Some(true);
    /// deployments.modify("cart", &PostParams::default(), pause).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found), [`is_conflict`](Error::is_conflict) after the last attempt, and
    /// the other errors of [`Self::get`] and [`Self::replace`].
    pub async fn modify(
        &self,
        name: &str,
        params: &PostParams,
        mut change: impl FnMut(&mut K),
    ) -> Result<K, Error> {
        let mut conflicts = Conflicts::new(ConflictPolicy::default());
        loop {
            let mut object = self.get(name).await?;
            change(&mut object);
            let error = match self.replace(name, params, &object).await {
                Err(error) if error.is_conflict() => error,
                result => return result,
            };
            let Some(wait) = conflicts.handle_conflict(chance(&self.client)) else { return Err(error) };
            self.client.sleep(wait).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_between_0_and_1_and_differ() {
        let drawn: Vec<f64> = (0..100).map(|_| from_system()).collect();
        assert!(drawn.iter().all(|number| (0.0..1.0).contains(number)));
        assert!(drawn.iter().any(|number| *number < 0.5) && drawn.iter().any(|number| *number >= 0.5));
    }

    #[test]
    fn there_are_as_many_attempts_as_the_policy_says_and_the_waits_grow_to_the_cap() {
        for (attempts, waits) in [(0, 0), (1, 0), (2, 1), (5, 4), (12, 11)] {
            let mut conflicts = Conflicts::new(ConflictPolicy { attempts, ..ConflictPolicy::default() });
            let found: Vec<_> = std::iter::from_fn(|| conflicts.handle_conflict(0.0)).collect();
            let expected = (0..waits).map(|n| Duration::from_millis((10 << n).min(500)));
            assert_eq!(found, expected.collect::<Vec<_>>(), "{attempts} attempts");
        }
    }
}
