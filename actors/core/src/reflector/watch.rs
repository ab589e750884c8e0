//! Watches: how the machine opens one, follows it, and continues after its end. Invariants:
//! 1. A watch requests everything after the newest version delivered, so a cut stream loses and repeats
//!    nothing.
//! 2. Versions only grow on a live stream. A frame below the version reached is counted, not delivered: the stream is
//!    dropped and the source is listed again.
//! 3. A stream that ended without an ERROR is not a failure if it brought a frame, or was open for longer than the
//!    short-watch bound and the last wait. Its end resets the backoff. The next watch needs no wait, but does not
//!    begin within `reconnect_interval` of the last connect.

use std::mem;
use std::time::Duration;

use super::phase::{Next, RelistReason, Stream, Watching};
use super::{Delivery, Effect, LEAST_WATCH_TIMEOUT, ListWatchMachine, Moment, Phase, SourceState, StreamId};
use crate::backoff::spread;
use crate::delta::WatchPart;
use crate::list_watch_error::ListWatchError;
use crate::request::{AskedVersion, WatchRequest};
use crate::words::{Brief, QUOTED, one_line};

/// An end this close to the requested timeout counts as that timeout: the server's clock differs a little.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(250);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchTimer {
    Head,
    Question,
    RenewalHead,
    Silence,
}

impl<S> ListWatchMachine<S> {
    pub(super) fn connect(&mut self, version: AskedVersion, initial_events: bool, at: Moment) -> Stream {
        let least = self.config.min_watch_timeout.max(LEAST_WATCH_TIMEOUT);
        let timeout = spread(least, least, at.chance);
        let id = StreamId(self.streams);
        self.streams = self.streams.wrapping_add(1);
        self.counters.watches += 1;
        self.last_connect_at = Some(at.now);
        let request = WatchRequest { version, initial_events, timeout };
        let everything = self.decodes_everything();
        self.effects.push_back(Effect::Watch { stream: id, request, everything });
        Stream { id, opened_at: at.now, head_at: None, timeout }
    }

    pub(super) fn open_watch(&mut self, at: Moment) {
        let version = self.newest_version();
        self.log.debug(format_args!("watches {} from version {version}", self.config.resource));
        let stream = self.connect(version, false, at);
        self.phase = Phase::Watching(Watching::new(stream, Duration::MAX));
    }

    pub(super) fn follow(&mut self, stream: Stream, at: Moment) {
        let renew_at = at.now.saturating_add(self.renew_interval);
        self.phase = Phase::Watching(Watching { had_frames: true, ..Watching::new(stream, renew_at) });
        self.is_followed(at);
    }

    /// There always is a newest version after a list.
    pub(super) fn newest_version(&self) -> AskedVersion {
        self.newest.clone().map_or(AskedVersion::Latest, AskedVersion::From)
    }

    pub(super) fn live_parts(&mut self, parts: Vec<WatchPart<S>>, at: Moment) {
        let Phase::Watching(watching) = &mut self.phase else { return };
        if watching.stream.head_at.is_none() {
            watching.stream.head_at = Some(at.now);
            self.head_arrived(at);
        }
        let Phase::Watching(watching) = &mut self.phase else { return };
        if watching.question_until.is_some() {
            watching.held.extend(parts);
        } else if !parts.is_empty() {
            self.absorb(parts, at);
        }
    }

    pub(super) fn head_arrived(&mut self, at: Moment) {
        if self.hints.version_unproven { self.ask_version(at) } else { self.confirm_stream(at) }
    }

    pub(super) fn confirm_stream(&mut self, at: Moment) {
        let Phase::Watching(watching) = &mut self.phase else { return };
        watching.renew_at = at.now.saturating_add(self.renew_interval);
        self.hints.version_unproven = false;
        self.is_followed(at);
    }

    fn is_followed(&mut self, at: Moment) {
        self.state = SourceState::Streaming;
        self.log.followed(at);
    }

    pub(super) fn absorb(&mut self, mut parts: Vec<WatchPart<S>>, at: Moment) {
        // A late finding comes from a reader, not from the server.
        let has_frames = parts.iter().any(|part| part.reached().is_some());
        if has_frames {
            self.last_frame_at = Some(at.now);
        }
        let mut reached = self.newest.as_ref();
        let mut stale_at = None;
        for (index, part) in parts.iter().enumerate() {
            let Some(version) = part.reached() else { continue };
            if reached.is_some_and(|reached| version < reached) {
                stale_at = Some(index);
                break;
            }
            reached = Some(version);
        }
        self.newest = reached.cloned();
        if let Some(index) = stale_at {
            parts.truncate(index);
        }
        if has_frames && !parts.is_empty() {
            self.frames_came(at);
        }
        if !parts.is_empty() {
            self.effects.push_back(Effect::Deliver(Delivery::Delta(parts)));
        }
        if stale_at.is_some() {
            self.counters.stale += 1;
            self.close_watch();
            let error = self.unexpected("a frame was below the version reached");
            self.relist_unless_repeated(RelistReason::Stale, error, at);
        }
    }

    pub(super) fn watch_ended(&mut self, result: Result<(), ListWatchError>, at: Moment) {
        let Phase::Watching(watching) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        self.log_end(&watching, &result, at);
        if self.has_outlived(&watching.stream, at) {
            self.early.end_episodes();
        }
        if let Some(renewal) = &watching.renewal {
            self.effects.push_back(Effect::Close(renewal.id));
        }
        let accepted = watching.stream.head_at.is_some();
        match result {
            Ok(()) => self.stream_over(&watching, None, at),
            Err(cut @ (ListWatchError::Connection { .. } | ListWatchError::Timeout(_))) if accepted => {
                self.stream_over(&watching, Some(&cut), at);
            }
            Err(error) => self.watch_failed(accepted, error, at),
        }
    }

