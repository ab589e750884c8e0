//! Fuzz targets that compare the readers of streams with a simple reading of the same bytes.
//!
//! Answers "does each byte reach its channel or line, in any chunks?" The first byte of the input chooses the size of the
//! chunks, of a websocket also the protocol and what its channels are for.

use std::collections::BTreeMap;

use actix_informer::client::streams::{MAX_LINE, Protocol};
use actix_informer::unstable::{Channels, Event, Frames, LogLines, MAX_FRAME};
use bytes::Bytes;

/// The longest head of a frame.
const MAX_HEAD: usize = 14;
const PORTS: [u16; 2] = [80, 8443];

/// What a connection gave, and whether it ended by an error.
#[derive(Debug, PartialEq)]
struct Given {
    events: Vec<Event>,
    has_failed: bool,
}

fn given(bytes: &[u8], chunk: usize, mut channels: Channels) -> Given {
    let (mut frames, mut events) = (Frames::default(), Vec::new());
    for chunk in bytes.chunks(chunk.max(1)) {
        frames.push(chunk);
        loop {
            let frame = match frames.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => return Given { events, has_failed: true },
            };
            match channels.handle_frame(frame) {
                Ok(Some(Event::Closed)) => {
                    events.push(Event::Closed);
                    return Given { events, has_failed: false };
                }
                Ok(event) => events.extend(event),
                Err(_) => return Given { events, has_failed: true },
            }
        }
        assert!(frames.unfinished() <= MAX_FRAME + MAX_HEAD, "what waits is bounded");
    }
    Given { events, has_failed: false }
}

/// The bytes of each channel, by a plain reading of the frames, up to the first close.
fn plain(mut bytes: &[u8], ports: bool) -> BTreeMap<u8, Vec<u8>> {
    let (mut found, mut channel) = (BTreeMap::<u8, Vec<u8>>::new(), None);
    while let [head, length, rest @ ..] = bytes {
        let (length, rest) = match (length, rest) {
            (126, [a, b, rest @ ..]) => (usize::from(u16::from_be_bytes([*a, *b])), rest),
            (126 | 127, _) => break,
            (length, rest) => (usize::from(*length), rest),
        };
        let Some((mut payload, rest)) = rest.split_at_checked(length) else { break };
        bytes = rest;
        match head & 0x0f {
            8 => break,
            0 => {}
            2 => channel = None,
            _ => continue,
        }
        if channel.is_none()
            && let [first, rest @ ..] = payload
        {
            (channel, payload) = (Some(*first), rest);
        }
        if let Some(channel) = channel {
            found.entry(channel).or_default().extend_from_slice(payload);
        }
    }
    if ports {
        found.values_mut().for_each(|bytes| drop(bytes.drain(..bytes.len().min(2))));
    }
    found
}

/// The events are the same in any chunks, what waits is bounded, and no byte is lost or changes its channel.
pub fn websocket_frames(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let (chunk, ports) = (1 + usize::from(first & 0x1f), first & 0x40 != 0);
    let protocol = if first & 0x20 == 0 { Protocol::V4 } else { Protocol::V5 };
    let channels = || match ports {
        true => Channels::of_ports(protocol, &PORTS),
        false => Channels::of_command(protocol),
    };
    let found = given(bytes, chunk, channels());
    assert_eq!(found, given(bytes, bytes.len(), channels()), "the chunks change the events");
    let mut received = BTreeMap::<u8, Vec<u8>>::new();
    for event in &found.events {
        if let Event::Data { channel, bytes } = event {
            assert!(!bytes.is_empty() && (ports || (1..=3).contains(channel)));
            received.entry(*channel).or_default().extend_from_slice(bytes);
        }
    }
    let expected = plain(bytes, ports);
    for (channel, bytes) in received {
        let whole = &expected[&channel];
        assert!(
            if found.has_failed { whole.starts_with(&bytes) } else { *whole == bytes },
            "channel {channel}"
        );
    }
}

/// The lines are the same in any chunks, and together the bytes of the log.
pub fn log_lines(data: &[u8]) {
    let Some((first, bytes)) = data.split_first() else { return };
    let lines = |chunk: usize| {
        let (mut lines, mut found) = (LogLines::default(), Vec::new());
        for chunk in bytes.chunks(chunk.max(1)) {
            lines.push(Bytes::copy_from_slice(chunk));
            found.extend(std::iter::from_fn(|| lines.next_line()));
        }
        found.extend(lines.finish());
        found
    };
    let found = lines(1 + usize::from(first & 0x1f));
    assert_eq!(found, lines(bytes.len()));
    assert!(found.iter().all(|line| bytes.len() > MAX_LINE || line.is_last_part()));
    if bytes.len() <= MAX_LINE
        && let Ok(text) = std::str::from_utf8(bytes)
    {
        let texts: Vec<&str> = found.iter().map(|line| &**line).collect();
        assert_eq!(texts, text.split_terminator('\n').collect::<Vec<_>>());
    }
}
