//! The machine against proxies that are lists of bytes.
//!
//! Answers "what does it send and read, and how does it end, whatever the proxy answers?"

use proptest::prelude::*;

use super::*;
use crate::proxy::Proxy;

fn login() -> ProxyLogin {
    Proxy::parse("socks5://user:p%3A1@proxy").expect("a proxy").login.expect("a login")
}

/// What was sent, how many bytes were read, and how it ended, if the proxy sends these bytes.
fn played(mut machine: Socks5<'_>, answers: &[u8]) -> (Vec<Vec<u8>>, usize, Result<(), String>) {
    let (mut sent, mut read) = (Vec::new(), 0);
    loop {
        match machine.poll_step() {
            SocksStep::Send(bytes) => sent.push(bytes.expose_secret().to_vec()),
            SocksStep::Open => return (sent, read, Ok(())),
            SocksStep::Read(count) => {
                let Some(bytes) = answers.get(read..read + count) else {
                    return (sent, read, Err("the bytes end".to_owned()));
                };
                read += count;
                if let Err(error) = machine.handle_bytes(bytes) {
                    return (sent, read, Err(format!("{error:?}")));
                }
            }
        }
    }
}

fn to<'a>(host: &'a str, login: Option<&'a ProxyLogin>) -> Socks5<'a> {
    Socks5::new(host, 6443, login).expect("a short host")
}

const GRANTED: &[u8] = &[5, 0, 0, 1, 10, 0, 0, 1, 0, 80];

#[test]
fn a_name_is_sent_as_a_name_and_an_address_as_an_address() {
    let answers = [&[5, 0], GRANTED].concat();
    for (host, address) in [
        ("api.example", [&[3, 11][..], b"api.example"].concat()),
        ("10.1.2.3", vec![1, 10, 1, 2, 3]),
        ("::1", [&[4][..], &[0; 15], &[1]].concat()),
    ] {
        let (sent, read, ended) = played(to(host, None), &answers);
        assert_eq!((read, ended), (answers.len(), Ok(())), "{host}");
        assert_eq!(sent[0], [5, 1, 0]);
        assert_eq!(sent[1], [&[5, 1, 0][..], &address, &6443_u16.to_be_bytes()].concat(), "{host}");
    }
}

#[test]
fn a_login_is_offered_if_there_is_one_and_sent_if_it_is_chosen() {
    let login = login();
    let asked = [&[5, 2, 1, 0], GRANTED].concat();
    let (sent, read, ended) = played(to("a", Some(&login)), &asked);
    assert_eq!((read, ended), (asked.len(), Ok(())));
    assert_eq!(sent[0], [5, 2, 0, 2]);
    assert_eq!(sent[1], b"\x01\x04user\x03p:1");
    let not_asked = [&[5, 0], GRANTED].concat();
    let (sent, _, ended) = played(to("a", Some(&login)), &not_asked);
    assert_eq!((sent.len(), ended), (2, Ok(())), "it was not sent");
}

#[test]
fn a_refusal_is_typed() {
    let login = login();
    for (login, answers, expected) in [
        (None, &[5, 0xff][..], "Login { is_given: false }"),
        (None, &[5, 2], "Login { is_given: false }"),
        (Some(&login), &[5, 0xff], "Login { is_given: true }"),
        (Some(&login), &[5, 2, 1, 1], "Login { is_given: true }"),
        (Some(&login), &[5, 2, 5, 0], "Malformed"),
        (None, &[5, 1], "not offered"),
        (None, &[4, 0], "not SOCKS5"),
        (None, b"HT", "not SOCKS5"),
        (None, &[5, 0, 5, 2, 0, 1, 0], "SocksRefused { reply: 2, target: \"a:6443\" }"),
        (None, &[5, 0, 5, 0, 0, 9, 0], "unknown type"),
        (None, &[5, 0, 4, 0, 0, 1, 0], "Malformed"),
        (None, &[5, 0, 5, 0], "the bytes end"),
    ] {
        let (_, _, ended) = played(to("a", login), answers);
        let error = ended.expect_err(expected);
        assert!(error.contains(expected), "{answers:?}: {error}");
        assert!(!error.contains("user"), "{error}");
    }
    assert!(matches!(Socks5::new(&"a".repeat(256), 1, None), Err(ProxyError::LongHost)));
}

proptest! {
    #[test]
    fn exactly_the_bytes_of_the_handshake_are_read_whatever_address_the_reply_has(
        asks in any::<bool>(),
        address in prop_oneof![
            Just((1_u8, 4_usize)), Just((4, 16)), (0_usize..=255).prop_map(|length| (3, length)),
        ],
        behind in proptest::collection::vec(any::<u8>(), 0..9),
    ) {
        let login = login();
        let (kind, length) = address;
        let method: &[u8] = if asks { &[5, 2, 1, 0] } else { &[5, 0] };
        let mut answers = [method, &[5, 0, 0, kind]].concat();
        if kind == 3 {
            answers.push(u8::try_from(length).expect("a byte"));
        }
        answers.extend(vec![7; length + 2]);
        let own = answers.len();
        answers.extend(behind);
        let (_, read, ended) = played(to("a", Some(&login)), &answers);
        prop_assert_eq!((read, ended), (own, Ok(())));
    }

    #[test]
    fn no_answer_makes_it_panic_or_read_for_ever(answers in proptest::collection::vec(any::<u8>(), 0..400)) {
        let (_, read, _) = played(to("a", Some(&login())), &answers);
        prop_assert!(read <= 2 + 2 + 5 + 257);
    }
}