    /// Decides whether to list or to watch next, and whether after a wait. An expired version (410) is listed anew
    /// without a wait; the same reason again, before the watch brings anything, is a failure.
    pub(super) fn watch_failed(&mut self, accepted: bool, error: ListWatchError, at: Moment) {
        let asks_again = match &error {
            ListWatchError::Expired(_) | ListWatchError::TooLargeVersion(_) => {
                self.counters.expired += 1;
                return self.relist_unless_repeated(RelistReason::Expired, error, at);
            }
            ListWatchError::Unreadable(_) => {
                self.counters.unreadable += 1;
                return self.relist_unless_repeated(RelistReason::Unreadable, error, at);
            }
            ListWatchError::NotFound(_) | ListWatchError::SelectorRejected { .. } => {
                self.hints.relist_reason = RelistReason::Refused;
                return self.fail(error, Next::Listing, at);
            }
            ListWatchError::Overloaded { .. }
            | ListWatchError::Denied(_)
            | ListWatchError::Unauthorized(_) => true,
            ListWatchError::Status { code, .. } => !accepted && *code >= 500,
            ListWatchError::Protocol(_) => false,
            _ => !accepted,
        };
        self.hints.version_unproven = true;
        self.hints.relist_reason = RelistReason::Failed;
        self.fail(error, if asks_again { Next::Watch } else { Next::Listing }, at);
    }

    pub(super) fn has_outlived(&self, stream: &Stream, at: Moment) -> bool {
        let bound = self.config.short_watch.max(self.backoff.last_wait().unwrap_or_default());
        stream.head_at.is_some_and(|head| at.now.saturating_sub(head) >= bound)
    }

    pub(super) fn watch_timer(&self, watching: &Watching<S>) -> (WatchTimer, Duration) {
        let answer_by = |opened_at: Duration| opened_at.saturating_add(self.config.answer_deadline);
        if watching.stream.head_at.is_none() {
            return (WatchTimer::Head, answer_by(watching.stream.opened_at));
        }
        match (watching.question_until, &watching.renewal) {
            (Some(until), _) => (WatchTimer::Question, until),
            (None, Some(renewal)) => (WatchTimer::RenewalHead, answer_by(renewal.opened_at)),
            (None, None) => (WatchTimer::Silence, watching.renew_at),
        }
    }

    pub(super) fn watch_timeout(&mut self, timer: WatchTimer, at: Moment) {
        let bound = self.config.answer_deadline;
        match timer {
            WatchTimer::Head => {
                self.close_watch();
                self.watch_failed(false, self.timed_out("the answer to a watch", bound), at);
            }
            WatchTimer::Question => self.question_failed(self.timed_out("the server's version", bound), at),
            WatchTimer::RenewalHead => self.renewal_timed_out(at),
            WatchTimer::Silence => self.renew(at),
        }
    }

    pub(super) fn close_watch(&mut self) {
        let Phase::Watching(watching) = mem::replace(&mut self.phase, Phase::Idle) else { return };
        self.effects.push_back(Effect::Close(watching.stream.id));
        if let Some(renewal) = &watching.renewal {
            self.effects.push_back(Effect::Close(renewal.id));
        }
    }

    fn frames_came(&mut self, at: Moment) {
        self.hints.relisted_for.clear();
        self.renew_interval = self.config.renew_after;
        self.is_followed(at);
        let Phase::Watching(watching) = &mut self.phase else { return };
        watching.had_frames = true;
        watching.renew_at = at.now.saturating_add(self.renew_interval);
        if let Some(renewal) = watching.renewal.take() {
            self.effects.push_back(Effect::Close(renewal.id));
        }
    }

    /// A stream ended without an ERROR: cleanly, or cut by `cut`.
    fn stream_over(&mut self, watching: &Watching<S>, cut: Option<&ListWatchError>, at: Moment) {
        let ran_out =
            at.now.saturating_sub(watching.stream.opened_at) + CLOCK_TOLERANCE >= watching.stream.timeout;
        self.hints.version_unproven |= cut.is_some() || !ran_out;
        let had_frames = watching.had_frames || !watching.held.is_empty();
        if !had_frames && !self.has_outlived(&watching.stream, at) {
            self.counters.short_watches += 1;
            let error = self.very_short_watch(watching, cut, at);
            return self.fail(error, Next::Watch, at);
        }
        self.forget_failures();
        let earliest =
            self.last_connect_at.unwrap_or_default().saturating_add(self.config.reconnect_interval);
        if at.now >= earliest {
            self.open_watch(at);
        } else {
            self.phase = Phase::Waiting { until: earliest, next: Next::Watch };
        }
    }

    fn log_end(&mut self, watching: &Watching<S>, result: &Result<(), ListWatchError>, at: Moment) {
        let lived = Brief(at.now.saturating_sub(watching.stream.opened_at));
        let how = result
            .as_ref()
            .err()
            .map_or_else(String::new, |cut| format!(": {}", one_line(&cut.to_string(), QUOTED)));
        self.log.debug(format_args!("a watch of {} has ended after {lived}{how}", self.config.resource));
    }

    fn very_short_watch(
        &self,
        watching: &Watching<S>,
        cut: Option<&ListWatchError>,
        at: Moment,
    ) -> ListWatchError {
        let lived = watching.stream.head_at.map_or(Duration::ZERO, |head| at.now.saturating_sub(head));
        let how = cut.map_or_else(|| String::from("ended"), |cut| format!("was cut ({cut})"));
        let resource = &self.config.resource;
        let text =
            format!("the watch of {resource} {how} after {:.1} s without a frame", lived.as_secs_f64());
        ListWatchError::VeryShortWatch(text.into())
    }
}
