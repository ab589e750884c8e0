//! What tests of informers need: a scripted source with fault switches, a recording subscriber, and fault hooks.
//!
//! [`Server`] is a small versioned store behind [`crate::list_watch::ListWatch`]; its answers take time as on a
//! network (5 ms unless [`Server::answer_after`] sets another). HTTP is not simulated. Use it with
//! `Runtime::simulated`.
//!
//! An event that contradicts those before (an Added of a present object, an Updated or Deleted of an absent one, an
//! Updated whose `old` is not the state delivered last) is reported, with its text.

mod server;

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor, Context, Handler};
use informer_core::delta::{Cause, Change};
use informer_core::listener::invariants::Replay;
use informer_core::meta::{Object, ObjectKey};
use informer_core::snapshot::Snapshot;

use crate::pipeline::messages::{Body, Notify};
pub use crate::runtime::clock::RandomNumbers;
pub use crate::runtime::faults::{Faults, Site};
use crate::runtime::locked::Guarded;
pub use server::{Backup, RequestLine, Server};

/// Kills the actor that reaches `site` for the `nth` time (the first is 1), once.
pub fn kill_at(site: Site, nth: u32) -> Faults {
    let visits = Guarded::new(0_u32);
    Faults::new(move |here| {
        if here != site {
            return;
        }
        let visit = visits.with(|visits| {
            *visits += 1;
            *visits
        });
        assert!(visit != nth, "killed at {site:?}");
    })
}

/// Kills the actor at every `period`th visit to `site`, at most `times` times.
pub fn kill_every(site: Site, period: u32, times: u32) -> Faults {
    let state = Guarded::new((0_u32, 0_u32));
    Faults::new(move |here| {
        if here != site {
            return;
        }
        let kill = state.with(|(visits, kills)| {
            *visits += 1;
            let kill = visits.is_multiple_of(period) && *kills < times;
            *kills += u32::from(kill);
            kill
        });
        assert!(!kill, "killed at {site:?}");
    })
}

/// A subscribed actor that records its events and checks each event against the ones before. Start it and
/// subscribe it, and keep its [`RecorderHandle`].
pub struct Recorder<S: Body> {
    handle: RecorderHandle<S>,
}

/// Reads what a recorder has seen, from anywhere.
pub struct RecorderHandle<S: Body>(Arc<Guarded<Seen<S>>>);

struct Seen<S> {
    replay: Replay<S>,
    present: BTreeMap<ObjectKey, Object<S>>,
    lines: Vec<String>,
    contradictions: Vec<String>,
}

impl<S: Body> Recorder<S> {
    /// A recorder and the handle that reads it.
    pub fn new() -> (Self, RecorderHandle<S>) {
        let seen = Seen {
            replay: Replay::default(),
            present: BTreeMap::new(),
            lines: Vec::new(),
            contradictions: Vec::new(),
        };
        let handle = RecorderHandle(Arc::new(Guarded::new(seen)));
        (Self { handle: handle.clone() }, handle)
    }
}

impl<S: Body> RecorderHandle<S> {
    /// Records one event, for subscribers of other kinds.
    pub fn record(&self, notify: &Notify<S>) {
        self.0.with(|seen| {
            seen.lines.push(line(notify));
            let change = seen.change(notify);
            if let Err(why) = seen.replay.apply(&change) {
                let contradiction = format!("{}: {why}", line(notify));
                seen.contradictions.push(contradiction);
            }
        });
    }

    /// The events so far, a line each: `Added(InitialList) default/a@3`.
    pub fn lines(&self) -> Vec<String> {
        self.0.with(|seen| seen.lines.clone())
    }

    /// Forgets the lines, but not the state that the events add up to.
    pub fn clear_lines(&self) {
        self.0.with(|seen| seen.lines.clear());
    }

    /// How many events were recorded.
    pub fn len(&self) -> usize {
        self.0.with(|seen| seen.lines.len())
    }

    /// The state of a key by the events so far: `None` if it does not exist.
    pub fn last(&self, key: &ObjectKey) -> Option<Object<S>> {
        self.0.with(|seen| seen.present.get(key).cloned())
    }

    /// Whether no event was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks that no event contradicted the ones before, and that together they give `snapshot`.
    ///
    /// # Errors
    /// What is wrong, as a text.
    pub fn agrees_with(&self, snapshot: &Snapshot<S>) -> Result<(), String> {
        self.0.with(|seen| match seen.contradictions.first() {
            Some(first) => Err(format!("{} contradictions, first: {first}", seen.contradictions.len())),
            None => seen.replay.equals(snapshot),
        })
    }
}

impl<S> Seen<S> {
    /// A deletion removes the state delivered last.
    fn change(&mut self, notify: &Notify<S>) -> Change<S> {
        match notify.clone() {
            Notify::Added { object, cause } => {
                self.present.insert(object.key().clone(), object.clone());
                Change::Added { object, cause }
            }
            Notify::Updated { old, object, cause } => {
                self.present.insert(object.key().clone(), object.clone());
                Change::Updated { old, object, cause }
            }
            Notify::Deleted { last, exact, cause } => {
                let old = self.present.remove(last.key()).unwrap_or_else(|| last.clone());
                Change::Deleted { old, last, exact, cause }
            }
        }
    }
}

fn line<S>(notify: &Notify<S>) -> String {
    let (kind, cause) = match notify {
        Notify::Added { cause, .. } => ("Added", cause),
        Notify::Updated { cause, .. } => ("Updated", cause),
        Notify::Deleted { exact: true, cause, .. } => ("Deleted", cause),
        Notify::Deleted { exact: false, cause, .. } => ("Missed", cause),
    };
    let cause: &Cause = cause;
    format!("{kind}({cause}) {}@{}", notify.key(), notify.subject().version())
}

impl<S: Body> Actor for Recorder<S> {
    type Context = Context<Self>;
}

impl<S: Body> Handler<Notify<S>> for Recorder<S> {
    type Result = ();

    fn handle(&mut self, notify: Notify<S>, _ctx: &mut Context<Self>) {
        self.handle.record(&notify);
    }
}

informer_core::clone_of!([S: Body] RecorderHandle<S>);

informer_core::debug_as!([S: Body] Recorder<S>, self, events = self.handle.len());

informer_core::debug_as!([S: Body] RecorderHandle<S>, self, events = self.len());
