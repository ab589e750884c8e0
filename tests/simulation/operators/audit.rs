//! Who held the lease when, and which requests of replicas do not fit that.
//!
//! Answers "has a replica whose term was over begun a request, or said that it leads?". It looks at the lease after each request that takes effect,
//! which a world lets happen one by one. Invariants:
//! 1. What the server has stored decides who leads, not what a replica says.
//! 2. Each request that may change a site or a child counts, also one that the server refused. Those for the lease, and events,
//!    are sent by whoever likes.
//!
//! Read next: `outside.rs`, which takes down what replicas say.

use std::time::Duration;

use actix_informer::testing::{Asked, World};

use super::outside::Outside;
use super::site::{LEASE, LEASES, NAMESPACE};

#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// The revision of the server at the last look.
    revision: u64,
    /// Since when who holds the lease; nobody has an empty name.
    holders: Vec<(Duration, String)>,
}

impl Audit {
    /// Looks at who has the lease.
    pub(crate) fn look(&mut self, world: &World) {
        let revision = world.server().revision();
        if std::mem::replace(&mut self.revision, revision) == revision {
            return;
        }
        let lease = world.server().get(LEASES, NAMESPACE, LEASE).unwrap_or_default();
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        if self.holders.last().is_none_or(|(_, last)| last != holder) {
            self.holders.push((world.runtime().now(), holder.to_owned()));
        }
    }

    /// What replicas said or sent as the leader while they did not have the lease. What had left a replica before may take
    /// effect later.
    pub(crate) fn late(&self, world: &World, outside: &Outside) -> Vec<String> {
        let asked = world.requests();
        let sent =
            asked.iter().filter(|asked| is_of_a_leader(asked) && !self.held(asked.sent, &asked.process));
        let sent = sent.map(|asked| format!("{asked:?}, while {:?} had the lease", self.holder(asked.sent)));
        let leaders = outside.state().leaders.clone();
        let said = leaders.into_iter().filter(|(at, process)| !self.held(*at, process));
        let said = said.map(|(at, process)| format!("{process} said at {at:?} that it leads"));
        sent.chain(said).collect()
    }

    /// Whether this replica had the lease then. Of what happens in one millisecond the order is not known here.
    fn held(&self, at: Duration, replica: &str) -> bool {
        let before = self.holders.partition_point(|(since, _)| *since < at);
        self.holder(at) == replica
            || before.checked_sub(1).is_some_and(|last| self.holders[last].1 == replica)
    }

    fn holder(&self, at: Duration) -> &str {
        let until = self.holders.partition_point(|(since, _)| *since <= at);
        until.checked_sub(1).map_or("", |last| &self.holders[last].1)
    }
}

/// Whether only the leader sends this.
fn is_of_a_leader(asked: &Asked) -> bool {
    asked.method != "GET" && ["/leases", "/events"].iter().all(|part| !asked.path.contains(part))
}
