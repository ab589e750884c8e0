//! A websocket whose messages belong to channels, as kubelets serve them: commands and ports.
//!
//! Answers: how do the streams of a command get into frames, and the client's frames to the command?
//! 1. The first protocol that the client names and that is known here is chosen: v5, which can end channels, or v4.
//! 2. Bounded both ways: what the client does not read is not made, what the command does not read is not received.
//! 3. A command whose client is gone is dropped. The end of a command is its status, then a close.
use std::collections::VecDeque;
use std::io;

use actix_http::ws::{CloseCode, Codec, Frame, Message, hash_key};
use actix_web::http::header::{
    CONTENT_TYPE, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
};
use actix_web::{HttpResponse, web};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use tokio::sync::mpsc;
use tokio_util::codec::{Decoder as _, Encoder as _};

use super::websocket;
use crate::agent::Running;
use crate::cluster::status::ApiError;

const V4: &str = "v4.channel.k8s.io";
const V5: &str = "v5.channel.k8s.io";
/// The channel on which v5 ends another one.
const CLOSE: u8 = 255;
/// So many messages wait for the client, and for the command.
pub(crate) const WAITING: usize = 4;
/// The longest frame that is read of a client.
const INBOUND: usize = 1 << 20;

/// What is behind a websocket.
pub(crate) struct Session {
    /// The work; what it gives is sent at its end: a channel and its bytes.
    pub(crate) work: LocalBoxFuture<'static, Option<(u8, Bytes)>>,
    /// What it says.
    pub(crate) said: mpsc::Receiver<(u8, Bytes)>,
    /// What it hears; no bytes mean the end of a channel.
    pub(crate) heard: mpsc::Sender<(u8, Option<Bytes>)>,
    pub(crate) _running: Running,
}

/// Answers a handshake with a session.
///
/// # Errors
/// 400 for a request without a websocket, or without a protocol that is known here.
pub(crate) fn answer(
    headers: &HeaderMap,
    payload: web::Payload,
    v4_only: bool,
    session: Session,
) -> Result<HttpResponse, ApiError> {
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| websocket::is_asked(headers));
    let Some(key) = key else { return Err(ApiError::bad_request("Upgrade request required")) };
    let known = |name: &&str| *name == V4 || (*name == V5 && !v4_only);
    let Some(protocol) = websocket::protocols(headers).find(known) else {
        return Err(ApiError::bad_request("no protocol that the client names is known here"));
    };
    let mut head = HttpResponse::SwitchingProtocols();
    head.upgrade("websocket");
    let accept = HeaderValue::from_bytes(&hash_key(key.as_bytes())).expect("base64 is a header's text");
    head.insert_header((SEC_WEBSOCKET_ACCEPT, accept));
    head.insert_header((SEC_WEBSOCKET_PROTOCOL, protocol));
    let socket = Socket {
        session,
        payload,
        codec: Codec::new().max_size(INBOUND),
        inbound: BytesMut::new(),
        unheard: VecDeque::new(),
        ends_channels: protocol == V5,
        is_over: false,
    };
    let mut answer = head.streaming(futures_util::stream::unfold(socket, Socket::next));
    answer.headers_mut().remove(CONTENT_TYPE);
    Ok(answer)
}

/// What happened to a websocket.
enum Moved {
    Said(u8, Bytes),
    Done(Option<(u8, Bytes)>),
    Room(mpsc::OwnedPermit<(u8, Option<Bytes>)>),
    Arrived(Bytes),
    Gone,
}

/// One open websocket.
struct Socket {
    session: Session,
    payload: web::Payload,
    codec: Codec,
    inbound: BytesMut,
    /// What the work has not heard yet.
    unheard: VecDeque<(u8, Option<Bytes>)>,
    ends_channels: bool,
    is_over: bool,
}

impl Socket {
    /// The next bytes to send.
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        while !self.is_over {
            let mut out = BytesMut::new();
            let step = self.step(&mut out).await;
            match step {
                Err(error) => return Some((Err(error), self)),
                Ok(()) if out.is_empty() => {}
                Ok(()) => return Some((Ok(out.freeze()), self)),
            }
        }
        None
    }

    async fn step(&mut self, out: &mut BytesMut) -> io::Result<()> {
        match self.moved().await {
            Moved::Said(channel, bytes) => self.put(data(channel, &bytes), out),
            Moved::Done(last) => {
                self.is_over = true;
                while let Ok((channel, bytes)) = self.session.said.try_recv() {
                    self.put(data(channel, &bytes), out)?;
                }
                if let Some((channel, bytes)) = last {
                    self.put(data(channel, &bytes), out)?;
                }
                self.put(Message::Close(Some(CloseCode::Normal.into())), out)
            }
            Moved::Room(place) => {
                if let Some(next) = self.unheard.pop_front() {
                    drop(place.send(next));
                }
                Ok(())
            }
            Moved::Arrived(piece) => {
                self.inbound.extend_from_slice(&piece);
                self.hear(out)
            }
            Moved::Gone => {
                self.is_over = true;
                Ok(())
            }
        }
    }

    /// Waits for one thing. What is said comes first; there is an end to it, because the work goes on only behind it.
    async fn moved(&mut self) -> Moved {
        let Session { work, said, heard, .. } = &mut self.session;
        tokio::select! {
            biased;
            Some((channel, bytes)) = said.recv() => Moved::Said(channel, bytes),
            last = work => Moved::Done(last),
            Ok(place) = heard.clone().reserve_owned(), if !self.unheard.is_empty() => Moved::Room(place),
            piece = self.payload.next(), if self.unheard.is_empty() => match piece {
                Some(Ok(piece)) => Moved::Arrived(piece),
                _ => Moved::Gone,
            },
        }
    }

    /// Handles the client's frames.
    fn hear(&mut self, out: &mut BytesMut) -> io::Result<()> {
        loop {
            match self.codec.decode(&mut self.inbound) {
                Ok(Some(Frame::Binary(mut message))) if !message.is_empty() => {
                    let channel = message.get_u8();
                    let heard = match (channel, self.ends_channels) {
                        (CLOSE, true) => (message.first().copied().unwrap_or_default(), None),
                        _ => (channel, Some(message)),
                    };
                    self.unheard.push_back(heard);
                }
                Ok(Some(Frame::Ping(data))) => self.put(Message::Pong(data), out)?,
                Ok(Some(Frame::Close(_))) | Err(_) => {
                    self.is_over = true;
                    return self.put(Message::Close(Some(CloseCode::Normal.into())), out);
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
            }
        }
    }

    fn put(&mut self, message: Message, out: &mut BytesMut) -> io::Result<()> {
        self.codec.encode(message, out).map_err(io::Error::other)
    }
}

fn data(channel: u8, bytes: &[u8]) -> Message {
    Message::Binary([&[channel], bytes].concat().into())
}
