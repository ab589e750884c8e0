//! Reads the head of each answer before actix-http's decoder does, and changes what that decoder misreads
//! (`actix-http/src/h1/decoder.rs` and `actix-http/src/h1/client.rs` of 3.20, `awc/src/client/h1proto.rs`). The decoder's parser
//! and settings are used, so that both find the same end of a head. All else passes unchanged; the decoder reports what cannot be
//! parsed.
//!
//! Interim answers (1xx, RFC 9110 section 15.2) are dropped: the decoder takes the first head for the answer, and the connection
//! returns to the pool before the real answer comes.

use std::borrow::Cow;
use std::io;
use std::mem::take;

use httparse::{EMPTY_HEADER, Header, ParserConfig, Response, Status};

/// More than any answer of an API server has.
const MOST_HEADERS: usize = 256;
/// With more, the warnings become one.
const MANY_HEADERS: usize = 80;
/// awc's bound.
const LARGEST_HEAD: usize = 128 << 10;
const MOST_INTERIM: u8 = 64;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct NotAnAnswer(&'static str);

pub(super) fn not_an_answer(error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref::<NotAnAnswer>().map(ToString::to_string)
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, NotAnAnswer(why))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Body,
    Head,
    BodyToTheEnd,
    Anything,
}

#[derive(Debug)]
pub(super) struct Heads {
    next: Next,
    /// An incomplete head.
    part: Vec<u8>,
    interim: u8,
    /// The request is a HEAD.
    asks_for_head: bool,
    may_switch: bool,
    must_close: bool,
}

impl Heads {
    pub(super) fn new() -> Self {
        let (part, next) = (Vec::new(), Next::Body);
        Self { next, part, interim: 0, asks_for_head: false, may_switch: false, must_close: false }
    }

    pub(super) fn of_upgrade() -> Self {
        Self { may_switch: true, ..Self::new() }
    }

    /// The first bytes after an answer begin the next request.
    pub(super) fn handle_write(&mut self, bytes: &[u8]) {
        if self.next == Next::Body {
            (self.next, self.interim) = (Next::Head, 0);
            self.asks_for_head = bytes.starts_with(b"HEAD ");
        }
    }

    pub(super) fn close_after_answer(&mut self, must_close: bool) {
        self.must_close = must_close;
    }

    pub(super) fn awaits_head(&self) -> bool {
        self.next == Next::Head
    }

    pub(super) fn ends_with_connection(&self) -> bool {
        self.next == Next::BodyToTheEnd
    }

    /// Returns what the decoder may see once the final head is complete. Fails if it does not answer the request.
    pub(super) fn handle_read<'a>(&mut self, piece: &'a [u8]) -> io::Result<Option<Cow<'a, [u8]>>> {
        let mut bytes = Cow::Borrowed(piece);
        if !self.part.is_empty() {
            self.part.extend_from_slice(piece);
            bytes = Cow::Owned(take(&mut self.part));
        }
        loop {
            let mut headers = [EMPTY_HEADER; MOST_HEADERS];
            let mut head = Response::new(&mut headers);
            let length = match parser().parse_response(&mut head, &bytes) {
                Ok(Status::Complete(length)) => length,
                Ok(Status::Partial) if bytes.len() < LARGEST_HEAD => {
                    self.part = bytes.into_owned();
                    return Ok(None);
                }
                Ok(Status::Partial) | Err(_) => {
                    self.next = Next::Body;
                    return Ok(Some(bytes));
                }
            };
            match head.code {
                Some(101) if self.may_switch => self.next = Next::Anything,
                Some(101) => return Err(refused("101 (Switching Protocols), which no request asked for")),
                Some(100..200) if self.interim == MOST_INTERIM => {
                    return Err(refused("more than 64 interim answers before the final one"));
                }
                Some(100..200) => {
                    self.interim += 1;
                    bytes = match bytes {
                        Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[length..]),
                        Cow::Owned(bytes) => Cow::Owned(bytes[length..].to_vec()),
                    };
                    continue;
                }
                _ => {
                    let framing = Framing::of(&head, self.asks_for_head);
                    self.next = if framing.is_to_the_end { Next::BodyToTheEnd } else { Next::Body };
                    if let Some(mut written) = rewritten(&head, framing, self.must_close) {
                        written.extend_from_slice(&bytes[length..]);
                        return Ok(Some(Cow::Owned(written)));
                    }
                }
            }
            return Ok(Some(bytes));
        }
    }
}

