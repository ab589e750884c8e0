//! The newest snapshots of several informers, taken together.
//!
//! A version is compared only with those of its own source. A set keeps no informer running.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::snapshot::{Snapshot, SourceVersions};

use crate::any_informer::AnyInformer;
use crate::informer::Informer;
use crate::lister::WaitForError;
use crate::observed::{Observed, TakenOf, TakenSnapshot};
use crate::pipeline::messages::Body;
use crate::runtime::Runtime;

/// The newest snapshots of several informers. Each is looked up by its informer.
///
/// This is no transaction: one cache may be ahead of another. After a write, a program waits with
/// [`Self::at_least`] until each cache has what it wrote.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// # #[cfg(feature = "testing")] {
/// use actix_informer::informer::{Informer, Snapshots, Versions};
/// use actix_informer::runtime::Runtime;
/// # use actix_informer::testing::Server;
/// # use std::time::Duration;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let (server, other) = (Server::<String>::new(), Server::<u32>::new());
/// # let (written, counted) = (server.apply("shop/web", "a text".to_owned()), other.apply("shop/web", 7));
/// let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
/// let numbers = Informer::builder(&runtime, "numbers").source(move || other.clone()).start()?;
///
/// // The versions that two writes have returned, each for its informer.
/// let wanted = Versions::new().of(&texts, &written).of(&numbers, &counted);
/// let caches = Snapshots::of([(&texts).into(), (&numbers).into()]);
/// let caches = caches.at_least(&wanted, Duration::from_secs(30)).await?;
/// let key = "shop/web".parse()?;
/// let text = caches.get(&texts).and_then(|texts| texts.get(&key)).expect("it was written");
/// let number = caches.get(&numbers).and_then(|numbers| numbers.get(&key)).expect("it was written");
/// assert_eq!((text.body().as_str(), *number.body()), ("a text", 7));
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
/// ```
#[derive(Clone)]
pub struct Snapshots(Vec<Entry>);

#[derive(Clone)]
struct Entry {
    informer: Arc<dyn Observed>,
    taken: Arc<dyn TakenSnapshot>,
}

/// Versions that informers have to reach, each of one source.
#[derive(Clone, Default)]
#[must_use = "versions do nothing until they are waited for"]
pub struct Versions(Vec<Wanted>);

#[derive(Clone)]
struct Wanted {
    informer: Arc<dyn Observed>,
    /// `None` for the only source.
    source: Option<SourceId>,
    version: ResourceVersion,
}

impl Wanted {
    fn stopped(&self) -> WaitForError {
        WaitForError::Stopped { informer: self.informer.name(), wanted: self.version.clone() }
    }
}

/// Which versions were not reached, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub struct NotAllReached {
    /// How many versions were waited for.
    pub versions: usize,
    /// The reason for each version that was not reached; each names its informer.
    pub errors: Vec<WaitForError>,
}

impl fmt::Display for NotAllReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} versions were not reached", self.errors.len(), self.versions)?;
        self.errors.iter().try_for_each(|error| write!(f, "; {error}"))
    }
}

impl Snapshots {
    /// The newest snapshots of these informers, in this order. Never blocks; copies a few pointers for each.
    #[must_use]
    pub fn of(informers: impl IntoIterator<Item = AnyInformer>) -> Self {
        let taken = |informer: AnyInformer| {
            let informer = informer.observed();
            // Until here the handle keeps the informer running.
            let taken = informer.newest()?;
            Some(Entry { informer, taken })
        };
        Self(informers.into_iter().filter_map(taken).collect())
    }

    /// The snapshot of this informer; `None` if the set has none of it.
    pub fn get<S: Body>(&self, informer: &Informer<S>) -> Option<&Snapshot<S>> {
        let all = self.0.iter().map(|entry| entry.taken.as_any());
        all.filter_map(|taken| taken.downcast_ref::<TakenOf<S>>()).find_map(|taken| taken.of(informer))
    }

    /// For each snapshot the informer's name, the number of objects, and the version of each source.
    pub fn iter(&self) -> impl Iterator<Item = (Arc<str>, usize, &SourceVersions)> {
        self.0.iter().map(|entry| (entry.informer.name(), entry.taken.len(), entry.taken.versions()))
    }

    /// The version of each source of each informer: a later set that reaches these is as new as this one.
    pub fn versions(&self) -> Versions {
        let of_entry = |entry: &Entry| -> Vec<Wanted> {
            let versions = entry.taken.versions().iter();
            let wanted = |(source, version): (&SourceId, &ResourceVersion)| Wanted {
                informer: Arc::clone(&entry.informer),
                source: Some(source.clone()),
                version: version.clone(),
            };
            versions.map(wanted).collect()
        };
        Versions(self.0.iter().flat_map(of_entry).collect())
    }

