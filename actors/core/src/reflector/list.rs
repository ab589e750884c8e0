//! Lists: which version and pages to request, and when a list is whole. Invariants:
//! 1. A list requests `"0"` only while nothing was ever delivered; `""` for a rewind, right after a list or
//!    watch-list that was expired or too large, or as the first one that must come in pages; otherwise the newest
//!    version delivered, by this source or by those from which it takes over.
//! 2. Pages of two versions are never joined: after an expired token the list starts over, in one page unless all
//!    must come in pages.
//!
//! Another thread frees a failed list (`freeing.rs`).
use std::mem;
use std::time::Duration;

use super::phase::{Listing, Next, Page, RelistReason};
use super::{Delivery, Effect, ListWatchMachine, Moment, Phase, SourceState};
use crate::chunks::Chunks;
use crate::delta::{Cause, ListPart, Replacement, Undecodable, listed_bytes};
use crate::list_watch_error::ListWatchError;
use crate::meta::{Object, ResourceVersion};
use crate::off_arbiter::OffArbiter;
use crate::request::AskedVersion;

impl<S> ListWatchMachine<S> {
    pub(super) fn begin_listing(&mut self) {
        if matches!(self.state, SourceState::Listing { .. } | SourceState::Streaming) {
            self.state = SourceState::Listing { received: 0 };
        }
        self.phase = Phase::AwaitingPermit;
        self.effects.push_back(Effect::AcquireListPermit);
    }

    pub(super) fn open_listing(&mut self, at: Moment) {
        if self.newest.is_some() {
            self.counters.relists += 1;
            self.hints.relist_reason.count(&mut self.counters.relists_by);
            self.log.relists(self.hints.relist_reason);
            if self.hints.relist_reason.needs_no_wait() {
                self.last_relist_at = Some(at.now);
            }
        }
        if matches!(self.state, SourceState::Starting) {
            self.state = SourceState::Listing { received: 0 };
        }
        let latest = mem::take(&mut self.hints.list_at_latest) || self.hints.rewinding.is_some();
        let version = match &self.newest {
            _ if latest => AskedVersion::Latest,
            newest => match newest.max(&self.floor).clone() {
                Some(version) => AskedVersion::From(version),
                None if self.config.in_pages => AskedVersion::Latest,
                None => AskedVersion::Any,
            },
        };
        if self.is_watch_list_due() {
            self.open_watch_list(version, at);
        } else {
            self.open_list(version, at);
        }
    }

    /// A piece of the list under way.
    pub fn handle_list_part(&mut self, part: ListPart<S>, at: Moment) {
        let Phase::Listing(listing) = &mut self.phase else { return };
        self.last_frame_at = Some(at.now);
        if matches!(listing.page, Page::Whole { .. }) {
            self.effects.push_back(Effect::CloseList);
            let error = self.unexpected("a part of a list page came after the end of that page");
            return self.fail(error, Next::Listing, at);
        }
        if is_new(&part) {
            listing.deadline = at.now.saturating_add(self.config.list_deadline);
        } else if at.now >= listing.deadline {
            return self.list_timed_out(at);
        }
        match part {
            ListPart::Objects(objects) => {
                listing.received += objects.len() as u64;
                listing.bytes += listed_bytes(&objects, &[]);
                listing.objects.extend(objects);
                listing.objects.weigh(listing.bytes);
            }
            ListPart::Undecodable(undecodable) => {
                listing.received += 1;
                listing.bytes += undecodable.bytes();
                listing.undecodable.push(undecodable);
            }
            ListPart::Unreadable(_) => self.counters.unreadable += 1,
            ListPart::End { version, token } => listing.close_page(version, token),
        }
        self.state = SourceState::Listing { received: listing.received };
    }

