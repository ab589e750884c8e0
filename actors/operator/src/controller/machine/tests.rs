//! The decisions of a controller, against naive models that remember everything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use desk::Desk;
use informer_core::delta::Cause;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};

mod book;
mod causes;
mod desk;

fn key(name: impl ToString) -> ObjectKey {
    ObjectKey::namespaced("a", name.to_string())
}

fn object(name: impl ToString, life: u8, version: u64) -> Object<u64> {
    let number = ResourceVersion::from_number(version).expect("not zero");
    let meta = Meta::new(key(name), number, SourceId::default()).uid(Uid::new(&format!("life-{life}")));
    Object::new(meta, version)
}

fn present(object: &Object<u64>) -> Arrival<'_, u64> {
    Arrival::Present { meta: object.cached_meta(), is_rewound: false }
}

/// What happens to one of three keys.
#[derive(Debug, Clone, Copy)]
enum Step {
    Changed,
    Gone,
    Left,
    Mapped,
    Owned,
    Begin,
    End(Ended),
    /// The book is built anew, as after a panic.
    Rebuilt,
}

fn steps() -> impl Strategy<Value = Vec<(u8, Step)>> {
    let ended = prop_oneof![
        Just(Ended::With(Outcome::Done)),
        Just(Ended::With(Outcome::RequeueAfter(Duration::from_secs(1)))),
        Just(Ended::Failed),
        Just(Ended::Terminal),
        Just(Ended::UntilChanged),
        Just(Ended::Cancelled),
    ];
    let step = prop_oneof![
        3 => Just(Step::Changed),
        1 => Just(Step::Gone),
        1 => Just(Step::Left),
        1 => Just(Step::Mapped),
        2 => Just(Step::Owned),
        3 => Just(Step::Begin),
        4 => ended.prop_map(Step::End),
        1 => Just(Step::Rebuilt),
    ];
    prop::collection::vec((0..3_u8, step), 1..80)
}

/// All that ever happened to one key, in order.
#[derive(Default)]
struct Naive {
    object: Option<Object<u64>>,
    life: u8,
    /// What has come: whether it counts as news, and the version that it tells.
    news: Vec<bool>,
    /// How much had come when the run under way began, and the last state that it was given.
    run: Option<(usize, Option<Object<u64>>, bool)>,
    /// How much had come when the run that failed terminally began; none if it does not rest.
    rest: Option<usize>,
    last: Option<Object<u64>>,
    /// Whether that object has left, and lives on as far as anybody knows.
    has_left: bool,
}

impl Naive {
    /// A key rests as long as nothing new has come since the run that failed terminally began.
    fn rests(&self) -> bool {
        self.rest.is_some_and(|from| self.news[from..].iter().all(|is_news| !is_news))
    }
}

