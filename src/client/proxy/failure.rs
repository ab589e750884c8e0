//! Why a proxy gave no connection to the API server.
//!
//! Answers "at which step did the proxy fail, and what is to be done?" Invariants:
//! 1. No text holds a user, a password or a byte of what the proxy sent: of its answer only the code is shown.
//! 2. A deadline is told from a connection that broke.
//!
//! Read next: `connect.rs`, `socks5.rs`.

use std::io;
use std::time::Duration;

/// Why a proxy gave no connection to the API server. No request was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// No connection to the proxy could be made.
    #[error("the proxy cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// The TLS handshake with an `https` proxy failed.
    #[error("the TLS handshake with the proxy failed: {0}")]
    Tls(#[source] io::Error),
    /// A step took too long.
    #[error("{what} took longer than {after:?}")]
    TimedOut {
        /// Which step.
        what: &'static str,
        /// The deadline.
        after: Duration,
    },
    /// The proxy closed the connection before its answer was complete.
    #[error("the proxy closed the connection before its answer was complete: {0}")]
    Broken(#[source] io::Error),
    /// The answer is not one of a proxy of this kind.
    #[error("the answer of the proxy cannot be read: {0}")]
    Malformed(&'static str),
    /// The proxy asks for a user and a password, and its URL has none that it accepts.
    #[error("{}", login(*.is_given))]
    Login {
        /// Whether the URL of the proxy has a user.
        is_given: bool,
    },
    /// An HTTP proxy answered CONNECT with an error.
    #[error("the proxy answered {code} to CONNECT {target}{}", of_code(*.code))]
    Refused {
        /// The HTTP code.
        code: u16,
        /// The host and the port that it was asked for.
        target: String,
    },
    /// A SOCKS5 proxy refused to connect.
    #[error("the proxy does not connect to {target}: {}", of_reply(*.reply))]
    SocksRefused {
        /// The code of the reply (RFC 1928, section 6).
        reply: u8,
        /// The host and the port that it was asked for.
        target: String,
    },
    /// The name of the API server is longer than SOCKS5 can carry.
    #[error("the host of the endpoint is longer than 255 bytes, which SOCKS5 cannot carry")]
    LongHost,
}

fn login(is_given: bool) -> &'static str {
    match is_given {
        true => "the proxy does not accept the user and the password of its URL",
        false => {
            "the proxy asks for a user and a password: write them into its URL, http://user:password@host:port, with \
             special characters percent-encoded"
        }
    }
}

/// What to do about the code of an answer to CONNECT.
fn of_code(code: u16) -> &'static str {
    match code {
        400 | 404 | 405 | 501 => {
            ": it may be no proxy, or allow no CONNECT; allow CONNECT to this host and port there, or exclude the host \
             by NO_PROXY"
        }
        401 | 403 => {
            ": its rules forbid it; allow CONNECT to this host and port there, or exclude the host by NO_PROXY"
        }
        502..=504 => {
            ": the proxy itself does not reach the API server; correct the endpoint, or use another proxy"
        }
        300..400 => ": redirects are not followed; configure the proxy itself",
        500.. => ": the fault is the proxy's: its log says more",
        _ => "",
    }
}

/// The words of RFC 1928 for a reply, and what to do.
fn of_reply(reply: u8) -> String {
    let words = match reply {
        1 => "it failed; its log says more",
        2 => "its rules forbid it; allow this host and port there, or exclude the host by NO_PROXY",
        3 => "it finds no network of this address",
        4 => "it does not reach this host; correct the endpoint, or use another proxy",
        5 => "the host refuses the connection",
        6 => "the host is too far away (TTL expired)",
        7 => "it knows no CONNECT",
        8 => "it does not take this type of address",
        _ => return format!("it replies {reply}, which RFC 1928 does not know"),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_the_proxy_answered_and_what_to_do() {
        let target = || "api.example:6443".to_owned();
        for (code, expected) in [
            (403, "allow CONNECT to this host and port"),
            (405, "allow no CONNECT"),
            (502, "does not reach the API server"),
            (504, "does not reach the API server"),
            (500, "its log says more"),
            (302, "redirects are not followed"),
        ] {
            let text = ProxyError::Refused { code, target: target() }.to_string();
            assert!(text.contains(&format!("answered {code} to CONNECT api.example:6443: ")), "{text}");
            assert!(text.contains(expected), "{text}");
        }
        for (reply, expected) in
            [(2, "its rules forbid it"), (5, "refuses the connection"), (77, "replies 77")]
        {
            let text = ProxyError::SocksRefused { reply, target: target() }.to_string();
            assert!(text.contains("api.example:6443: ") && text.contains(expected), "{text}");
        }
        assert!(ProxyError::Login { is_given: false }.to_string().contains("http://user:password@host:port"));
        assert!(ProxyError::Login { is_given: true }.to_string().contains("does not accept"));
    }
}
