//! Supervision of a test actor, which is killed in its build, start, handlers, futures and rebuild.
//!
//! The owner records events; the actor dies on demand. The tests check what is kept, what is rebuilt, and
//! what is reported.

mod ending;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message, Supervised, WrapFuture};
use futures_util::future::join_all;
use informer_core::restart::{OnFailure, RestartPolicy, Role};
use tokio_util::sync::CancellationToken;

use super::children::{Children, NotRevived};
use super::group::{Epoch, Group};
use super::owner::{Child, ChildEvent, Ended, Mailbox, Owner};
use super::parent::Parent;
use crate::runtime::Runtime;
use crate::runtime::faults::{Faults, Site};
use crate::runtime::locked::locked;
use crate::runtime::mailbox::ask;

const ALONE: Role = Role { on_failure: OnFailure::RestartAlone, follows_group: false, tells_owner: true };
const MEMBER: Role = Role { on_failure: OnFailure::RestartGroup, follows_group: true, tells_owner: true };
const FOLLOWER: Role = Role { follows_group: true, ..ALONE };
const FRAGILE: Role = Role { on_failure: OnFailure::GiveUp, follows_group: false, tells_owner: true };

/// Records what happens to it, and how many messages it has handled since it was built.
struct Noting {
    spec: Notes,
    handled: u32,
}

/// What survives a restart: the notes, and in how many builds and starts it will still panic.
#[derive(Clone, Default)]
struct Notes {
    lines: Arc<Mutex<Vec<String>>>,
    bad_builds: Arc<AtomicU32>,
    bad_starts: Arc<AtomicU32>,
}

/// A message to be noted; some are fatal.
struct Say(&'static str);

impl Message for Say {
    type Result = ();
}

impl Notes {
    fn note(&self, text: impl Into<String>) {
        locked(&self.lines).push(text.into());
    }

    fn read(&self) -> Vec<String> {
        locked(&self.lines).clone()
    }
}

/// Whether the counter is above zero; takes one from it.
fn is_due(left: &AtomicU32) -> bool {
    let one_less = |left: u32| left.checked_sub(1);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
}

impl Actor for Noting {
    type Context = Context<Self>;

    fn started(&mut self, _ctx: &mut Context<Self>) {
        assert!(!is_due(&self.spec.bad_starts), "in its start");
        self.spec.note("started");
    }
}

impl Supervised for Noting {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
    }
}

impl Child for Noting {
    type Spec = Notes;

    fn build(spec: &Notes) -> Self {
        assert!(!is_due(&spec.bad_builds), "in its build");
        Self { spec: spec.clone(), handled: 0 }
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        self.spec.note("dropped");
    }
}

impl Handler<Say> for Noting {
    type Result = ();

    fn handle(&mut self, Say(text): Say, ctx: &mut Context<Self>) {
        self.handled += 1;
        assert!(text != "die", "in a handler");
        if text == "spawn" {
            ctx.spawn(async { panic!("in a spawned future") }.into_actor(self));
        }
        self.spec.note(format!("{text} {}", self.handled));
    }
}

/// An owner that records the events of its children.
impl Owner for Notes {
    fn child_changed(&self, child: &Arc<str>, _role: Role, event: ChildEvent<'_>) {
        match event {
            ChildEvent::Restarts { exit, .. } => self.note(format!("{child} {}: restarts", Ended(exit))),
            ChildEvent::Ended { exit } => self.note(format!("{child} {}", Ended(exit))),
            ChildEvent::GivenUp { reason } => self.note(format!("{child} is given up: {reason}")),
            ChildEvent::Revived => self.note(format!("{child} is revived")),
        }
    }
}

/// A parent on this runtime, and the notes of its owner.
fn parent(runtime: &Runtime) -> (Arc<Parent>, Notes) {
    let (owner, group) = (Notes::default(), Group::default());
    let policy = (RestartPolicy::default(), CancellationToken::new());
    (Parent::start("a program", Arc::new(owner.clone()), group, runtime, policy), owner)
}

/// Starts an actor of this role.
fn start(parent: &Arc<Parent>, name: &str, role: Role, notes: &Notes) -> Addr<Noting> {
    let Mailbox(address, inbox) = Mailbox::with_room(1_000);
    parent.context(name, role).start(inbox, notes.clone(), |_| ());
    address
}

