//! Which sources follow a set of namespaces: one for each, or one for the whole cluster.
//!
//! [`plan`] remembers nothing, so a restarted caller goes on with what it finds. Call it after each change of its
//! inputs. Invariants:
//! 1. What is wanted and listed stays listed: a source is left only when another has listed what is wanted of it.
//! 2. A missing source is requested once; nothing is added and left in one plan.
//! 3. A cluster-wide source that the server refuses is left, and requested again later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub mod filter;
pub mod holdings;

/// Names of namespaces. Cloning copies a pointer.
pub type Names = Arc<BTreeSet<Arc<str>>>;

/// When one cluster-wide watch, filtered here, replaces the watches of single namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterWide {
    /// From more than this many namespaces on. Back to single ones at a quarter less.
    pub above: usize,
    /// How long after a refusal it is requested again. 10 minutes unless set.
    pub retry_after: Duration,
}

impl ClusterWide {
    /// One cluster-wide watch above this number of namespaces.
    pub const fn above(above: usize) -> Self {
        Self { above, retry_after: Duration::from_secs(600) }
    }

    /// Requests it again this long after a refusal.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = wait;
        self
    }

    /// The most namespaces beside the cluster-wide source, and the distance below `above` that leads back.
    const fn quarter(self) -> usize {
        self.above.div_ceil(4)
    }
}

/// How far the source of one namespace has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a source has listed or not, or is being removed")]
pub enum NamespaceState {
    /// Its first list is not published.
    Listing,
    /// Its first list is published.
    Listed,
    /// Its removal has begun.
    Leaving,
}

/// The cluster-wide source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the caller describes what it finds")]
pub struct AllFollowed {
    /// The namespaces that its next list will keep.
    pub asked: Names,
    /// The namespaces whose objects are all published by it, and whose events it passes on; none before its
    /// first list.
    pub listed: Option<Names>,
    /// The namespaces of which objects may be published by it, now or as soon as what it has delivered is
    /// published.
    pub held: Names,
    /// Whether its server forbids it, or it is given up.
    pub is_refused: bool,
    /// Whether its removal has begun.
    pub is_leaving: bool,
}

/// The sources that are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the caller describes what it finds")]
pub struct Followed {
    /// Those of single namespaces.
    pub each: BTreeMap<Arc<str>, NamespaceState>,
    /// The cluster-wide one.
    pub all: Option<AllFollowed>,
}

/// What to do with the cluster-wide source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is added, changed or removed")]
pub enum AllStep {
    /// Follow it, and keep the objects of these namespaces.
    Follow(Names),
    /// Keep the objects of these namespaces from the next list on, which is made at once.
    Filter(Names),
    /// Stop following it.
    Leave,
}

/// What to do next, in the order of the fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// Namespaces that get a source.
    pub follow: Vec<Arc<str>>,
    /// Namespaces whose source is removed.
    pub leave: Vec<Arc<str>>,
    /// A step of the cluster-wide source.
    pub all: Option<AllStep>,
    /// Whether all is to be followed by the cluster-wide source, now or as soon as it has listed.
    pub cluster_wide: bool,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.follow.is_empty() && self.leave.is_empty() && self.all.is_none()
    }
}

/// What to do so that exactly the namespaces `wanted` are followed. `policy` is `None` where there is no
/// cluster-wide source; `may_ask` is false while a refusal of it is younger than `retry_after`.
///
/// ```
/// # use informer_core::namespaces::{ClusterWide, Followed, Names, plan};
///
/// let wanted: Names = ["shop", "web"].map(Into::into).into_iter().collect::<std::collections::BTreeSet<_>>().into();
/// let first = plan(&wanted, &Followed::default(), Some(ClusterWide::above(100)), true);
/// assert_eq!(first.follow, ["shop".into(), "web".into()]);
/// ```
pub fn plan(wanted: &Names, followed: &Followed, policy: Option<ClusterWide>, may_ask: bool) -> Plan {
    match (policy, &followed.all) {
        (_, Some(all)) if all.is_leaving => Plan { all: Some(AllStep::Leave), ..each(wanted, followed) },
        (Some(policy), Some(all)) if !all.is_refused && wanted.len() > policy.above - policy.quarter() => {
            beside(wanted, followed, all, policy.quarter())
        }
        (_, Some(all)) => back(wanted, followed, all),
        (Some(policy), None) if may_ask && wanted.len() > policy.above => {
            let leave = unwanted(wanted, followed).collect();
            Plan {
                leave,
                all: Some(AllStep::Follow(Names::clone(wanted))),
                cluster_wide: true,
                ..Plan::default()
            }
        }
        (_, None) => each(wanted, followed),
    }
}

fn each(wanted: &Names, followed: &Followed) -> Plan {
    let follow = wanted.iter().filter(|name| !followed.each.contains_key(*name)).cloned().collect();
    Plan { follow, leave: unwanted(wanted, followed).collect(), ..Plan::default() }
}

/// A few new namespaces have sources of their own until the cluster-wide source lists them.
fn beside(wanted: &Names, followed: &Followed, all: &AllFollowed, few: usize) -> Plan {
    let surplus = all.asked.iter().any(|name| !wanted.contains(name));
    let new = wanted.iter().filter(|name| !all.asked.contains(*name));
    if surplus || new.clone().count() > few {
        let leave = unwanted(wanted, followed).collect();
        let all = Some(AllStep::Filter(Names::clone(wanted)));
        return Plan { leave, all, cluster_wide: true, ..Plan::default() };
    }
    let follow = new.filter(|name| !followed.each.contains_key(*name)).cloned().collect();
    let has_taken_over = |name: &Arc<str>| {
        all.asked.contains(name) && all.listed.as_ref().is_some_and(|listed| listed.contains(name))
    };
    let taken_over = followed.each.keys().filter(|name| wanted.contains(*name) && has_taken_over(name));
    let leave = unwanted(wanted, followed).chain(taken_over.cloned()).collect();
    Plan { follow, leave, all: None, cluster_wide: true }
}

fn back(wanted: &Names, followed: &Followed, all: &AllFollowed) -> Plan {
    let is_listed = |name: &Arc<str>| followed.each.get(name) == Some(&NamespaceState::Listed);
    let all = if all.held.iter().all(|name| !wanted.contains(name) || is_listed(name)) {
        Some(AllStep::Leave)
    } else if all.asked.iter().any(|name| !wanted.contains(name)) {
        Some(AllStep::Filter(Arc::new(all.asked.intersection(wanted).cloned().collect())))
    } else {
        None
    };
    Plan { all, ..each(wanted, followed) }
}

fn unwanted<'a>(wanted: &'a Names, followed: &'a Followed) -> impl Iterator<Item = Arc<str>> + 'a {
    let goes = |(name, progress): &(&Arc<str>, &NamespaceState)| {
        !wanted.contains(*name) || **progress == NamespaceState::Leaving
    };
    followed.each.iter().filter(goes).map(|(name, _)| Arc::clone(name))
}

#[cfg(test)]
mod tests;
