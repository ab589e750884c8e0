//! actix-informer as most programs use it: an informer of pods, and a closure that receives every change.
//!
//! Answers "what does it cost here?" for typed and lazy pods, with the default pruning. Invariants:
//! 1. It is caught up when the store has the last event of a stage and the closure has received it.

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
    delivered: watch::Receiver<u64>,
}

impl<S: Send + Sync + 'static> Followed<S> {
    /// Starts it; each stage ends with an event of one of these versions, `kept` says how pods are kept.
    pub(crate) fn start<R: Representation<Body = S>>(
        url: &str,
        by: By,
        ends: [u64; 2],
        kept: impl FnOnce(ResourceSource<Pod>) -> ResourceSource<Pod, R>,
    ) -> anyhow::Result<Self> {
        let awaited = [version(ends[0])?, version(ends[1])?];
        let runtime = Runtime::threads().start()?;
        let client = Client::new(Config::new(url)?)?;
        let pods =
            kept(client.resource::<Pod>()).settings(|settings| settings.watch_list = by == By::WatchList);
        let pods = pods.informer(&runtime)?.start()?;
        let (sender, delivered) = watch::channel(0);
        let subscription = pods.for_each(move |notify| {
            if let Notify::Updated { object, .. } = notify
                && let Some(end) = awaited.iter().position(|awaited| awaited == object.version())
            {
                sender.send_replace(ends[end]);
            }
            std::future::ready(())
        })?;
        Ok(Self { pods, subscription, delivered })
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

    async fn caught_up(&mut self, end: u64) -> anyhow::Result<()> {
        self.pods.lister().wait_for(&version(end)?, LONG).await?;
        self.delivered.wait_for(|delivered| *delivered >= end).await?;
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
