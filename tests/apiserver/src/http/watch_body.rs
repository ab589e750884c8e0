//! A watch as a stream of lines (frames, in protobuf): its initial part, the events from the core, bookmarks, and its
//! end.
//!
//! Answers: which bytes are sent next, and how long is there nothing to do? The core decides which events are pending.
//! 1. All pending events are sent before the stream waits; one chunk carries as many lines as are ready.
//! 2. A bookmark is sent only when nothing newer is unsent: about each period, and 2 s and 1 s before the deadline.
//! 3. At its deadline the stream ends cleanly; when the client drops it, it is removed from the core.
//! 4. A frozen watch sends nothing, not even its end, until it is thawed.
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::Notify;

use super::connections::Connection;
use crate::cluster::encoding::{Encoding, Representation};
use crate::cluster::kind::Kind;
use crate::cluster::list::Snapshot;
use crate::cluster::representation::Form;
use crate::cluster::watch::{Drained, Opened};
use crate::cluster::watcher::{Delivery, WatchEnd};
use crate::fault_state::Switch;
use crate::world::{Inner, World};

/// How many deliveries are taken from the core at once.
const BATCH: usize = 256;
/// How many initial objects go into one chunk.
const INITIAL_BATCH: usize = 64;
/// How long before the deadline the last bookmarks come.
const FAREWELLS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(1)];

/// The stream behind one watch answer.
#[derive(Debug)]
pub(crate) struct WatchStream {
    pub(crate) world: Arc<World>,
    pub(crate) kind: Arc<Kind>,
    pub(crate) representation: Representation,
    pub(crate) bookmarks: bool,
    /// Whether no event can be written: the stream ends instead of its first event.
    pub(crate) unwritable: bool,
    pub(crate) connection: Option<Arc<Connection>>,
    watch: usize,
    notify: Arc<Notify>,
    initial: Option<(Snapshot, Option<Arc<str>>)>,
    marker: Option<u64>,
    shared: bool,
    /// By the server's clock, like the next one.
    deadline: Duration,
    next_bookmark: Duration,
    half_sent: bool,
    /// Whether a switch keeps the stream silent since the last visit.
    frozen: bool,
    over: bool,
}

enum Step {
    Send(Bytes),
    Wait(Option<Duration>),
    End,
    Reset,
}

/// What a visit to the core found.
enum Look {
    Frozen,
    /// The first part of the stream is not all sent yet.
    Beginning {
        withhold_end: bool,
    },
    Due(Vec<Delivery>),
    /// Nothing is pending; a bookmark may carry this version, unless a switch drops it.
    Idle {
        bookmark: Option<u64>,
        dropped: bool,
    },
    Ended(WatchEnd),
}

impl WatchStream {
    /// Takes over an opened watch. `shared` says whether its lines may be shared with other watchers.
    pub(crate) fn new(
        world: &Arc<World>,
        kind: &Arc<Kind>,
        opened: Opened,
        shared: bool,
        timeout: Duration,
    ) -> Self {
        let deadline = world.clock.elapsed() + timeout;
        let notify = world.notify_of(opened.watch);
        let revision = opened.initial.as_ref().map(|snapshot| snapshot.revision);
        let mut stream = Self {
            world: Arc::clone(world),
            kind: Arc::clone(kind),
            representation: Representation::PLAIN,
            bookmarks: false,
            unwritable: false,
            connection: None,
            watch: opened.watch,
            notify,
            initial: opened.initial.map(|snapshot| (snapshot, None)),
            marker: revision.filter(|_| opened.marker),
            shared,
            deadline,
            next_bookmark: deadline,
            half_sent: false,
            frozen: false,
            over: false,
        };
        stream.plan_bookmark();
        stream
    }

