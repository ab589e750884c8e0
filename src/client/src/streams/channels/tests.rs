//! The channels against frames of a server: each rule, and any cutting of any messages; the handshake before them.

use actix_http::ws::CloseReason;
use proptest::prelude::*;

use super::*;

fn binary(bytes: &[u8]) -> Frame {
    Frame::Binary(Bytes::copy_from_slice(bytes))
}

fn data(channel: u8, bytes: &[u8]) -> Event {
    Event::Data { channel, bytes: Bytes::copy_from_slice(bytes) }
}

/// What the frames mean, up to the first that is not allowed.
fn events(
    mut channels: Channels,
    frames: impl IntoIterator<Item = Frame>,
) -> Result<Vec<Event>, StreamError> {
    frames.into_iter().filter_map(|frame| channels.handle_frame(frame).transpose()).collect()
}

#[test]
fn str_16_the_first_byte_of_a_message_is_its_channel_and_an_empty_one_means_nothing() {
    let channels = Channels::of_command(Protocol::V4);
    let frames = [binary(&[]), binary(&[1]), binary(&[0]), binary(b"\x01out"), binary(b"\x02err")];
    assert_eq!(events(channels, frames).unwrap(), [data(1, b"out"), data(2, b"err")]);
}

#[test]
fn str_16_of_a_message_in_fragments_only_the_first_names_the_channel() {
    let piece = |bytes: &'static [u8]| Bytes::from_static(bytes);
    let frames = [
        Frame::Continuation(Item::FirstBinary(piece(b""))),
        Frame::Continuation(Item::Continue(piece(b"\x01a"))),
        Frame::Ping(piece(b"?")),
        Frame::Continuation(Item::Continue(piece(b"\x02b"))),
        Frame::Continuation(Item::Last(piece(b"c"))),
        binary(b"\x02d"),
    ];
    let expected = [data(1, b"a"), Event::Ping(piece(b"?")), data(1, b"\x02b"), data(1, b"c"), data(2, b"d")];
    assert_eq!(events(Channels::of_command(Protocol::V5), frames).unwrap(), expected);
}

// STR-17: given v5, when a channel is ended by either side, then the others go on; v4 has no such message.
// - a v5 ends one channel, v4 none
// - b the others go on: `str_17_when_the_server_ends_one_stream_the_others_go_on`
#[test]
fn str_17_v5_ends_single_channels_and_v4_has_no_message_for_it() {
    let channels = Channels::of_command(Protocol::V5);
    assert_eq!(channels.end_message(0), Some(Message::Binary(Bytes::from_static(&[255, 0]))));
    assert_eq!(events(channels, [binary(&[255, 1])]).unwrap(), [Event::Ended(1)]);
    let halves = [Item::FirstBinary(Bytes::from_static(&[255])), Item::Last(Bytes::from_static(&[2]))]
        .map(Frame::Continuation);
    assert_eq!(events(Channels::of_command(Protocol::V5), halves).unwrap(), [Event::Ended(2)]);
    let channels = Channels::of_command(Protocol::V4);
    assert_eq!(channels.end_message(0), None);
    assert!(matches!(events(channels, [binary(&[255, 1])]), Err(StreamError::Protocol(_))));
}

#[test]
fn str_18_what_the_protocol_does_not_allow_is_an_error() {
    let text = Bytes::from_static(b"\x01out");
    for frames in [
        vec![Frame::Text(text.clone())],
        vec![Frame::Continuation(Item::FirstText(text))],
        vec![binary(b"\x05of no channel")],
        vec![binary(b"\x00of the client")],
        vec![binary(b"\x04of the client")],
        vec![binary(&[255])],
        vec![binary(&[255, 9])],
        vec![binary(&[255, 1, 2])],
        vec![binary(&[255, 1]), binary(b"\x01after its end")],
    ] {
        let sent = format!("{frames:?}");
        let found = events(Channels::of_command(Protocol::V5), frames);
        assert!(matches!(found, Err(StreamError::Protocol(_))), "{sent}: {found:?}");
    }
}