proptest! {
    // CTL-04: given an error that only a change fixes, when time passes, an owned object changes or a timer
    // fires, then the key is not reconciled; when its object changes, also during that reconcile, or is gone,
    // an object mapped to it changes, or it is triggered, then it is. After a terminal error it is not tried
    // again by itself, and anything else reconciles it.
    // - a not by time, a timer or an owned object; by a change of its object:
    //   `ctl_04_after_an_error_that_only_a_change_fixes_a_key_rests_until_its_object_changes`
    // - b by a mapped object, a trigger and the end of its object:
    //   `ctl_04_a_mapped_object_a_trigger_and_the_end_of_its_object_end_the_rest_of_a_key`
    // - c by a change during the reconcile:
    //   `ctl_04_a_key_whose_object_changes_during_the_reconcile_that_fails_does_not_rest`
    // - d for any history exactly so
    // - e a late event of the state that failed does not count, and a rewind does:
    //   `ctl_04_a_state_that_the_failed_reconcile_was_given_does_not_end_the_rest_and_a_rewind_does`
    // - f a terminal error:
    //   `ctl_04_after_a_terminal_error_a_key_is_not_tried_again_by_itself_and_any_event_reconciles_it`
    #[test]
    fn ctl_04_a_key_rests_exactly_as_long_as_nothing_new_has_come_and_its_last_state_is_kept_until_done(steps in steps()) {
        let mut desk = Desk::default();
        let mut keys: BTreeMap<u8, Naive> = BTreeMap::new();
        let mut version = 0;
        for (name, step) in steps {
            let naive = keys.entry(name).or_default();
            let mut arrive = |naive: &mut Naive, arrival: Arrival<'_, u64>, is_news| {
                naive.news.push(is_news);
                let is_added = desk.arrive(&key(name), arrival, Reason::Triggered).added.is_some();
                prop_assert_eq!(is_added, !naive.rests());
                if is_added {
                    naive.rest = None;
                }
                Ok(())
            };
            match step {
                Step::Changed => {
                    version += 1;
                    let new = object(name, naive.life, version);
                    arrive(naive, present(&new), true)?;
                    naive.object = Some(new);
                }
                Step::Gone | Step::Left => {
                    let Some(last) = naive.object.take() else { continue };
                    naive.life += 1;
                    naive.last = Some(last.clone());
                    naive.has_left = matches!(step, Step::Left);
                    let arrival = if naive.has_left { Arrival::Left(&last) } else { Arrival::Gone(&last) };
                    arrive(naive, arrival, true)?;
                }
                Step::Mapped => arrive(naive, Arrival::Input, true)?,
                Step::Owned => arrive(naive, Arrival::Output, false)?,
                Step::Begin if naive.run.is_none() => {
                    let cached = naive.object.as_ref().map(Object::cached_meta);
                    let begun = desk.begin(&key(name), cached);
                    prop_assert_eq!(begun.is_none(), naive.rests());
                    let Some(begun) = begun else { continue };
                    // Another life under the name has ended the one that left.
                    let is_left = naive.has_left && naive.object.is_none();
                    let (given, other) = if is_left { (begun.left, begun.deleted) } else { (begun.deleted, begun.left) };
                    prop_assert!(other.is_none());
                    prop_assert_eq!(given.map(|last| *last.body()), naive.last.as_ref().map(|last| *last.body()));
                    naive.run = Some((naive.news.len(), naive.last.clone(), naive.object.is_some()));
                }
                Step::End(ended) => {
                    let Some((from, given, had_object)) = naive.run.take() else { continue };
                    let next = desk.end(&key(name), ended).0;
                    prop_assert_eq!(next, ended.next());
                    naive.rest = (next == Next::Rest && had_object).then_some(from);
                    let is_same = |last: &Object<u64>| given.as_ref().is_some_and(|given| given.ptr_eq(last));
                    if matches!(next, Next::Done | Next::Rest) && naive.last.as_ref().is_some_and(is_same) {
                        naive.last = None;
                    }
                }
                Step::Begin => {}
                Step::Rebuilt => desk.book = desk.book.rebuilt(),
            }
            prop_assert_eq!(desk.book.check(), Ok(()));
            let figures = desk.kept();
            prop_assert_eq!(figures.resting, keys.values().filter(|naive| naive.rests()).count());
            prop_assert_eq!(figures.deleted, keys.values().filter(|naive| naive.last.is_some()).count());
        }
    }

    // CTL-07: given a reconcile that has written an object of the primary or of a watched informer, or
    // removed one, when it has ended, then its key is not reconciled again before that cache has seen it, no
    // worker waits meanwhile, and after the bound (5 s unless set) it goes on, counted.
    // - a written to a child, and no worker waits:
    //   `ctl_07_a_key_waits_until_the_cache_of_its_child_has_what_was_written_and_no_worker_waits`
    // - b removed: `ctl_07_a_key_waits_until_the_cache_no_longer_has_what_was_removed`
    // - c the bound, counted:
    //   `ctl_07_a_write_that_is_not_seen_within_the_bound_is_counted_and_the_key_goes_on`
    // - d what is not watched, or seen already, is not waited for:
    //   `ctl_07_what_is_not_watched_or_seen_already_is_not_waited_for`
    // - e of several writes of an object the newest counts, and the life removed last
    #[test]
    fn ctl_07_what_is_waited_for_is_the_newest_version_and_the_life_removed_last(
        writes in prop::collection::vec((0..2_usize, 0..3_u8, 1..9_u64, any::<bool>()), 0..30),
        cached in prop::option::of((0..3_u8, 1..9_u64)),
        reached in 0..9_u64,
    ) {
        let mut waited = Writes::default();
        let mut naive: BTreeMap<(usize, u8), Vec<(u64, bool)>> = BTreeMap::new();
        for (informer, name, version, is_removal) in writes {
            let object = object(name, name, version);
            let meta = object.cached_meta();
            let awaited = if is_removal { Awaited::removed(meta) } else { Awaited::written(meta) };
            waited.handle_write(informer, &key(name), awaited);
            naive.entry((informer, name)).or_default().push((version, is_removal));
        }
        prop_assert_eq!(waited.len(), naive.len());
        let versions: Vec<_> = waited.newest_first().map(|(.., awaited)| awaited.version.clone()).collect();
        prop_assert!(versions.len() == waited.len() && versions.is_sorted_by(|one, next| one >= next));
        for ((informer, object_key), awaited) in waited {
            let name: u8 = object_key.name().parse().expect("a number");
            let all = &naive[&(informer, name)];
            let newest = all.iter().map(|(version, _)| *version).max().expect("one at least");
            let is_removed = all.last().is_some_and(|(_, is_removal)| *is_removal);
            let cached = cached.filter(|(cached, _)| *cached == name).map(|(_, version)| object(name, name, version));
            let has_version = reached >= newest || cached.as_ref().is_some_and(|cached| *cached.body() >= newest);
            let expected = has_version && !(is_removed && cached.is_some());
            let awaited_number = awaited.version.as_metric();
            prop_assert_eq!(awaited_number, newest);
            let is_seen = awaited.is_seen(cached.as_ref().map(Object::cached_meta), reached >= newest);
            prop_assert_eq!(is_seen, expected);
        }
    }
}

