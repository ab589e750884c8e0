//! Writes that are tried again when another writer was faster.
//!
//! Answers "how do I change an object that others change too?" Invariants:
//! 1. Only a conflict (409 Conflict) leads to another attempt; every other error is given at once.
//! 2. Each attempt works on what the server has then: nothing that was read before an attempt is written by the next.
//!
//! Read next: `retry.rs`, which decides when; `entry.rs`, for objects that may not be there yet.

use kube_core::Resource;
use kube_core::params::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Api;
use super::retry::{ConflictPolicy, Conflicts, chance};
use crate::client::client::Client;
use crate::client::error::Error;

impl Client {
    /// Calls `attempt` until it meets no conflict, as client-go's `retry.RetryOnConflict`. Each call must read the newest
    /// object itself, change and write it. Other errors are given at once, the last conflict after the last attempt.
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
    /// Gets an object, changes it and replaces it, again with the newest one as long as others are faster: five times.
    /// `change` may be called as often. For more attempts, or other subresources, see [`Client::retry_on_conflict`].
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
    /// [`is_not_found`](Error::is_not_found), [`is_conflict`](Error::is_conflict) after the last attempt, and whatever
    /// else [`Self::get`] and [`Self::replace`] give.
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