// STR-18: given what the protocol does not allow (text, a channel that does not exist or is the client's,
// bytes after an end, another port's number), when it arrives, then it is an error, and no byte reaches a
// stream.
// - a each is an error: `str_18_what_the_protocol_does_not_allow_is_an_error`
// - b so is another port's number
#[test]
fn str_18_the_channels_of_a_port_begin_with_its_number() {
    let ports = || Channels::of_ports(Protocol::V4, &[80, 8443]);
    let frames = [binary(&[0, 80, 0]), binary(b"\x00http"), binary(&[2, 0xfb]), binary(b"\x02\x20tls")];
    assert_eq!(events(ports(), frames).unwrap(), [data(0, b"http"), data(2, b"tls")]);
    for wrong in [binary(&[0, 81, 0]), binary(&[3, 80, 0]), binary(b"\x04?")] {
        let sent = format!("{wrong:?}");
        assert!(matches!(events(ports(), [wrong]), Err(StreamError::Protocol(_))), "{sent}");
    }
}

// STR-19: given a close, when it has the normal code or none, then it is an end in order; with another it is
// an error with the code and the reason, shortened and without control characters.
#[test]
fn str_19_a_close_is_an_end_in_order_only_with_the_normal_code_or_none() {
    let closed =
        |reason: Option<CloseReason>| events(Channels::of_command(Protocol::V5), [Frame::Close(reason)]);
    assert_eq!(closed(None).unwrap(), [Event::Closed]);
    assert_eq!(closed(Some(CloseCode::Normal.into())).unwrap(), [Event::Closed]);
    let long = format!("\u{1b}[31m{}", "no ".repeat(1000));
    let Err(StreamError::Closed { code: 1011, reason }) = closed(Some((CloseCode::Error, long).into()))
    else {
        panic!("an error of the server")
    };
    assert!(reason.starts_with("[31mno no") && reason.chars().count() == 200, "{reason}");
}

