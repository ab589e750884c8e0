//! The CONNECT of HTTP (RFC 9110, section 9.3.6), without I/O.
//!
//! 1. At most [`LONGEST_HEAD`] bytes are kept. What cannot be an answer is refused at its first byte.
//! 2. Any 2xx opens the tunnel. A body is never read; after a refusal the connection is given up.
//! 3. Bytes behind the head of a success are refused, since they would be lost.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretSlice};

use super::ProxyLogin;
use crate::error::ProxyError;

pub(crate) const LONGEST_HEAD: usize = 8 << 10;

pub(crate) fn request(target: &str, login: Option<&ProxyLogin>) -> SecretSlice<u8> {
    let mut head = format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: actix-informer/{}\r\n",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(login) = login {
        let pair = [login.user.expose_secret(), b":", login.password.expose_secret()].concat();
        head.push_str(&format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode(pair)));
    }
    head.push_str("\r\n");
    head.into_bytes().into()
}

/// `None` until the head is complete.
pub(crate) fn answered(
    received: &[u8],
    target: &str,
    login: Option<&ProxyLogin>,
) -> Result<Option<()>, ProxyError> {
    let begin = received.len().min(b"HTTP/1.".len());
    if received[..begin] != b"HTTP/1."[..begin] {
        return Err(ProxyError::Malformed(match received {
            // The first byte of a TLS alert.
            [0x15, ..] => "it is TLS; does its URL have to begin with https://?",
            _ => "it is not HTTP/1.1; is this the port of an HTTP proxy?",
        }));
    }
    let Some(length) = length_of_head(received) else {
        return match received.len() > LONGEST_HEAD {
            true => Err(ProxyError::Malformed("its head is longer than 8 KiB")),
            false => Ok(None),
        };
    };
    if length > LONGEST_HEAD {
        return Err(ProxyError::Malformed("its head is longer than 8 KiB"));
    }
    match code_of(received).ok_or(ProxyError::Malformed("its first line has no code"))? {
        200..300 if received.len() > length => {
            Err(ProxyError::Malformed("there are bytes behind its head, before anything was asked"))
        }
        200..300 => Ok(Some(())),
        // An interim answer (RFC 9110, section 15.2). The limit is for all heads together.
        100..200 if received.len() <= LONGEST_HEAD => answered(&received[length..], target, login),
        100..200 => Err(ProxyError::Malformed("its head is longer than 8 KiB")),
        407 => Err(ProxyError::Login { is_given: login.is_some() }),
        code => Err(ProxyError::Refused { code, target: target.to_owned() }),
    }
}

/// Up to the first empty line. Lines may end with a line feed alone.
fn length_of_head(received: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let end = from + received[from..].iter().position(|byte| *byte == b'\n')? + 1;
        if matches!(received[from..end], [b'\n'] | [b'\r', b'\n']) {
            return Some(end);
        }
        from = end;
    }
}

