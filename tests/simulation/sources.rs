//! Sources that are added and removed in a run, and that take over from each other.
//!
//! Answers "by which source is this server followed, and which change is under way?". A server may be followed under
//! several names, one after the other or two at once: each name brings the same objects. Invariants:
//! 1. One change of a server's source is under way at a time; the next begins when it has ended.

use informer_actors::informer::{HandOverError, Informer, RemoveSourceError};
use informer_actors::list_watch::SourceSpec;
use informer_core::meta::{ResourceVersion, SourceId};
use tokio::task::JoinHandle;

use crate::host::{Host, Sees, number};
use crate::plan::Source;
use crate::windows::Window;

/// One server, and the source by which the informer follows it.
pub(crate) struct Origin {
    /// The name of its source; the last one, if it is not followed.
    pub(crate) id: SourceId,
    pub(crate) host: Host,
    pub(crate) newest: Option<ResourceVersion>,
    pub(crate) is_followed: bool,
    /// Whether its source was ever removed without another one that takes over.
    pub(crate) was_removed: bool,
    pub(crate) change: Option<Change>,
    names: usize,
    number: usize,
}

/// The change of a source that is under way.
pub(crate) enum Change {
    Removal(JoinHandle<Result<(), RemoveSourceError>>),
    HandOver(SourceId, JoinHandle<Result<(), HandOverError>>),
}

impl Change {
    fn is_over(&self) -> bool {
        match self {
            Self::Removal(task) => task.is_finished(),
            Self::HandOver(_, task) => task.is_finished(),
        }
    }

    /// The wait was dropped. A removal still goes on; a hand-over stops where it is.
    pub(crate) fn abort(&self) {
        match self {
            Self::Removal(task) => task.abort(),
            Self::HandOver(_, task) => task.abort(),
        }
    }
}

impl Origin {
    pub(crate) fn new(number: usize, source: &Source) -> Self {
        let id = SourceId::new(format!("s{number}"));
        let mut host = Host::new(id.clone(), source);
        for n in 0..source.objects {
            host.apply(&format!("n{number}/{n}"), "first".to_owned());
        }
        let (newest, is_followed, was_removed, change) = (None, true, false, None);
        Self { id, host, newest, is_followed, was_removed, change, names: 1, number }
    }

    /// The source as it is declared under this name.
    pub(crate) fn spec(&self, id: &SourceId) -> SourceSpec<String> {
        self.host.connector()(id, &Sees::default())
    }

    /// Whether a source of this name follows its server, or did so.
    pub(crate) fn owns(&self, source: &SourceId) -> bool {
        let rest = source.as_str().strip_prefix(&format!("s{}", self.number));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// The versions of its sources that have listed.
    pub(crate) fn reached(&self, informer: &Informer<String>) -> Vec<u64> {
        let snapshot = informer.snapshot();
        let versions = snapshot.versions().iter().filter(|(id, _)| self.owns(id));
        versions.map(|(_, version)| number(version)).collect()
    }

    /// The change that is under way.
    pub(crate) fn window(&self) -> Option<Window> {
        match self.change.as_ref().filter(|change| !change.is_over())? {
            Change::Removal(_) => Some(Window::Removal),
            Change::HandOver(..) => Some(Window::HandOver),
        }
    }

    /// Begins to remove it.
    pub(crate) fn remove(&mut self, informer: &Informer<String>) {
        let (informer, id) = (informer.clone(), self.id.clone());
        let task = actix_rt::spawn(async move { informer.remove_source(&id).await });
        (self.is_followed, self.was_removed) = (false, true);
        self.change = Some(Change::Removal(task));
    }

    /// Begins to follow it again, under the name that it had.
    pub(crate) fn add(&mut self, informer: &Informer<String>) {
        informer.add_source(self.spec(&self.id)).expect("the name is free since the removal has ended");
        self.is_followed = true;
    }

    /// Begins to follow it under another name, which takes over from the one that it has.
    pub(crate) fn hand_over(&mut self, informer: &Informer<String>) {
        let next = SourceId::new(format!("s{}-{}", self.number, self.names));
        self.names += 1;
        let (informer, old, spec) = (informer.clone(), self.id.clone(), self.spec(&next));
        let task = actix_rt::spawn(async move { informer.hand_over(&[old], vec![spec]).await });
        self.change = Some(Change::HandOver(next, task));
    }

    /// Records a change that is over.
    pub(crate) async fn settle(&mut self) {
        if self.change.as_ref().is_some_and(Change::is_over) {
            self.settled().await;
        }
    }

    /// Waits until nothing is under way.
    pub(crate) async fn settled(&mut self) {
        match &mut self.change {
            Some(Change::Removal(task)) => task.await.expect("no panic").expect("it was followed"),
            Some(Change::HandOver(next, task)) => {
                task.await.expect("no panic").expect("both were followed");
                self.id = next.clone();
            }
            None => return,
        }
        (self.newest, self.change) = (None, None);
    }
}
