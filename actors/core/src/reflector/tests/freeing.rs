//! Lists that are not needed any more: the machine frees none of their objects, however a list ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::script::{error, lists, version, watch_lists};
use crate::delta::{ListPart, WatchPart};
use crate::meta::{Meta, Object, ObjectKey, SourceId};
use crate::off_arbiter::{PendingFree, Release};
use crate::reflector::{Delivery, Effect, ListWatchMachine, Moment, ReflectorConfig, StreamId};

const AT: Moment = Moment { now: Duration::ZERO, chance: 0.0 };
const COUNT: usize = 600;

/// Keeps the values that are handed to it.
#[derive(Default)]
struct Kept(Mutex<Vec<PendingFree>>);

impl Release for Kept {
    fn release(&self, pending: PendingFree) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pending);
    }
}

/// A machine whose lists are freed by [`Kept`], the request that it has made, and objects that count themselves.
struct Play {
    machine: ListWatchMachine<Arc<()>>,
    stream: Option<StreamId>,
    alive: Arc<()>,
    kept: Arc<Kept>,
}

impl Play {
    fn asked(config: ReflectorConfig) -> Self {
        let kept = Arc::new(Kept::default());
        let release: Arc<dyn Release> = Arc::clone(&kept) as _;
        let mut machine = ListWatchMachine::new(config, None).releasing_to(&release);
        machine.start();
        assert!(matches!(machine.poll_effect(), Some(Effect::AcquireListPermit)));
        machine.handle_list_permit(AT);
        let stream = match machine.poll_effect() {
            Some(Effect::Watch { stream, .. }) => Some(stream),
            _ => None,
        };
        Self { machine, stream, alive: Arc::default(), kept }
    }

    fn objects(&self) -> Vec<Object<Arc<()>>> {
        let object = |n: usize| {
            let key = ObjectKey::namespaced("a", format!("{n:04}"));
            let source = SourceId::default();
            let meta = Meta { key, uid: None, version: version("7"), source, wire_bytes: 100, form: 0 };
            Object::new(meta, Arc::clone(&self.alive))
        };
        (0..COUNT).map(object).collect()
    }

    /// A machine that has received every object of a list, but not the end of the list.
    fn listed() -> Self {
        let mut play = Self::asked(lists());
        play.machine.handle_list_part(ListPart::Objects(play.objects()), AT);
        play
    }

    /// The same by a watch-list; with its bookmark, if it is to end.
    fn streamed(ended: bool) -> Self {
        let mut play = Self::asked(watch_lists());
        let mut parts: Vec<_> = play.objects().into_iter().map(WatchPart::Applied).collect();
        if ended {
            parts.push(WatchPart::Bookmark { version: version("7"), initial_events_end: true });
        }
        let stream = play.stream.expect("a watch-list is open");
        play.machine.handle_watch_parts(stream, parts, AT);
        play
    }

    /// Checks that every value was handed over with its weight, and that freeing them leaves nothing.
    fn nothing_was_freed_here(self, how: &str) {
        drop(self.machine);
        assert_eq!(Arc::strong_count(&self.alive), COUNT + 1, "{how}: freed by the machine");
        let pending = std::mem::take(&mut *self.kept.0.lock().unwrap_or_else(PoisonError::into_inner));
        assert!(pending.iter().map(PendingFree::bytes).sum::<usize>() >= COUNT * 100, "{how}: weighed");
        drop(pending);
        assert_eq!(Arc::strong_count(&self.alive), 1, "{how}: handed over");
    }
}

#[test]
fn inf_70_no_way_in_which_a_list_ends_frees_its_objects_in_the_machine() {
    let mut play = Play::listed();
    play.machine.handle_list_end(Err(error("cut")), AT);
    play.nothing_was_freed_here("a list that fails at its end");
    let mut play = Play::listed();
    play.machine.handle_list_end(Ok(()), AT);
    play.nothing_was_freed_here("a list that ends within a page");
    let mut play = Play::listed();
    play.machine.handle_timeout(Moment { now: Duration::from_secs(3600), chance: 0.0 });
    play.nothing_was_freed_here("a list that brings nothing more");
    Play::listed().nothing_was_freed_here("a list whose machine is dropped");
    let mut play = Play::streamed(false);
    play.machine.handle_watch_end(play.stream.expect("it is open"), Ok(()), AT);
    play.nothing_was_freed_here("a watch-list that is cut");
    Play::streamed(false).nothing_was_freed_here("a watch-list whose machine is dropped");
    Play::streamed(true).nothing_was_freed_here("a net result whose machine is dropped while it is moved");
}

#[test]
fn inf_70_a_list_that_is_delivered_and_taken_by_nobody_is_not_freed_where_it_is_dropped() {
    let mut listed = Play::listed();
    listed.machine.handle_list_part(ListPart::End { version: version("7"), token: None }, AT);
    listed.machine.handle_list_end(Ok(()), AT);
    for mut play in [listed, Play::streamed(true)] {
        let delivered = std::iter::from_fn(|| play.machine.poll_effect())
            .find(|effect| matches!(effect, Effect::Deliver(Delivery::Replace(_))));
        drop(delivered.expect("it is delivered"));
        play.nothing_was_freed_here("a Replace");
    }
}
