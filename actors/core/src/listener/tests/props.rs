//! Any history against a naive model, under `Coalesce`: subscriptions of two sources that join, lag, resync and are
//! reattached at random.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::cursor::Purpose;
use super::super::invariants::Replay;
use super::super::{Backlog, CURSORS, Policy, Waiting};
use super::text_of;
use super::world::{Deed, Publish, Published, World, publish, sources};
use crate::delta::{Cause, Change};
use crate::meta::{Object, ObjectKey, Uid};
use crate::snapshot::Snapshot;

/// What happens at all. Subscriptions are numbered modulo how many there are.
#[derive(Debug, Clone)]
enum Step {
    Happen(Publish),
    Join,
    Resync(usize),
    Take(usize, usize),
    /// The machine has a turn.
    Walk(usize, usize),
    Acknowledge(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..4_usize;
    prop_oneof![
        8 => publish().prop_map(Step::Happen),
        1 => Just(Step::Join),
        2 => who.clone().prop_map(Step::Resync),
        6 => (who.clone(), 0..5_usize).prop_map(|(who, max)| Step::Take(who, max)),
        3 => (who.clone(), 1..9_usize).prop_map(|(who, visits)| Step::Walk(who, visits)),
        3 => who.prop_map(Step::Acknowledge),
    ]
}

/// A subscription, what it was told, and what a bookkeeper expects of it.
struct Subscriber {
    backlog: Backlog<String>,
    replay: Replay<String>,
    /// Keys that were told since the last acknowledgement.
    in_flight: BTreeSet<ObjectKey>,
    /// Keys that were there when the last source was listed, and of which nothing is handled since they came.
    initial: Option<BTreeSet<ObjectKey>>,
    /// Lives that a watch began and that may have to be told, and the last one of each key that a watch ended.
    began: BTreeMap<ObjectKey, Uid>,
    went: BTreeMap<ObjectKey, Uid>,
    heard: BTreeSet<Uid>,
    /// The last life of each key whose end was delivered: of several brief lives only the last one is promised.
    ended: BTreeMap<ObjectKey, u64>,
    /// Objects that the running resync has to tell, and keys that have changed or were told since it began.
    due: BTreeMap<ObjectKey, Object<String>>,
    changed: BTreeSet<ObjectKey>,
}

impl Subscriber {
    fn join(world: &World) -> Self {
        let backlog = Backlog::starting_from(Policy::Coalesce, sources(), world.snapshot());
        let mut subscriber = Self {
            backlog,
            replay: Replay::default(),
            in_flight: BTreeSet::new(),
            initial: None,
            began: BTreeMap::new(),
            went: BTreeMap::new(),
            heard: BTreeSet::new(),
            ended: BTreeMap::new(),
            due: BTreeMap::new(),
            changed: BTreeSet::new(),
        };
        subscriber.look(world);
        subscriber
    }

    /// When the last source is listed, what is there and not told is initial.
    fn look(&mut self, world: &World) {
        if world.is_listed() && self.initial.is_none() {
            let missing = world.live.values().filter(|live| !self.holds(live.key(), live.object_uid()));
            let initial = missing.map(|live| live.key().clone()).chain(self.in_flight.clone());
            self.initial = Some(initial.collect());
        }
    }

    fn holds(&self, key: &ObjectKey, uid: Option<&Uid>) -> bool {
        self.replay.get(key).is_some_and(|delivered| delivered.object_uid() == uid)
    }

    fn hear(&mut self, published: &Published, world: &World) {
        published.record(&mut self.backlog);
        if published.events.is_empty() {
            // What a list or a restart saw may not be told if it goes.
            self.began.clear();
        }
        for change in &published.events {
            let key = change.key().clone();
            self.changed.insert(key.clone());
            match change {
                Change::Added { object, .. } => {
                    let uid = object.object_uid().cloned().expect("a life");
                    let is_new = object.version().to_string() == uid.to_string()[1..];
                    if is_new && !world.returned.contains(&uid) {
                        self.began.insert(key, uid);
                    }
                }
                Change::Updated { .. } => {}
                Change::Deleted { old, .. } => {
                    if let Some(initial) = &mut self.initial {
                        initial.remove(&key);
                    }
                    self.went.remove(&key);
                    if let Some(uid) = self.began.remove(&key).filter(|uid| Some(uid) == old.object_uid()) {
                        self.went.insert(key, uid);
                    }
                }
            }
        }
        if let Some(initial) = &mut self.initial {
            initial.retain(|key| world.live.contains_key(key));
        }
        // Of an object that is gone, also for a while, a resync has nothing to deliver when it comes by.
        self.changed.extend(self.due.keys().filter(|key| !world.live.contains_key(key)).cloned());
        self.look(world);
    }

