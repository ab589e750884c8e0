//! actix-informer as an ordinary user has it: an informer of pods, and a closure that is told every change.
//!
//! Answers "what does it cost here?" for `Typed<Pod>` with its default pruning. Invariants:
//! 1. It is caught up when the store has the last event and the closure has been told it.

use std::time::Duration;

use actix_informer::client::Config;
use actix_informer::prelude::*;
use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

use super::By;
use crate::drive::Cache;
use crate::state::State;

const LONG: Duration = Duration::from_secs(600);

/// A running informer of pods.
pub(crate) struct Followed {
    pods: Informer<Pod>,
    told: Subscription<Pod>,
    last: ResourceVersion,
    told_last: watch::Receiver<bool>,
}

impl Followed {
    /// Starts it; `last` is the version of the last event.
    pub(crate) fn start(url: &str, by: By, last: u64) -> anyhow::Result<Self> {
        let last = version(last)?;
        let runtime = Runtime::threads().start()?;
        let client = Client::new(Config::new(url)?)?;
        let pods = client
            .resource::<Pod>()
            .informer_with(&runtime, |mut config| {
                config.watch_list = by == By::WatchList;
                config
            })?
            .start()?;
        let (tell, told_last) = watch::channel(false);
        let awaited = last.clone();
        let told = pods.for_each(move |notify| {
            if let Notify::Updated { object, .. } = notify
                && *object.version() == awaited
            {
                tell.send_replace(true);
            }
            std::future::ready(())
        })?;
        Ok(Self { pods, told, last, told_last })
    }
}

fn version(number: u64) -> anyhow::Result<ResourceVersion> {
    ResourceVersion::from_number(number).context("a version is not zero")
}

impl Cache for Followed {
    async fn synced(&mut self) -> anyhow::Result<()> {
        Ok(self.told.synced_within(LONG).await?)
    }

    async fn caught_up(&mut self) -> anyhow::Result<()> {
        self.pods.lister().wait_for(&self.last, LONG).await?;
        self.told_last.wait_for(|told| *told).await?;
        Ok(())
    }

    async fn relisted(&mut self, number: u64) -> anyhow::Result<()> {
        Ok(self.pods.lister().wait_for(&version(number)?, LONG).await?)
    }

    fn state(&self) -> anyhow::Result<State> {
        State::of(self.pods.snapshot().iter().map(|object| object.body()))
    }
}
