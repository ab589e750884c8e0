//! kube-rs as an ordinary user has it: a watcher through a reflector into a store, and a loop over its events.
//!
//! Answers "what does it cost there?" with `default_backoff`, once with the pods as they come and once with their
//! `managedFields` cleared, as its documentation recommends. Invariants:
//! 1. The store has an event before the loop sees it, so what the loop has seen is in the cache.

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Api, Client, Config, ResourceExt};
use kube_runtime::reflector::{self, Store};
use kube_runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;

use super::By;
use crate::drive::Cache;
use crate::state::State;

/// A running reflector of pods.
pub(crate) struct Reflected {
    pods: Store<Pod>,
    seen: watch::Receiver<Seen>,
}

/// What the loop has seen so far.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    lists: u64,
    last: bool,
}

impl Reflected {
    /// Starts it; `last` is the version of the last event.
    pub(crate) fn start(url: &str, by: By, clears: bool, last: u64) -> anyhow::Result<Self> {
        let client = Client::try_from(Config::new(url.parse()?))?;
        let config = match by {
            By::List => watcher::Config::default(),
            By::WatchList => watcher::Config::default().streaming_lists(),
        };
        let (pods, writer) = reflector::store();
        let (sender, seen) = watch::channel(Seen::default());
        let stream = watcher(Api::<Pod>::all(client), config).default_backoff();
        if clears {
            let cleared = stream.modify(|pod| pod.managed_fields_mut().clear());
            tokio::spawn(follow(cleared.reflect(writer), sender, last));
        } else {
            tokio::spawn(follow(stream.reflect(writer), sender, last));
        }
        Ok(Self { pods, seen })
    }
}

async fn follow(
    events: impl Stream<Item = watcher::Result<watcher::Event<Pod>>>,
    sender: watch::Sender<Seen>,
    last: u64,
) {
    let last = last.to_string();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::InitDone) => sender.send_modify(|seen| seen.lists += 1),
            Ok(watcher::Event::Apply(pod)) if pod.metadata.resource_version.as_ref() == Some(&last) => {
                sender.send_modify(|seen| seen.last = true);
            }
            // Among them the error of the 410; the watcher lists again by itself.
            _ => {}
        }
    }
}

impl Cache for Reflected {
    async fn synced(&mut self) -> anyhow::Result<()> {
        self.seen.wait_for(|seen| seen.lists >= 1).await?;
        Ok(())
    }

    async fn caught_up(&mut self) -> anyhow::Result<()> {
        self.seen.wait_for(|seen| seen.last).await?;
        Ok(())
    }

    async fn relisted(&mut self, _version: u64) -> anyhow::Result<()> {
        self.seen.wait_for(|seen| seen.lists >= 2).await?;
        Ok(())
    }

    fn state(&self) -> anyhow::Result<State> {
        let pods = self.pods.state();
        State::of(pods.iter().map(|pod| &**pod))
    }
}
