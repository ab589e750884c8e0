//! Lists: which version, which pages, and when a list is whole.
//!
//! Answers "what does the next list ask for, and what follows from its end?"; watch-lists are `watch_list.rs`, what
//! follows from a failure is `retry.rs`. Invariants:
//! 1. `"0"` is asked for only while nothing was ever delivered; `""` only right after a list or watch-list was
//!    expired or too large, or for a rewind; otherwise the newest version delivered.
//! 2. Nothing of a list is delivered before its last page is whole; then all of it at once.
//! 3. Pages of two versions are never joined: when a token has expired, the list starts over, in one page.
//! 4. A list older than what was delivered is a rewind of the server: it is thrown away and asked for again, whole.
//! 5. A list that brings neither an object nor the end of a page for `list_deadline` is dropped: it has failed.
//!
//! Bounds: holds every object received until the list is whole; the bodies are held by nobody else until then, so a list
//! that fails is not freed here but handed away.

use std::mem;
use std::time::Duration;

use super::retry::{Next, RelistReason};
use super::{Delivery, Effect, ListWatchMachine, Moment, Phase, SourceState};
use crate::delta::{Cause, ListPart, Replacement, SetAside, listed_bytes};
use crate::list_watch_error::ListWatchError;
use crate::meta::{Object, ResourceVersion};
use crate::off_arbiter::OffArbiter;
use crate::request::{AskedVersion, ListRequest};

/// A list under way.
pub(super) struct Listing<S> {
    asked: AskedVersion,
    limit: Option<u32>,
    everything: bool,
    /// When it has failed for want of something new.
    pub(super) deadline: Duration,
    /// The token of the page under way; none for the first.
    token: Option<String>,
    page: Page,
    /// The lowest version of the pages that are whole: a watch from there misses nothing.
    version: Option<ResourceVersion>,
    objects: OffArbiter<Vec<Object<S>>>,
    set_aside: OffArbiter<Vec<SetAside>>,
    bytes: usize,
    received: u64,
}

/// How far the page under way has come.
enum Page {
    Open,
    Whole { next: Option<String> },
}

impl<S> Listing<S> {
    fn request(&self) -> ListRequest {
        let version = if self.token.is_some() { AskedVersion::Latest } else { self.asked.clone() };
        ListRequest { version, limit: self.limit, token: self.token.clone(), name: None }
    }

    fn close_page(&mut self, version: ResourceVersion, next: Option<String>) {
        self.page = Page::Whole { next: next.filter(|token| !token.is_empty()) };
        self.version = Some(match self.version.take() {
            Some(before) => before.min(version),
            None => version,
        });
    }
}

impl<S> ListWatchMachine<S> {
    /// Everything is to be asked for, as soon as the list budget allows it.
    pub(super) fn begin_listing(&mut self) {
        if matches!(self.state, SourceState::Listing { .. } | SourceState::Streaming) {
            self.state = SourceState::Listing { received: 0 };
        }
        self.phase = Phase::AwaitingPermit;
        self.effects.push_back(Effect::AcquireListPermit);
    }

    /// Asks for everything, by watch-list or by list, whichever is due.
    pub(super) fn open_listing(&mut self, at: Moment) {
        if self.newest.is_some() {
            self.counters.relists += 1;
            self.lessons.reason.count(&mut self.counters.relists_by);
            self.log.relists(self.lessons.reason);
            if self.lessons.reason.needs_no_wait() {
                self.last_relist_at = Some(at.now);
            }
        }
        if matches!(self.state, SourceState::Starting) {
            self.state = SourceState::Listing { received: 0 };
        }
        let latest = mem::take(&mut self.lessons.latest) || self.lessons.rewinding;
        let version = match &self.newest {
            _ if latest => AskedVersion::Latest,
            Some(newest) => AskedVersion::From(newest.clone()),
            None => AskedVersion::Any,
        };
        if self.is_watch_list_due() {
            self.open_watch_list(version, at);
        } else {
            self.open_list(version, at);
        }
    }

    pub(super) fn list_part(&mut self, part: ListPart<S>, at: Moment) {
        let Phase::Listing(listing) = &mut self.phase else { return };
        self.last_frame_at = Some(at.now);
        if matches!(listing.page, Page::Whole { .. }) {
            self.effects.push_back(Effect::CloseList);
            let error = self.unexpected("a list page went on after its end");
            return self.fail(error, Next::Listing, at);
        }
        if is_new(&part) {
            listing.deadline = at.now.saturating_add(self.config.list_deadline);
        } else if at.now >= listing.deadline {
            return self.list_late(at);
        }
        match part {
            ListPart::Objects(objects) => {
                listing.received += objects.len() as u64;
                listing.bytes += listed_bytes(&objects, &[]);
                listing.objects.extend(objects);
                listing.objects.weigh(listing.bytes);
            }
            ListPart::SetAside(aside) => {
                listing.received += 1;
                listing.bytes += aside.bytes();
                listing.set_aside.push(aside);
            }
            ListPart::Unreadable(_) => self.counters.unreadable += 1,
            ListPart::End { version, token } => listing.close_page(version, token),
        }
        self.state = SourceState::Listing { received: listing.received };
    }