// STR-20: given a frame above 256 KiB, whatever length it claims, when it arrives, then it is an error, and
// at most one frame and its head are kept.
#[test]
fn str_20_a_frame_that_is_too_long_is_an_error_before_it_is_kept() {
    let mut frames = Frames::default();
    // It says that it is as long as a frame can be.
    frames.push(&[0x82, 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(frames.next_frame().unwrap(), None);
    let mut pushed = 0;
    let error = loop {
        frames.push(&[0; 4096]);
        pushed += 4096;
        if let Err(error) = frames.next_frame() {
            break error;
        }
    };
    assert!(matches!(error, StreamError::TooLarge(MAX_FRAME)), "{error}");
    assert!(pushed <= MAX_FRAME + 4096 + MAX_HEAD, "{pushed}");
    let mut whole = BytesMut::new();
    Codec::new().encode(Message::Binary(vec![1; MAX_FRAME].into()), &mut whole).unwrap();
    let mut frames = Frames::default();
    frames.push(&whole);
    assert!(frames.next_frame().unwrap().is_some(), "the longest is read");
}

/// A message of a server: its channel, its bytes, and where it is cut into fragments.
fn message() -> impl Strategy<Value = (u8, Vec<u8>, Vec<usize>)> {
    (1..4u8, prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(0..40usize, 0..3))
}

fn encoded(messages: &[(u8, Vec<u8>, Vec<usize>)]) -> Vec<u8> {
    let (mut codec, mut out) = (Codec::new(), BytesMut::new());
    for (channel, bytes, cuts) in messages {
        let whole = [&[*channel], &bytes[..]].concat();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| (*cut).min(whole.len())).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        let pieces: Vec<_> =
            cuts.windows(2).map(|pair| Bytes::copy_from_slice(&whole[pair[0]..pair[1]])).collect();
        let last = pieces.len() - 1;
        for (number, piece) in pieces.into_iter().enumerate() {
            let message = match number {
                0 if last == 0 => Message::Binary(piece),
                0 => Message::Continuation(Item::FirstBinary(piece)),
                number if number == last => Message::Continuation(Item::Last(piece)),
                _ => Message::Continuation(Item::Continue(piece)),
            };
            codec.encode(message, &mut out).unwrap();
            if number % 2 == 1 {
                codec.encode(Message::Ping(Bytes::new()), &mut out).unwrap();
            }
        }
    }
    out.to_vec()
}

proptest! {
    // STR-16: given messages of a server, cut into any fragments and chunks, when they are read, then each
    // channel gets its bytes in order, and empty messages and pings between fragments change nothing.
    // - a any fragments and chunks
    // - b only the first fragment names the channel:
    //   `str_16_of_a_message_in_fragments_only_the_first_names_the_channel`
    // - c empty messages mean nothing:
    //   `str_16_the_first_byte_of_a_message_is_its_channel_and_an_empty_one_means_nothing`
    #[test]
    fn str_16_each_channel_gets_its_bytes_in_order_however_messages_and_chunks_are_cut(
        messages in prop::collection::vec(message(), 0..8),
        chunk in 1..50usize,
    ) {
        let (mut frames, mut channels) = (Frames::default(), Channels::of_command(Protocol::V5));
        let mut received = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        for chunk in encoded(&messages).chunks(chunk) {
            frames.push(chunk);
            while let Some(frame) = frames.next_frame().unwrap() {
                if let Some(Event::Data { channel, bytes }) = channels.handle_frame(frame).unwrap() {
                    prop_assert!(!bytes.is_empty());
                    received[usize::from(channel)].extend_from_slice(&bytes);
                }
            }
        }
        prop_assert_eq!(frames.unfinished(), 0);
        let mut expected = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        for (channel, bytes, _) in &messages {
            expected[usize::from(*channel)].extend_from_slice(bytes);
        }
        prop_assert_eq!(received, expected);
    }
}

const BOTH: [Protocol; 2] = [Protocol::V5, Protocol::V4];

fn answer(key: &Key, change: (HeaderName, Option<&str>)) -> HeaderMap {
    let proof = hash_key(key.0.as_bytes());
    let mut headers = HeaderMap::new();
    headers.insert(UPGRADE, HeaderValue::from_static("WebSocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, HeaderValue::from_bytes(&proof).expect("base64"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("v4.channel.k8s.io"));
    match change {
        (name, None) => drop(headers.remove(name)),
        (name, Some(value)) => drop(headers.insert(name, value.parse().expect("a value"))),
    }
    headers
}

#[test]
fn str_05_the_request_offers_v5_before_v4_with_a_key_of_its_own() {
    let mut request = Request::new(());
    let key = offer(&mut request, &BOTH);
    assert_eq!(request.headers()[SEC_WEBSOCKET_PROTOCOL], "v5.channel.k8s.io, v4.channel.k8s.io");
    assert_eq!(STANDARD.decode(&key.0).expect("base64").len(), 16);
    assert_ne!(offer(&mut request, &BOTH).0, key.0);
}

#[test]
fn str_05_an_answer_that_is_not_to_this_request_or_chooses_no_offered_protocol_is_refused() {
    let key = offer(&mut Request::new(()), &BOTH);
    let unchanged = || (UPGRADE, Some("websocket"));
    assert_eq!(accepted(&key, &BOTH, &answer(&key, unchanged())).expect("accepted"), Protocol::V4);
    for (name, value) in [
        (UPGRADE, None),
        (UPGRADE, Some("SPDY/3.1")),
        (CONNECTION, Some("close")),
        (SEC_WEBSOCKET_ACCEPT, None),
        (SEC_WEBSOCKET_ACCEPT, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
        (SEC_WEBSOCKET_PROTOCOL, None),
        (SEC_WEBSOCKET_PROTOCOL, Some("v1.channel.k8s.io")),
    ] {
        let refused = accepted(&key, &BOTH, &answer(&key, (name.clone(), value)));
        assert!(matches!(refused, Err(StreamError::Handshake(_))), "{name}: {value:?}");
    }
    assert!(accepted(&key, &[Protocol::V5], &answer(&key, unchanged())).is_err(), "v4 was not offered");
}
