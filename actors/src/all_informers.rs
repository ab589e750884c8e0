//! All informers of a runtime together: name them, wait for them, drain them. A call covers the informers that exist
//! at its start.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use informer_core::list_watch_error::ListWatchError;
use informer_core::reflector::SourceState;

use crate::any_informer::AnyInformer;
use crate::informer::{Informer, ShutdownReport, Synced, WaitError};
use crate::pipeline::ending::Ending;
use crate::pipeline::messages::Body;
use crate::pipeline::status::InformerStatus;
use crate::runtime::Runtime;

/// Of all informers together.
const MOST_HINTS: usize = 20;

type Upgrade = Box<dyn Fn() -> Option<AnyInformer> + Send + Sync>;

/// The state of one informer after a wait for several.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InformerSync {
    /// Its name.
    pub name: Arc<str>,
    /// What its worst source is doing.
    pub state: SourceState,
    /// The newest failure of its worst source, or else of any source.
    pub last_error: Option<ListWatchError>,
    /// Why it is not synced, with its name; `None` if it is.
    pub error: Option<WaitError>,
}

/// Some of the informers were not synced in time.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub struct NotAllSynced {
    /// All informers of the wait, including synced ones, in the order in which they were made.
    pub informers: Vec<InformerSync>,
}

impl NotAllSynced {
    /// The reason of each informer that is not synced; each names its informer.
    pub fn errors(&self) -> impl Iterator<Item = &WaitError> {
        self.informers.iter().filter_map(|informer| informer.error.as_ref())
    }
}

impl fmt::Display for NotAllSynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (missing, all) = (self.errors().count(), self.informers.len());
        if all == 1 {
            return self.errors().try_for_each(|error| write!(f, "{error}"));
        }
        write!(f, "{missing} of {all} informers are not synced")?;
        self.errors()
            .enumerate()
            .try_for_each(|(n, error)| write!(f, "{} {error}", if n == 0 { ":" } else { ";" }))
    }
}

/// What was left undone by the shutdowns of all informers of a runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// The name of each informer, and its report; in the order in which they were started.
    pub informers: Vec<(Arc<str>, ShutdownReport)>,
}

impl DrainReport {
    /// Whether everything of every informer came back in time.
    pub fn is_clean(&self) -> bool {
        self.informers.iter().all(|(_, report)| report.is_clean())
    }
}

impl fmt::Display for DrainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.informers.iter().filter(|(_, report)| !report.is_clean());
        let left: Vec<_> = left.map(|(name, report)| format!("informer {name:?}: {report}")).collect();
        if left.is_empty() { f.write_str("everything was delivered") } else { f.write_str(&left.join("; ")) }
    }
}

impl Runtime {
    /// Its informers that run and have a handle, in the order in which they were started. Each item is a
    /// handle like any other: it keeps its informer running. Never blocks.
    pub fn informers(&self) -> Vec<AnyInformer> {
        let ending = |registrant: Arc<dyn Any + Send + Sync>| registrant.downcast::<Ending>().ok();
        self.registrants().into_iter().filter_map(ending).filter_map(|ending| handle(&ending)).collect()
    }

    /// Waits until the first list of every source of each of [`Self::informers`] is published, for at most `limit`.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// # #[cfg(feature = "testing")] {
    /// # use actix_informer::informer::Informer;
    /// # use actix_informer::runtime::Runtime;
    /// # use actix_informer::testing::Server;
    /// # use std::time::Duration;
    /// # Runtime::simulated(1).run(|runtime| async move {
    /// # let (server, other) = (Server::<String>::new(), Server::<u32>::new());
    /// let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
    /// let numbers = Informer::builder(&runtime, "numbers").source(move || other.clone()).start()?;
    /// runtime.synced_within(Duration::from_secs(30)).await?; // Err: which is not, and why
    /// // ...
    /// let report = runtime.drain(Duration::from_secs(10)).await;
    /// assert!(report.is_clean(), "{report}");
    /// # drop((texts, numbers));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
    /// ```
    ///
    /// # Errors
    /// At the limit, or earlier when no remaining informer can sync any more: with the reason for each.
    pub async fn synced_within(&self, limit: Duration) -> Result<Synced, NotAllSynced> {
        AnyInformer::all_synced_within(&self.informers(), limit).await
    }

    /// Shuts all of [`Self::informers`] down at once, as
    /// [`Informer::shutdown`](crate::informer::Informer::shutdown): each reads no more, applies what is
    /// queued, and delivers what waits until `limit`. The threads stay: [`Self::shutdown`] ends them.
    pub async fn drain(&self, limit: Duration) -> DrainReport {
        AnyInformer::drain_all(&self.informers(), limit).await
    }
}

impl InformerSync {
    /// The state of this informer now, without a wait.
    #[doc(hidden)]
    pub fn of(status: &InformerStatus) -> Self {
        Self {
            name: Arc::clone(&status.name),
            state: status.state(),
            last_error: status.last_error().cloned(),
            error: None,
        }
    }
}

