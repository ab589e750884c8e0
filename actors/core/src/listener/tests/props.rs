//! Any history against a log: several subscriptions of one world that join, lag, restart and resync at random.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::cursor::{Cursor, Purpose};
use super::super::invariants::Replay;
use super::super::{Backlog, CURSORS};
use super::{snapshot, tell};
use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey, SourceId};
use crate::snapshot::Snapshot;
use crate::snapshot::fixture::{key, told_by};

const NAMES: usize = 8;

/// What happens to one key of the world.
#[derive(Debug, Clone, Copy)]
pub(super) enum Deed {
    Write(usize),
    Delete(usize),
    Recreate(usize),
    /// What was deleted last comes back: the same life, the same version.
    Return(usize),
    /// The server went back: every object is told anew at its old version, with another body.
    Rewind,
}

/// What happens at all. Subscriptions are numbered modulo how many there are.
#[derive(Debug, Clone)]
enum Step {
    Happen(Vec<Deed>),
    /// The group restarts; what happened meanwhile was recorded nowhere.
    Restart(Vec<Deed>),
    Join,
    Resync(usize),
    Take(usize, usize),
    Acknowledge(usize),
}

pub(super) fn deed() -> impl Strategy<Value = Deed> {
    let name = 0..NAMES;
    prop_oneof![
        5 => name.clone().prop_map(Deed::Write),
        3 => name.clone().prop_map(Deed::Delete),
        1 => name.clone().prop_map(Deed::Recreate),
        1 => name.prop_map(Deed::Return),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let happen = || prop_oneof![9 => deed(), 1 => Just(Deed::Rewind)];
    let who = 0..4_usize;
    prop_oneof![
        6 => prop::collection::vec(happen(), 1..5).prop_map(Step::Happen),
        2 => prop::collection::vec(happen(), 0..5).prop_map(Step::Restart),
        1 => Just(Step::Join),
        2 => who.clone().prop_map(Step::Resync),
        6 => (who.clone(), 0..5_usize).prop_map(|(who, max)| Step::Take(who, max)),
        3 => who.prop_map(Step::Acknowledge),
    ]
}

/// The truth, as a map.
#[derive(Default)]
pub(super) struct World {
    pub(super) live: BTreeMap<ObjectKey, Object<String>>,
    graves: BTreeMap<ObjectKey, Object<String>>,
    version: u64,
}

impl World {
    pub(super) fn snapshot(&self) -> Snapshot<String> {
        snapshot(self.live.values())
    }

    fn make(&mut self, key: &ObjectKey, uid: &str, body: &str) -> Object<String> {
        self.version += 1;
        told_by(&SourceId::default(), &key.to_string(), uid, self.version, body)
    }

    pub(super) fn apply(&mut self, deed: Deed) -> Vec<Change<String>> {
        let key = |name: usize| key(&format!("ns-{}/pod-{name}", name % 3));
        match deed {
            Deed::Write(name) => vec![self.write(&key(name))],
            Deed::Delete(name) => self.delete(&key(name)).into_iter().collect(),
            Deed::Recreate(name) => {
                let deletion = self.delete(&key(name));
                deletion.into_iter().chain([self.write(&key(name))]).collect()
            }
            Deed::Return(name) => self.bring_back(&key(name)).into_iter().collect(),
            Deed::Rewind => self.rewind(),
        }
    }

    fn write(&mut self, key: &ObjectKey) -> Change<String> {
        let old = self.live.get(key).cloned();
        let uid = old.as_ref().and_then(|old| old.uid().cloned());
        let new_uid = format!("u{}", self.version);
        let object = self.make(key, uid.as_ref().map_or(&new_uid, |uid| uid.as_str()), "");
        self.live.insert(key.clone(), object.clone());
        match old {
            None => Change::Added { object, cause: Cause::Watch },
            Some(old) => Change::Updated { old, object, cause: Cause::Watch },
        }
    }

    fn delete(&mut self, key: &ObjectKey) -> Option<Change<String>> {
        let old = self.live.remove(key)?;
        self.graves.insert(key.clone(), old.clone());
        let last = self.make(key, old.uid().map_or("", |uid| uid.as_str()), "");
        Some(Change::Deleted { old, last, exact: true, cause: Cause::Watch })
    }

    fn bring_back(&mut self, key: &ObjectKey) -> Option<Change<String>> {
        let object = self.graves.remove(key).filter(|_| !self.live.contains_key(key))?;
        self.live.insert(key.clone(), object.clone());
        Some(Change::Added { object, cause: Cause::Watch })
    }

    fn rewind(&mut self) -> Vec<Change<String>> {
        self.version += 1;
        let body = format!("rewound at {}", self.version);
        let anew = |old: &Object<String>| Object::new(old.meta().clone(), body.clone());
        let pairs = self.live.values_mut().map(|live| {
            let object = anew(live);
            (std::mem::replace(live, object.clone()), object)
        });
        pairs.map(|(old, object)| Change::Updated { old, object, cause: Cause::Rewind }).collect()
    }
}

/// A subscription, what it was told, and what a bookkeeper expects of it.
struct Subscriber {
    backlog: Backlog<String>,
    replay: Replay<String>,
    /// Keys whose initial event was neither told nor annulled.
    initial: BTreeSet<ObjectKey>,
    /// Among them those that a restart may have annulled, which shows only when the cursor gets there.
    doubtful: BTreeSet<ObjectKey>,
    initial_in_flight: bool,
    /// Keys that the running resync has to tell, and those it need not since they changed.
    due: BTreeSet<ObjectKey>,
    changed: BTreeSet<ObjectKey>,
}

impl Subscriber {
    fn join(world: &World) -> Self {
        let initial: BTreeSet<ObjectKey> = world.live.keys().cloned().collect();
        Self {
            backlog: Backlog::starting_from(world.snapshot()),
            replay: Replay::default(),
            initial,
            doubtful: BTreeSet::new(),
            initial_in_flight: false,
            due: BTreeSet::new(),
            changed: BTreeSet::new(),
        }
    }

    fn record(&mut self, changes: &[Change<String>]) {
        self.backlog.record(changes);
        for change in changes {
            self.changed.insert(change.key().clone());
            if change.object().is_none() {
                self.initial.remove(change.key());
            }
        }
    }

    fn reattach(&mut self, seen: &Snapshot<String>, now: &Snapshot<String>, changes: &[Change<String>]) {
        self.backlog.reattach(seen.clone(), now.clone());
        for change in changes {
            self.changed.insert(change.key().clone());
            if self.initial.contains(change.key()) {
                self.doubtful.insert(change.key().clone());
            }
        }
    }

    fn resync(&mut self, world: &World) {
        let is_telling_all = self.backlog.cursors.iter().any(|cursor| cursor.purpose() != Purpose::Relist);
        if !is_telling_all {
            self.due = world.live.keys().cloned().collect();
            self.changed = self.due.iter().filter(|key| self.is_owed(key)).cloned().collect();
        }
        self.backlog.resync(world.snapshot());
    }

    fn is_owed(&self, key: &ObjectKey) -> bool {
        let is_ahead =
            |cursor: &Cursor<String>| cursor.purpose() == Purpose::Relist && !cursor.owed(key).is_empty();
        self.backlog.pending.contains(key) || self.backlog.cursors.iter().any(is_ahead)
    }

    fn take(&mut self, max: usize, world: &World) -> Result<(), TestCaseError> {
        let told = self.backlog.take(max);
        prop_assert!(told.len() <= max);
        for change in &told {
            self.replay.tell(change).map_err(|complaint| {
                TestCaseError::fail(format!("{complaint}; {}; {:?}", tell(change), self.backlog))
            })?;
            let key = change.key();
            let live = world.live.get(key);
            match change.object() {
                Some(object) => prop_assert!(
                    live.is_some_and(|live| live.is_same_as(object) && live.body() == object.body()),
                    "{} is not the newest state {:?}",
                    tell(change),
                    live
                ),
                None => prop_assert!(!live.is_some_and(|live| self.replay_holds(live)), "{}", tell(change)),
            }
            if change.cause() == Cause::InitialList {
                prop_assert!(self.initial.remove(key), "{} is no initial event", tell(change));
                self.initial_in_flight = true;
            }
            let was_due = self.due.remove(key);
            prop_assert!(was_due || change.cause() != Cause::Resync, "{} was not due", tell(change));
        }
        Ok(())
    }

    fn replay_holds(&self, live: &Object<String>) -> bool {
        self.replay.get(live.key()).is_some_and(|told| told.is_same_as(live))
    }

    fn acknowledge(&mut self) {
        self.backlog.acknowledge();
        self.initial_in_flight = false;
    }

    /// Whatever has happened, these hold.
    fn check(&self, world: &World) -> Result<(), TestCaseError> {
        let stats = self.backlog.stats();
        prop_assert_eq!(stats.impossible, 0);
        prop_assert!(stats.cursors <= CURSORS);
        prop_assert!(stats.events <= 2 * self.backlog.pending.len());
        prop_assert_eq!(self.backlog.pending.iter().map(|(_, owed)| owed.len()).sum::<usize>(), stats.events);
        prop_assert_eq!(stats.oldest.is_none(), self.backlog.is_empty());
        if stats.cursors == 0 {
            for (key, _) in self.backlog.pending.iter() {
                let is_owed_a_deletion = self.replay.get(key).is_some();
                prop_assert!(world.live.contains_key(key) || is_owed_a_deletion, "{} is gone", key);
            }
        }
        let is_surely_owed =
            self.initial_in_flight || self.initial.difference(&self.doubtful).next().is_some();
        let is_maybe_owed = self.initial_in_flight || !self.initial.is_empty();
        prop_assert!(!(is_surely_owed && self.backlog.initial_delivered()), "delivered too early");
        prop_assert!(is_maybe_owed || self.backlog.initial_delivered(), "delivered and not latched");
        Ok(())
    }

    /// Takes all that is owed, and then knows the world.
    fn drain(mut self, max: usize, world: &World) -> Result<(), TestCaseError> {
        for _ in 0..1_000 {
            if self.backlog.is_empty() {
                break;
            }
            self.take(max, world)?;
        }
        prop_assert!(self.backlog.is_empty(), "it never runs empty: {:?}", self.backlog);
        prop_assert_eq!(self.replay.equals(&world.snapshot()), Ok(()));
        for (key, live) in &world.live {
            prop_assert_eq!(
                self.replay.get(key).map(|told| told.body().as_str()),
                Some(live.body().as_str())
            );
        }
        prop_assert!(self.due.is_subset(&self.changed), "resync left out {:?}", self.due);
        self.acknowledge();
        prop_assert!(self.backlog.initial_delivered());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_was_told_replays_to_the_newest_state_whatever_happens(
        steps in prop::collection::vec(step(), 1..60),
        bite in 1..7_usize,
    ) {
        let mut world = World::default();
        for name in 0..NAMES / 2 {
            world.apply(Deed::Write(name));
        }
        let mut subscribers = vec![Subscriber::join(&world)];
        for step in steps {
            let count = subscribers.len();
            match step {
                Step::Happen(deeds) => {
                    let changes: Vec<_> = deeds.into_iter().flat_map(|deed| world.apply(deed)).collect();
                    subscribers.iter_mut().for_each(|subscriber| subscriber.record(&changes));
                }
                Step::Restart(deeds) => {
                    let seen = world.snapshot();
                    let changes: Vec<_> = deeds.into_iter().flat_map(|deed| world.apply(deed)).collect();
                    let now = world.snapshot();
                    subscribers.iter_mut().for_each(|subscriber| subscriber.reattach(&seen, &now, &changes));
                }
                Step::Join => subscribers.push(Subscriber::join(&world)),
                Step::Resync(who) => subscribers[who % count].resync(&world),
                Step::Take(who, max) => subscribers[who % count].take(max, &world)?,
                Step::Acknowledge(who) => subscribers[who % count].acknowledge(),
            }
            for subscriber in &subscribers {
                subscriber.check(&world)?;
            }
        }
        for subscriber in subscribers {
            subscriber.drain(bite, &world)?;
        }
    }
}
