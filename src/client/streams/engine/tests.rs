//! The engine against a server that is played byte by byte, on a paused clock.
//!
//! A simulated second passes only when nobody has anything to do: what has not happened then never will.

use std::time::Duration;

use actix_codec::{Decoder, Encoder};
use actix_http::ws::{Codec, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::super::channels::Protocol;
use super::super::pipes::{Ending, Far};
use super::*;

/// So many bytes fit into each pipe, and so many into the connection.
const PIPE: usize = 1000;
const WIRE: usize = 5000;

/// Nothing beside the streams.
struct Alone;

impl Side for Alone {
    fn handle_data(&mut self, _: u8, _: &[u8]) -> Option<(u8, StreamError)> {
        None
    }
    fn handle_end(&mut self, _: Option<&StreamError>) {}
    fn is_over(&self) -> bool {
        false
    }
    fn poll_message(&mut self, _: &mut Context<'_>) -> Poll<(u8, Vec<u8>)> {
        Poll::Pending
    }
}

struct Played {
    server: DuplexStream,
    codec: Codec,
    read: BytesMut,
    stdin: DuplexStream,
    stdout: DuplexStream,
    ending: Ending,
    keep: Option<mpsc::Sender<Infallible>>,
    engine: JoinHandle<()>,
}

fn play() -> Played {
    let (server, connection) = duplex(WIRE);
    let (keep, wanted) = mpsc::channel(1);
    let stream = |channel, sends| {
        let (near, far) = duplex(PIPE);
        let ending = Ending::default();
        (near, ending.clone(), Stream { channel, far: Far { pipe: far, ending }, sends })
    };
    let ((stdin, _, input), (stdout, ending, output)) = (stream(0, true), stream(1, false));
    let engine = Engine {
        connection: Box::new(connection),
        channels: Channels::of_command(Protocol::V5),
        streams: vec![input, output],
        side: Alone,
        wanted,
        buffers: Buffers::default(),
    };
    let engine = tokio::spawn(engine.run());
    Played {
        server,
        codec: Codec::new(),
        read: BytesMut::new(),
        stdin,
        stdout,
        ending,
        keep: Some(keep),
        engine,
    }
}

impl Played {
    async fn say(&mut self, message: Message) {
        let mut bytes = BytesMut::new();
        self.codec.encode(message, &mut bytes).unwrap();
        self.server.write_all(&bytes).await.unwrap();
    }

    async fn hear(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.codec.decode(&mut self.read).unwrap() {
                return Some(frame);
            }
            if self.server.read_buf(&mut self.read).await.unwrap() == 0 {
                return None;
            }
        }
    }
}

fn out(bytes: &[u8]) -> Message {
    Message::Binary([&[1], bytes].concat().into())
}

async fn a_while() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn str_12_what_is_not_read_is_not_taken_from_the_server_and_what_is_not_sent_not_from_the_program() {
    let mut played = play();
    let mut said = 0;
    while tokio::time::timeout(Duration::from_secs(1), played.say(out(&[b'x'; 99]))).await.is_ok() {
        said += 99;
    }
    assert!((PIPE..=PIPE + WIRE + 2 * PIECE).contains(&said), "{said}");
    let mut taken = 0;
    while let Ok(written) =
        tokio::time::timeout(Duration::from_secs(1), played.stdin.write(&[b'y'; 100])).await
    {
        taken += written.unwrap();
    }
    assert!((PIPE..=2 * PIPE + WIRE + OUTGOING + PIECE).contains(&taken), "{taken}");
    // Both go on as soon as somebody reads.
    let mut read = vec![0; said];
    played.stdout.read_exact(&mut read).await.unwrap();
    let mut heard = 0;
    while heard < taken {
        let Some(Frame::Binary(bytes)) = played.hear().await else { panic!("the input") };
        assert_eq!(bytes[0], 0);
        heard += bytes.len() - 1;
    }
    assert_eq!(heard, taken);
}

#[tokio::test(start_paused = true)]
async fn str_21_pings_are_answered_also_while_the_input_waits_and_only_the_newest_is_kept() {
    let mut played = play();
    played.say(Message::Ping("first".into())).await;
    assert_eq!(played.hear().await, Some(Frame::Pong("first".into())));
    // The server does not read: the input fills the connection, and pings cost nothing.
    while tokio::time::timeout(Duration::from_secs(1), played.stdin.write(&[b'y'; 500])).await.is_ok() {}
    for number in 0..1000 {
        played.say(Message::Ping(number.to_string().into())).await;
    }
    a_while().await;
    let mut pongs = Vec::new();
    while pongs.last().is_none_or(|last| last != "999") {
        match played.hear().await {
            Some(Frame::Pong(bytes)) => pongs.push(bytes),
            Some(Frame::Binary(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(pongs.len() < 10, "{pongs:?}");
}

#[tokio::test(start_paused = true)]
async fn str_11_when_all_parts_are_dropped_the_connection_is_closed_and_nothing_is_left() {
    let mut played = play();
    a_while().await;
    assert!(!played.engine.is_finished());
    drop(played.keep.take());
    (&mut played.engine).await.unwrap();
    assert!(matches!(played.hear().await, Some(Frame::Close(Some(_)))));
    assert_eq!(played.hear().await, None);
}

#[tokio::test(start_paused = true)]
async fn str_22_a_stream_ends_cleanly_only_where_the_server_ends_it() {
    for (last, expected) in [
        (Some(Message::Close(None)), "clean"),
        (Some(Message::Close(Some(CloseCode::Error.into()))), "closed the websocket with code 1011"),
        (Some(Message::Text("no".into())), "broke the websocket protocol"),
        (Some(out(b"")), "was cut off"),
        (None, "was cut off"),
    ] {
        let Played { mut server, mut codec, mut stdout, ending, engine, stdin: _stdin, keep: _keep, .. } =
            play();
        let mut bytes = BytesMut::new();
        codec.encode(out(b"before"), &mut bytes).unwrap();
        last.into_iter().for_each(|last| codec.encode(last, &mut bytes).unwrap());
        server.write_all(&bytes).await.unwrap();
        server.shutdown().await.unwrap();
        let mut read = String::new();
        stdout.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "before", "what came before the end is delivered");
        engine.await.unwrap();
        let found = ending.error().map_or_else(|| "clean".to_owned(), |error| error.to_string());
        assert!(found.contains(expected), "{found}, not {expected}");
    }
    assert!(matches!(Ending::default().error(), Some(StreamError::CutOff)), "the engine went away first");
}