    pub(super) fn list_end(&mut self, result: Result<(), ListWatchError>, at: Moment) {
        let Phase::Listing(mut listing) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        if let Err(error) = result {
            return self.list_failed(&listing, error, at);
        }
        let next = match mem::replace(&mut listing.page, Page::Open) {
            Page::Open => {
                let error = self.unexpected("a list ended in mid-page");
                return self.fail(error, Next::Listing, at);
            }
            Page::Whole { next } => next,
        };
        if !self.lessons.rewinding && listing.version < self.newest {
            return self.rewind(at);
        }
        match next {
            None => self.listed(listing, at),
            token if token == listing.token => {
                let error = self.unexpected("a list does not get past a page");
                self.fail(error, Next::Listing, at);
            }
            token => {
                self.lessons.paged |= listing.asked == AskedVersion::Any;
                listing.token = token;
                self.ask_page(listing, at);
            }
        }
    }

    /// Delivers the whole content of the source, whichever way it came.
    pub(super) fn deliver_replace(
        &mut self,
        version: ResourceVersion,
        (objects, set_aside): (OffArbiter<Vec<Object<S>>>, OffArbiter<Vec<SetAside>>),
        bytes: usize,
    ) {
        let rewound = mem::take(&mut self.lessons.rewinding);
        let cause = match &self.newest {
            _ if rewound => Cause::Rewind,
            Some(_) => Cause::Relist,
            None => Cause::InitialList,
        };
        self.lessons.settling = rewound;
        self.lessons.list_only = false;
        self.lessons.unsure = false;
        let (resource, objects_listed) = (&self.config.resource, objects.len());
        self.log.debug(format_args!(
            "a list of {resource} is whole: {objects_listed} objects at version {version}"
        ));
        self.newest = Some(version.clone());
        let replacement = Replacement { version, cause, objects, set_aside, bytes };
        self.effects.push_back(Effect::Deliver(Delivery::Replace(replacement)));
    }

    /// Nothing new came in time.
    pub(super) fn list_late(&mut self, at: Moment) {
        self.effects.push_back(Effect::CloseList);
        let error = self.late("the next object of a list", self.config.list_deadline);
        self.fail(error, Next::Listing, at);
    }

    fn open_list(&mut self, asked: AskedVersion, at: Moment) {
        let limit = self.page_limit(&asked);
        let version = asked.to_string();
        self.log.debug(format_args!("lists {} at version {version:?}", self.config.resource));
        self.counters.lists += 1;
        let listing = Listing {
            asked,
            limit,
            everything: self.skips_nothing(),
            deadline: Duration::ZERO,
            token: None,
            page: Page::Open,
            version: None,
            objects: self.freeing.objects.keep(Vec::new()),
            set_aside: self.freeing.set_aside.keep(Vec::new()),
            bytes: 0,
            received: 0,
        };
        self.ask_page(listing, at);
    }

    fn ask_page(&mut self, mut listing: Listing<S>, at: Moment) {
        listing.deadline = at.now.saturating_add(self.config.list_deadline);
        let (request, everything) = (listing.request(), listing.everything);
        self.effects.push_back(Effect::List { request, everything });
        self.phase = Phase::Listing(listing);
    }

    /// At a live version a server's cache has the whole list at hand, so a limit is set there only if the user wants
    /// pages, or if the server pages a list at "0", which one with a watch cache does not.
    fn page_limit(&mut self, asked: &AskedVersion) -> Option<u32> {
        if mem::take(&mut self.lessons.full) {
            return None;
        }
        let free = asked.version().is_none() || self.lessons.paged;
        self.config.page_size.or_else(|| free.then_some(self.config.default_page_size))
    }

    fn listed(&mut self, listing: Listing<S>, at: Moment) {
        let version = listing.version.expect("a list whose last page is whole has a version");
        self.deliver_replace(version, (listing.objects, listing.set_aside), listing.bytes);
        self.state = SourceState::Streaming;
        self.open_watch(at);
    }

    fn list_failed(&mut self, listing: &Listing<S>, error: ListWatchError, at: Moment) {
        if !matches!(error, ListWatchError::Expired(_) | ListWatchError::TooLargeVersion(_)) {
            return self.fail(error, Next::Listing, at);
        }
        self.counters.expired += 1;
        let paging = listing.token.is_some();
        let can_ask_for_less =
            if paging { listing.limit.is_some() } else { listing.asked != AskedVersion::Latest };
        if !can_ask_for_less {
            return self.fail(error, Next::Listing, at);
        }
        self.lessons.latest = true;
        self.lessons.full = paging;
        if self.newest.is_some() && !self.lessons.rewinding {
            self.lessons.reason = RelistReason::Expired;
        }
        self.begin_listing();
    }
}

/// Whether a part takes the list further.
fn is_new<S>(part: &ListPart<S>) -> bool {
    !matches!(part, ListPart::Objects(objects) if objects.is_empty())
}