fn code_of(head: &[u8]) -> Option<u16> {
    let line = head.split(|byte| *byte == b'\n').next()?.trim_ascii_end();
    let rest = line.get(b"HTTP/1.1".len()..)?.strip_prefix(b" ")?;
    let (digits, behind) = rest.split_at_checked(3)?;
    let is_number = digits.iter().all(u8::is_ascii_digit) && matches!(behind, [] | [b' ', ..]);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok().filter(|code| *code >= 100)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::proxy::Proxy;

    fn login() -> ProxyLogin {
        Proxy::parse("http://u%40x:p%3A1@proxy").expect("a proxy").login.expect("a login")
    }

    fn read(received: &[u8]) -> Result<Option<()>, String> {
        answered(received, "a:1", None).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn the_request_names_the_target_and_carries_the_login() {
        let text = |login: Option<&ProxyLogin>| {
            String::from_utf8(request("[::1]:6443", login).expose_secret().to_vec()).expect("a text")
        };
        assert!(text(None).starts_with("CONNECT [::1]:6443 HTTP/1.1\r\nHost: [::1]:6443\r\n"));
        assert!(text(None).ends_with("\r\n\r\n") && !text(None).contains("Proxy-Authorization"));
        let expected = format!("Proxy-Authorization: Basic {}\r\n\r\n", STANDARD.encode("u@x:p:1"));
        assert!(text(Some(&login())).ends_with(&expected));
    }

    #[test]
    fn an_answer_opens_the_tunnel_or_says_why_not() {
        for (received, expected) in [
            ("HTTP/1.1 200 Connection established\r\n\r\n", Ok(Some(()))),
            ("HTTP/1.0 200\r\nVia: x\r\n\r\n", Ok(Some(()))),
            ("HTTP/1.1 204 \nA: b\n\n", Ok(Some(()))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Ok(Some(()))),
            ("HTTP/1.1 200 OK\r\n", Ok(None)),
            ("HTT", Ok(None)),
            ("", Ok(None)),
            ("HTTP/1.1 407 No\r\n\r\n", Err("Login { is_given: false }")),
            ("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", Err("Refused { code: 403")),
            ("HTTP/1.1 100 Continue\r\n\r\n", Ok(None)),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
                Ok(Some(())),
            ),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 No\r\n\r\n", Err("Refused { code: 403")),
            ("HTTP/1.1 100 Continue\r\n\r\n220 ftp.example", Err("not HTTP/1.1")),
            ("HTTP/1.1 200 OK\r\n\r\nx", Err("behind its head")),
            ("HTTP/1.1  200 OK\r\n\r\n", Err("no code")),
            ("HTTP/1.1 20 OK\r\n\r\n", Err("no code")),
            ("HTTP/1.1 2000 OK\r\n\r\n", Err("no code")),
            ("HTTP/1.1 099 OK\r\n\r\n", Err("no code")),
            ("HTTP/1.1\r\n\r\n", Err("no code")),
            ("HTTP/2 200\r\n\r\n", Err("not HTTP/1.1")),
            ("220 ftp.example", Err("not HTTP/1.1")),
            ("\u{15}\u{3}\u{3}", Err("https://")),
        ] {
            match (read(received.as_bytes()), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{received:?}"),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{received:?}: {found}"),
                (found, _) => panic!("{received:?}: {found:?}"),
            }
        }
        let refused = answered(b"HTTP/1.1 407 No\r\n\r\n", "a:1", Some(&login()));
        assert!(matches!(refused, Err(ProxyError::Login { is_given: true })));
    }

    #[test]
    fn a_head_is_read_up_to_8_kib_and_no_further() {
        let head = |length: usize| {
            let start = "HTTP/1.1 200 OK\r\nX: ";
            format!("{start}{}\r\n\r\n", "x".repeat(length - start.len() - 4))
        };
        assert_eq!(read(head(LONGEST_HEAD).as_bytes()), Ok(Some(())));
        assert!(read(head(LONGEST_HEAD + 1).as_bytes()).is_err());
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(LONGEST_HEAD));
        assert_eq!(read(&endless.as_bytes()[..LONGEST_HEAD]), Ok(None));
        assert!(read(endless.as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn an_answer_means_the_same_in_whatever_pieces_it_comes(
            code in 200_u16..600,
            lines in proptest::collection::vec("[A-Za-z]{1,8}: [ -~]{0,20}", 0..4),
        ) {
            let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
            let answer = format!("HTTP/1.1 {code} Words\r\n{lines}\r\n");
            for end in 0..answer.len() {
                prop_assert_eq!(read(&answer.as_bytes()[..end]), Ok(None));
            }
            let opened = read(answer.as_bytes()) == Ok(Some(()));
            prop_assert_eq!(opened, code < 300);
        }

        #[test]
        fn no_bytes_are_read_for_longer_than_the_bound_and_none_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..64), begins in any::<bool>(),
        ) {
            let begin: &[u8] = if begins { b"HTTP/1.1 200" } else { b"" };
            let received = [begin, &bytes].concat();
            let _ = read(&received);
            let long = [&received[..], &vec![b'x'; LONGEST_HEAD + 1]].concat();
            prop_assert!(read(&long) != Ok(None));
        }
    }
}
