//! Waits until an object is as somebody needs it.
//!
//! Answers "when does this condition hold?" for one name, whatever objects have it one after the other. Invariants:
//! 1. The condition sees the state at the beginning, each state after it, and each absence, also one that a gap in the
//!    watch has hidden: another uid means that the object before was deleted.
//! 2. It ends: with the state in which the condition holds, with an error that waiting does not mend, or at the
//!    deadline, with what was seen last and the last error.
//!
//! Read next: `conditions.rs`.

use std::fmt;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use informer_core::list_watch_error::ErrorClass;
use informer_core::resume::{Next, WatchResume};
use kube_core::params::{ListParams, WatchParams};
use kube_core::{Resource, WatchEvent};
use serde::de::DeserializeOwned;

use super::Api;
use super::chance::chance;
use super::class::{class_of, is_final};
use crate::client::error::Error;

/// Why a condition was not seen to hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UntilError {
    /// The time is over.
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
}

fn because(error: &Option<Box<Error>>) -> String {
    error.as_ref().map(|error| format!("; last error: {error}")).unwrap_or_default()
}

/// What a wait has seen last of its object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LastSeen {
    /// The server never answered.
    #[default]
    Nothing,
    /// The object was not there.
    Absent,
    /// The object, at this version.
    Present {
        /// Its `metadata.resourceVersion`.
        version: String,
    },
}

impl fmt::Display for LastSeen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing, the server never answered"),
            Self::Absent => f.write_str("the object was not there"),
            Self::Present { version } => write!(f, "the object at version {version}"),
        }
    }
}

/// What a wait knows.
#[derive(Default)]
struct Seen {
    uid: Option<String>,
    last: LastSeen,
    error: Option<Box<Error>>,
}

impl Seen {
    /// Whether the condition holds for a state, or for an absence before it that was not seen.
    fn observe<K: Resource>(
        &mut self,
        object: Option<K>,
        condition: &mut impl FnMut(Option<&K>) -> bool,
    ) -> Option<Option<K>> {
        self.error = None;
        let uid = object.as_ref().and_then(|object| object.meta().uid.clone());
        let is_another = object.is_some() && self.uid.is_some() && self.uid != uid;
        self.uid = uid;
        if is_another && condition(None) {
            return Some(None);
        }
        self.last = match &object {
            None => LastSeen::Absent,
            Some(object) => {
                LastSeen::Present { version: object.meta().resource_version.clone().unwrap_or_default() }
            }
        };
        condition(object.as_ref()).then_some(object)
    }
}

impl<K> Api<K>
where
    K: Resource + DeserializeOwned + Clone + fmt::Debug,
{
    /// Waits until the condition holds for the object of this name, and gives the object as it was then; `None` if the
    /// condition held for its absence. [`conditions`](super::conditions) has the usual ones.
    ///
    /// It lists and watches this one name, which needs these two rights. Errors of the connection and of an overloaded
    /// server are waited out. `Duration::MAX` means no deadline.
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
    /// let labelled = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.metadata.labels.is_some());
    /// pods.until("web", labelled, Duration::from_secs(10)).await?;
    /// # drop(web); Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`UntilError`].
    pub async fn until(
        &self,
        name: &str,
        condition: impl FnMut(Option<&K>) -> bool,
        deadline: Duration,
    ) -> Result<Option<K>, UntilError> {
        self.object(name)?;
        let mut seen = Seen::default();
        let outcome = {
            let waiting = std::pin::pin!(self.observe(name, condition, &mut seen));
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
                seen: seen.last,
                last_error: seen.error,
            });
        };
        Ok(outcome?)
    }

    /// Lists and watches until the condition holds.
    async fn observe(
        &self,
        name: &str,
        mut condition: impl FnMut(Option<&K>) -> bool,
        seen: &mut Seen,
    ) -> Result<Option<K>, Error> {
        let selector = format!("metadata.name={name}");
        let mut lists = WatchResume::new("", false);
        loop {
            let list = match self.list(&ListParams::default().fields(&selector)).await {
                Ok(list) => list,
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    let class = class_of(&error);
                    seen.error = Some(Box::new(error));
                    self.wait_before_list(&mut lists, class).await?;
                    continue;
                }
            };
            let version = list.metadata.resource_version.clone().unwrap_or_default();
            lists.handle_version(&version);
            if let Some(held) = seen.observe(list.items.into_iter().next(), &mut condition) {
                return Ok(held);
            }
            let mut watch = self.watch(&WatchParams::default().fields(&selector), &version)?;
            while let Some(event) = watch.next().await {
                let object = match event {
                    Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Some(object),
                    Ok(WatchEvent::Deleted(_)) => None,
                    Ok(_) => continue,
                    Err(error) if is_final(&error) => return Err(error),
                    Err(error) => {
                        seen.error = Some(Box::new(error));
                        continue;
                    }
                };
                if let Some(held) = seen.observe(object, &mut condition) {
                    return Ok(held);
                }
            }
            // The version has expired.
            self.wait_before_list(&mut lists, ErrorClass::Retry).await?;
        }
    }

    async fn wait_before_list(&self, lists: &mut WatchResume, class: ErrorClass) -> Result<(), Error> {
        let class = if class == ErrorClass::Relist { ErrorClass::Retry } else { class };
        match lists.handle_failure(class, chance()) {
            Next::OpenAfter(wait) => self.client.sleep(wait).await,
            _ => Ok(()),
        }
    }
}
