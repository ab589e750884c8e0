//! The fault switches of a running server: each causes an outage that users of real clusters have seen.
//!
//! Answers: how does a test make the server misbehave, and behave again? All switches are off at the start.
//! 1. A switch takes effect from the moment its method returns, on open watches too where it says so.
//! 2. `clear` puts every switch back; what a switch has already done (compaction, ended watches) stays done.
//! 3. `of` narrows the switches to one resource; without it they hold for all.
//! 4. A name that is not a resource of the server is refused, and the effects of a fault are counted: no test passes
//!    without its fault. Counted are faults that wait for something: refusals, switches, sizes, and the watches that an
//!    end, a reset or raw bytes reached. Faults that always act at once (compaction, jumps, backups) are not counted.
//! 5. A switch for one resource and one for all are counted separately; where both are on, the one for the resource
//!    counts. `clear` keeps the counts; `clear_counts` starts again.
//!
//! Next: `chaos.rs` draws them from a seed; `fault_state.rs` holds the positions; `faults/names.rs` reads the names of
//! resources.

mod names;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use self::names::FaultError;
use crate::cluster::ResourceId;
use crate::cluster::watcher::WatchEnd;
use crate::door::Door;
use crate::fault_state::{Dial, Failure, FaultState, Place, Switch};
use crate::serve::StartError;
use crate::world::{Inner, World};

/// The fault switches of one server. Resources are named as for kubectl (`pods`, `deployments.apps`,
/// `deploy`); a method that is given an unknown name panics, and names the most similar one.
///
/// The refusals for the next requests (`gone_next`, `fail_next`, `too_many_requests_next`) share one switch
/// per place: the last setting counts. They count requests for resources; discovery, version and health
/// always answer.
///
/// ```
/// # let server = informer_apiserver::ApiServer::builder().start_blocking()?;
/// server.faults().too_many_requests_next(3, 1, informer_apiserver::ErrorBody::Status);
/// server.faults().of("pods").drop_bookmarks(true);     // of pods only
/// server.faults().clear();
/// assert_eq!(server.faults().total_count(), 0);             // nothing was asked meanwhile
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Faults {
    pub(crate) world: Arc<World>,
    pub(crate) door: Arc<Door>,
    pub(crate) place: Option<ResourceId>,
}

/// The body of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorBody {
    /// A `Status` object.
    Status,
    /// A line of text, as proxies and the limit of requests in flight send it.
    Text,
}

impl Faults {
    pub(crate) fn new(world: Arc<World>, door: Arc<Door>) -> Self {
        Self { world, door, place: None }
    }

    /// Resets all switches, of all resources: correct behaviour from here on. A server that refuses
    /// connections stays so until `accept_connections`; what was kept by `keep_backup` or
    /// `withdraw_definition` is kept, and so are the `counts`.
    pub fn clear(&self) {
        self.set(|faults| {
            let old = std::mem::take(faults);
            *faults = FaultState {
                withdrawn: old.withdrawn,
                backup: old.backup,
                counts: old.counts,
                ..FaultState::default()
            };
        });
    }

    /// Drops all past events: a watch or exact list from before gets 410, open watches go on.
    pub fn compact(&self) {
        self.keep_revisions(0);
    }

    /// Drops all past events but those of the last `revisions` versions.
    pub fn keep_revisions(&self, revisions: u64) {
        self.world.with(|inner| {
            let storage = self.place.as_ref().map(|resource| inner.cluster.registry.storage_of(resource));
            inner.cluster.keep_revisions(storage.as_ref(), revisions);
        });
    }

    /// Answers the next `requests` lists and watches with HTTP 410.
    pub fn gone_next(&self, requests: u32) {
        self.fail(Failure { left: requests, code: 410, retry_after: None, plain: false, reads_only: true });
    }

    /// Answers the next `requests` with this code, for example 500, 503 or 504.
    pub fn fail_next(&self, requests: u32, code: u16) {
        self.fail(Failure { left: requests, code, retry_after: None, plain: false, reads_only: false });
    }

    /// Answers the next `requests` with 429 and `Retry-After`.
    pub fn too_many_requests_next(&self, requests: u32, retry_after_seconds: u32, body: ErrorBody) {
        let plain = body == ErrorBody::Text;
        let retry_after = Some(retry_after_seconds);
        self.fail(Failure { left: requests, code: 429, retry_after, plain, reads_only: false });
    }

    /// Makes every continue token issued so far expire, of all resources: 410 with a fresh token.
    pub fn expire_continue_tokens(&self) {
        self.world.with(|inner| inner.cluster.expire_tokens());
    }

