//! What is done to an operator on purpose, at the moment at which it hurts.
//!
//! Answers "what meets an operator in the middle of its work?" Incidents that a world draws rarely come at such a moment.
//! Invariants:
//! 1. Work is made just before: all sites change at once.
//! 2. Each trouble ends by itself.
//!
//! Read next: `../operators.rs`, which says when; `judge.rs`, what must be true afterwards.

use std::time::Duration;

use actix_informer::testing::Incident;
use serde_json::json;

use super::judge::Truth;
use super::site::{LEASE, LEASES, MAPS, NAMESPACE, child_name};

/// How often is looked whether something has begun.
const LOOK: Duration = Duration::from_millis(5);
/// For how long.
const LOOKS: u32 = 2_000;
/// A reflector whose watch has expired lists again, at the latest after its longest wait; and two requests.
const LISTED: Duration = Duration::from_secs(70);

impl Truth {
    /// Lets the replica that leads then be away for longer than its lease lasts.
    pub(crate) async fn take_over(&self) {
        let Some(takeover) = &self.plan.takeover else { return };
        tokio::time::sleep(takeover.after).await;
        self.make_work().await;
        let leader = self.leader().unwrap_or(0);
        let incident = if takeover.stands_still { Incident::Freeze } else { Incident::Crash };
        self.world.cause(incident(leader, takeover.lasts)).await;
    }

    /// Lets watches bring nothing while the operator writes.
    pub(crate) async fn silence(&self) {
        let Some(silence) = &self.plan.silence else { return };
        tokio::time::sleep(silence.after).await;
        self.make_work().await;
        self.world.cause(Incident::WatchesFreeze(silence.lasts)).await;
    }

    /// All is well, and a user changes one site: that is done at once, by one reconcile if an operator ignores its own writes
    /// and no other one works.
    pub(crate) async fn change_one(&self, promptly: Duration) {
        let Some(site) = self.any_site() else { return };
        let begun = || self.outside.state().begun_by_events;
        let before = begun();
        self.patch(&site, &json!({"spec": {"text": "changed in the end"}}));
        self.world.eventually(promptly, || self.is_converged()).await;
        if self.plan.ignores_own_writes && self.is_one_at_work() {
            tokio::time::sleep(promptly).await;
            assert_eq!(begun() - before, 1, "reconciles of the change of {site}");
        }
    }

    /// All is well, and somebody changes a child as soon as the operator has written it. The operator learns of both at once,
    /// or of one after the other.
    pub(crate) async fn spoil_what_is_written(&self) {
        let Some(site) = self.any_site().filter(|_| self.plan.ignores_own_writes) else { return };
        let (child, faults) = (child_name(&site), self.world.server().faults());
        for (text, at_once) in [("one after the other", false), ("at once", true)] {
            if at_once {
                faults.freeze(MAPS);
            }
            self.patch(&site, &json!({"spec": {"text": text}}));
            let written = || {
                self.world.server().get(MAPS, NAMESPACE, &child).is_ok_and(|map| map["data"]["text"] == text)
            };
            self.look_for(written).await;
            self.spoil(&child);
            if at_once {
                // The watch ends before it has shown anything, and cannot go on: what comes next is a list.
                faults.compact();
                faults.of(MAPS).short_watches(true);
                faults.thaw(MAPS);
                tokio::time::sleep(LOOK).await;
                faults.of(MAPS).short_watches(false);
            }
            self.world.eventually(LISTED, || self.is_converged()).await;
        }
    }

    /// The number of the process that has the lease.
    pub(crate) fn leader(&self) -> Option<usize> {
        let lease = self.world.server().get(LEASES, NAMESPACE, LEASE).ok()?;
        let holder = lease["spec"]["holderIdentity"].as_str()?;
        self.world.processes().iter().position(|process| process.name() == holder)
    }

    /// Changes all sites, and waits until one is worked on; if nobody can work, not for ever.
    async fn make_work(&self) {
        for site in 0..self.plan.sites {
            self.patch(&format!("site-{site}"), &json!({"spec": {"text": "all change"}}));
        }
        self.look_for(|| !self.outside.state().flights.is_empty()).await;
    }

    async fn look_for(&self, mut has_come: impl FnMut() -> bool) {
        for _ in 0..LOOKS {
            if has_come() {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
