//! A list of one source, or its removal, while `replace.rs` applies it to the store.

use std::collections::BTreeSet;

use super::{Successors, Waiting};
use crate::chunks::Chunks;
use crate::delta::{Cause, Undecodable};
use crate::meta::{Object, ObjectKey, ResourceVersion, SourceId};
use crate::off_arbiter::OffArbiter;
use crate::snapshot::{Held, Snapshot};

pub(super) struct Replacing<S> {
    pub(super) source: SourceId,
    pub(super) kind: Kind,
    pub(super) cause: Cause,
    pub(super) base: Snapshot<S>,
    /// Its undecodable entries carry it.
    pub(super) round: u64,
    pub(super) undecodable: OffArbiter<Chunks<Undecodable>>,
    pub(super) undecodable_stored: usize,
    /// Kept to the end: the addresses of listed objects stay unique.
    pub(super) objects: OffArbiter<Chunks<Object<S>>>,
    pub(super) stored: usize,
    pub(super) listed: Listed,
    /// The source, if what it held is of a former history.
    pub(super) was_outdated: Option<SourceId>,
    /// Whether what was told is of a former history.
    pub(super) ends_told: bool,
    pub(super) walk: Walk,
}

pub(super) enum Kind {
    List(ResourceVersion),
    Removal(Successors),
    Settlement,
}

pub(super) enum Listed {
    /// A first list: every object that the source holds is listed.
    All,
    /// Addresses that `Release` has not visited.
    Addresses(BTreeSet<usize>),
}

/// The present walk; keys up to the one held are done.
pub(super) enum Walk {
    /// The group of [`Successors`] and its last source that is done.
    Outdate(usize, Option<SourceId>),
    Store,
    Release(Option<ObjectKey>),
    DropUndecodable(Option<ObjectKey>),
    Settle,
}

impl<S> Replacing<S> {
    pub(super) fn new(base: Snapshot<S>, waiting: Waiting<S>) -> Self {
        let nothing = || (OffArbiter::in_place(Chunks::new()), OffArbiter::in_place(Chunks::new()));
        let (source, kind, cause, (objects, undecodable), walk) = match waiting {
            Waiting::List(source, list) => {
                let is_rewind = list.cause == Cause::Rewind;
                let walk = if is_rewind { Walk::Outdate(0, None) } else { Walk::Store };
                (source, Kind::List(list.version), list.cause, (list.objects, list.undecodable), walk)
            }
            Waiting::Remove(source, successors) => {
                (source, Kind::Removal(successors), Cause::Relist, nothing(), Walk::Store)
            }
            Waiting::Settle(source) => (source, Kind::Settlement, Cause::Relist, nothing(), Walk::Settle),
        };
        let is_first = base.newest_version(&source).is_none() && matches!(kind, Kind::List(_));
        Self {
            // Before a source's first list, others may have noticed the rewind and told since.
            ends_told: base.version(&source).is_some(),
            round: base.frame().replaces() + 1,
            listed: if is_first { Listed::All } else { Listed::Addresses(BTreeSet::new()) },
            base,
            source,
            kind,
            cause,
            undecodable,
            undecodable_stored: 0,
            objects,
            stored: 0,
            was_outdated: None,
            walk,
        }
    }

    pub(super) fn source(&self) -> &SourceId {
        &self.source
    }

    pub(super) fn version(&self) -> Option<&ResourceVersion> {
        match &self.kind {
            Kind::List(version) => Some(version),
            Kind::Removal(_) | Kind::Settlement => None,
        }
    }

    pub(super) fn is_listed(&self, held: &Held<S>) -> bool {
        match &self.listed {
            Listed::All => held.is_held_by(&self.source),
            Listed::Addresses(addresses) => addresses.contains(&held.object().address()),
        }
    }

    pub(super) fn list(&mut self, stored: &Object<S>) {
        if let Listed::Addresses(addresses) = &mut self.listed {
            addresses.insert(stored.address());
        }
    }

    /// Removes a listed address.
    pub(super) fn lacks(&mut self, held: &Held<S>) -> bool {
        match &mut self.listed {
            Listed::All => false,
            Listed::Addresses(addresses) => {
                !addresses.remove(&held.object().address()) && held.is_held_by(&self.source)
            }
        }
    }

    /// Whether the stored object is newer: fetched, and newer than the list and than all that the source had sent; or
    /// newer, and sent by another holder.
    pub(super) fn is_behind(&self, held: &Held<S>, listed: &Object<S>) -> bool {
        let stored = held.object();
        let reached = self.base.version(&self.source);
        let is_fetched = self.version().is_some_and(|listed| stored.version() > listed)
            && reached.is_some_and(|reached| self.was_outdated.is_some() || reached < stored.version());
        let is_own = held.is_held_by(&self.source);
        let is_of_other = !is_own || (stored.source() != &self.source && held.is_held_by(stored.source()));
        is_fetched || (is_of_other && listed.version() < stored.version())
    }

    pub(super) fn is_rewind(&self) -> bool {
        self.cause == Cause::Rewind
    }
}
