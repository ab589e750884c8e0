//! The log of one life of a container, and how it is read: from where, how much, and whether on and on.
//!
//! Answers: which bytes come next for this reader?
//! 1. Lines have the time at which they were written; a reader that wants times gets them in front of each.
//! 2. Who follows a log waits at its end until the container ends.
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::cluster::options::{Query, flag, value};
use crate::cluster::status::{ApiError, Cause, Named};

/// A chunk holds about so many bytes.
const CHUNK: usize = 4096;

/// The log of one life of a container.
#[derive(Debug, Default)]
pub(crate) struct Log {
    state: Mutex<State>,
    changes: watch::Sender<()>,
    readers: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    /// Seconds since 1970, and the bytes with their newline.
    lines: Vec<(i64, Bytes)>,
    /// What comes again and again behind the lines.
    repeated: Option<Bytes>,
    has_ended: bool,
    sent: u64,
}

impl Log {
    pub(crate) fn append(&self, now: i64, bytes: Bytes) {
        self.state().lines.push((now, bytes));
        self.changes.send_replace(());
    }

    pub(crate) fn repeat(&self, line: Bytes) {
        self.state().repeated = Some(line);
        self.changes.send_replace(());
    }

    pub(crate) fn end(&self) {
        self.state().has_ended = true;
        self.changes.send_replace(());
    }

    pub(crate) fn sent(&self) -> u64 {
        self.state().sent
    }

    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::SeqCst)
    }

    /// The log as a body.
    pub(crate) fn read(
        self: &Arc<Self>,
        options: LogOptions,
        now: i64,
    ) -> impl Stream<Item = io::Result<Bytes>> + use<> {
        let at = options.first(&self.state().lines, now);
        self.readers.fetch_add(1, Ordering::SeqCst);
        let reader = Reader { log: Arc::clone(self), left: options.limit, options, at };
        let changes = self.changes.subscribe();
        futures_util::stream::unfold((reader, changes), |(mut reader, mut changes)| async move {
            loop {
                changes.mark_unchanged();
                match reader.next() {
                    Next::Chunk(chunk) => return Some((Ok(chunk), (reader, changes))),
                    Next::End => return None,
                    // The log lives as long as its reader.
                    Next::Wait => changes.changed().await.ok()?,
                }
            }
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a log is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogOptions {
    follow: bool,
    pub(crate) previous: bool,
    timestamps: bool,
    tail: Option<usize>,
    /// Seconds before now.
    since: Option<i64>,
    /// Seconds since 1970.
    since_time: Option<i64>,
    limit: Option<u64>,
}

impl LogOptions {
    /// # Errors 422 for numbers that a real server refuses, 400 for what is no number or time.
    pub(crate) fn parse(query: &Query, pod: &str) -> Result<Self, ApiError> {
        let number = |name: &str| match value(query, name) {
            "" => Ok(None),
            text => text.parse::<i64>().map(Some).map_err(|error| ApiError::bad_request(error.to_string())),
        };
        let (tail, since, limit) = (number("tailLines")?, number("sinceSeconds")?, number("limitBytes")?);
        let since_time = match value(query, "sinceTime") {
            "" => None,
            text => {
                let time = text.parse::<Timestamp>();
                Some(time.map_err(|error| ApiError::bad_request(error.to_string()))?.as_second())
            }
        };
        let mut causes = Vec::new();
        let mut check = |name: &str, number: Option<i64>, least: i64, why: &str| {
            let wrong = number.filter(|number| *number < least);
            causes.extend(wrong.map(|number| Cause::invalid(name, &number.to_string(), why)));
        };
        check("tailLines", tail, 0, "must be greater than or equal to 0");
        check("limitBytes", limit, 1, "must be greater than 0");
        check("sinceSeconds", since.filter(|_| since_time.is_none()), 1, "must be greater than 0");
        if !causes.is_empty() {
            let options = Named { group: "", kind: "PodLogOptions", name: pod };
            return Err(ApiError::invalid(options, &causes));
        }
        Ok(Self {
            follow: flag(query, "follow"),
            previous: flag(query, "previous"),
            timestamps: flag(query, "timestamps"),
            tail: tail.and_then(|lines| usize::try_from(lines).ok()),
            since,
            since_time,
            limit: limit.and_then(|bytes| u64::try_from(bytes).ok()),
        })
    }

    /// The first line to read.
    fn first(&self, lines: &[(i64, Bytes)], now: i64) -> usize {
        let since = self.since.map(|seconds| now.saturating_sub(seconds)).or(self.since_time);
        let by_time = since.map_or(0, |since| lines.partition_point(|(at, _)| *at < since));
        let by_count = self.tail.map_or(0, |count| lines.len().saturating_sub(count));
        by_time.max(by_count)
    }
}

struct Reader {
    log: Arc<Log>,
    options: LogOptions,
    at: usize,
    /// Bytes that may still be read.
    left: Option<u64>,
}

enum Next {
    Chunk(Bytes),
    Wait,
    End,
}

impl Reader {
    fn next(&mut self) -> Next {
        if self.left == Some(0) {
            return Next::End;
        }
        let mut state = self.log.state();
        let mut chunk = BytesMut::new();
        while chunk.len() < CHUNK
            && let Some((at, line)) = state.lines.get(self.at)
        {
            if self.options.timestamps {
                let time = Timestamp::from_second(*at).unwrap_or_default();
                chunk.extend_from_slice(format!("{time:.9} ").as_bytes());
            }
            chunk.extend_from_slice(line);
            self.at += 1;
        }
        if chunk.is_empty() {
            match &state.repeated {
                Some(line) => {
                    while chunk.len() < CHUNK {
                        chunk.extend_from_slice(line);
                    }
                }
                None if self.options.follow && !state.has_ended => return Next::Wait,
                None => return Next::End,
            }
        }
        if let Some(left) = &mut self.left {
            chunk.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= u64::try_from(chunk.len()).unwrap_or(*left);
        }
        state.sent += u64::try_from(chunk.len()).unwrap_or_default();
        Next::Chunk(chunk.freeze())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.log.readers.fetch_sub(1, Ordering::SeqCst);
    }
}