    /// The list's stream has ended. `Ok` before a `ListPart::End` is a failure, too.
    pub fn handle_list_end(&mut self, result: Result<(), ListWatchError>, at: Moment) {
        let Phase::Listing(mut listing) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        if let Err(error) = result {
            return self.list_failed(&listing, error, at);
        }
        let next = match mem::replace(&mut listing.page, Page::Open) {
            Page::Open => {
                let error = self.unexpected("a list ended in the middle of a page");
                return self.fail(error, Next::Listing, at);
            }
            Page::Whole { next } => next,
        };
        if let Some(version) = listing.version.as_ref().filter(|version| self.is_below(version))
            && self.hints.rewinding.is_none()
        {
            return self.rewind(version.clone(), at);
        }
        match next {
            None => self.listed(listing, at),
            token if token == listing.token => {
                let error = self.unexpected("a list page names itself as the next page");
                self.fail(error, Next::Listing, at);
            }
            token => {
                self.hints.paged |= listing.asked == AskedVersion::Any;
                listing.token = token;
                self.ask_page(listing, at);
            }
        }
    }

    pub(super) fn deliver_replace(
        &mut self,
        version: ResourceVersion,
        (objects, undecodable): (OffArbiter<Chunks<Object<S>>>, OffArbiter<Chunks<Undecodable>>),
        bytes: usize,
    ) {
        let rewound = self.hints.rewinding.take().is_some();
        let cause = match &self.newest {
            _ if rewound => Cause::Rewind,
            Some(_) => Cause::Relist,
            None => Cause::InitialList,
        };
        self.hints.after_rewind = rewound;
        self.hints.skip_watch_list = false;
        self.hints.version_unproven = false;
        let (resource, objects_listed) = (&self.config.resource, objects.len());
        self.log.debug(format_args!(
            "a list of {resource} is whole: {objects_listed} objects at version {version}"
        ));
        self.newest = Some(version.clone());
        let replacement = Replacement { version, cause, objects, undecodable, bytes };
        self.effects.push_back(Effect::Deliver(Delivery::Replace(replacement)));
    }

    pub(super) fn list_timed_out(&mut self, at: Moment) {
        self.effects.push_back(Effect::CloseList);
        let error = self.timed_out("the next object of a list", self.config.list_deadline);
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
            everything: self.decodes_everything(),
            deadline: Duration::ZERO,
            token: None,
            page: Page::Open,
            version: None,
            objects: self.freeing.objects.keep(Chunks::new()),
            undecodable: self.freeing.undecodable.keep(Chunks::new()),
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

    /// The server's watch cache answers a list at a live version, where a limit saves nothing. Such a list has a
    /// limit only if the user sets a page size, or if the server has no watch cache: then it pages a list at "0".
    fn page_limit(&mut self, asked: &AskedVersion) -> Option<u32> {
        if mem::take(&mut self.hints.without_limit) {
            return None;
        }
        let free = asked.version().is_none() || self.hints.paged || self.config.in_pages;
        self.config.page_size.or_else(|| free.then_some(self.config.default_page_size))
    }

    fn listed(&mut self, listing: Listing<S>, at: Moment) {
        let version = listing.version.expect("a list whose last page is whole has a version");
        self.deliver_replace(version, (listing.objects, listing.undecodable), listing.bytes);
        self.state = SourceState::Streaming;
        self.open_watch(at);
    }

    fn list_failed(&mut self, listing: &Listing<S>, error: ListWatchError, at: Moment) {
        if !matches!(error, ListWatchError::Expired(_) | ListWatchError::TooLargeVersion(_)) {
            return self.fail(error, Next::Listing, at);
        }
        self.counters.expired += 1;
        let paging = listing.token.is_some();
        if paging && self.config.in_pages {
            // No whole answer is wanted; what the reader has had already shortens the next try.
            return self.fail(error, Next::Listing, at);
        }
        let can_ask_for_less =
            if paging { listing.limit.is_some() } else { listing.asked != AskedVersion::Latest };
        if !can_ask_for_less {
            return self.fail(error, Next::Listing, at);
        }
        self.hints.list_at_latest = true;
        self.hints.without_limit = paging;
        if self.newest.is_some() && self.hints.rewinding.is_none() {
            self.hints.relist_reason = RelistReason::Expired;
        }
        self.begin_listing();
    }
}

/// Whether a part extends the list's deadline.
fn is_new<S>(part: &ListPart<S>) -> bool {
    !matches!(part, ListPart::Objects(objects) if objects.is_empty())
}