    /// Ends the open watches cleanly, as at their deadline.
    pub fn end_watches(&self) {
        self.end("end-watches", WatchEnd::Clean);
    }

    /// Ends the open watches of one resource cleanly.
    #[track_caller]
    pub fn end_watches_of(&self, resource: &str) {
        self.of(resource).end_watches();
    }

    /// Breaks the open watches off in the middle of a line, with a connection reset.
    pub fn reset_watches(&self) {
        self.end("reset-watches", WatchEnd::Reset);
    }

    /// Sends nothing more into the watches of a resource, open ones and new ones; their connections stay open.
    /// A watch that falls too far behind meanwhile is closed when it is thawed.
    #[track_caller]
    pub fn freeze(&self, resource: &str) {
        self.of(resource).freeze_watches(true);
    }

    /// Lets the frozen watches of a resource go on.
    #[track_caller]
    pub fn thaw(&self, resource: &str) {
        self.of(resource).freeze_watches(false);
    }

    /// As `freeze` and `thaw`, for every resource at once or, after `of`, for one.
    pub fn freeze_watches(&self, on: bool) {
        self.turn(Switch::FreezeWatches, on);
    }

    /// Answers nothing any more, to no request and into no watch; connections are still accepted, as by a
    /// server that hangs. Requests that came meanwhile are answered when it is switched off.
    pub fn freeze_server(&self, on: bool) {
        self.set(|faults| faults.turn(Switch::FreezeServer, None, on));
    }

    /// Ends every watch at once and without an event, open ones and new ones: client-go's "very short watch".
    pub fn short_watches(&self, on: bool) {
        self.turn(Switch::ShortWatches, on);
    }

    /// Sends no bookmarks (the one that ends a watch-list's first part is still sent).
    pub fn drop_bookmarks(&self, on: bool) {
        self.turn(Switch::DropBookmarks, on);
    }

    /// Behaves as a server without watch-list: `sendInitialEvents` is refused with 422.
    pub fn refuse_watch_list(&self, on: bool) {
        self.turn(Switch::RefuseWatchList, on);
    }

    /// Accepts watch-list but never says where its first part ends; other bookmarks are kept back too.
    pub fn withhold_end_bookmark(&self, on: bool) {
        self.turn(Switch::WithholdEndBookmark, on);
    }

    /// Sends every event twice. A correct server never does; this shows how a client uses versions.
    pub fn duplicate_events(&self, on: bool) {
        self.turn(Switch::DuplicateEvents, on);
    }

    /// Sends events in pairs, the later one first; a single one waits for its companion. A correct server
    /// never does.
    pub fn reorder_events(&self, on: bool) {
        self.turn(Switch::ReorderEvents, on);
    }

    /// Refuses a verb (`list`, `watch`, ...) on a resource with 403, until `allow`.
    ///
    /// # Panics
    /// If there is no such verb or resource.
    #[track_caller]
    pub fn deny(&self, verb: &str, resource: &str) {
        self.of(resource).forbid(verb, true);
    }

    /// Lifts what `deny` refuses.
    ///
    /// # Panics
    /// If there is no such verb or resource.
    #[track_caller]
    pub fn allow(&self, verb: &str, resource: &str) {
        self.of(resource).forbid(verb, false);
    }

    /// Keeps the last byte of every list answered from now on back, until `release_list_tails`.
    pub fn hold_list_tails(&self) {
        self.turn(Switch::HoldListTails, true);
    }

    /// Sends the bytes that were kept back.
    pub fn release_list_tails(&self) {
        self.turn(Switch::HoldListTails, false);
    }

    /// Sends the lists answered from now on at this many bytes per second; none for full speed.
    pub fn slow_lists(&self, bytes_per_second: Option<u64>) {
        self.dial(Dial::ListRate, bytes_per_second);
    }

    /// Refuses lists of more bytes than this with 500, as a server whose storage cannot send so much; none for any size.
    pub fn limit_lists(&self, bytes: Option<u64>) {
        self.dial(Dial::ListLimit, bytes);
    }

    /// Makes lists longer by this many blanks, so that they are larger than a client accepts.
    pub fn pad_lists(&self, bytes: Option<u64>) {
        self.dial(Dial::ListPadding, bytes);
    }

    /// Lets each request wait this long (in whole milliseconds) before it is handled; none for no wait.
    pub fn delay_requests(&self, latency: Option<Duration>) {
        self.dial(Dial::Latency, latency.map(|latency| latency.as_millis().try_into().unwrap_or(u64::MAX)));
    }

    /// Sends these bytes as they are into all open watches of a resource.
    #[track_caller]
    pub fn send_raw(&self, resource: &str, bytes: impl Into<Bytes>) {
        self.of(resource).send(bytes.into());
    }