/// Sends all of these at once and waits for the answers; those that die over their message have none.
async fn say(to: &Addr<Noting>, texts: &[&'static str]) -> usize {
    let answers = join_all(texts.iter().map(|&text| ask(to, Say(text)))).await;
    answers.iter().filter(|answer| answer.is_ok()).count()
}

/// Longer than any backoff; simulated time, which costs none.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(100)).await;
}

// INF-51: given messages sent to an actor's address before its arbiter has run, when it runs, then they are
// handled in order.
// - a they are handled
// - b in order
#[test]
fn inf_51_messages_sent_before_an_actor_has_run_are_handled_in_order() {
    Runtime::simulated(7).run(|runtime| async move {
        let ((parent, _owner), notes) = (parent(&runtime), Notes::default());
        let actor = start(&parent, "noting", ALONE, &notes);
        // Nothing has been awaited: the actor does not exist yet.
        let texts = ["a", "b", "c", "d"].repeat(200);
        assert_eq!(say(&actor, &texts).await, 800);
        let numbered = texts.iter().zip(1..).map(|(text, number)| format!("{text} {number}"));
        let expected: Vec<_> = std::iter::once("started".to_owned()).chain(numbered).collect();
        assert_eq!(notes.read(), expected);
    });
}

#[test]
fn inf_42_an_actor_killed_in_mid_message_keeps_its_address_and_the_messages_behind_it() {
    Runtime::simulated(7).run(|runtime| async move {
        let ((parent, owner), notes, other) = (parent(&runtime), Notes::default(), Notes::default());
        let actor = start(&parent, "noting", ALONE, &notes);
        let _other = start(&parent, "other", ALONE, &other);
        assert_eq!(say(&actor, &["a", "b", "die", "c", "d"]).await, 4);
        let expected = ["started", "a 1", "b 2", "dropped", "started", "c 1", "d 2"];
        assert_eq!(notes.read(), expected, "the queue is kept, the count is built anew");
        assert_eq!(say(&actor, &["e"]).await, 1, "at the same address");
        assert_eq!(owner.read(), ["noting has panicked: in a handler: restarts"]);
        assert_eq!(other.read(), ["started"], "no other child is restarted");
    });
}

// INF-44: given a panic in `started`, in a handler, in a spawned future and in the rebuild itself, when it
// happens, then each is one counted exit with its text, waits out the backoff, and starts from state built
// anew; a Drop that panics at giving up ends nothing else.
// - a a panic in `started`, of whatever actor, is survived:
//   `inf_44_a_delta_fifo_or_processor_killed_in_its_start_is_restarted_with_its_group`
// - b a panic in the rebuild is one more counted exit:
//   `inf_44_a_panic_in_the_rebuild_itself_is_one_more_counted_exit_that_waits_out_its_backoff`
// - c in `started`, in a handler and in a spawned future, each is one counted exit
// - d with its text: `inf_63_a_restart_is_an_error_with_the_actor_the_panics_text_and_when_it_starts_again`
// - e it waits out the backoff
// - f it starts from state built anew
// - g a Drop that panics at giving up ends nothing else:
//   `inf_44_drops_that_panic_at_giving_up_leave_the_other_informers_alone`
// - h a user's source that panics costs a restart and no event:
//   `inf_44_a_users_source_that_panics_anywhere_costs_a_restart_of_its_reflector_and_no_event`
// - i a shutdown meanwhile keeps its deadline:
//   `inf_44_a_shutdown_during_any_panic_keeps_its_deadline_and_is_clean_only_if_everything_was_delivered`
#[test]
fn inf_44_a_panic_in_build_start_handler_spawned_future_or_rebuild_is_one_counted_exit_and_a_new_beginning() {
    let run = |builds: u32, starts: u32, rebuilds: u32, message: &'static str, exits: usize| {
        let left = AtomicU32::new(rebuilds);
        let faults =
            Faults::new(move |site| assert!(site != Site::Rebuild || !is_due(&left), "in the rebuild"));
        Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
            let ((parent, owner), notes) = (parent(&runtime), Notes::default());
            notes.bad_builds.store(builds, Ordering::Relaxed);
            notes.bad_starts.store(starts, Ordering::Relaxed);
            let actor = start(&parent, "noting", ALONE, &notes);
            let before = runtime.now();
            say(&actor, &["before", message]).await;
            say(&actor, &["after"]).await;
            assert_eq!(owner.read().len(), exits, "{message}: {:?}", owner.read());
            // The waits are 0.8, 1.6 and 3.2 s, each up to twice as long.
            let least: u64 = (0..exits).map(|exit| 800 << exit).sum();
            let waited = runtime.now() - before;
            let least = Duration::from_millis(least);
            assert!(waited >= least && waited <= 2 * least, "{message}: {waited:?}, at least {least:?}");
            let notes = notes.read();
            let last_life = notes.rsplit(|note| note == "started").next().expect("a life");
            assert!(last_life.ends_with(&[format!("after {}", last_life.len())]), "built anew: {notes:?}");
        });
    };
    run(0, 0, 0, "nothing happens", 0);
    run(1, 0, 0, "in its build", 1);
    run(2, 0, 0, "in its build, twice", 2);
    run(0, 1, 0, "in its start", 1);
    run(0, 2, 0, "in its start, twice", 2);
    run(0, 0, 0, "die", 1);
    run(0, 0, 0, "spawn", 1);
    run(0, 0, 1, "die", 2);
    run(0, 0, 2, "die", 3);
}

