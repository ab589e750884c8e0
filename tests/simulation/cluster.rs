//! A cluster of which a run follows some namespaces: by a source for each, or by one for all.
//!
//! Answers "which namespaces are wanted, is the list of all forbidden, and which exchange is under way?". Invariants:
//! 1. Namespaces that are wanted from the beginning to the end are in `stayed`: of no other are objects told as deleted
//!    because nobody wants them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use informer_actors::informer::{ClusterWide, Informer, NamespaceSources, OfCluster, OfNamespace};
use informer_core::meta::{ObjectKey, ResourceVersion, SourceId};

use crate::dice::Dice;
use crate::host::{Host, Sees, number};
use crate::plan::Source;
use crate::windows::Window;

/// So many namespaces there are.
const NAMESPACES: usize = 12;
/// Above so many the cluster is followed as a whole.
const ABOVE: usize = 6;
/// After a refusal of that it is tried again so much later.
const RETRY: Duration = Duration::from_secs(60);
const ALL: &str = "c/*";

pub(crate) struct Cluster {
    pub(crate) host: Host,
    pub(crate) wanted: BTreeSet<String>,
    pub(crate) stayed: BTreeSet<String>,
    all: Sees,
}

fn name(at: usize) -> String {
    format!("c{at:02}")
}

/// Some namespaces: the first two always, so that something stays.
fn some(dice: &mut Dice) -> BTreeSet<String> {
    let likely = dice.pick(&[2, 3, 9]);
    let others = (2..NAMESPACES).filter(|_| dice.below(10) < likely);
    [0, 1].into_iter().chain(others).map(name).collect()
}

impl Cluster {
    pub(crate) fn new(source: &Source, dice: &mut Dice) -> Self {
        let mut host = Host::new(SourceId::new("c"), source);
        for _ in 0..source.objects {
            host.apply(&Self::key(dice), "first".to_owned());
        }
        let wanted = some(dice);
        Self { host, stayed: wanted.clone(), wanted, all: Sees::default() }
    }

    /// The sources with which an informer begins.
    pub(crate) fn sources(&self) -> NamespaceSources<String> {
        let host = self.host.connector();
        let each: OfNamespace<String> = Arc::new(move |namespace| {
            let sees = Sees { namespace: Some(namespace.to_owned()), ..Sees::default() };
            Ok(host(&SourceId::new(format!("c/{namespace}")), &sees))
        });
        let (host, sees) = (self.host.connector(), self.all.clone());
        let all: OfCluster<String> = Arc::new(move || Ok(host(&SourceId::new(ALL), &sees)));
        let names = self.wanted.iter().map(String::as_str);
        NamespaceSources::given(each, names).cluster_wide(ClusterWide::above(ABOVE).retry_after(RETRY), all)
    }

    /// The key of an object of any namespace. Few names, so that many are deleted and made again.
    pub(crate) fn key(dice: &mut Dice) -> String {
        format!("{}/{}", name(dice.below(NAMESPACES)), dice.below(4))
    }

    /// Other namespaces are wanted.
    pub(crate) fn change(&mut self, informer: &Informer<String>, dice: &mut Dice) {
        self.wanted = some(dice);
        self.stayed.retain(|namespace| self.wanted.contains(namespace));
        informer.set_namespaces(self.wanted.iter().map(String::as_str)).expect("names, and it runs");
    }

    /// The list of all namespaces is forbidden from now on, or allowed.
    pub(crate) fn forbid(&self, forbid: bool) {
        self.all.is_denied.store(forbid, Ordering::Relaxed);
        if forbid {
            self.host.server.end_watches(None);
        }
    }

    pub(crate) fn is_forbidden(&self) -> bool {
        self.all.is_denied.load(Ordering::Relaxed)
    }

    /// The versions of its sources that have listed.
    pub(crate) fn reached(&self, informer: &Informer<String>) -> Vec<u64> {
        let snapshot = informer.snapshot();
        let versions = snapshot.versions().iter().filter(|(id, _)| Self::owns(id));
        versions.map(|(_, version)| number(version)).collect()
    }

    pub(crate) fn owns(source: &SourceId) -> bool {
        source.as_str().starts_with("c/")
    }

    /// What is to be held of it.
    pub(crate) fn served(&self) -> impl Iterator<Item = (ObjectKey, ResourceVersion)> + use<'_> {
        let is_wanted = |key: &ObjectKey| key.namespace().is_some_and(|name| self.wanted.contains(name));
        self.host.server.content().into_iter().filter(move |(key, _)| is_wanted(key))
    }

    /// The exchange that is under way, by what the informer shows.
    pub(crate) fn window(&self, informer: &Informer<String>) -> Option<Window> {
        let status = informer.status();
        let mut sources = status.sources.iter().filter(|source| Self::owns(&source.source));
        let all = sources.clone().find(|source| source.source.as_str() == ALL)?;
        if !sources.any(|source| source.source.as_str() != ALL) {
            return None;
        }
        let is_of_all = status.namespaces.first().is_some_and(|set| set.cluster_wide);
        Some(match (is_of_all, all.version.is_some()) {
            (true, false) => Window::AllTakesOver,
            (true, true) => Window::AllBesideEach,
            (false, true) if !self.is_forbidden() => Window::EachTakesOver,
            (false, _) => Window::AllIsRefused,
        })
    }
}
