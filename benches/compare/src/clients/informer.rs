//! actix-informer as most programs use it: an informer of pods, and a closure that receives every change.
//!
//! Answers "what does it cost here?" for typed and lazy pods, with the default pruning. Invariants:
//! 1. It is caught up when the store has the last event and the closure has received it.

use std::time::Duration;

use actix_informer::client::{Config, ResourceSource};
use actix_informer::prelude::*;
use actix_informer::representation::{LazyBody, Representation};
use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use super::By;
use crate::drive::Cache;
use crate::state::State;

const LONG: Duration = Duration::from_secs(600);

/// A running informer of pods.
pub(crate) struct Followed<S: Send + Sync + 'static> {
    pods: Informer<S>,
    subscription: Subscription<S>,
    last: ResourceVersion,
    last_delivered: watch::Receiver<bool>,
}

impl<S: Send + Sync + 'static> Followed<S> {
    /// Starts it; `last` is the version of the last event, `kept` says how pods are kept.
    pub(crate) fn start<R: Representation<Body = S>>(
        url: &str,
        by: By,
        last: u64,
        kept: impl FnOnce(ResourceSource<Pod>) -> ResourceSource<Pod, R>,
    ) -> anyhow::Result<Self> {
        let last = version(last)?;
        let runtime = Runtime::threads().start()?;
        let client = Client::new(Config::new(url)?)?;
        let pods =
            kept(client.resource::<Pod>()).settings(|settings| settings.watch_list = by == By::WatchList);
        let pods = pods.informer(&runtime)?.start()?;
        let (sender, last_delivered) = watch::channel(false);
        let awaited = last.clone();
        let subscription = pods.for_each(move |notify| {
            if let Notify::Updated { object, .. } = notify
                && *object.version() == awaited
            {
                sender.send_replace(true);
            }
            std::future::ready(())
        })?;
        Ok(Self { pods, subscription, last, last_delivered })
    }
}

fn version(number: u64) -> anyhow::Result<ResourceVersion> {
    ResourceVersion::from_number(number).context("a version is not zero")
}

/// A pod to compare.
pub(crate) trait Whole: Send + Sync + 'static {
    fn add_to(&self, state: &mut State) -> anyhow::Result<()>;
}

impl Whole for Pod {
    fn add_to(&self, state: &mut State) -> anyhow::Result<()> {
        state.add(self)
    }
}

impl Whole for LazyBody<Pod> {
    fn add_to(&self, state: &mut State) -> anyhow::Result<()> {
        state.add(&*self.decoded()?)
    }
}

impl<S: Whole> Cache for Followed<S> {
    async fn synced(&mut self) -> anyhow::Result<()> {
        Ok(self.subscription.synced_within(LONG).await?)
    }

    async fn caught_up(&mut self) -> anyhow::Result<()> {
        self.pods.lister().wait_for(&self.last, LONG).await?;
        self.last_delivered.wait_for(|is_delivered| *is_delivered).await?;
        Ok(())
    }

    async fn relisted(&mut self, number: u64) -> anyhow::Result<()> {
        Ok(self.pods.lister().wait_for(&version(number)?, LONG).await?)
    }

    fn state(&self) -> anyhow::Result<State> {
        let mut state = State::default();
        self.pods.snapshot().iter().try_for_each(|object| object.body().add_to(&mut state))?;
        Ok(state)
    }
}
