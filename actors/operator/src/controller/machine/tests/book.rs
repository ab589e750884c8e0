//! Single decisions of a controller, each by a history that is as short as it can be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::desk::Desk;
use super::*;

/// A key whose reconcile of this state has failed terminally.
fn resting(state: &Object<u64>) -> Desk<u64> {
    let mut desk = Desk::default();
    desk.begin(&key("one"), Some(state.cached_meta())).expect("it does not rest");
    assert_eq!(desk.end(&key("one"), Ended::UntilChanged).0, Next::Rest);
    desk
}

#[test]
fn ctl_04_another_life_ends_the_rest_whatever_its_version_and_so_does_a_newer_state_that_only_the_cache_shows()
 {
    let failed = object("one", 0, 5);
    let mut desk = resting(&failed);
    assert!(desk.arrive(&key("one"), present(&object("one", 1, 3)), event(0)).added.is_some());

    let mut desk = resting(&failed);
    assert!(desk.begin(&key("one"), Some(failed.cached_meta())).is_none(), "it rests");
    assert!(desk.arrive(&key("one"), Arrival::Output, event(0)).added.is_none());
    assert_eq!(desk.kept().ignored, 2, "both are counted");
    let newer = object("one", 0, 6);
    assert!(desk.begin(&key("one"), Some(newer.cached_meta())).is_some());
    assert_eq!(desk.kept().resting, 0);
    assert!(desk.arrive(&key("one"), Arrival::Output, event(0)).added.is_some(), "the rest is over");
}

#[test]
fn ctl_18_65536_keys_rest_at_most_and_a_further_one_does_not() {
    let mut desk = Desk::<u64>::default();
    for number in 0..=MOST_RESTING as u64 {
        let bad = object(number, 0, 1);
        desk.begin(bad.key(), Some(bad.cached_meta())).expect("it does not rest");
        assert_eq!(desk.end(bad.key(), Ended::UntilChanged).0, Next::Rest);
    }
    assert_eq!(desk.kept().resting, MOST_RESTING);
    assert!(desk.arrive(&key(MOST_RESTING), Arrival::Output, event(0)).added.is_some());
}

// CTL-01: given a controller over an informer, when it starts, then each object of the first list is
// reconciled once; and each change leads to a reconcile that finds a state at least as new, is told which
// event of which object led there, and, of a deleted object, its last state until a reconcile that was given
// it is done, unless that life of it is back.
// - a each object of the first list once, and what changed as it is, with the event:
//   `ctl_01_each_object_is_reconciled_at_first_when_it_changes_and_when_it_is_gone`
// - b the last state of a deleted object, until that is done:
//   `ctl_01_the_last_state_is_shown_until_a_reconcile_that_was_given_it_is_done`
// - c an object that leaves what is followed and comes back in the same life has none
#[test]
fn ctl_01_a_last_state_is_given_only_where_the_cache_shows_no_state_of_that_life() {
    let last = object("one", 0, 7);
    let given = |cached: Option<&Object<u64>>| {
        let mut desk = Desk::default();
        assert!(desk.arrive(&key("one"), Arrival::Gone(&last), event(0)).added.is_some());
        desk.begin(&key("one"), cached.map(Object::cached_meta)).expect("it does not rest").deleted
    };
    assert!(given(None).is_some(), "it is gone");
    assert!(given(Some(&object("one", 0, 6))).is_none(), "the cache shows it still");
    assert!(given(Some(&object("one", 0, 8))).is_none(), "it had left what is followed, and is back");
    assert!(given(Some(&object("one", 1, 3))).is_some(), "another life has the name");
}

#[test]
fn operator_b_what_has_left_is_never_given_as_deleted_unless_another_life_has_its_name() {
    let last = object("one", 0, 7);
    let given = |cached: Option<&Object<u64>>| {
        let mut desk = Desk::default();
        assert!(desk.arrive(&key("one"), Arrival::Left(&last), event(0)).added.is_some());
        assert!(desk.book.keeps_left(&key("one")));
        let begun = desk.begin(&key("one"), cached.map(Object::cached_meta)).expect("it does not rest");
        let shown = (begun.deleted.is_some(), begun.left.is_some());
        drop(desk.end(&key("one"), Ended::With(Outcome::Done)));
        assert_eq!(
            desk.book.keeps_left(&key("one")),
            shown == (false, false),
            "until a reconcile that was given it is done"
        );
        shown
    };
    assert_eq!(given(None), (false, true), "it may live on");
    assert_eq!(given(Some(&object("one", 0, 6))), (false, false), "the cache shows it still");
    assert_eq!(given(Some(&object("one", 0, 8))), (false, false), "it is back");
    assert_eq!(
        given(Some(&object("one", 1, 8))),
        (true, false),
        "another life has the name: its own has ended"
    );
}

#[test]
fn operator_b_of_what_has_left_and_is_then_gone_the_last_word_counts() {
    let (first, second) = (object("one", 0, 7), object("one", 0, 9));
    let mut desk = Desk::default();
    assert!(desk.arrive(&key("one"), Arrival::Left(&first), event(0)).added.is_some());
    assert!(desk.arrive(&key("one"), present(&object("one", 0, 8)), event(1)).released.is_some());
    assert!(!desk.book.keeps_left(&key("one")), "it was back");
    assert!(desk.arrive(&key("one"), Arrival::Gone(&second), event(2)).added.is_some());
    let begun = desk.begin(&key("one"), None).expect("it does not rest");
    assert!(begun.left.is_none() && begun.deleted.is_some_and(|deleted| deleted.ptr_eq(&second)));
    assert!(resting(&first).arrive(&key("one"), Arrival::Left(&first), event(3)).added.is_some(), "no rest");
}

