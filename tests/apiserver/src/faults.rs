//! The fault switches of a running server: each plays an outage that users of real clusters have met.
//!
//! Answers: how does a test make the server misbehave, and behave again? All switches are off at the start.
//! 1. A switch acts from the moment its method returns, on open watches too where it says so.
//! 2. `clear` puts every switch back; what a switch has already done (compaction, ended watches) stays done.
use std::sync::Arc;

use bytes::Bytes;

use crate::cluster::kind::ResourceId;
use crate::cluster::watch::WatchEnd;
use crate::fault_state::{Failure, FaultState};
use crate::world::{Inner, World};

/// The fault switches of one server. Resources are named as for kubectl: `pods`, `deployments.apps`.
///
/// The refusals for the next requests (`gone_next`, `fail_next`, `too_many_requests_next`) share one switch: the last
/// one set holds. They count requests for resources; discovery, version and health always answer.
#[derive(Debug, Clone)]
pub struct Faults {
    world: Arc<World>,
}

/// The body of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorBody {
    /// A `Status` object.
    Status,
    /// A line of text, as proxies and the in-flight limit send it.
    Text,
}

impl Faults {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self { world }
    }

    /// Puts all switches back: faithful behaviour from here on.
    pub fn clear(&self) {
        self.set(|faults| *faults = FaultState::default());
    }

    /// Forgets all past events: a watch or exact list from before gets 410, open watches go on.
    pub fn compact(&self) {
        self.keep_revisions(0);
    }

    /// Forgets all past events but those of the last `revisions` versions.
    pub fn keep_revisions(&self, revisions: u64) {
        self.world.with(|inner| inner.cluster.keep_revisions(revisions));
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

    /// Makes every continue token issued so far expire: 410 with a fresh token.
    pub fn expire_continue_tokens(&self) {
        self.world.with(|inner| inner.cluster.expire_tokens());
    }

    /// Ends all open watches cleanly, as at their deadline.
    pub fn end_watches(&self) {
        self.world.with(|inner| inner.cluster.end_watches(None, WatchEnd::Clean));
    }

    /// Ends the open watches of one resource cleanly.
    pub fn end_watches_of(&self, resource: &str) {
        let resource = ResourceId::parse(resource);
        self.world.with(|inner| inner.cluster.end_watches(Some(&resource), WatchEnd::Clean));
    }

    /// Breaks all open watches off in the middle of a line, with a connection reset.
    pub fn reset_watches(&self) {
        self.world.with(|inner| inner.cluster.end_watches(None, WatchEnd::Reset));
    }

    /// Sends nothing more into the watches of a resource, open ones and new ones; their connections stay open.
    /// A watch that falls too far behind meanwhile is closed when it is thawed.
    pub fn freeze(&self, resource: &str) {
        let resource = ResourceId::parse(resource);
        self.set(|faults| {
            faults.frozen.insert(resource);
        });
    }

    /// Lets the frozen watches of a resource go on.
    pub fn thaw(&self, resource: &str) {
        let resource = ResourceId::parse(resource);
        self.set(|faults| {
            faults.frozen.remove(&resource);
        });
    }

    /// Sends no bookmarks (the one that ends a watch-list's first part is still sent).
    pub fn drop_bookmarks(&self, on: bool) {
        self.set(|faults| faults.drop_bookmarks = on);
    }

    /// Plays a server without watch-list: `sendInitialEvents` is refused with 422.
    pub fn refuse_watch_list(&self, on: bool) {
        self.set(|faults| faults.refuse_watch_list = on);
    }

    /// Accepts watch-list but never says where its first part ends; other bookmarks are kept back too.
    pub fn withhold_end_bookmark(&self, on: bool) {
        self.set(|faults| faults.withhold_end_bookmark = on);
    }

    /// Refuses a verb (`list`, `watch`, ...) on a resource with 403, until `allow`.
    pub fn deny(&self, verb: &str, resource: &str) {
        let denied = (verb.to_owned(), ResourceId::parse(resource));
        self.set(|faults| {
            faults.denied.insert(denied);
        });
    }

    /// Lifts what `deny` refuses.
    pub fn allow(&self, verb: &str, resource: &str) {
        let denied = (verb.to_owned(), ResourceId::parse(resource));
        self.set(|faults| {
            faults.denied.remove(&denied);
        });
    }

    /// Keeps the last byte of every list answered from now on back, until `release_list_tails`.
    pub fn hold_list_tails(&self) {
        self.set(|faults| faults.hold_list_tails = true);
    }

    /// Sends the bytes that were kept back.
    pub fn release_list_tails(&self) {
        self.set(|faults| faults.hold_list_tails = false);
    }

    /// Sends the lists answered from now on at this many bytes per second; none for full speed.
    pub fn slow_lists(&self, bytes_per_second: Option<u64>) {
        self.set(|faults| faults.list_rate = bytes_per_second);
    }

    /// Sends these bytes as they are into all open watches of a resource.
    pub fn send_raw(&self, resource: &str, bytes: impl Into<Bytes>) {
        let (resource, bytes) = (ResourceId::parse(resource), bytes.into());
        self.world.with(|inner| inner.cluster.send_raw(&resource, &bytes));
    }

    /// Sends every refusal as a line of text in place of a `Status`.
    pub fn plain_text_errors(&self, on: bool) {
        self.set(|faults| faults.plain_errors = on);
    }

    fn fail(&self, failure: Failure) {
        self.set(|faults| faults.failure = Some(failure));
    }

    fn set(&self, change: impl FnOnce(&mut FaultState)) {
        self.world.switch(|inner: &mut Inner| change(&mut inner.faults));
    }
}
