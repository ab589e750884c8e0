//! What the decoder sees of the heads of answers, in pieces of every size.

use proptest::prelude::*;

use super::*;

/// What passes of these bytes, read in pieces of this size; `None` if a head is still awaited.
fn passed(mut heads: Heads, request: &str, sent: &str, piece: usize) -> io::Result<Option<String>> {
    heads.handle_write(request.as_bytes());
    let (mut passed, mut has_passed) = (Vec::new(), false);
    for piece in sent.as_bytes().chunks(piece) {
        if !heads.awaits_head() {
            passed.extend_from_slice(piece);
        } else if let Some(seen) = heads.handle_read(piece)? {
            passed.extend_from_slice(&seen);
            has_passed = true;
        }
    }
    Ok(has_passed.then(|| String::from_utf8(passed).expect("text")))
}

const GET: &str = "GET /a HTTP/1.1\r\n\r\n";

#[track_caller]
fn check(request: &str, sent: &str, expected: &str) {
    for piece in 1..=sent.len() {
        let seen = passed(Heads::new(), request, sent, piece).expect("an answer");
        assert_eq!(seen.as_deref(), Some(expected), "in pieces of {piece}");
    }
}

#[test]
fn client_p2_interim_answers_are_dropped_and_the_final_one_passes_byte_for_byte() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
    for interim in [
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n",
        "HTTP/1.1 100\r\n\r\nHTTP/1.1 103 Early Hints\r\na: b\r\n\r\nHTTP/1.1 199 x\r\n\r\n",
        "HTTP/1.1 100 Continue\n\n",
    ] {
        check(GET, &format!("{interim}{answer}"), answer);
    }
}

#[test]
fn client_p2_an_interim_answer_alone_is_no_answer_and_neither_are_65_or_a_switch() {
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
    assert_eq!(passed(Heads::new(), GET, interim, 1000).expect("nothing wrong"), None);
    let many = interim.repeat(65);
    let error = passed(Heads::new(), GET, &many, 1000).expect_err("too many");
    assert!(not_an_answer(&error).is_some_and(|why| why.contains("64 interim")), "{error}");
    let switch = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\nbytes";
    let error = passed(Heads::new(), GET, switch, 1000).expect_err("nothing asked for it");
    assert!(not_an_answer(&error).is_some_and(|why| why.contains("101")), "{error}");
    let sent = format!("{interim}{switch}");
    assert_eq!(passed(Heads::of_upgrade(), GET, &sent, 7).expect("asked for").as_deref(), Some(switch));
}

#[test]
fn client_p13_a_body_that_ends_with_its_connection_is_shown_as_one_of_http_1_0() {
    check(GET, "HTTP/1.1 200 OK\r\na: b\r\n\r\n{}", "HTTP/1.0 200 OK\r\na: b\r\n\r\n{}");
    check(GET, "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\n\r\n{}", "HTTP/1.0 200 OK\r\n\r\n{}");
    for unchanged in [
        "HTTP/1.0 200 OK\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ] {
        check(GET, unchanged, unchanged);
    }
    let head = "HTTP/1.1 200 OK\r\n\r\n";
    check("HEAD /a HTTP/1.1\r\n\r\n", head, head);
}

#[test]
fn an_answer_of_http_1_0_without_a_body_is_complete_with_its_head() {
    for (sent, expected) in [
        ("200 OK\r\nContent-Length: 0\r\nConnection: keep-alive", "200 OK\r\nContent-Length: 0"),
        ("204 No Content", "204 No Content"),
        ("304 Not Modified\r\nContent-Length: 7", "304 Not Modified"),
    ] {
        let expected = format!("HTTP/1.1 {expected}\r\nconnection: close\r\n\r\n");
        check(GET, &format!("HTTP/1.0 {sent}\r\n\r\n"), &expected);
    }
    let with_body = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    check(GET, with_body, with_body);
}

#[test]
fn a_length_is_seen_beside_upgrade_and_not_in_an_answer_without_a_body() {
    check(
        GET,
        "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\n{}",
    );
    check(GET, "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n");
}

#[test]
fn client_p8_a_hundred_warnings_become_one_header_with_all_their_texts() {
    let warning = |number| format!("Warning: 299 - \"text, {number}\"\r\n");
    let warnings: String = (0..100).map(warning).collect();
    let sent = format!("HTTP/1.1 201 Created\r\na: b\r\n{warnings}content-length: 2\r\n\r\n{{}}");
    let seen = passed(Heads::new(), GET, &sent, sent.len()).expect("an answer").expect("whole");
    let (head, body) = seen.split_once("\r\n\r\n").expect("a head");
    let lines: Vec<_> = head.lines().collect();
    assert_eq!((&lines[..3], body), (&["HTTP/1.1 201 Created", "a: b", "content-length: 2"][..], "{}"));
    let all: Vec<_> = (0..100).map(|number| format!("299 - \"text, {number}\"")).collect();
    assert_eq!(lines[3..], [format!("warning: {}", all.join(", "))]);
}

#[test]
fn what_must_close_says_so_once() {
    let mut heads = Heads::new();
    heads.close_after_answer(true);
    let sent = "HTTP/1.1 413 Too Large\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}";
    let seen = passed(heads, GET, sent, 9).expect("an answer");
    let expected = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nconnection: close\r\n\r\n{}";
    assert_eq!(seen.as_deref(), Some(expected));
}

proptest! {
    #[test]
    fn anything_else_passes_unchanged_or_waits(sent in "\\PC{0,80}|HTTP/1\\.1 [0-9]{1,4}[ -~]{0,9}", piece in 1..90_usize) {
        prop_assume!(!sent.is_empty());
        if let Ok(Some(seen)) = passed(Heads::new(), GET, &sent, piece) {
            prop_assert_eq!(seen, sent);
        }
    }
}