    /// The stream's next chunk; the shape `futures_util::stream::unfold` wants.
    pub(crate) async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if self.over {
            return None;
        }
        loop {
            match self.step() {
                Step::Send(_) if self.unwritable => return None,
                Step::Send(bytes) => return Some((Ok(bytes), self)),
                Step::Wait(until) => self.wait(until).await,
                Step::End => return None,
                Step::Reset => {
                    self.over = true;
                    if let Some(connection) = &self.connection {
                        connection.reset();
                    }
                    return Some((Err(io::ErrorKind::ConnectionReset.into()), self));
                }
            }
        }
    }

    async fn wait(&self, until: Option<Duration>) {
        let notified = self.notify.notified();
        match until {
            Some(until) => {
                tokio::select! {
                    () = notified => {}
                    () = self.world.clock.sleep_until(until) => {}
                }
            }
            None => notified.await,
        }
    }

    fn step(&mut self) -> Step {
        match Arc::clone(&self.world).with(|inner| self.look(inner)) {
            Look::Frozen => Step::Wait(None),
            Look::Beginning { withhold_end } => self.begin(withhold_end),
            Look::Due(deliveries) => {
                let mut out = BytesMut::new();
                for delivery in &deliveries {
                    let representation = next_line(&mut self.representation, self.world.now());
                    out.extend_from_slice(&delivery.line(&self.kind, representation, self.shared));
                }
                Step::Send(out.freeze())
            }
            Look::Ended(WatchEnd::Clean) => Step::End,
            Look::Ended(WatchEnd::Reset) => self.half_line(),
            Look::Idle { bookmark, dropped } => self.idle(bookmark, dropped),
        }
    }

    /// One visit to the core: what must be done now?
    fn look(&mut self, inner: &mut Inner) -> Look {
        let resource = &self.kind.resource;
        let holds = |switch: &Switch| inner.faults.holds(*switch, resource);
        if let Some(switch) = [Switch::FreezeServer, Switch::FreezeWatches].into_iter().find(holds) {
            if !std::mem::replace(&mut self.frozen, true) {
                inner.faults.count_switch(switch, resource, 1);
            }
            return Look::Frozen;
        }
        self.frozen = false;
        if holds(&Switch::ShortWatches) {
            inner.faults.count_switch(Switch::ShortWatches, resource, 1);
            return Look::Ended(WatchEnd::Clean);
        }
        if self.initial.is_some() || self.marker.is_some() {
            return Look::Beginning { withhold_end: holds(&Switch::WithholdEndBookmark) };
        }
        let (twice, pairs) = (holds(&Switch::DuplicateEvents), holds(&Switch::ReorderEvents));
        let dropped = holds(&Switch::DropBookmarks);
        if pairs && inner.cluster.is_owed_one(self.watch) {
            return Look::Idle { bookmark: None, dropped };
        }
        match inner.cluster.drain(self.watch, BATCH) {
            Drained::Some(deliveries) => {
                let switched = [(Switch::DuplicateEvents, twice), (Switch::ReorderEvents, pairs)];
                for (switch, _) in switched.into_iter().filter(|(_, on)| *on) {
                    inner.faults.count_switch(switch, resource, deliveries.len());
                }
                Look::Due(disturbed(deliveries, twice, pairs))
            }
            Drained::Ended(end) => Look::Ended(end),
            Drained::Nothing(revision) => {
                Look::Idle { bookmark: revision.filter(|_| self.bookmarks), dropped }
            }
        }
    }

    /// The objects that exist already, then the bookmark that marks their end.
    fn begin(&mut self, withhold_end: bool) -> Step {
        if let Some(bytes) = self.initial_chunk() {
            return Step::Send(bytes);
        }
        match self.marker.take() {
            Some(revision) if !withhold_end => {
                let representation = next_line(&mut self.representation, self.world.now());
                Step::Send(representation.bookmark(&self.kind, revision, true))
            }
            Some(_) => {
                self.bookmarks = false;
                self.count(Switch::WithholdEndBookmark);
                self.step()
            }
            None => self.step(),
        }
    }

    /// Counts the effects of a switch on this watch.
    fn count(&self, switch: Switch) {
        self.world.with(|inner| inner.faults.count_switch(switch, &self.kind.resource, 1));
    }

    /// Nothing is pending: waits for the deadline, a bookmark, or an event.
    fn idle(&mut self, bookmark: Option<u64>, dropped: bool) -> Step {
        let now = self.world.clock.elapsed();
        if now >= self.deadline {
            return Step::End;
        }
        let due = now >= self.next_bookmark;
        if due {
            self.plan_bookmark();
        }
        match bookmark.filter(|_| due) {
            Some(_) if dropped => {
                self.count(Switch::DropBookmarks);
                Step::Wait(Some(self.next_bookmark.min(self.deadline)))
            }
            Some(revision) => {
                let representation = next_line(&mut self.representation, self.world.now());
                Step::Send(representation.bookmark(&self.kind, revision, false))
            }
            None => Step::Wait(Some(self.next_bookmark.min(self.deadline))),
        }
    }

    /// The first half of a line or frame now, the reset at the next step.
    fn half_line(&mut self) -> Step {
        if std::mem::replace(&mut self.half_sent, true) {
            return Step::Reset;
        }
        Step::Send(Bytes::from_static(match self.representation.encoding {
            Encoding::Protobuf => b"\0\0\x01\0\x0a\x08MODIFIED\x12",
            Encoding::Json | Encoding::Yaml => b"{\"type\":\"MODIFIED\",\"object\":{\"kind\":",
        }))
    }

    fn initial_chunk(&mut self) -> Option<Bytes> {
        let now = self.world.now();
        let (snapshot, at) = self.initial.as_mut()?;
        let mut out = BytesMut::new();
        let mut last = None;
        for (key, object) in snapshot.after(at.as_deref()).take(INITIAL_BATCH) {
            let representation = next_line(&mut self.representation, now);
            out.extend_from_slice(&representation.event("ADDED", &self.kind, object));
            last = Some(Arc::clone(key));
        }
        if last.is_none() {
            self.initial = None;
            return None;
        }
        *at = last;
        Some(out.freeze())
    }

    /// Sets the time of the next bookmark: the next period, or shortly before the deadline.
    fn plan_bookmark(&mut self) {
        let now = self.world.clock.elapsed();
        let periodic = now + self.world.bookmark_period;
        let farewells = FAREWELLS.iter().filter_map(|before| self.deadline.checked_sub(*before));
        let next_farewell = farewells.filter(|at| *at > now).min();
        self.next_bookmark = next_farewell.map_or(periodic, |at| at.min(periodic));
    }
}

/// Applies fault switches to a batch: the later of each pair first, everything twice.
fn disturbed(mut deliveries: Vec<Delivery>, twice: bool, pairs: bool) -> Vec<Delivery> {
    if pairs {
        deliveries.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    }
    if twice {
        deliveries = deliveries.into_iter().flat_map(|delivery| [delivery.clone(), delivery]).collect();
    }
    deliveries
}

/// The form of the next line: ages count from now, and only the first line has the columns of a Table.
fn next_line(representation: &mut Representation, now: i64) -> Representation {
    let Form::Table(table) = &mut representation.form else { return *representation };
    table.now = now;
    let line = *representation;
    if let Form::Table(table) = &mut representation.form {
        table.headers = false;
    }
    line
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        self.world.forget_watch(self.watch);
    }
}
