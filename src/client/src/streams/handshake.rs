//! Asks a server to speak a websocket with channels, and checks its answer.
//!
//! Answers "did the server switch, and which version of the channels does it speak?" (RFC 6455 section 4.1.)
//! Invariants:
//! 1. An answer 101 that is not the answer to this request is an error: nothing is read of such a connection.
//! 2. Of several protocols the server chooses one that was offered; a server that chooses none is not spoken to.
//!
//! Read next: `channels.rs`, the protocols.

use std::hash::{BuildHasher, RandomState};

use actix_http::ws::hash_key;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request};

use super::channels::Protocol;
use crate::error::StreamError;

/// What the server must prove that it has read.
#[derive(Debug)]
pub(crate) struct Key(String);

/// Makes a request one for a websocket with one of these protocols, the best first.
pub(crate) fn offer<T>(request: &mut Request<T>, protocols: &[Protocol]) -> Key {
    // It need not be secret: it shows that the answer is not one of a cache.
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

/// Checks the head of an answer 101, and gives the protocol that the server has chosen.
///
/// # Errors
/// [`StreamError::Handshake`] when it is not the answer to the request of this key, or chooses no offered protocol.
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

/// Whether the values of a header list this word.
fn lists(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