    /// Waits for at most `limit` until each of these versions is reached, and takes new snapshots of the same
    /// informers. Returns at once if all are reached. It waits for each version as
    /// [`Lister::wait_for`](crate::informer::Lister::wait_for) does.
    ///
    /// # Errors
    /// [`NotAllReached`] with the reason for each version: the limit, an informer that has stopped, a source
    /// that it does not have, or several sources of which none was named.
    pub async fn at_least(&self, wanted: &Versions, limit: Duration) -> Result<Self, NotAllReached> {
        let waits = wanted
            .0
            .iter()
            .map(|wanted| wanted.informer.reaches(wanted.source.as_ref(), &wanted.version, limit));
        let errors: Vec<_> = join_all(waits).await.into_iter().filter_map(Result::err).collect();
        let taken: Vec<_> = self.0.iter().map(|entry| entry.informer.newest()).collect();
        // An informer that ended after its version was reached has no snapshot.
        let ended = wanted.0.iter().filter(|wanted| wanted.informer.newest().is_none());
        let errors: Vec<_> = match errors.is_empty() {
            true => ended.map(Wanted::stopped).collect(),
            false => errors,
        };
        if !errors.is_empty() {
            return Err(NotAllReached { versions: wanted.0.len(), errors });
        }
        let newest = |(entry, taken): (&Entry, Option<Arc<dyn TakenSnapshot>>)| {
            // An ended informer without a wanted version keeps its old snapshot.
            let taken = taken.unwrap_or_else(|| Arc::clone(&entry.taken));
            Entry { informer: Arc::clone(&entry.informer), taken }
        };
        Ok(Self(self.0.iter().zip(taken).map(newest).collect()))
    }
}

impl Versions {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds: the only source of this informer has to reach this version.
    pub fn of<S: Body>(self, informer: &Informer<S>, version: &ResourceVersion) -> Self {
        self.with(informer, None, version)
    }

    /// Adds: this source of this informer has to reach this version.
    pub fn of_source<S: Body>(
        self,
        informer: &Informer<S>,
        source: &SourceId,
        version: &ResourceVersion,
    ) -> Self {
        self.with(informer, Some(source), version)
    }

    fn with<S: Body>(
        mut self,
        informer: &Informer<S>,
        source: Option<&SourceId>,
        version: &ResourceVersion,
    ) -> Self {
        let (source, version) = (source.cloned(), version.clone());
        self.0.push(Wanted { informer: Arc::new(informer.downgrade()), source, version });
        self
    }
}

impl Runtime {
    /// The newest snapshots of all its informers.
    pub fn snapshots(&self) -> Snapshots {
        Snapshots::of(self.informers())
    }
}

impl fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |wanted: &Wanted| (wanted.informer.name(), wanted.source.clone(), wanted.version.clone());
        f.debug_list().entries(self.0.iter().map(line)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Server;

    const LIMIT: Duration = Duration::from_secs(30);

    struct Two {
        texts: Informer<String>,
        numbers: Informer<u32>,
        server: Server<String>,
        other: Server<u32>,
    }

    fn two(runtime: &Runtime) -> Two {
        let (server, other) = (Server::new(), Server::new());
        let (one, two) = (server.clone(), other.clone());
        let texts = Informer::builder(runtime, "texts").source(move || one.clone()).start().expect("sound");
        let numbers =
            Informer::builder(runtime, "numbers").source(move || two.clone()).start().expect("sound");
        Two { texts, numbers, server, other }
    }

    #[test]
    fn a_set_waits_until_each_informer_has_its_version_and_names_each_that_has_not() {
        Runtime::simulated(1).run(|runtime| async move {
            let Two { texts, numbers, server, other } = two(&runtime);
            runtime.synced_within(LIMIT).await.expect("both sync");
            let before = runtime.snapshots();
            let (text, number) = (server.apply("a/x", "t".to_owned()), other.apply("a/x", 1));
            let wanted = Versions::new().of(&texts, &text).of(&numbers, &number);
            let after = before.at_least(&wanted, LIMIT).await.expect("both arrive");
            assert_eq!(
                (after.get(&texts).map(Snapshot::len), after.get(&numbers).map(Snapshot::len)),
                (Some(1), Some(1))
            );
            assert_eq!(before.get(&texts).map(Snapshot::len), Some(0), "what was taken stays as it was");

            other.freeze_watches(true);
            let late = other.apply("a/y", 2);
            let wanted = after.versions().of(&numbers, &late);
            let now = runtime.now();
            let error = after.at_least(&wanted, LIMIT).await.expect_err("one is frozen");
            assert_eq!((runtime.now() - now, error.versions, error.errors.len()), (LIMIT, 3, 1));
            assert!(error.to_string().contains("informer \"numbers\" has not reached version"), "{error}");

            // One reaches its version and ends while the other is waited for: it has no snapshot of that version.
            let text = server.apply("a/z", "late".to_owned());
            let wanted = Versions::new().of(&texts, &text).of(&numbers, &late);
            let waiting = actix_rt::spawn(async move { after.at_least(&wanted, LIMIT).await });
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(texts);
            other.freeze_watches(false);
            let error = waiting.await.expect("no panic").expect_err("one has ended");
            assert!(error.to_string().contains("informer \"texts\" stopped"), "{error}");
        });
    }

    #[test]
    fn a_set_gives_a_snapshot_back_by_its_informer_alone_and_keeps_no_informer_running() {
        Runtime::simulated(1).run(|runtime| async move {
            let Two { texts, numbers, .. } = two(&runtime);
            let more = two(&runtime);
            let set = Snapshots::of([(&texts).into(), (&numbers).into()]);
            assert!(
                set.get(&texts).is_some() && set.get(&more.texts).is_none(),
                "of one type, another informer"
            );
            assert_eq!(
                set.iter().map(|(name, ..)| name).collect::<Vec<_>>(),
                ["texts".into(), Arc::from("numbers")]
            );
            let wanted = Versions::new().of(&texts, &ResourceVersion::from_number(1).expect("not zero"));
            let weak = texts.downgrade();
            drop(texts);
            assert!(weak.upgrade().is_none());
            let error = set.at_least(&wanted, LIMIT).await.expect_err("it has stopped");
            assert!(matches!(error.errors.as_slice(), [WaitForError::Stopped { .. }]), "{error}");
        });
    }
}
