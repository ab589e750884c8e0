//! Watch-lists: the initial events of a stream, until the bookmark that ends them.
//!
//! Answers "what did the initial events come to, and what if they do not end?"; what follows the end bookmark on the
//! same stream is `watch.rs`. Invariants:
//! 1. Nothing is delivered before the end bookmark, then the net result at once: of each key its last state, and
//!    nothing for what was deleted again.
//! 2. A source that does not know watch-lists is not asked for one again in the life of this machine; one that
//!    failed otherwise is listed once instead, and asked again by the next relist.
//! 3. A stream that comes to hold no more than before for `initial_events_deadline`, before its end bookmark, is cut:
//!    initial events are new objects, and live changes may go on for ever behind ones that never end.
//! 4. A net result is moved [`SLICE`] objects at a time, with `Effect::Yield` between them; what is left is moved at
//!    once when the stream goes on meanwhile. One that is given up is handed away, and not freed here.
//!
//! Bounds: holds one pointer for each object received, in key order.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, btree_map, btree_set};
use std::mem;
use std::time::Duration;

use super::retry::{Next, RelistReason};
use super::watch::Stream;
use super::{Effect, ListWatchMachine, Moment, Phase, SourceState};
use crate::delta::{SetAside, WatchPart, listed_bytes};
use crate::list_watch_error::{ErrorClass, ListWatchError};
use crate::meta::{Object, ObjectKey, ResourceVersion};
use crate::off_arbiter::OffArbiter;
use crate::request::AskedVersion;

/// Objects moved at once when a net result becomes a Replace.
const SLICE: usize = 250;

/// A watch-list before its end bookmark.
pub(super) struct InitialEvents<S> {
    pub(super) stream: Stream,
    asked: AskedVersion,
    pub(super) deadline: Duration,
    content: OffArbiter<Content<S>>,
    /// The most that `content` has held.
    most: usize,
    received: u64,
    /// What all that was received weighs.
    bytes: usize,
}

/// A watch-list whose end bookmark has come, while its net result becomes a Replace.
pub(super) struct Gathering<S> {
    pub(super) stream: Stream,
    version: ResourceVersion,
    rest: OffArbiter<Rest<S>>,
    objects: OffArbiter<Vec<Object<S>>>,
    set_aside: OffArbiter<Vec<SetAside>>,
    bytes: usize,
    /// What came behind the end bookmark.
    live: Vec<WatchPart<S>>,
    at: Moment,
}

/// What of a net result has not been moved.
pub(super) struct Rest<S> {
    objects: btree_set::IntoIter<ByKey<S>>,
    set_aside: btree_map::IntoValues<ObjectKey, SetAside>,
}

/// The net result so far.
pub(super) struct Content<S> {
    objects: BTreeSet<ByKey<S>>,
    set_aside: BTreeMap<ObjectKey, SetAside>,
}

/// An object that is found and ordered by its key.
pub(super) struct ByKey<S>(Object<S>);

impl<S> Content<S> {
    /// Takes one part in; the answer is the version of the end bookmark, if it was that.
    fn absorb(&mut self, part: WatchPart<S>) -> Option<ResourceVersion> {
        match part {
            WatchPart::Applied(object) | WatchPart::Fetched(object) => {
                self.set_aside.remove(object.key());
                self.objects.replace(ByKey(object));
            }
            WatchPart::SetAside(aside) => {
                self.objects.remove(&aside.key);
                self.set_aside.insert(aside.key.clone(), aside);
            }
            WatchPart::Deleted(object) => self.remove(object.key()),
            WatchPart::DeletedUnread(aside) => self.remove(&aside.key),
            WatchPart::Bookmark { version, initial_events_end } => {
                return initial_events_end.then_some(version);
            }
        }
        None
    }

    fn len(&self) -> usize {
        self.objects.len() + self.set_aside.len()
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.objects.remove(key);
        self.set_aside.remove(key);
    }
}

impl<S> ListWatchMachine<S> {
    pub(super) fn is_watch_list_due(&self) -> bool {
        let lessons = &self.lessons;
        let lists = lessons.watch_list_refused || lessons.list_only || lessons.full || lessons.rewinding;
        self.config.watch_list && !lists
    }

    pub(super) fn open_watch_list(&mut self, asked: AskedVersion, at: Moment) {
        let asked = if asked == AskedVersion::Any { AskedVersion::Latest } else { asked };
        self.counters.watch_lists += 1;
        let version = asked.to_string();
        self.log.debug(format_args!("lists {} by a watch at version {version:?}", self.config.resource));
        let stream = self.connect(asked.clone(), true, at);
        let content = Content { objects: BTreeSet::new(), set_aside: BTreeMap::new() };
        self.phase = Phase::InitialEvents(InitialEvents {
            stream,
            asked,
            deadline: at.now.saturating_add(self.config.initial_events_deadline),
            content: self.freeing.content.keep(content),
            most: 0,
            received: 0,
            bytes: 0,
        });
    }