#[test]
fn ctl_01_an_object_that_comes_back_in_the_same_life_has_no_last_state() {
    let (left, back) = (object("one", 0, 7), object("one", 0, 8));
    let mut desk = Desk::default();
    assert!(desk.arrive(&key("one"), Arrival::Gone(&left), event(0)).added.is_some());
    let arrived = desk.arrive(&key("one"), present(&back), event(1));
    assert!(arrived.released.is_some_and(|released| released.ptr_eq(&left)), "the caller drops it");
    assert_eq!(desk.kept().deleted, 0);
    let other = object("one", 1, 9);
    assert!(desk.arrive(&key("one"), Arrival::Gone(&back), event(2)).added.is_some());
    assert!(desk.arrive(&key("one"), present(&other), event(3)).released.is_none());
    let begun = desk.begin(&key("one"), Some(other.cached_meta())).expect("it does not rest");
    assert!(begun.deleted.is_some_and(|deleted| deleted.ptr_eq(&back)), "that life has ended");
}

#[test]
fn ctl_21_of_a_reconcile_that_makes_1024_children_no_event_is_a_reason_for_another_one() {
    let mut desk = Desk::<u64>::default();
    desk.begin(&key("owner"), None).expect("it does not rest");
    let mut writes = Writes::default();
    for number in 0..MOST_WRITES as u64 {
        let child = object(number, 0, number + 1);
        writes.handle_write(1, child.key(), Awaited::written(child.cached_meta()));
        let arrival = Arrival::Made { informer: 1, meta: child.cached_meta(), is_again: false };
        assert!(desk.arrive(&key("owner"), arrival, event(number)).added.is_none());
    }
    let further = object(MOST_WRITES as u64, 0, MOST_WRITES as u64 + 1);
    let arrival = Arrival::Made { informer: 1, meta: further.cached_meta(), is_again: false };
    assert!(desk.arrive(&key("owner"), arrival, event(0)).added.is_some(), "beyond the bound");
    assert!(!desk.writes(&key("owner"), &writes));
    assert_eq!(desk.kept().answered, MOST_WRITES as u64);
}

#[test]
fn ctl_03_and_ctl_05_each_end_of_a_reconcile_has_its_consequence() {
    let after = Duration::from_secs(7);
    for (ended, next) in [
        (Ended::With(Outcome::Done), Next::Done),
        (Ended::With(Outcome::RequeueAfter(after)), Next::After(after)),
        (Ended::Failed, Next::Retry),
        (Ended::Terminal, Next::Done),
        (Ended::UntilChanged, Next::Rest),
        (Ended::Panicked, Next::Retry),
        (Ended::TimedOut, Next::Retry),
        (Ended::Cancelled, Next::Retry),
    ] {
        assert_eq!(ended.next(), next, "{ended:?}");
    }
}

#[test]
fn ctl_07_a_removal_is_seen_when_another_life_has_the_name() {
    let awaited = Awaited::removed(object("one", 0, 5).cached_meta());
    assert!(!awaited.is_seen(Some(object("one", 0, 6).cached_meta()), true), "it is there still");
    assert!(awaited.is_seen(Some(object("one", 1, 6).cached_meta()), true));
}

/// A body that notes its drop.
struct Noted(Arc<AtomicUsize>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

// CTL-24: given a body whose drop is code of a user, which uses the controller of its object or panics, when
// its last state is no longer kept, then no lock is held, no key is lost and no subscription ends.
// - a no lock is held
// - b a panic costs no key and no subscription:
//   `ctl_24_a_body_that_panics_when_it_is_dropped_costs_no_key_and_no_subscription`
#[test]
fn ctl_24_no_call_drops_a_last_state_which_is_given_to_the_caller_instead() {
    let drops = Arc::new(AtomicUsize::new(0));
    let noted = |name, version| {
        let number = ResourceVersion::from_number(version).expect("not zero");
        Object::new(Meta::new(key(name), number, SourceId::default()), Noted(Arc::clone(&drops)))
    };
    let arrive = |desk: &mut Desk<Noted>, last: Object<Noted>| {
        // The object is dropped here: what the desk keeps is the only one left.
        desk.arrive(last.key(), Arrival::Gone(&last), event(0)).released
    };
    let mut desk = Desk::keeping(1);
    assert!(arrive(&mut desk, noted("one", 1)).is_none());
    drop(desk.begin(&key("one"), None).expect("it does not rest"));
    let newer = arrive(&mut desk, noted("one", 2));
    assert!(newer.is_some(), "a newer state of the key takes its place");
    drop(newer);
    assert_eq!(drops.load(Relaxed), 0, "the reconcile under way has it, too");
    let ended = desk.end(&key("one"), Ended::With(Outcome::Done));
    assert_eq!(drops.load(Relaxed), 0);
    drop(ended);
    assert_eq!(drops.load(Relaxed), 1);
    let oldest = arrive(&mut desk, noted("two", 3));
    assert_eq!((oldest.is_some(), drops.load(Relaxed)), (true, 1), "more than are kept");
    let all = desk.book.handle_over();
    assert_eq!((all.len(), drops.load(Relaxed), desk.book.check()), (1, 1, Ok(())), "the controller is over");
}