    /// Sends every refusal of a request as a line of text in place of a `Status`.
    pub fn plain_text_errors(&self, on: bool) {
        self.set(|faults| faults.turn(Switch::PlainTextErrors, None, on));
    }

    /// Resets all connections and stops listening: a connection is refused until `accept_connections`.
    /// Blocks until the server's threads have ended.
    pub fn refuse_connections(&self) {
        self.door.close();
    }

    /// Listens again on the same port.
    ///
    /// # Errors
    /// If the port cannot be bound any more. Does nothing on a server that listens, or whose handle is gone.
    pub fn accept_connections(&self) -> Result<(), StartError> {
        self.door.open()
    }

    fn fail(&self, failure: Failure) {
        self.set(|faults| faults.fail(self.place.clone(), failure));
    }

    /// Ends the open watches of this place, and counts them.
    fn end(&self, fault: &str, end: WatchEnd) {
        self.world.with(|inner| {
            let open = inner.cluster.watch_count(self.place.as_ref());
            inner.cluster.end_watches(self.place.as_ref(), end);
            inner.faults.note(fault, self.place.clone(), open);
        });
    }

    /// Sends bytes into the open watches of this place, and counts them.
    fn send(&self, bytes: Bytes) {
        self.world.with(|inner| {
            let open = inner.cluster.watch_count(self.place.as_ref());
            if let Some(resource) = &self.place {
                let storage = inner.cluster.registry.storage_of(resource);
                inner.cluster.send_raw(&storage, &bytes);
            }
            inner.faults.note("send-raw", self.place.clone(), open);
        });
    }

    fn turn(&self, switch: Switch, on: bool) {
        self.set(|faults| faults.turn(switch, self.place.clone(), on));
    }

    fn dial(&self, dial: Dial, size: Option<u64>) {
        self.set(|faults| faults.set_size(dial, self.place.clone(), size));
    }

    fn set(&self, change: impl FnOnce(&mut FaultState)) {
        self.world.switch(|inner: &mut Inner| change(&mut inner.faults));
    }
}

/// How often one fault has taken effect at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCount {
    /// The name of the fault, as in the README; for `deny` with its verb (`deny list`).
    pub fault: String,
    /// The resource it was set for; none for all.
    pub resource: Option<String>,
    /// How often it has taken effect: on requests, on watches, or on the events and bookmarks in them.
    pub count: u64,
}

impl Faults {
    /// How often each fault that was set has taken effect since the start or `clear_counts`; after `of`,
    /// those of one resource.
    ///
    /// ```
    /// # let server = informer_apiserver::ApiServer::builder().start_blocking()?;
    /// server.faults().of("pods").fail_next(1, 503);
    /// // ... run the program under test, which does not list pods ...
    /// let idle = server.faults().counts().into_iter().find(|fault| fault.count == 0).ok_or("all took effect")?;
    /// assert_eq!((idle.fault.as_str(), idle.resource.as_deref()), ("fail-next", Some("pods")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn counts(&self) -> Vec<FaultCount> {
        let here = |place: &Place| self.place.is_none() || *place == self.place;
        self.world.with(|inner| {
            let noted = inner.faults.counts.iter().filter(|((_, place), _)| here(place));
            let told = noted.map(|((fault, place), count)| FaultCount {
                fault: fault.clone(),
                resource: place.as_ref().map(ToString::to_string),
                count: *count,
            });
            told.collect()
        })
    }

    /// How often the faults have taken effect in total: the sum of `counts`.
    #[must_use]
    pub fn total_count(&self) -> u64 {
        self.counts().iter().map(|fault| fault.count).sum()
    }

    /// Resets the counts; a standing fault is listed again when it takes effect.
    pub fn clear_counts(&self) {
        self.world.with(|inner| inner.faults.counts.clear());
    }
}

impl FaultState {
    /// Records that a fault was set, and how often it took effect at once.
    pub(crate) fn note(&mut self, fault: &str, place: Place, times: usize) {
        *self.counts.entry((fault.to_owned(), place)).or_default() += times as u64;
    }

    /// Counts the effects of a switch on this resource.
    pub(crate) fn count_switch(&mut self, switch: Switch, resource: &ResourceId, times: usize) {
        let own = (switch, Some(resource.clone()));
        let place = if self.on.contains(&own) { own.1 } else { None };
        self.note(switch.name(), place, times);
    }

    /// Counts the effects of a size on this resource.
    pub(crate) fn count_setting(&mut self, dial: Dial, resource: &ResourceId) {
        let own = (dial, Some(resource.clone()));
        let place = if self.dials.contains_key(&own) { own.1 } else { None };
        self.note(dial.name(), place, 1);
    }
}
