//! A watch over a websocket: the same lines, each in a text frame of its own; in protobuf the same messages, each binary.
//!
//! Answers: how does a client that cannot read chunks as they come (a browser, an old fabric8) watch? The framework
//! handles frames and the handshake.
//! 1. As on a real server a handshake needs an `Origin`, and one protocol, if any, is echoed.
//! 2. At the end of the watch a close frame is sent; a client's close, or the end of its connection, ends the watch.
//! 3. What the client sends beside pings and its close is ignored.
use std::io;
use std::pin::Pin;

use actix_http::ws::{CloseCode, Codec, Frame, Message, hash_key};
use actix_web::http::header::{
    CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use actix_web::{HttpResponse, web};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use tokio_util::codec::{Decoder as _, Encoder as _};

use crate::cluster::encoding::Encoding;
use crate::cluster::status::ApiError;

/// The protocol that carries a bearer token, for browsers, which cannot set the header.
const BEARER: &str = "base64url.bearer.authorization.k8s.io.";
/// How many bytes encode the length of a message in a watch.
const LENGTH: usize = 4;
/// The longest frame that is read of a client.
const INBOUND: usize = 64 * 1024;

/// Whether a request asks for a websocket.
pub(crate) fn is_asked(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

pub(crate) fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// The bearer token among the protocols of a handshake, decoded.
pub(crate) fn token(headers: &HeaderMap) -> Option<String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    if !is_asked(headers) {
        return None;
    }
    let encoded = protocols(headers).find_map(|protocol| protocol.strip_prefix(BEARER))?;
    String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()
}

/// Answers a handshake with the chunks of a watch as frames.
///
/// # Errors 400 and 403 for an invalid handshake.
pub(crate) fn answer<S>(
    headers: &HeaderMap,
    payload: web::Payload,
    chunks: S,
    encoding: Encoding,
) -> Result<HttpResponse, ApiError>
where
    S: Stream<Item = io::Result<Bytes>> + 'static,
{
    let Some(key) = headers.get(SEC_WEBSOCKET_KEY) else {
        return Err(ApiError::bad_request("mismatch challenge/response").into_plain());
    };
    if !headers.contains_key(ORIGIN) {
        return Ok(HttpResponse::Forbidden().finish());
    }
    let wanted: Vec<&str> = protocols(headers).filter(|protocol| !protocol.starts_with(BEARER)).collect();
    let mut head = HttpResponse::SwitchingProtocols();
    head.upgrade("websocket");
    let accept = HeaderValue::from_bytes(&hash_key(key.as_bytes())).expect("base64 is a header's text");
    head.insert_header((SEC_WEBSOCKET_ACCEPT, accept));
    match wanted.as_slice() {
        [] => {}
        [one] => {
            head.insert_header((SEC_WEBSOCKET_PROTOCOL, *one));
        }
        _ => return Err(ApiError::bad_request("bad websocket protocol").into_plain()),
    }
    let socket = Socket {
        binary: encoding == Encoding::Protobuf,
        chunks: Box::pin(chunks),
        payload: Some(payload),
        codec: Codec::new().max_size(INBOUND),
        inbound: BytesMut::new(),
        over: false,
    };
    let mut answer = head.streaming(futures_util::stream::unfold(socket, Socket::next));
    answer.headers_mut().remove(CONTENT_TYPE);
    Ok(answer)
}

/// One open websocket.
struct Socket {
    /// Whether the chunks consist of messages with a length prefix, not of lines.
    binary: bool,
    chunks: Pin<Box<dyn Stream<Item = io::Result<Bytes>>>>,
    /// What the client sends, until it ends.
    payload: Option<web::Payload>,
    codec: Codec,
    inbound: BytesMut,
    over: bool,
}

impl Socket {
    /// The next bytes to send.
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        while !self.over {
            let Some(payload) = &mut self.payload else { return None };
            let out = tokio::select! {
                chunk = self.chunks.next() => self.sent(chunk),
                piece = payload.next() => self.heard(piece.and_then(Result::ok)),
            };
            match out {
                Ok(out) if out.is_empty() => {}
                other => return Some((other, self)),
            }
        }
        None
    }

    /// A chunk of the watch as frames, or its end as a close.
    fn sent(&mut self, chunk: Option<io::Result<Bytes>>) -> io::Result<Bytes> {
        let mut out = BytesMut::new();
        let Some(chunk) = chunk.transpose()? else {
            self.over = true;
            self.put(Message::Close(Some(CloseCode::Normal.into())), &mut out)?;
            return Ok(out.freeze());
        };
        if self.binary {
            let mut rest = chunk;
            while rest.len() >= LENGTH {
                let length = usize::try_from(rest.get_u32()).unwrap_or(usize::MAX);
                let message = rest.split_to(length.min(rest.len()));
                self.put(Message::Binary(message), &mut out)?;
            }
            return Ok(out.freeze());
        }
        for line in chunk.split_inclusive(|byte| *byte == b'\n') {
            let text = String::from_utf8_lossy(line).into_owned();
            self.put(Message::Text(text.into()), &mut out)?;
        }
        Ok(out.freeze())
    }

    /// The answer to the client's bytes: a pong, a close, or usually nothing.
    fn heard(&mut self, piece: Option<Bytes>) -> io::Result<Bytes> {
        let mut out = BytesMut::new();
        let Some(piece) = piece else {
            self.over = true;
            return Ok(Bytes::new());
        };
        self.inbound.extend_from_slice(&piece);
        loop {
            match self.codec.decode(&mut self.inbound) {
                Ok(Some(Frame::Ping(data))) => self.put(Message::Pong(data), &mut out)?,
                Ok(Some(Frame::Close(_))) => {
                    self.over = true;
                    self.put(Message::Close(Some(CloseCode::Normal.into())), &mut out)?;
                    return Ok(out.freeze());
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(out.freeze()),
                Err(_broken) => {
                    self.over = true;
                    return Ok(out.freeze());
                }
            }
        }
    }

    fn put(&mut self, message: Message, out: &mut BytesMut) -> io::Result<()> {
        self.codec.encode(message, out).map_err(io::Error::other)
    }
}