impl AnyInformer {
    /// Waits until each of these is synced, for at most `limit` in all.
    ///
    /// # Errors
    /// At the limit, or earlier when no remaining informer can sync any more: with the name, state, last
    /// error and reason of each.
    pub async fn all_synced_within(informers: &[Self], limit: Duration) -> Result<Synced, NotAllSynced> {
        let waits = join_all(informers.iter().map(|informer| informer.synced_within(limit))).await;
        if waits.iter().all(Result::is_ok) {
            let of = |(informer, synced): (&Self, Result<Synced, WaitError>)| {
                let hints = synced.unwrap_or_default().hints.into_iter();
                hints.map(|hint| format!("informer {}: {hint}", informer.name()).into()).collect::<Vec<_>>()
            };
            let hints = informers.iter().zip(waits).flat_map(of).take(MOST_HINTS);
            return Ok(Synced { hints: hints.collect() });
        }
        let shown = |(informer, wait): (&Self, Result<Synced, WaitError>)| {
            let status = informer.status();
            let (state, last_error) = (status.state(), status.last_error().cloned());
            InformerSync { name: status.name, state, last_error, error: wait.err() }
        };
        Err(NotAllSynced { informers: informers.iter().zip(waits).map(shown).collect() })
    }

    /// Shuts all of these down at once, each within `limit`.
    pub async fn drain_all(informers: &[Self], limit: Duration) -> DrainReport {
        let reports = join_all(informers.iter().map(|informer| informer.shutdown(limit))).await;
        let names = informers.iter().map(|informer| Arc::from(informer.name()));
        DrainReport { informers: names.zip(reports).collect() }
    }
}

/// Lets the runtime find this informer while it has a handle.
pub(crate) fn list<S: Body>(informer: &Informer<S>) {
    let weak = informer.downgrade();
    let upgrade: Upgrade = Box::new(move || weak.upgrade().map(AnyInformer::from));
    informer.0.ending.list(Box::new(upgrade));
}

fn handle(ending: &Ending) -> Option<AnyInformer> {
    let upgrade = ending.listed().filter(|_| !ending.stop.is_cancelled())?;
    upgrade.downcast_ref::<Upgrade>().and_then(|upgrade| upgrade())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Server;

    const LIMIT: Duration = Duration::from_secs(30);

    fn start(runtime: &Runtime, name: &str, server: &Server<String>) -> Informer<String> {
        let server = server.clone();
        Informer::builder(runtime, name).source(move || server.clone()).start().expect("a sound spec")
    }

    // INF-87: given a runtime with informers of several kinds, when it is asked, then it names those that run
    // and are held, waits for all of them (an error names each that is not synced, and why), and drains all
    // of them.
    // - a names, waits, drains
    // - b the error names each with its reason:
    //   `inf_87_each_informer_that_is_not_synced_in_time_is_named_with_its_reason`
    #[test]
    fn inf_87_a_runtime_names_waits_for_and_drains_all_its_informers() {
        Runtime::simulated(1).run(|runtime| async move {
            let server = Server::new();
            server.apply("a/one", "text".to_owned());
            let [first, second] = ["first", "second"].map(|name| start(&runtime, name, &server));
            let numbers = Informer::<u32>::builder(&runtime, "numbers").source(Server::new).start().unwrap();
            let names = |runtime: &Runtime| {
                runtime.informers().iter().map(|informer| informer.name().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(names(&runtime), ["first", "second", "numbers"]);
            runtime.synced_within(LIMIT).await.unwrap();
            assert!(first.status().synced && second.status().synced && numbers.status().synced);

            let delivered = Arc::new(std::sync::atomic::AtomicU64::new(0));
            let count = Arc::clone(&delivered);
            let subscription = first
                .for_each(move |_| {
                    count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    std::future::ready(())
                })
                .unwrap();
            drop(second);
            let report = runtime.drain(LIMIT).await;
            assert!(report.is_clean(), "{report}");
            assert_eq!(report.to_string(), "everything was delivered");
            assert_eq!(delivered.load(std::sync::atomic::Ordering::Relaxed), 1, "what waits is delivered");
            assert!(report.informers.iter().any(|(name, _)| &**name == "first"));
            assert!(report.informers.iter().all(|(name, _)| &**name != "second"), "it had no handle");
            assert_eq!(names(&runtime), Vec::<String>::new());
            assert!(first.status().stopped && numbers.status().stopped);
            drop(subscription);
        });
    }

    #[test]
    fn inf_87_each_informer_that_is_not_synced_in_time_is_named_with_its_reason() {
        Runtime::simulated(1).run(|runtime| async move {
            let (fine, slow) = (Server::new(), Server::new());
            slow.hold_lists(true);
            let informers = [("fine", &fine), ("slow", &slow), ("idle", &slow)]
                .map(|(name, server)| start(&runtime, name, server));
            let error = runtime.synced_within(LIMIT).await.unwrap_err();
            let shown =
                |sync: &InformerSync| (sync.name.to_string(), sync.state.to_string(), sync.error.is_some());
            let listing = "listing, 0 objects received".to_owned();
            assert_eq!(
                error.informers.iter().map(shown).collect::<Vec<_>>(),
                [
                    ("fine".to_owned(), "streaming".to_owned(), false),
                    ("slow".to_owned(), listing.clone(), true),
                    ("idle".to_owned(), listing, true)
                ]
            );
            let text = error.to_string();
            assert!(
                text.starts_with(
                    "2 of 3 informers are not synced: informer \"slow\" is not synced after 30s: "
                ),
                "{text}"
            );
            assert!(text.contains("; informer \"idle\" is not synced after 30s: "), "{text}");
            let [fine, slow, idle] = informers;
            drop((fine, idle));
            let alone = runtime.synced_within(LIMIT).await.unwrap_err().to_string();
            assert!(alone.starts_with("informer \"slow\" is not synced after 30s: "), "{alone}");
            drop(slow);
            assert!(runtime.synced_within(LIMIT).await.is_ok(), "no informer is left to wait for");
        });
    }
}
