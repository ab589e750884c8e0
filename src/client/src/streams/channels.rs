//! The channels of a websocket to a pod: handshake, frames and messages. No I/O.
//!
//! A binary message begins with its channel's number (if fragmented, only the first fragment does). Protocol v5 ends one channel
//! by a message of 255 and the channel's number; v4 cannot.
//! 1. After a forbidden frame nothing is handled: no byte reaches a wrong stream.
//! 2. An incomplete frame takes at most [`MAX_FRAME`] and a header.
//! 3. An answer 101 must answer this request and choose an offered protocol (RFC 6455, section 4.1).

use std::hash::{BuildHasher, RandomState};

use actix_codec::{Decoder, Encoder};
use actix_http::ws::{CloseCode, Codec, Frame, Item, Message, ProtocolError, hash_key};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request};

use crate::error::StreamError;

/// The longest frame that is read, in bytes. Kubelets send at most 32 KiB.
pub const MAX_FRAME: usize = 256 << 10;
const MAX_HEAD: usize = 14;
const CLOSE: u8 = 255;
/// In characters.
const MAX_REASON: usize = 200;

/// The version of the channels. Older versions, which have no typed status, are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// `v4.channel.k8s.io`: the error channel carries a `Status`.
    V4,
    /// `v5.channel.k8s.io`: as v4, and single channels can end.
    V5,
}

impl Protocol {
    /// The name in the handshake.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4.channel.k8s.io",
            Self::V5 => "v5.channel.k8s.io",
        }
    }

    /// Whether one channel can end while the others go on.
    pub fn ends_channels(self) -> bool {
        self == Self::V5
    }
}

/// What a frame means.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Bytes of a stream, never none.
    Data {
        /// The channel of the stream.
        channel: u8,
        /// The bytes.
        bytes: Bytes,
    },
    /// The stream of this channel has ended.
    Ended(u8),
    /// A ping, to be answered with these bytes.
    Ping(Bytes),
    /// The websocket was closed normally.
    Closed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Incoming {
    Nothing,
    Bytes,
    /// The port's number comes first, in little endian; its first byte may have come.
    Port(u16, Option<u8>),
    Ended,
}

/// The channels of one websocket, as the client sees them.
#[derive(Debug)]
pub struct Channels {
    protocol: Protocol,
    channels: Vec<Incoming>,
    /// The channel of a fragmented message; `Some(None)` before its first byte.
    message: Option<Option<u8>>,
}

impl Channels {
    /// The channels of a command: 0 stdin, 1 stdout, 2 stderr, 3 status, 4 terminal size.
    pub fn of_command(protocol: Protocol) -> Self {
        use Incoming::{Bytes, Nothing};
        Self { protocol, channels: vec![Nothing, Bytes, Bytes, Bytes, Nothing], message: None }
    }

    /// The channels of ports: for each port, one for its bytes and one for its error.
    pub fn of_ports(protocol: Protocol, ports: &[u16]) -> Self {
        let channels = ports.iter().flat_map(|port| [Incoming::Port(*port, None); 2]).collect();
        Self { protocol, channels, message: None }
    }

    /// Reads a frame of the server.
    ///
    /// # Errors
    /// When the protocol does not allow the frame. Nothing may be handled after it.
    pub fn handle_frame(&mut self, frame: Frame) -> Result<Option<Event>, StreamError> {
        match frame {
            Frame::Binary(message) => self.message(message, true, true),
            Frame::Continuation(Item::FirstBinary(piece)) => self.message(piece, true, false),
            Frame::Continuation(Item::Continue(piece)) => self.message(piece, false, false),
            Frame::Continuation(Item::Last(piece)) => self.message(piece, false, true),
            Frame::Text(_) | Frame::Continuation(Item::FirstText(_)) => {
                Err(broken("a text message, where all are binary"))
            }
            Frame::Ping(bytes) => Ok(Some(Event::Ping(bytes))),
            Frame::Pong(_) => Ok(None),
            Frame::Close(None) => Ok(Some(Event::Closed)),
            Frame::Close(Some(reason)) if reason.code == CloseCode::Normal => Ok(Some(Event::Closed)),
            Frame::Close(Some(reason)) => {
                let text = shown(&reason.description.unwrap_or_default(), MAX_REASON);
                Err(StreamError::Closed { code: reason.code.into(), reason: text })
            }
        }
    }

    fn message(
        &mut self,
        mut piece: Bytes,
        is_first: bool,
        is_last: bool,
    ) -> Result<Option<Event>, StreamError> {
        let channel = match self.message.take() {
            Some(Some(channel)) if !is_first => Some(channel),
            _ => (!piece.is_empty()).then(|| piece.get_u8()),
        };
        self.message = (!is_last).then_some(channel);
        let Some(channel) = channel else { return Ok(None) };
        if channel == CLOSE && self.protocol.ends_channels() {
            if piece.is_empty() && !is_last {
                return Ok(None);
            }
            return self.ended(&piece).map(Some);
        }
        self.data(channel, piece)
    }

    fn ended(&mut self, piece: &[u8]) -> Result<Event, StreamError> {
        let ([number], Some(known)) =
            (piece, piece.first().and_then(|n| self.channels.get_mut(usize::from(*n))))
        else {
            return Err(broken("the end of a channel that does not exist"));
        };
        *known = Incoming::Ended;
        Ok(Event::Ended(*number))
    }