    fn resync(&mut self, world: &World) {
        let is_running = |backlog: &Backlog<String>| {
            backlog.cursors.iter().any(|cursor| cursor.purpose == Purpose::Resync)
        };
        let was_running = is_running(&self.backlog);
        self.backlog.resync();
        if !was_running && is_running(&self.backlog) {
            self.due = world.live.clone();
            self.changed.clear();
        }
    }

    fn take(&mut self, max: usize) -> Result<(), TestCaseError> {
        let delivered = self.backlog.take(max);
        prop_assert!(delivered.len() <= max);
        for change in &delivered {
            self.replay.apply(change).map_err(|complaint| {
                TestCaseError::fail(format!("{complaint}; {}; {:?}", text_of(change), self.backlog))
            })?;
            if let Some(uid) = change.object().and_then(|object| object.object_uid()) {
                self.heard.insert(uid.clone());
            }
            if let Change::Deleted { old, .. } = change {
                self.ended.insert(change.key().clone(), old.object_uid().map_or(0, number));
            }
            self.in_flight.insert(change.key().clone());
            if change.cause() == Cause::Resync {
                prop_assert!(self.due.remove(change.key()).is_some(), "{} was not due", text_of(change));
            }
            self.changed.insert(change.key().clone());
        }
        Ok(())
    }

    fn acknowledge(&mut self) {
        self.backlog.acknowledge();
        for key in std::mem::take(&mut self.in_flight) {
            if let Some(initial) = &mut self.initial {
                initial.remove(&key);
            }
        }
    }

    /// Whatever has happened, these hold.
    fn check(&self, most_briefs: usize) -> Result<(), TestCaseError> {
        let stats = self.backlog.stats();
        prop_assert_eq!(stats.impossible, 0);
        let (written, all) = (owed_keys(&self.backlog, false).len(), owed_keys(&self.backlog, true).len());
        prop_assert!((written..=all).contains(&stats.depth), "{written} to {all} keys: {:?}", self.backlog);
        prop_assert_eq!(self.backlog.must_walk(), stats.cursors > CURSORS);
        prop_assert_eq!(stats.oldest.is_none(), self.backlog.is_empty());
        if let Waiting::Coalesced { pending: Some(pending), .. } = &self.backlog.waiting {
            prop_assert!(pending.briefs() <= most_briefs);
            prop_assert!(pending.events() <= 2 * pending.len() + 2 * pending.briefs());
        }
        if self.backlog.initial_delivered() {
            let left = self.initial.as_ref().map(BTreeSet::len);
            prop_assert_eq!(left, Some(0), "delivered too early: {:?}", self.initial);
        }
        Ok(())
    }

