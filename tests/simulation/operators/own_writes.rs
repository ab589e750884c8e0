//! What each reconcile has written, and whether the next one of its key is shown that.
//!
//! Answers "does the controller read its own writes?" in one life of a process. Invariants:
//! 1. A cache may be behind a write only if the key has waited for its bound.
//! 2. A crash forgets all of it, as it forgets what was written.
//!
//! Read next: `operator.rs`, which tells it of each answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_informer::object::meta_of;
use actix_informer::prelude::*;
use k8s_openapi::api::core::v1::ConfigMap;

use super::outside::Outside;
use super::plan::WRITE_WAIT;
use super::site::Website;

/// The memory of one life.
pub(crate) struct OwnWrites {
    outside: Outside,
    sites: Lister<Website>,
    maps: Lister<ConfigMap>,
    last: Mutex<BTreeMap<ObjectKey, Written>>,
}

/// What a reconcile has written, and when it ended.
#[derive(Debug, Default)]
struct Written {
    ended: Duration,
    site: Option<Meta>,
    maps: Vec<Meta>,
}

/// One reconcile; its end is the drop.
pub(crate) struct Pass<'a> {
    writes: &'a OwnWrites,
    key: ObjectKey,
    written: Mutex<Written>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OwnWrites {
    /// Nothing is written yet.
    pub(crate) fn new(outside: &Outside, sites: &Informer<Website>, maps: &Informer<ConfigMap>) -> Self {
        let (sites, maps) = (sites.lister(), maps.lister());
        Self { outside: outside.clone(), sites, maps, last: Mutex::default() }
    }

    /// A reconcile of this key begins.
    pub(crate) fn begin(&self, key: &ObjectKey) -> Pass<'_> {
        let last = locked(&self.last).remove(key);
        if let Some(last) = last.filter(|last| self.outside.now() < last.ended + WRITE_WAIT) {
            let is_behind = |written: &&Meta| !is_shown(&self.maps, written);
            let behind = last.maps.iter().find(is_behind);
            let behind = behind.or_else(|| last.site.as_ref().filter(|site| !is_shown(&self.sites, site)));
            if let Some(behind) = behind {
                let (now, version) = (self.outside.now(), &behind.version);
                let ended = last.ended;
                let text = format!(
                    "at {now:?} {key} is not shown {} at {version}, written by {ended:?}",
                    behind.key
                );
                self.outside.state().broken.push(text);
            }
        }
        Pass { writes: self, key: key.clone(), written: Mutex::default() }
    }
}

impl Pass<'_> {
    /// The server has answered this for the site.
    pub(crate) fn site(&self, site: &Meta) {
        locked(&self.written).site = Some(site.clone());
    }

    /// The server has answered this for a child. Whether the cache shows it already.
    pub(crate) fn map(&self, map: &ConfigMap) -> bool {
        let meta = meta_of(map).expect("the server has given it a name and a version");
        let is_shown = is_shown(&self.writes.maps, &meta);
        locked(&self.written).maps.push(meta);
        is_shown
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let written = std::mem::take(&mut *locked(&self.written));
        let written = Written { ended: self.writes.outside.now(), ..written };
        locked(&self.writes.last).insert(self.key.clone(), written);
    }
}

/// Whether the cache has reached this version of the object.
fn is_shown<S: Send + Sync + 'static>(cache: &Lister<S>, written: &Meta) -> bool {
    let snapshot = cache.snapshot();
    let is_reached = || snapshot.versions().iter().all(|(_, version)| *version >= written.version);
    snapshot.get(&written.key).is_some_and(|object| *object.version() >= written.version) || is_reached()
}