    pub(super) fn initial_parts(&mut self, parts: Vec<WatchPart<S>>, at: Moment) {
        let Phase::InitialEvents(initial) = &mut self.phase else { return };
        initial.stream.head_at.get_or_insert(at.now);
        if !parts.is_empty() {
            self.last_frame_at = Some(at.now);
        }
        let mut parts = parts.into_iter();
        let mut end = None;
        while end.is_none()
            && let Some(part) = parts.next()
        {
            initial.received += u64::from(matches!(part, WatchPart::Applied(_) | WatchPart::SetAside(_)));
            initial.bytes += part.wire_bytes();
            end = initial.content.absorb(part);
            if initial.content.len() > initial.most {
                initial.most = initial.content.len();
                initial.deadline = at.now.saturating_add(self.config.initial_events_deadline);
            }
        }
        initial.content.weigh(initial.bytes);
        let late = end.is_none() && at.now >= initial.deadline;
        self.state = SourceState::Listing { received: initial.received };
        if let Some(version) = end {
            self.initial_events_ended(version, parts.collect(), at);
        } else if late {
            // A stream that is always ready keeps its timer from being looked at.
            self.initial_events_late(at);
        }
    }

    pub(super) fn initial_events_failed(&mut self, result: Result<(), ListWatchError>, at: Moment) {
        let Phase::InitialEvents(initial) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        let error = match result {
            Ok(()) => self.unexpected("a watch-list ended before its initial events did"),
            Err(error) => error,
        };
        if is_refusal_of_watch_lists(&error) {
            self.lessons.watch_list_refused = true;
            return self.begin_listing();
        }
        match error {
            ListWatchError::Expired(_) | ListWatchError::TooLargeVersion(_) => {
                self.counters.expired += 1;
                if initial.asked != AskedVersion::Latest {
                    self.lessons.latest = true;
                    return self.begin_listing();
                }
                self.lessons.list_only = true;
            }
            ListWatchError::Unreadable(_) => {
                // A list can skip what it cannot read; a stream cannot.
                self.counters.unreadable += 1;
                self.lessons.list_only = true;
                return self.relist_unless_repeated(RelistReason::Unreadable, error, at);
            }
            ListWatchError::Overloaded { .. } | ListWatchError::Denied(_) | ListWatchError::NotFound(_) => {}
            _ => self.lessons.list_only = true,
        }
        self.fail(error, Next::Listing, at);
    }

    pub(super) fn initial_events_late(&mut self, at: Moment) {
        let Phase::InitialEvents(initial) = &self.phase else { return };
        self.effects.push_back(Effect::Close(initial.stream.id));
        let error = self.late("the next initial event", self.config.initial_events_deadline);
        self.initial_events_failed(Err(error), at);
    }

    fn initial_events_ended(&mut self, version: ResourceVersion, live: Vec<WatchPart<S>>, at: Moment) {
        let Phase::InitialEvents(initial) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        if self.newest.as_ref().is_some_and(|newest| version < *newest) {
            self.effects.push_back(Effect::Close(initial.stream.id));
            return self.rewind(at);
        }
        let Content { objects, set_aside } = initial.content.into_inner();
        let moved = Vec::with_capacity(objects.len());
        let rest = Rest { objects: objects.into_iter(), set_aside: set_aside.into_values() };
        let mut rest = self.freeing.rest.keep(rest);
        rest.weigh(initial.bytes);
        self.phase = Phase::Gathering(Gathering {
            stream: initial.stream,
            version,
            objects: self.freeing.objects.keep(moved),
            rest,
            bytes: 0,
            set_aside: self.freeing.set_aside.keep(Vec::new()),
            live,
            at,
        });
        self.gather(SLICE);
    }

    /// Moves so many objects of a net result on, and delivers it when it is whole.
    fn gather(&mut self, slice: usize) {
        let Phase::Gathering(gathering) = &mut self.phase else { return };
        let (objects, set_aside) = (gathering.objects.len(), gathering.set_aside.len());
        let rest = &mut *gathering.rest;
        gathering.objects.extend(rest.objects.by_ref().take(slice).map(|entry| entry.0));
        let left = slice - (gathering.objects.len() - objects);
        gathering.set_aside.extend(rest.set_aside.by_ref().take(left));
        gathering.bytes += listed_bytes(&gathering.objects[objects..], &gathering.set_aside[set_aside..]);
        let is_whole = rest.objects.len() + rest.set_aside.len() == 0;
        gathering.objects.weigh(gathering.bytes);
        if !is_whole {
            return self.effects.push_back(Effect::Yield);
        }
        let Phase::Gathering(whole) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        self.deliver_replace(whole.version, (whole.objects, whole.set_aside), whole.bytes);
        self.follow(whole.stream, whole.at);
        self.live_parts(whole.live, whole.at);
    }

    /// Goes on with what is being gathered.
    pub(super) fn gather_slice(&mut self) {
        self.gather(SLICE);
    }

    /// Ends what is being gathered, since something else has happened already.
    pub(super) fn gather_rest(&mut self) {
        self.gather(usize::MAX);
    }
}

/// Whether the answer says that watch-lists are unknown, rather than that this one failed.
fn is_refusal_of_watch_lists(error: &ListWatchError) -> bool {
    error.class() == ErrorClass::Unsupported
        || matches!(error, ListWatchError::Status { code: 400 | 422, .. })
}

impl<S> Borrow<ObjectKey> for ByKey<S> {
    fn borrow(&self) -> &ObjectKey {
        self.0.key()
    }
}

impl<S> PartialEq for ByKey<S> {
    fn eq(&self, other: &Self) -> bool {
        self.0.key() == other.0.key()
    }
}

impl<S> Eq for ByKey<S> {}

impl<S> PartialOrd for ByKey<S> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<S> Ord for ByKey<S> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.key().cmp(other.0.key())
    }
}