fn event(number: u64) -> Reason {
    let (informer, key) = ("pods".into(), key(number));
    Reason::Event { informer, key, kind: EventKind::Updated, cause: Cause::Watch }
}

/// What happens to a child of one key.
#[derive(Debug, Clone, Copy)]
enum ChildStep {
    /// Somebody else writes it.
    Foreign,
    /// The reconcile under way writes it; so many events of before are told first.
    Own,
    /// The oldest event that was not told yet is told.
    Told,
    Begin,
    /// The reconcile is over, and its answers are known.
    End,
}

proptest! {
    #[test]
    fn ctl_21_an_owner_is_reconciled_after_each_state_that_its_reconciles_were_not_answered(
        steps in prop::collection::vec(
            prop_oneof![
                Just(ChildStep::Foreign), Just(ChildStep::Own), Just(ChildStep::Told), Just(ChildStep::Begin),
                Just(ChildStep::End)
            ],
            1..60,
        ),
    ) {
        let mut desk = Desk::<u64>::default();
        let (mut version, mut is_waiting, mut is_running) = (0, false, false);
        let (mut untold, mut answers) = (std::collections::VecDeque::new(), Writes::default());
        // Each state is by somebody else, or by the reconcile of this number.
        let (mut run, mut newest_foreign_told, mut seen) = (0_u64, 0, 0);
        for step in steps.into_iter().chain([ChildStep::Begin, ChildStep::End]) {
            match step {
                ChildStep::Foreign => {
                    version += 1;
                    untold.push_back((version, true));
                }
                ChildStep::Own if is_running => {
                    version += 1;
                    untold.push_back((version, false));
                    let state = object("child", 0, version);
                    answers.handle_write(1, state.key(), Awaited::written(state.cached_meta()));
                }
                ChildStep::Told => {
                    let Some((told, is_foreign)) = untold.pop_front() else { continue };
                    let state = object("child", 0, told);
                    let arrival = Arrival::Made { informer: 1, meta: state.cached_meta(), is_again: false };
                    is_waiting |= desk.arrive(&key("owner"), arrival, Reason::Triggered).added.is_some();
                    if is_foreign {
                        newest_foreign_told = told;
                    }
                }
                ChildStep::Begin if !is_running => {
                    (is_running, is_waiting) = (true, false);
                    (run, seen) = (run + 1, newest_foreign_told);
                    prop_assert!(desk.begin(&key("owner"), None).is_some());
                }
                ChildStep::End if is_running => {
                    is_running = false;
                    is_waiting |= desk.writes(&key("owner"), &std::mem::take(&mut answers));
                    drop(desk.end(&key("owner"), Ended::With(Outcome::Done)));
                    // What was told before the reconcile began has led to it; what came later leads to another one.
                    prop_assert!(is_waiting || newest_foreign_told == seen, "run {run}: a foreign state is lost");
                }
                ChildStep::Own | ChildStep::Begin | ChildStep::End => {}
            }
            prop_assert!(is_running || is_waiting || newest_foreign_told <= seen, "a foreign state is lost");
        }
    }
}

