//! Sends an upgrade request on its own connection; dropping the stream closes it. awc's websocket client drops the body of a
//! refusal, which says why: the codec below awc is used.
//!
//! An orderly end of the connection ends the stream; the reader decides whether it may end there.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use actix_codec::Framed;
use actix_http::body::BodySize;
use actix_http::error::ParseError;
use actix_http::h1::{ClientCodec, Message, MessageType};
use actix_http::{ConnectionType, RequestHead};
use bytes::{Buf, Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{Request, Response, header};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::super::connecting::socket::is_orderly_end;
use super::super::connecting::{self, Offered};
use super::super::{Body, SendCheck, Switched, TransportError};
use super::read_ahead::ReadAhead;
use super::{answer_head, body_of, broken, header_of};
use crate::connection_settings::ConnectionSettings;
use crate::identity::Identity;

pub(in crate::transport) async fn send(
    settings: &Arc<ConnectionSettings>,
    identity: &Identity,
    request: &Request<Bytes>,
) -> Result<Response<Body>, TransportError> {
    let head = head_of(settings, request)?;
    let socket = connecting::connect(settings, identity, Offered::Http1)
        .await
        .map_err(|source| connecting::not_connected(settings, source))?;
    SendCheck::ask_of(request)?;
    let mut framed = Framed::new(ReadAhead::for_upgrade(socket), ClientCodec::default());
    let message = Message::Item((head.into(), BodySize::None));
    let broken = |source| connecting::refused_at_last(settings, broken(source));
    Pin::new(&mut framed).write(message).map_err(broken)?;
    poll_fn(|context| Pin::new(&mut framed).flush(context)).await.map_err(broken)?;
    let head = match framed.next().await {
        Some(Ok(head)) => head,
        Some(Err(ParseError::Io(source))) => return Err(broken(source)),
        Some(Err(error)) => return Err(TransportError::Malformed(error.to_string())),
        None => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
    };
    let status = head.status.as_u16();
    if status == 101 {
        let head = answer_head(status, head.headers())?;
        let mut answer = head.map(|()| stream::empty().boxed_local());
        let parts = framed.into_parts();
        Switched::attach(&mut answer, Box::new(Stream { first: parts.read_buf, socket: parts.io }));
        return Ok(answer);
    }
    let answer = answer_head(status, head.headers())?;
    let payload = match framed.codec_ref().message_type() {
        MessageType::None => stream::empty().boxed_local(),
        _ => {
            let chunks = framed.into_map_codec(ClientCodec::into_payload_codec);
            let whole = chunks.take_while(|read| std::future::ready(!matches!(read, Ok(None))));
            whole.filter_map(|read| std::future::ready(read.transpose())).boxed_local()
        }
    };
    Ok(answer.map(|()| body_of(payload)))
}

fn head_of(settings: &ConnectionSettings, request: &Request<Bytes>) -> Result<RequestHead, TransportError> {
    let invalid = |what: &dyn std::fmt::Display| TransportError::Request(what.to_string());
    let endpoint = &settings.endpoint;
    let mut head = RequestHead::default();
    head.method = request.method().as_str().parse().map_err(|error| invalid(&error))?;
    head.uri = endpoint.path_of(request.uri()).parse().map_err(|error| invalid(&error))?;
    head.set_connection_type(ConnectionType::Upgrade);
    let host = http::HeaderValue::from_str(&endpoint.authority).map_err(|error| invalid(&error))?;
    let host = Some((&header::HOST, &host)).filter(|_| !request.headers().contains_key(header::HOST));
    // The codec writes the header Connection.
    let headers = request.headers().iter().filter(|(name, _)| *name != header::CONNECTION);
    for header in host.into_iter().chain(headers) {
        let (name, value) = header_of(header)?;
        head.headers.append(name, value);
    }
    Ok(head)
}

struct Stream {
    /// Came with the head of the answer.
    first: BytesMut,
    socket: ReadAhead,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let length = self.first.len().min(buffer.remaining());
            buffer.put_slice(&self.first[..length]);
            self.first.advance(length);
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut self.socket).poll_read(context, buffer) {
            Poll::Ready(Err(error)) if is_orderly_end(&error) => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
