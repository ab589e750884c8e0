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
    version: u64,
}

impl Reflected {
    /// Starts it; each stage ends with an event of one of these versions.
    pub(crate) fn start(url: &str, by: By, clears: bool, ends: [u64; 2]) -> anyhow::Result<Self> {
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
            tokio::spawn(follow(cleared.reflect(writer), sender, ends));
        } else {
            tokio::spawn(follow(stream.reflect(writer), sender, ends));
        }
        Ok(Self { pods, seen })
    }
}

async fn follow(
    events: impl Stream<Item = watcher::Result<watcher::Event<Pod>>>,
    sender: watch::Sender<Seen>,
    ends: [u64; 2],
) {
    let texts = ends.map(|end| Some(end.to_string()));
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::InitDone) => sender.send_modify(|seen| seen.lists += 1),
            Ok(watcher::Event::Apply(pod)) => {
                let is_end = |text: &Option<String>| *text == pod.metadata.resource_version;
                if let Some(end) = texts.iter().position(is_end) {
                    sender.send_modify(|seen| seen.version = ends[end]);
                }
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

    async fn caught_up(&mut self, end: u64) -> anyhow::Result<()> {
        self.seen.wait_for(|seen| seen.version >= end).await?;
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