#[test]
fn a_member_that_dies_restarts_its_group_and_its_followers_once_and_no_other_child() {
    Runtime::simulated(7).run(|runtime| async move {
        let (parent, owner) = parent(&runtime);
        let of = |name: &str, role: Role| {
            let notes = Notes::default();
            (start(&parent, name, role, &notes), notes)
        };
        let (first, second) = (of("first", MEMBER), of("second", MEMBER));
        let (follower, alone) = (of("follower", FOLLOWER), of("alone", ALONE));
        settle().await;
        // Both die before the group has been restarted.
        join_all([say(&first.0, &["die"]), say(&second.0, &["die"])]).await;
        settle().await;
        let lives = |(_, notes): &(Addr<Noting>, Notes)| {
            notes.read().iter().filter(|line| *line == "started").count()
        };
        assert_eq!([&first, &second, &follower, &alone].map(lives), [2, 2, 2, 1], "{:?}", owner.read());
        assert_eq!(parent.group.epoch(), Epoch(1));
        say(&follower.0, &["die"]).await;
        settle().await;
        assert_eq!([&first, &second, &follower, &alone].map(lives), [2, 2, 3, 1], "a follower dies alone");
        assert_eq!(parent.group.epoch(), Epoch(1));
    });
}

/// Kills it until it is given up; it is restarted five times before.
async fn exhaust(actor: &Addr<Noting>) {
    for _ in 0..6 {
        assert_eq!(say(actor, &["die"]).await, 0);
        settle().await;
    }
}

#[test]
fn inf_45_a_child_that_keeps_dying_is_given_up_once_nothing_of_it_is_left() {
    Runtime::simulated(7).run(|runtime| async move {
        let ((parent, owner), notes) = (parent(&runtime), Notes::default());
        let actor = start(&parent, "noting", ALONE, &Notes { lines: Arc::clone(&owner.lines), ..notes });
        exhaust(&actor).await;
        let lines = owner.read();
        let restarts = lines.iter().filter(|line| line.ends_with("restarts")).count();
        assert_eq!(restarts, 5, "{lines:?}");
        let given_up = "noting is given up: panicked: in a handler (after 5 restarts within 600s)".to_owned();
        assert_eq!(lines[lines.len() - 2..], ["dropped".to_owned(), given_up], "{lines:?}");
        assert!(!actor.connected(), "an ask fails without a wait");
        assert_eq!(say(&actor, &["a"]).await, 0);
    });
}

#[test]
fn a_child_whose_role_says_so_is_given_up_at_its_first_failure() {
    Runtime::simulated(7).run(|runtime| async move {
        let ((parent, owner), notes) = (parent(&runtime), Notes::default());
        let actor = start(&parent, "fragile", FRAGILE, &notes);
        say(&actor, &["die"]).await;
        settle().await;
        assert_eq!(notes.read(), ["started", "dropped"]);
        assert_eq!(
            owner.read().last().map(String::as_str),
            Some("fragile is given up: panicked: in a handler")
        );
    });
}