fn parser() -> ParserConfig {
    let mut config = ParserConfig::default();
    config.allow_spaces_after_header_name_in_responses(true);
    config
}

#[derive(Debug, Clone, Copy)]
struct Framing {
    has_no_body: bool,
    is_empty: bool,
    is_to_the_end: bool,
}

impl Framing {
    fn of(head: &Response<'_, '_>, asks_for_head: bool) -> Self {
        let has_no_body = matches!(head.code, Some(204 | 304));
        let is_said = head.headers.iter().any(|header| {
            is(header, "content-length")
                || is(header, "transfer-encoding") && !header.value.eq_ignore_ascii_case(b"identity")
        });
        let length = head.headers.iter().find(|header| is(header, "content-length"));
        let is_empty = length.is_some_and(|length| length.value.trim_ascii() == b"0");
        Self { has_no_body, is_empty, is_to_the_end: !has_no_body && !asks_for_head && !is_said }
    }
}

fn is(header: &Header<'_>, name: &str) -> bool {
    header.name.eq_ignore_ascii_case(name)
}

/// `None` if the decoder understands the head. Otherwise:
/// - A body that ends with its connection (RFC 9112 section 6.3) becomes one of HTTP/1.0: in HTTP/1.1 the decoder reads none.
/// - An HTTP/1.0 answer without a body becomes one of HTTP/1.1 and closes: the decoder would wait for the end of the connection,
///   which is an error there.
/// - `Upgrade` is removed: it hides the length from the decoder.
/// - 204 and 304 lose their length: the decoder would wait for a body.
/// - Many `Warning` headers become one list (RFC 9110 section 5.3): the decoder takes at most 96 headers (`MAX_HEADERS`), and an
///   API server sends up to 100 warnings.
/// - `Connection: close` is added if the request was not written whole.
fn rewritten(head: &Response<'_, '_>, framing: Framing, must_close: bool) -> Option<Vec<u8>> {
    let becomes_old = framing.is_to_the_end && head.version == Some(1);
    let becomes_new = (framing.has_no_body || framing.is_empty) && head.version == Some(0);
    let must_close = must_close || becomes_new;
    let is_folded = head.headers.len() > MANY_HEADERS;
    let without_length = framing.has_no_body || becomes_old;
    let is_left_out = |header: &Header<'_>| {
        is(header, "upgrade")
            || without_length && (is(header, "content-length") || is(header, "transfer-encoding"))
            || must_close && is(header, "connection")
            || is_folded && is(header, "warning")
    };
    if !(becomes_old || must_close || head.headers.iter().any(is_left_out)) {
        return None;
    }
    let version = if becomes_old {
        0
    } else if becomes_new {
        1
    } else {
        head.version.unwrap_or(1)
    };
    let (code, reason) = (head.code.unwrap_or_default(), head.reason.unwrap_or_default());
    let mut written = format!("HTTP/1.{version} {code} {reason}\r\n").into_bytes();
    let mut add = |name: &str, value: &[u8]| {
        [name.as_bytes(), b": ", value, b"\r\n"].iter().for_each(|part| written.extend_from_slice(part));
    };
    for header in head.headers.iter().filter(|header| !is_left_out(header)) {
        add(header.name, header.value);
    }
    if is_folded {
        let warnings = head.headers.iter().filter(|header| is(header, "warning"));
        let warnings: Vec<_> = warnings.map(|header| header.value).collect();
        add("warning", &warnings.join(&b", "[..]));
    }
    if must_close {
        add("connection", b"close");
    }
    written.extend_from_slice(b"\r\n");
    Some(written)
}

#[cfg(test)]
mod tests;
