//! Turns changes of objects into keys that wait. Listeners call this on the informer's arbiter, so no object
//! waits.
//!
//! 1. A mapping function is called with the states before and after: a key that loses an object is
//!    reconciled, too.
//! 2. A panic of a mapping function is counted and logged: only that state leads to no key.
//! 3. Keys of first lists and resyncs have low priority. Only live events are debounced: a list reports each
//!    object once.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::controller::machine::{Arrival, EventKind, Reason};
use crate::queue::machine::Priority;
use informer_core::delta::{Cause, Change};
use informer_core::meta::{Object, ObjectKey};
use informer_core::path::{Hop, Mark};
use informer_core::words::{QUOTED, one_line};

use super::following::follow;
use super::shared::Shared;
use super::watched::{Follows, number_in};
use informer_actors::informer::{Body, Informer};
use informer_actors::inner::{Feed, Followed, drop_payload};
use informer_actors::subscription::{SubscribeError, SubscribeOptions};
use informer_core::words::panic_text;

pub(super) type MapFn<T> = Box<dyn Fn(&Object<T>) -> Vec<ObjectKey> + Send + Sync>;

pub(super) fn primary<S: Body>(
    shared: &Arc<Shared<S>>,
    options: SubscribeOptions<S>,
) -> Result<Box<dyn Follows>, SubscribeError> {
    let to = Arc::clone(shared);
    let name: Arc<str> = shared.primary.name().into();
    let feed = Feed::new(move |change: &Change<S>| {
        let arrival = match change {
            Change::Added { object, cause } | Change::Updated { object, cause, .. } => {
                Arrival::Present { meta: object.cached_meta(), is_rewound: *cause == Cause::Rewind }
            }
            // The object still exists.
            Change::Deleted { cause: Cause::LeftFilter, .. } => Arrival::Input,
            // A server reports an object that leaves a selector as deleted.
            Change::Deleted { last, .. } if to.primary.would_hold(last.key()) => Arrival::Gone(last),
            Change::Deleted { last, .. } => Arrival::Left(last),
        };
        to.mark_added(change.key(), &name, change);
        to.arrive(change.key(), arrival, why(&name, change, to.limits.quiet));
    });
    follow(shared, &shared.primary, options, feed)
}

pub(super) fn mapped<S: Body, T: Body>(
    shared: &Arc<Shared<S>>,
    informer: &Informer<T>,
    options: SubscribeOptions<T>,
    (map, is_owned): (MapFn<T>, bool),
) -> Result<Box<dyn Follows>, SubscribeError> {
    let to = Arc::clone(shared);
    let name: Arc<str> = informer.name().into();
    let number = number_in(informer, &shared.watched);
    let number = number.filter(|_| is_owned && shared.limits.ignores_own_writes);
    let feed = Feed::new(move |change: &Change<T>| {
        let states = match change {
            Change::Added { object, .. } => [Some(object), None],
            Change::Updated { old, object, .. } => [Some(object), Some(old)],
            Change::Deleted { old, last, .. } => [Some(last), Some(old)],
        };
        let mut keys = BTreeSet::new();
        for (at, state) in states.iter().enumerate() {
            if let Some(state) =
                state.filter(|state| at == 0 || states[0].is_none_or(|new| !new.ptr_eq(state)))
            {
                keys.extend(mapped_keys(&to, &map, state));
            }
        }
        for key in &keys {
            let arrival = match number {
                _ if !is_owned => Arrival::Input,
                Some(number) => made(number, change),
                None => Arrival::Output,
            };
            to.mark_added(key, &name, change);
            to.arrive(key, arrival, why(&name, change, to.limits.quiet));
        }
    });
    follow(shared, informer, options, feed)
}

fn made<S, T>(informer: usize, change: &Change<T>) -> Arrival<'_, S> {
    match change {
        Change::Added { object, cause } | Change::Updated { object, cause, .. } => {
            let is_again = matches!(cause, Cause::Resync | Cause::Rewind);
            Arrival::Made { informer, meta: object.cached_meta(), is_again }
        }
        Change::Deleted { last, .. } => Arrival::Unmade { informer, object: last.key() },
    }
}

fn mapped_keys<S: Body, T: Body>(shared: &Shared<S>, map: &MapFn<T>, object: &Object<T>) -> Vec<ObjectKey> {
    catch_unwind(AssertUnwindSafe(|| map(object))).unwrap_or_else(|panic| {
        let count = shared.counters.map_panics.add(1) + 1;
        if count.is_power_of_two() {
            let (controller, key) = (&shared.name, object.key());
            let panicked = one_line(panic_text(&*panic), QUOTED);
            tracing::error!(target: "actix_informer::controller", %controller, %key, count, "controller {controller}: the function that maps {key} to keys has panicked: no key is reconciled for this state ({count} times so far): {panicked}");
        }
        drop_payload(panic);
        Vec::new()
    })
}

impl<S: Body> Shared<S> {
    fn mark_added<T>(&self, key: &ObjectKey, informer: &Arc<str>, change: &Change<T>) {
        let paths = self.runtime.paths();
        if !paths.is_on() {
            return;
        }
        let (Change::Added { object, .. }
        | Change::Updated { object, .. }
        | Change::Deleted { last: object, .. }) = change;
        if paths.chooses(object.key(), object.version()) {
            let mark = Mark::new(Hop::KeyAdded, Arc::clone(&self.name), key.clone());
            let mark = mark.by(Arc::clone(informer)).version(Some(object.version().clone()));
            paths.note(mark.other(object.key().clone()));
            paths.spans().add((&self.name, key), informer, (object.key(), object.version()));
        }
    }
}

fn why<T>(informer: &Arc<str>, change: &Change<T>, quiet: Duration) -> (Reason, Priority, Duration) {
    let (kind, cause) = match change {
        Change::Added { cause, .. } => (EventKind::Added, *cause),
        Change::Updated { cause, .. } => (EventKind::Updated, *cause),
        Change::Deleted { cause, .. } => (EventKind::Deleted, *cause),
    };
    let (priority, quiet) = match cause {
        Cause::InitialList | Cause::Resync => (Priority::Low, Duration::ZERO),
        Cause::Watch | Cause::LeftFilter => (Priority::Normal, quiet),
        _ => (Priority::Normal, Duration::ZERO),
    };
    (
        Reason::Event { informer: Arc::clone(informer), key: change.key().clone(), kind, cause },
        priority,
        quiet,
    )
}