#[test]
fn inf_66_a_child_that_was_given_up_is_revived_with_a_new_mailbox_and_a_new_history() {
    Runtime::simulated(7).run(|runtime| async move {
        let ((parent, owner), notes) = (parent(&runtime), Notes::default());
        let children = Children::<u8, Noting>::new(Arc::clone(&parent), ALONE);
        assert_eq!(children.revive(&1), Err(NotRevived::Unknown));
        assert!(children.add(1, "one", notes.clone()));
        assert!(!children.add(1, "another", notes.clone()), "the key is taken");
        assert_eq!(children.revive(&1), Err(NotRevived::NotGivenUp));
        for _ in 0..3 {
            let former = children.address(&1).expect("it is there");
            exhaust(&former).await;
            assert!(
                owner.read().last().expect("a line").starts_with("one is given up"),
                "{:?}",
                owner.read()
            );
            assert_eq!(children.revive(&1), Ok(()));
            assert_eq!(children.revive(&1), Err(NotRevived::NotGivenUp), "once is enough");
            assert_eq!(owner.read().last().map(String::as_str), Some("one is revived"));
            assert_eq!(say(&children.address(&1).expect("it is there"), &["hello"]).await, 1);
        }
    });
}

#[test]
fn inf_80_a_child_that_is_added_again_after_its_removal_has_a_new_restart_history() {
    Runtime::simulated(7).run(|runtime| async move {
        let ((parent, owner), notes) = (parent(&runtime), Notes::default());
        let children = Children::<u8, Noting>::new(Arc::clone(&parent), ALONE);
        for _ in 0..2 {
            assert!(children.add(1, "one", notes.clone()));
            let actor = children.address(&1).expect("it is there");
            for _ in 0..5 {
                assert_eq!(say(&actor, &["die"]).await, 0);
                settle().await;
            }
            assert_eq!(say(&actor, &["hello"]).await, 1, "five restarts are tolerated: {:?}", owner.read());
            let waits = runtime.now();
            assert!(children.remove(&1).await);
            assert!(runtime.now() - waits < Duration::from_secs(1), "long before its restarts age out");
        }
        assert_eq!(owner.read().len(), 10, "{:?}", owner.read());
    });
}

#[test]
fn a_child_keeps_its_restart_history_when_the_supervisor_dies() {
    let questions = AtomicU32::new(0);
    let third = move |site| site == Site::SupervisorExited && questions.fetch_add(1, Ordering::Relaxed) == 3;
    let faults = Faults::new(move |site| assert!(!third(site), "over a question"));
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let ((parent, owner), notes) = (parent(&runtime), Notes::default());
        let actor = start(&parent, "noting", ALONE, &notes);
        exhaust(&actor).await;
        let restarts = owner.read().iter().filter(|line| line.ends_with("restarts")).count();
        assert_eq!(restarts, 5, "{:?}", owner.read());
        assert!(!actor.connected(), "it is given up like any other");
    });
}

#[test]
fn children_are_added_and_removed_while_others_go_on_and_their_keys_are_free_again() {
    Runtime::simulated(7).run(|runtime| async move {
        let (parent, owner) = parent(&runtime);
        let children = Children::<u8, Noting>::new(Arc::clone(&parent), ALONE);
        let (stays, goes, comes) = (Notes::default(), Notes::default(), Notes::default());
        children.add(1, "stays", stays.clone());
        children.add(2, "goes", goes.clone());
        settle().await;
        assert!(children.remove(&2).await);
        assert_eq!(goes.read(), ["started", "dropped"], "nothing of it exists any more");
        assert!(!children.remove(&2).await);
        assert!(children.add(2, "comes", comes.clone()));
        settle().await;
        assert_eq!((stays.read(), comes.read()), (vec!["started".to_owned()], vec!["started".to_owned()]));
        assert_eq!(children.keys(), [1, 2]);
        assert!(owner.read().is_empty(), "no failure was reported: {:?}", owner.read());
    });
}
