//! The log of a container as a stream of lines.
//!
//! 1. Parts and newlines are the bytes of the log; bytes that are not UTF-8 become the replacement character. An empty line is a
//!    line, and so is a last one without a newline.
//! 2. Any chunks of the same bytes yield the same parts.
//! 3. A log that is cut off ends with an error after its complete lines. Only the caller knows which lines are missing
//!    (`since_time`): it is not requested again.

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use futures_util::{Stream, StreamExt};
use memchr::memchr;

use crate::error::Error;
use crate::worker::BodyStream;

/// The longest part of a line, in bytes.
pub const MAX_LINE: usize = 64 << 10;

/// A line of a log without its newline, or a part of one that is longer than [`MAX_LINE`]. Reads like a
/// `str`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    text: String,
    is_last_part: bool,
}

impl LogLine {
    /// Whether the line ends here: true for every line of at most [`MAX_LINE`] bytes. If not, the next item
    /// is the next part of the same line.
    pub fn is_last_part(&self) -> bool {
        self.is_last_part
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.text
    }
}

impl Deref for LogLine {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// Turns the chunks of a log into lines.
#[derive(Debug, Default)]
pub struct LogLines {
    begun: BytesMut,
    chunk: Bytes,
    /// The last part did not end its line.
    is_within: bool,
}

impl LogLines {
    /// Takes received bytes. Every line must be taken out before more is put in.
    pub fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the lines of the chunk before are not all taken");
        self.chunk = chunk;
    }

    /// The next line, or part of one; `None` until more has arrived.
    pub fn next_line(&mut self) -> Option<LogLine> {
        loop {
            if self.begun.len() > MAX_LINE {
                return Some(self.part());
            }
            if self.chunk.is_empty() {
                return None;
            }
            // A byte more than a part shows that the line goes on.
            let room = MAX_LINE + 1 - self.begun.len();
            let seen = &self.chunk[..room.min(self.chunk.len())];
            let Some(length) = memchr(b'\n', seen) else {
                let length = seen.len();
                self.begun.extend_from_slice(&self.chunk.split_to(length));
                continue;
            };
            self.begun.extend_from_slice(&self.chunk.split_to(length));
            self.chunk.advance(1);
            return Some(self.last_part());
        }
    }

    /// The rest when the log has ended: a line without a newline, if there is one.
    pub fn finish(&mut self) -> Option<LogLine> {
        (self.is_within || !self.begun.is_empty()).then(|| self.last_part())
    }

    fn last_part(&mut self) -> LogLine {
        self.is_within = false;
        let text = String::from_utf8_lossy(&self.begun).into_owned();
        self.begun.clear();
        LogLine { text, is_last_part: true }
    }

    /// Ends at the last complete character.
    fn part(&mut self) -> LogLine {
        let begins_character = |byte: &u8| *byte & 0xC0 != 0x80;
        let back = self.begun[MAX_LINE - 3..=MAX_LINE].iter().rev().position(begins_character);
        let bytes = self.begun.split_to(MAX_LINE - back.unwrap_or(0));
        self.is_within = true;
        LogLine { text: String::from_utf8_lossy(&bytes).into_owned(), is_last_part: false }
    }
}

/// The lines of a log; made by [`Api::log_stream`](crate::Api::log_stream). Dropping it ends the request.
#[must_use = "a log that is dropped ends its request"]
pub struct LogStream {
    body: Option<BodyStream>,
    lines: LogLines,
}

impl LogStream {
    pub(crate) fn new(body: BodyStream) -> Self {
        Self { body: Some(body), lines: LogLines::default() }
    }
}

impl Stream for LogStream {
    type Item = Result<LogLine, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(line) = this.lines.next_line() {
                return Poll::Ready(Some(Ok(line)));
            }
            let Some(body) = &mut this.body else { return Poll::Ready(None) };
            match ready!(body.poll_next_unpin(context)) {
                Some(Ok(chunk)) => this.lines.push(chunk),
                Some(Err(error)) => {
                    this.body = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
                None => {
                    this.body = None;
                    return Poll::Ready(this.lines.finish().map(Ok));
                }
            }
        }
    }
}

impl fmt::Debug for LogStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStream").field("has_ended", &self.body.is_none()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<LogLine> {
        let (mut lines, mut found) = (LogLines::default(), Vec::new());
        for chunk in chunks {
            lines.push(Bytes::copy_from_slice(chunk));
            found.extend(std::iter::from_fn(|| lines.next_line()));
        }
        found.extend(lines.finish());
        assert!(lines.finish().is_none());
        found
    }

    fn texts(found: &[LogLine]) -> Vec<&str> {
        found.iter().map(|line| &**line).collect()
    }

    #[test]
    fn str_02_empty_lines_and_a_last_line_without_a_newline_are_lines() {
        let found = lines([&b"one\n\ntw"[..], b"o\r\nlast"]);
        assert_eq!(texts(&found), ["one", "", "two\r", "last"]);
        assert!(found.iter().all(LogLine::is_last_part));
        assert!(lines([&b""[..]]).is_empty());
        assert_eq!(texts(&lines([&b"\xff\n"[..]])), ["\u{fffd}"]);
    }

    #[test]
    fn str_02_a_longer_line_comes_in_parts_between_characters_and_nothing_of_it_is_lost() {
        for length in [MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, MAX_LINE * 2, MAX_LINE * 2 + 7] {
            let fits = |size: &mut usize, letter: char| {
                *size += letter.len_utf8();
                (*size <= length).then_some(letter)
            };
            let text: String = "aé✓🦀".chars().cycle().scan(0, fits).collect();
            let log = format!("{text}\nnext\n");
            let found = lines(log.as_bytes().chunks(1000));
            let ends: Vec<_> = found.iter().map(LogLine::is_last_part).collect();
            let parts = found.len() - 1;
            assert!(ends[..parts - 1].iter().all(|is_last| !is_last) && ends[parts - 1..] == [true, true]);
            assert!(found.iter().all(|part| part.len() <= MAX_LINE && !part.contains('\u{fffd}')));
            assert!(found[..parts - 1].iter().all(|part| part.len() > MAX_LINE - 4));
            assert_eq!(texts(&found[..parts]).concat(), text);
            assert_eq!(&*found[parts], "next");
        }
    }

    proptest! {
        #[test]
        fn str_02_any_chunking_gives_the_same_lines(
            log in prop::collection::vec(prop::sample::select(&b"\n\na\xc3\xa9\x80"[..]), 0..60),
            cuts in prop::collection::vec(0usize..61, 0..6),
        ) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(log.len())).collect();
            cuts.extend([0, log.len()]);
            cuts.sort_unstable();
            let found = lines(cuts.windows(2).map(|pair| &log[pair[0]..pair[1]]));
            prop_assert_eq!(&found, &lines([&*log]));
            let text = String::from_utf8_lossy(&log);
            let expected: Vec<_> = text.split_terminator('\n').collect();
            prop_assert_eq!(texts(&found), expected);
        }
    }
}