#[test]
fn ctl_21_the_event_of_a_write_that_a_cache_has_not_shown_in_time_leads_to_a_reconcile() {
    let mut desk = Desk::<u64>::default();
    let (state, mut writes) = (object("child", 0, 5), Writes::default());
    writes.handle_write(1, state.key(), Awaited::written(state.cached_meta()));
    assert!(!desk.writes(&key("owner"), &writes));
    assert_eq!(desk.book.handle_not_seen(1, state.key(), Duration::ZERO), Some(1), "it is logged");
    let arrival = Arrival::Made { informer: 1, meta: state.cached_meta(), is_again: false };
    assert!(desk.arrive(&key("owner"), arrival, event(1)).added.is_some());
}

#[test]
fn ctl_21_the_end_of_a_child_forgets_what_was_answered_for_it() {
    let mut desk = Desk::<u64>::default();
    let (state, mut writes) = (object("child", 0, 5), Writes::default());
    writes.handle_write(1, state.key(), Awaited::written(state.cached_meta()));
    assert!(!desk.writes(&key("owner"), &writes));
    let gone = Arrival::Unmade { informer: 1, object: state.key() };
    assert!(desk.arrive(&key("owner"), gone, event(1)).added.is_some());
    let again = Arrival::Made { informer: 1, meta: state.cached_meta(), is_again: false };
    assert!(
        desk.arrive(&key("owner"), again, event(1)).added.is_some(),
        "a server that went back gave the version again"
    );
}

// CTL-21: given a controller that ignores its own writes, when an owned object shows the very state that the
// last reconcile of its owner was answered for a write, early or late, then that leads to no reconcile; any
// other state of it does, its deletion too, and what somebody else writes meanwhile; what came before a drain
// is reconciled in it; at most 4,096 answers are kept, and of one reconcile 1,024 events wait for its
// answers. Unless it is asked for, each own write leads to one more reconcile.
// - a early and late; other states and deletions:
//   `ctl_21_what_a_reconcile_was_answered_is_no_reason_for_another_one_and_any_other_state_is`
// - b what somebody else writes meanwhile:
//   `ctl_21_what_somebody_else_writes_while_a_key_is_reconciled_leads_to_another_reconcile`
// - c once, for the key that was answered, and the bound
// - d unless it is asked for: `ctl_21_unless_it_is_asked_for_each_own_write_leads_to_one_more_reconcile`
// - e what came before a drain is reconciled in it:
//   `ctl_21_what_somebody_else_has_written_before_a_drain_is_reconciled_in_it`
#[test]
fn ctl_21_an_answer_counts_once_for_the_key_that_was_given_it_and_4096_are_kept() {
    let mut desk = Desk::<u64>::default();
    let told = |desk: &mut Desk<u64>, owner: &str, child: u64, is_again| {
        let state = object(child, 0, child + 1);
        let arrival = Arrival::Made { informer: 1, meta: state.cached_meta(), is_again };
        desk.arrive(&key(owner), arrival, event(child)).added.is_some()
    };
    let answer = |desk: &mut Desk<u64>, children: std::ops::Range<u64>| {
        for child in children {
            let (state, mut writes) = (object(child, 0, child + 1), Writes::default());
            writes.handle_write(1, state.key(), Awaited::written(state.cached_meta()));
            assert!(!desk.writes(&key("owner"), &writes));
        }
    };
    answer(&mut desk, 0..3);
    assert!(!told(&mut desk, "owner", 0, false), "it is known");
    assert!(told(&mut desk, "owner", 0, false), "once");
    assert!(told(&mut desk, "other", 1, false), "the other one does not know it");
    assert!(told(&mut desk, "owner", 2, true), "after a rewind versions say nothing");
    assert!(told(&mut desk, "owner", 2, false), "and the answer is forgotten");
    answer(&mut desk, 10..10 + MOST_ANSWERED as u64 + 1);
    // Answers for objects of which no event comes take the place of none.
    let mut own = Writes::default();
    own.handle_write(0, &key("owner"), Awaited::written(object("owner", 0, 1).cached_meta()));
    assert!(!desk.writes(&key("owner"), &own));
    assert!(told(&mut desk, "owner", 10, false), "it is forgotten");
    assert!(!told(&mut desk, "owner", 11, false));
    assert_eq!(desk.kept().answered, 2);
}

