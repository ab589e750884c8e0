//! One actor under guard, killed in each of its moments: what is kept, what is built anew, what is counted.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix::dev::channel::channel;
use actix::{Actor, Addr, AsyncContext, Context, Handler, Message, Supervised, WrapFuture};
use futures_util::future::join_all;
use informer_core::restart::Role;

use super::{Child, Stop, Tether};
use crate::informer::Informer;
use crate::pipeline::wiring::{Raised, raise};
use crate::runtime::faults::{Faults, Site};
use crate::runtime::mailbox::ask;
use crate::runtime::{Label, Runtime};
use crate::testing::Server;

/// Notes what happens to it, and how many messages this life of it has handled.
struct Noting {
    spec: Notes,
    handled: u32,
}

/// What outlives it: the notes, and in how many starts it is still to panic.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>, Arc<AtomicU32>);

/// A message to be noted; some are fatal.
#[derive(Message)]
#[rtype(result = "()")]
struct Say(&'static str);

impl Notes {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.into());
    }

    fn read(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Actor for Noting {
    type Context = Context<Self>;

    fn started(&mut self, _ctx: &mut Context<Self>) {
        let left = self.spec.1.load(Ordering::Relaxed);
        if left > 0 {
            self.spec.1.store(left - 1, Ordering::Relaxed);
            panic!("in its start");
        }
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
        Self { spec: spec.clone(), handled: 0 }
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

/// An informer, and an actor of its own kind in its family that restarts alone.
fn one_more(runtime: &Runtime, notes: &Notes) -> (Informer<String>, Addr<Noting>) {
    let informer = Informer::builder(runtime, "guarded").source(Server::new).start();
    let informer = informer.expect("the spec is sound");
    let family = &informer.0.family;
    let (sender, inbox) = channel(1_000);
    let label = Label { informer: "guarded".into(), kind: "", name: "noting".into() };
    let kin = Arc::clone(&family.kin);
    let tether = Tether { kin, label: Arc::new(label), role: Role::Reflector, stop: Stop::Informer };
    raise(&family.arbiter, &family.tasks, tether, Raised { inbox, spec: notes.clone() }, |_| ());
    (informer, Addr::new(sender))
}

/// Sends all of these at once and waits for the answers; those that die over their message have none.
async fn say(to: &Addr<Noting>, texts: &[&'static str]) -> usize {
    let answers = join_all(texts.iter().map(|&text| ask(to, Say(text)))).await;
    answers.iter().filter(|answer| answer.is_ok()).count()
}

#[test]
fn inf_51_messages_sent_before_an_actor_has_run_are_handled_in_order() {
    Runtime::simulated(7).run(|runtime| async move {
        let notes = Notes::default();
        let (_informer, actor) = one_more(&runtime, &notes);
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
        let notes = Notes::default();
        let (informer, actor) = one_more(&runtime, &notes);
        assert_eq!(say(&actor, &["a", "b", "die", "c", "d"]).await, 4);
        let expected = ["started", "a 1", "b 2", "started", "c 1", "d 2"];
        assert_eq!(notes.read(), expected, "the queue is kept, the count is built anew");
        assert_eq!(say(&actor, &["e"]).await, 1, "at the same address");
        assert_eq!(informer.status().restarts, 1);
        assert_eq!(informer.status().sources[0].restarts, 0, "and nobody else");
    });
}

#[test]
fn inf_44_a_panic_in_start_handler_spawned_future_or_rebuild_is_one_counted_exit_and_a_new_beginning() {
    let run = |starts: u32, rebuilds: u32, message: &'static str, exits: u64| {
        let left = AtomicU32::new(rebuilds);
        let faults = Faults::new(move |site| {
            let due = site == Site::Rebuild && left.load(Ordering::Relaxed) > 0;
            if due {
                left.fetch_sub(1, Ordering::Relaxed);
            }
            assert!(!due, "in the rebuild");
        });
        Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
            let notes = Notes::default();
            notes.1.store(starts, Ordering::Relaxed);
            let (informer, actor) = one_more(&runtime, &notes);
            let before = runtime.now();
            say(&actor, &["before", message]).await;
            say(&actor, &["after"]).await;
            assert_eq!(informer.status().restarts, exits, "{message}: one exit, counted once");
            // The waits are 0.8, 1.6 and 3.2 s, each up to twice as long.
            let least: u32 = (0..exits).map(|exit| 800 << exit).sum();
            let waited = runtime.now() - before;
            let least = Duration::from_millis(least.into());
            assert!(waited >= least && waited <= 2 * least, "{message}: {waited:?}, at least {least:?}");
            let notes = notes.read();
            let last_life = notes.rsplit(|note| note == "started").next().expect("a life");
            assert!(last_life.ends_with(&[format!("after {}", last_life.len())]), "built anew: {notes:?}");
        });
    };
    run(0, 0, "nothing happens", 0);
    run(1, 0, "in started", 1);
    run(2, 0, "in started, twice", 2);
    run(0, 0, "die", 1);
    run(0, 0, "spawn", 1);
    run(0, 1, "die", 2);
    run(0, 2, "die", 3);
}
