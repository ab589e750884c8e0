//! Waits until a condition holds for the object of one name. The condition sees each state and each absence,
//! also one that a gap in the watch has hidden (`informer_core::until`).

use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use informer_core::list_watch_error::ErrorClass;
use informer_core::meta::Uid;
use informer_core::until::{Decided, Seen};
use kube_core::params::{ListParams, WatchParams};
use kube_core::{Resource, WatchEvent};
use serde::de::DeserializeOwned;

use super::Api;
use super::machine::resume::{AfterEnd, WatchResume};
use super::retry::{chance, class_of, is_final};
use crate::error::Error;
use crate::scope::selector_value;

pub use informer_core::until::{LastSeen, Verdict};

/// Why a condition was not seen to hold. `E` is the error of a condition that can fail.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UntilError<E = Infallible> {
    /// The deadline has passed.
    #[error("{resource} {name}: the condition did not hold within {after:?}; last seen: {seen}{}", because(.last_error))]
    Deadline {
        /// The resource, such as `pods`.
        resource: String,
        /// The object, with its namespace.
        name: String,
        /// The deadline.
        after: Duration,
        /// What was seen last.
        seen: LastSeen,
        /// Why nothing newer was seen, if that is so.
        last_error: Option<Box<Error>>,
    },
    /// The server refuses to list or to watch, or the request cannot be made: waiting would change nothing.
    #[error(transparent)]
    Failed(#[from] Error),
    /// The condition itself has failed.
    #[error("the condition failed: {0}")]
    Condition(E),
}

fn because(error: &Option<Box<Error>>) -> String {
    error.as_ref().map(|error| format!("; last error: {error}")).unwrap_or_default()
}

#[derive(Default)]
struct Progress {
    seen: Seen,
    error: Option<Box<Error>>,
}

impl Progress {
    /// Returns the object, or its absence, if the condition holds now or held for an absence before.
    fn observe<K: Resource, V: Verdict>(
        &mut self,
        object: Option<K>,
        condition: &mut impl FnMut(Option<&K>) -> V,
    ) -> Result<Option<Option<K>>, UntilError<V::Error>> {
        self.error = None;
        let held = self.seen.handle_state(object.as_ref(), identity, condition);
        Ok(match held.map_err(UntilError::Condition)? {
            Decided::ByState => Some(object),
            Decided::ByAbsence => Some(None),
            _ => None,
        })
    }
}

fn identity<K: Resource>(object: &K) -> (Option<Uid>, String) {
    let meta = object.meta();
    (meta.uid.as_deref().and_then(Uid::new), meta.resource_version.clone().unwrap_or_default())
}

impl<K> Api<K>
where
    K: Resource + DeserializeOwned + Clone + fmt::Debug,
{
    /// Waits until the condition holds for the object of this name, and returns the object in that state;
    /// `None` if the condition held for its absence. [`conditions`](super::conditions) has the usual ones.
    ///
    /// It lists and watches this one name, which needs these two rights. A program with an informer of the
    /// kind waits by [`Informer::until`](informer_actors::informer::Informer::until) instead, which sends no
    /// request. Errors of the connection and of an overloaded server are waited out. `Duration::MAX` means no
    /// deadline.
    ///
    /// The condition is called once for every state that the server shows. It returns `bool` or
    /// `Result<bool, E>`: an error ends the wait.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use actix_informer::client::api::conditions;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use std::time::Duration;
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let web = pods.until("web", conditions::pod_running(), Duration::from_secs(60)).await?;
    /// let ended = |pod: Option<&Pod>| match pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()) {
    ///     Some("Succeeded") => Ok(true),
    ///     Some("Failed") => Err("it has failed"),
    ///     _ => Ok(false),
    /// };
    /// pods.until("web", ended, Duration::from_secs(10)).await?;
    /// # drop(web); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`UntilError`].
    pub async fn until<V: Verdict>(
        &self,
        name: &str,
        condition: impl FnMut(Option<&K>) -> V,
        deadline: Duration,
    ) -> Result<Option<K>, UntilError<V::Error>> {
        self.object(name)?;
        let mut known = Progress::default();
        let outcome = {
            let waiting = std::pin::pin!(self.observe(name, condition, &mut known));
            let deadline = std::pin::pin!(self.client.sleep(deadline));
            match select(waiting, deadline).await {
                Either::Left((outcome, _)) => Some(outcome),
                Either::Right((over, _)) => over.map(|()| None)?,
            }
        };
        let Some(outcome) = outcome else {
            let namespace = self.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            return Err(UntilError::Deadline {
                resource: self.resource_name(),
                name: format!("{namespace}{name}"),
                after: deadline,
                seen: known.seen.last().clone(),
                last_error: known.error,
            });
        };
        outcome
    }

    async fn observe<V: Verdict>(
        &self,
        name: &str,
        mut condition: impl FnMut(Option<&K>) -> V,
        known: &mut Progress,
    ) -> Result<Option<K>, UntilError<V::Error>> {
        let selector = format!("metadata.name={}", selector_value(name));
        let mut lists = WatchResume::new("", false);
        loop {
            let list = match self.list(&ListParams::default().fields(&selector)).await {
                Ok(list) => list,
                Err(error) if is_final(&error) => return Err(error.into()),
                Err(error) => {
                    let class = class_of(&error);
                    known.error = Some(Box::new(error));
                    self.wait_before_list(&mut lists, class).await?;
                    continue;
                }
            };
            let version = list.metadata.resource_version.clone().unwrap_or_default();
            lists.handle_version(&version);
            if let Some(held) = known.observe(list.items.into_iter().next(), &mut condition)? {
                return Ok(held);
            }
            let mut watch = self.watch(&WatchParams::default().fields(&selector), &version)?;
            while let Some(event) = watch.next().await {
                let object = match event {
                    Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Some(object),
                    Ok(WatchEvent::Deleted(_)) => None,
                    // A bookmark: the server has answered.
                    Ok(_) => {
                        known.error = None;
                        continue;
                    }
                    Err(error) if is_final(&error) => return Err(error.into()),
                    Err(error) => {
                        known.error = Some(Box::new(error));
                        continue;
                    }
                };
                if let Some(held) = known.observe(object, &mut condition)? {
                    return Ok(held);
                }
            }
            // The version has expired.
            self.wait_before_list(&mut lists, ErrorClass::Retry).await?;
        }
    }

    async fn wait_before_list(&self, lists: &mut WatchResume, class: ErrorClass) -> Result<(), Error> {
        let class = if class == ErrorClass::Relist { ErrorClass::Retry } else { class };
        match lists.handle_failure(class, chance(&self.client)) {
            AfterEnd::OpenAfter(wait) => self.client.sleep(wait).await,
            AfterEnd::ListAgain => Ok(()),
        }
    }
}