#[test]
fn ctl_18_of_deleted_objects_the_newest_4096_states_are_kept_and_the_others_counted() {
    let mut desk = Desk::default();
    for number in 0..4_100_u64 {
        let gone = object(number, 0, number + 1);
        let released = desk.arrive(&key(number), Arrival::Gone(&gone), event(number)).released;
        let expected = number.checked_sub(MOST_DELETED as u64);
        assert_eq!(released.map(|oldest| *oldest.body()), expected.map(|oldest| oldest + 1));
    }
    let figures = desk.kept();
    assert_eq!((figures.deleted, figures.deleted_dropped), (MOST_DELETED, 4));
    let kept: BTreeSet<u64> = (0..4_100)
        .filter(|number| desk.begin(&key(number), None).is_some_and(|begun| begun.deleted.is_some()))
        .collect();
    assert_eq!((kept.first(), kept.len()), (Some(&4), MOST_DELETED));
}

#[test]
fn ctl_18_a_last_state_that_was_replaced_leaves_no_trace() {
    let mut desk = Desk::keeping(1);
    let numbers = [("one", 1), ("one", 2), ("two", 3), ("three", 4), ("four", 5)];
    let released = numbers.map(|(name, version)| {
        let gone = object(name, 0, version);
        let released = desk.arrive(&key(name), Arrival::Gone(&gone), event(0)).released;
        assert_eq!(desk.kept().deleted, 1);
        released.map(|state| *state.body())
    });
    assert_eq!(released, [None, Some(1), Some(2), Some(3), Some(4)]);
    assert_eq!(desk.kept().deleted_dropped, 3, "a newer state of a key is no loss");
}

#[test]
fn ctl_18_of_one_reconcile_1024_writes_are_waited_for_and_the_others_counted() {
    let mut writes = Writes::default();
    for number in 0..1_030 {
        let written = object(number, 0, 1);
        writes.handle_write(0, written.key(), Awaited::written(written.cached_meta()));
    }
    assert_eq!((writes.len(), writes.left_out()), (MOST_WRITES, 6));
}

#[test]
fn ctl_04_a_state_that_the_failed_reconcile_was_given_does_not_end_the_rest_and_a_rewind_does() {
    let mut desk = Desk::default();
    let one = object("one", 0, 5);
    desk.begin(&key("one"), Some(one.cached_meta())).expect("it does not rest");
    assert!(desk.arrive(&key("one"), present(&one), event(0)).added.is_some(), "its event comes late");
    assert_eq!(desk.end(&key("one"), Ended::UntilChanged).0, Next::Rest);
    assert_eq!(desk.kept().resting, 1);
    assert!(desk.arrive(&key("one"), present(&one), event(0)).added.is_none(), "a resync");
    let older = object("one", 0, 3);
    let rewound = Arrival::Present { meta: older.cached_meta(), is_rewound: true };
    assert!(desk.arrive(&key("one"), rewound, event(0)).added.is_some());
}
