//! actix-informer as most programs use it: an informer of pods, and a closure that receives every change.
//!
//! Answers "what does it cost here?" for `Typed<Pod>` with its default pruning. Invariants:
//! 1. It is caught up when the store has the last event and the closure has received it.

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
    subscription: Subscription<Pod>,
    last: ResourceVersion,
    last_delivered: watch::Receiver<bool>,
}

impl Followed {
    /// Starts it; `last` is the version of the last event.
    pub(crate) fn start(url: &str, by: By, last: u64) -> anyhow::Result<Self> {
        let last = version(last)?;
        let runtime = Runtime::threads().start()?;
        let client = Client::new(Config::new(url)?)?;
        let pods = client
            .resource::<Pod>()
            .settings(|settings| settings.watch_list = by == By::WatchList)
            .informer(&runtime)?
            .start()?;
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

impl Cache for Followed {
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
        State::of(self.pods.snapshot().iter().map(|object| object.body()))
    }
}