    fn data(&mut self, channel: u8, mut bytes: Bytes) -> Result<Option<Event>, StreamError> {
        let Some(incoming) = self.channels.get_mut(usize::from(channel)) else {
            return Err(StreamError::Protocol(format!("channel {channel}, which does not exist")));
        };
        while let (Incoming::Port(port, first), false) = (&mut *incoming, bytes.is_empty()) {
            match (first.take(), bytes.get_u8()) {
                (None, byte) => *first = Some(byte),
                (Some(lower), upper) if u16::from_le_bytes([lower, upper]) == *port => {
                    *incoming = Incoming::Bytes;
                }
                _ => return Err(broken("another port than the one that was asked for")),
            }
        }
        match incoming {
            // Servers announce channels with empty messages.
            _ if bytes.is_empty() => Ok(None),
            Incoming::Bytes => Ok(Some(Event::Data { channel, bytes })),
            Incoming::Ended => {
                Err(StreamError::Protocol(format!("bytes on channel {channel} after its end")))
            }
            _ => Err(StreamError::Protocol(format!("bytes on channel {channel}, which is the client's"))),
        }
    }

    /// The message that carries bytes to the server.
    pub fn data_message(&self, channel: u8, bytes: &[u8]) -> Message {
        Message::Binary([&[channel], bytes].concat().into())
    }

    /// The message that ends a channel; `None` if the protocol has none.
    pub fn end_message(&self, channel: u8) -> Option<Message> {
        self.protocol.ends_channels().then(|| Message::Binary(vec![CLOSE, channel].into()))
    }
}

/// A terminal would obey control characters.
pub(super) fn shown(text: &str, characters: usize) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(characters).collect()
}

fn broken(what: &str) -> StreamError {
    StreamError::Protocol(what.to_owned())
}

/// The bytes of a connection as frames.
#[derive(Debug)]
pub struct Frames {
    codec: Codec,
    bytes: BytesMut,
}

impl Default for Frames {
    fn default() -> Self {
        Self { codec: Codec::new().client_mode().max_size(MAX_FRAME), bytes: BytesMut::new() }
    }
}

impl Frames {
    /// Takes received bytes. Every frame must be taken out before more is put in.
    pub fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }

    /// The next frame; `None` until more has arrived.
    ///
    /// # Errors
    /// When the bytes are not a websocket frame, or the frame is too long.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, StreamError> {
        match self.codec.decode(&mut self.bytes) {
            // The codec waits for a whole frame of any claimed length.
            Ok(None) if self.bytes.len() > MAX_FRAME + MAX_HEAD => Err(StreamError::TooLarge(MAX_FRAME)),
            Ok(frame) => Ok(frame),
            Err(ProtocolError::Overflow) => Err(StreamError::TooLarge(MAX_FRAME)),
            Err(error) => Err(StreamError::Protocol(error.to_string())),
        }
    }

    /// Appends a message of the client to `out`.
    ///
    /// # Errors
    /// None in practice: the messages made here are whole.
    pub fn encode(&mut self, message: Message, out: &mut BytesMut) -> Result<(), StreamError> {
        self.codec.encode(message, out).map_err(|error| StreamError::Protocol(error.to_string()))
    }

    /// The number of bytes that wait for the rest of their frame.
    pub fn unfinished(&self) -> usize {
        self.bytes.len()
    }
}

/// The server proves that it has read this.
#[derive(Debug)]
pub(crate) struct Key(String);

/// Makes a websocket handshake of a request. `protocols`: best first.
pub(crate) fn offer<T>(request: &mut Request<T>, protocols: &[Protocol]) -> Key {
    // Not secret: it shows that no cache answers.
    let half = |number: u8| RandomState::new().hash_one(number).to_be_bytes();
    let key = Key(STANDARD.encode([half(0), half(1)].concat()));
    let names: Vec<_> = protocols.iter().map(|protocol| protocol.name()).collect();
    let text = |text: &str| HeaderValue::from_str(text).expect("letters, digits and punctuation");
    for (name, value) in [
        (UPGRADE, "websocket"),
        (CONNECTION, "Upgrade"),
        (SEC_WEBSOCKET_VERSION, "13"),
        (SEC_WEBSOCKET_KEY, &*key.0),
        (SEC_WEBSOCKET_PROTOCOL, &*names.join(", ")),
    ] {
        request.headers_mut().insert(name, text(value));
    }
    key
}

pub(crate) fn accepted(
    key: &Key,
    protocols: &[Protocol],
    headers: &HeaderMap,
) -> Result<Protocol, StreamError> {
    let wrong = |what: &'static str| Err(StreamError::Handshake(what));
    if !lists(headers, &UPGRADE, "websocket") {
        return wrong("its answer does not switch to a websocket");
    }
    if !lists(headers, &CONNECTION, "upgrade") {
        return wrong("its answer does not switch the connection");
    }
    let proof = hash_key(key.0.as_bytes());
    if headers.get(SEC_WEBSOCKET_ACCEPT).is_none_or(|value| value.as_bytes() != proof) {
        return wrong("its answer is not the answer to this request");
    }
    let chosen = headers.get(SEC_WEBSOCKET_PROTOCOL).map(HeaderValue::as_bytes);
    match protocols.iter().find(|protocol| Some(protocol.name().as_bytes()) == chosen) {
        Some(protocol) => Ok(*protocol),
        None => wrong("it chose none of the offered protocols"),
    }
}

fn lists(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
