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
    play_with(Alone)
}

fn play_with(side: impl Side + Send + 'static) -> Played {
    let (server, connection) = duplex(WIRE);
    Played { server, ..play_over(Box::new(connection), side) }
}

fn play_over(connection: Connection, side: impl Side + Send + 'static) -> Played {
    let (server, _) = duplex(1);
    let (keep, wanted) = mpsc::channel(1);
    let stream = |channel, sends| {
        let (near, far) = duplex(PIPE);
        let ending = Ending::default();
        (near, ending.clone(), Stream { channel, far: Far { pipe: far, ending }, sends })
    };
    let ((stdin, _, input), (stdout, ending, output)) = (stream(0, true), stream(1, false));
    let engine = Engine {
        connection,
        channels: Channels::of_command(Protocol::V5),
        streams: vec![input, output],
        side,
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

// STR-12: given a reader that does not read, or a server that does not, when the other side sends on, then it
// waits at a bound in bytes, and goes on when somebody reads.
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

// STR-21: given pings, when the connection takes nothing, then they cost no memory, and the newest is
// answered once it does.
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

/// Says that all is over from the beginning.
struct Over;

impl Side for Over {
    fn handle_data(&mut self, _: u8, _: &[u8]) -> Option<(u8, StreamError)> {
        None
    }
    fn handle_end(&mut self, _: Option<&StreamError>) {}
    fn is_over(&self) -> bool {
        true
    }
    fn poll_message(&mut self, _: &mut Context<'_>) -> Poll<(u8, Vec<u8>)> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn str_22_the_end_of_the_connection_behind_the_status_is_clean_unless_a_frame_was_cut() {
    for (cut, expected) in [(0, "clean"), (1, "was cut off")] {
        let Played { mut server, mut codec, mut stdout, ending, engine, stdin: _stdin, keep: _keep, .. } =
            play_with(Over);
        let mut bytes = BytesMut::new();
        codec.encode(out(b"before"), &mut bytes).unwrap();
        let whole = bytes.len();
        codec.encode(out(b"more"), &mut bytes).unwrap();
        server.write_all(&bytes[..whole + cut]).await.unwrap();
        server.shutdown().await.unwrap();
        let mut read = String::new();
        stdout.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "before");
        engine.await.unwrap();
        let found = ending.error().map_or_else(|| "clean".to_owned(), |error| error.to_string());
        assert!(found.contains(expected), "{found}, not {expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn str_22_what_a_server_sent_before_it_closed_is_delivered_although_input_waits() {
    let (outgoing, incoming) = (ClosedForWrites, duplex(WIRE));
    let (mut server, connection) = incoming;
    let connection = Box::new(tokio::io::join(connection, outgoing));
    let mut played = play_over(connection, Alone);
    let mut bytes = BytesMut::new();
    let mut codec = Codec::new();
    codec.encode(out(b"the last words"), &mut bytes).unwrap();
    played.stdin.write_all(&[b'y'; 500]).await.unwrap();
    a_while().await;
    assert!(!played.engine.is_finished(), "it can still be read");
    server.write_all(&bytes).await.unwrap();
    drop(server);
    let mut read = String::new();
    played.stdout.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "the last words");
    played.engine.await.unwrap();
    let error = played.ending.error().expect("it was not ended in order");
    assert!(matches!(error, StreamError::Broken(_)), "{error}: why the input was not sent");
}

#[tokio::test(start_paused = true)]
async fn str_11_what_was_written_before_all_parts_are_dropped_is_sent() {
    let mut played = play();
    played.stdin.write_all(b"the last words").await.unwrap();
    drop((played.keep.take(), played.stdin));
    played.engine.await.unwrap();
    let mut heard = BytesMut::new();
    played.server.read_buf(&mut heard).await.unwrap();
    assert!(
        matches!(played.codec.decode(&mut heard).unwrap(), Some(Frame::Binary(bytes)) if &bytes[1..] == b"the last words")
    );
}

#[tokio::test(start_paused = true)]
async fn str_17_when_the_server_ends_one_stream_the_others_go_on() {
    let (mut server, connection) = duplex(WIRE);
    let (_keep, wanted) = mpsc::channel(1);
    let stream = |channel| {
        let (near, far) = duplex(PIPE);
        let ending = Ending::default();
        (near, ending.clone(), Stream { channel, far: Far { pipe: far, ending }, sends: false })
    };
    let ((mut stdout, ended, one), (mut stderr, open, two)) = (stream(1), stream(2));
    let engine = Engine {
        connection: Box::new(connection),
        channels: Channels::of_command(Protocol::V5),
        streams: vec![one, two],
        side: Alone,
        wanted,
        buffers: Buffers::default(),
    };
    let engine = tokio::spawn(engine.run());
    let (mut codec, mut bytes) = (Codec::new(), BytesMut::new());
    for message in [&[1, b'a'][..], &[255, 1], &[2, b'b']] {
        codec.encode(Message::Binary(Bytes::copy_from_slice(message)), &mut bytes).unwrap();
    }
    server.write_all(&bytes).await.unwrap();
    let (mut first, mut second) = (String::new(), [0]);
    stdout.read_to_string(&mut first).await.unwrap();
    stderr.read_exact(&mut second).await.unwrap();
    assert_eq!((first.as_str(), second), ("a", [b'b']));
    assert!(ended.error().is_none(), "ended in order");
    assert!(!engine.is_finished() && open.error().is_some(), "the other has not ended");
}

/// Takes no byte.
struct ClosedForWrites;

impl AsyncWrite for ClosedForWrites {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test(start_paused = true)]
async fn client_a_server_that_answers_pings_may_be_silent_for_hours_and_one_that_does_not_is_given_up() {
    let (mut played, limit) = (play(), Duration::from_secs(600));
    let began = tokio::time::Instant::now();
    while began.elapsed() < Duration::from_secs(2 * 3600) {
        match tokio::time::timeout(limit, played.hear()).await.expect("it asks") {
            Some(Frame::Ping(bytes)) => played.say(Message::Pong(bytes)).await,
            other => panic!("{other:?}"),
        }
    }
    let asked = tokio::time::Instant::now();
    let mut end = Vec::new();
    tokio::time::timeout(limit, played.stdout.read_to_end(&mut end)).await.expect("it ends").unwrap();
    let error = played.ending.error().expect("given up");
    assert!(matches!(error, StreamError::Silent(_)), "{error}");
    assert!(asked.elapsed() <= Duration::from_secs(120), "{:?}", asked.elapsed());
    played.engine.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn client_a_program_that_reads_nothing_for_an_hour_is_not_taken_for_a_silent_server() {
    let mut played = play();
    while tokio::time::timeout(Duration::from_secs(1), played.say(out(&[b'x'; 99]))).await.is_ok() {}
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(!played.engine.is_finished());
    drop(played.keep.take());
}