    /// Takes all that is owed, and then knows the world.
    fn drain(mut self, max: usize, world: &World, are_briefs_told: bool) -> Result<(), TestCaseError> {
        for _ in 0..1_000 {
            if self.backlog.is_empty() {
                break;
            }
            self.take(max)?;
        }
        prop_assert!(self.backlog.is_empty(), "it never runs empty: {:?}", self.backlog);
        prop_assert_eq!(self.replay.equals(&world.snapshot()), Ok(()));
        for (key, live) in &world.live {
            let delivered = self.replay.get(key).map(|delivered| delivered.body().as_str());
            prop_assert_eq!(delivered, Some(live.body().as_str()));
        }
        for (key, object) in &self.due {
            let is_same = world.live.get(key).is_some_and(|live| live.ptr_eq(object));
            prop_assert!(!is_same || self.changed.contains(key), "resync left out {key}");
        }
        for (key, uid) in self.went.iter().filter(|_| are_briefs_told) {
            let is_outdone = self.ended.get(key).is_some_and(|ended| *ended > number(uid));
            let is_heard = self.heard.contains(uid) || is_outdone;
            prop_assert!(is_heard, "{key} {uid:?} came and went, and nobody was delivered");
        }
        self.acknowledge();
        prop_assert_eq!(self.backlog.initial_delivered(), world.is_listed());
        prop_assert_eq!(self.backlog.stats().events, 0);
        Ok(())
    }
}

/// Lives are numbered as they begin: `u19`.
fn number(uid: &Uid) -> u64 {
    uid.to_string()[1..].parse().expect("a number behind a letter")
}

/// The keys of which events are written out, or of which anything at all is owed.
fn owed_keys(backlog: &Backlog<String>, with_cursors: bool) -> BTreeSet<ObjectKey> {
    let mut keys: BTreeSet<ObjectKey> =
        backlog.ready.iter().map(|(_, _, change)| change.key().clone()).collect();
    if let Waiting::Coalesced { pending: Some(pending), .. } = &backlog.waiting {
        keys.extend(pending.keys().cloned());
    }
    for cursor in backlog.cursors.iter().filter(|_| with_cursors) {
        let is_resync = cursor.purpose == Purpose::Resync;
        let objects = cursor.older().iter().chain(cursor.newer().iter()).map(Object::key);
        let is_ahead = |key: &&ObjectKey| is_resync && cursor.place() < Some(*key);
        keys.extend(objects.filter(|key| cursor.will_give(key) || is_ahead(key)).cloned());
    }
    keys
}

fn run(steps: Vec<Step>, bite: usize, most_briefs: usize) -> Result<(), TestCaseError> {
    let mut world = World::default();
    let join = |world: &World| {
        let mut subscriber = Subscriber::join(world);
        subscriber.backlog = subscriber.backlog.with_brief_lives(most_briefs);
        subscriber
    };
    let mut subscribers = vec![join(&world)];
    for step in steps {
        let count = subscribers.len();
        match step {
            Step::Happen(publish) => {
                let published = world.publish(publish);
                subscribers.iter_mut().for_each(|subscriber| subscriber.hear(&published, &world));
            }
            Step::Join => subscribers.push(join(&world)),
            Step::Resync(who) => subscribers[who % count].resync(&world),
            Step::Take(who, max) => subscribers[who % count].take(max)?,
            Step::Walk(who, visits) => subscribers[who % count].backlog.walk_some(visits),
            Step::Acknowledge(who) => subscribers[who % count].acknowledge(),
        }
        for subscriber in &subscribers {
            subscriber.check(most_briefs)?;
        }
    }
    for subscriber in subscribers {
        subscriber.drain(bite, &world, most_briefs > 100)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(768))]

    #[test]
    fn what_was_delivered_replays_to_the_newest_state_and_every_last_brief_life_is_delivered(
        steps in prop::collection::vec(step(), 1..80),
        bite in 1..7_usize,
    ) {
        run(steps, bite, 4_096)?;
    }

    #[test]
    fn lis_08_brief_lives_beyond_the_bound_are_dropped_and_the_rest_still_replays(
        steps in prop::collection::vec(step(), 1..80),
        bite in 1..7_usize,
        most_briefs in 0..3_usize,
    ) {
        run(steps, bite, most_briefs)?;
    }
}

/// The first list tells key 6, a rewind and its deletion wait as one event that is ready, and then it comes back.
#[test]
fn what_comes_back_in_an_equal_version_after_a_rewind_is_delivered_also_where_its_deletion_was_ready() {
    use Deed::{Delete, Return, Write};
    use Publish::{List, Parts, Rewind};
    let steps = vec![
        Step::Happen(Parts(vec![Write(0)])),
        Step::Happen(Parts(vec![Write(0)])),
        Step::Happen(List(0, vec![Write(0), Write(6)])),
        Step::Join,
        Step::Happen(List(0, Vec::new())),
        Step::Take(1, 2),
        Step::Happen(List(0, Vec::new())),
        Step::Happen(Rewind(0)),
        Step::Happen(Parts(vec![Delete(0), Delete(6)])),
        Step::Happen(Parts(vec![Write(0)])),
        Step::Take(1, 1),
        Step::Happen(Parts(vec![Return(6)])),
    ];
    run(steps, 1, 0).expect("what is delivered replays to the newest state");
}

#[test]
fn a_backlog_of_no_sources_is_delivered_at_once() {
    assert!(Backlog::<String>::starting_from(Policy::Coalesce, [], Snapshot::empty()).initial_delivered());
}
