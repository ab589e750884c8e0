//! Causes of failures outside the requests themselves: credential plugin, OpenID Connect login, proxy, and
//! streams after their request was accepted.
//!
//! No text holds a secret or bytes from a peer, except the end of a plugin's stderr, the code of a proxy's
//! answer, and a server's shortened reason for closing a stream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::Error;

/// Why a credential plugin returned no credentials.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginError {
    /// The description of the plugin is incomplete, or contradicts itself.
    #[error("its description is invalid: {0}")]
    Invalid(String),
    /// The policy does not allow it.
    #[error("the plugin policy does not allow it")]
    NotAllowed,
    /// It needs a terminal, and standard input is not one.
    #[error("it always asks a person (interactiveMode: Always), and standard input is not a terminal")]
    NotATerminal,
    /// It could not be started.
    #[error("it cannot be started: {reason}{}", hinted(.hint))]
    NotStarted {
        /// The system's reason.
        reason: String,
        /// What the kubeconfig says about its installation.
        hint: Option<String>,
    },
    /// It did not end in time, and was killed with all processes of its group.
    #[error("it did not end within {0:?} and was killed")]
    TimedOut(Duration),
    /// It ended without success.
    #[error("it ended with {status}{}", printed(.stderr))]
    Failed {
        /// Exit code or signal.
        status: String,
        /// The end of what it printed to stderr.
        stderr: String,
    },
    /// It printed more than the limit for credentials.
    #[error("it printed more than {0} bytes and was killed")]
    TooLarge(usize),
    /// What it printed is not an `ExecCredential` that can be used.
    #[error("its output cannot be used: {0}")]
    Malformed(String),
}

/// Why there is no id token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OidcError {
    /// A key of the `auth-provider` is missing or wrong.
    #[error("its configuration is invalid: {0}")]
    Invalid(String),
    /// The id token has expired, and nothing can renew it.
    #[error("the id-token has expired and there is no refresh-token; log in again")]
    Expired,
    /// The issuer could not be asked.
    #[error("the issuer {issuer} cannot be asked: {source}")]
    Issuer {
        /// Its URL.
        issuer: String,
        /// Why.
        #[source]
        source: Box<Error>,
    },
    /// The issuer, or the host that it names for tokens, would be reached in plain text. Nothing was sent.
    #[error(
        "the issuer {issuer} is not asked: tokens and the client's secret are sent over https or to this machine only, \
         and {host} is reached over http"
    )]
    Insecure {
        /// Its URL.
        issuer: String,
        /// The host.
        host: String,
    },
    /// The issuer did not answer in time.
    #[error("the issuer {issuer} did not answer within {after:?}")]
    TimedOut {
        /// Its URL.
        issuer: String,
        /// The limit.
        after: Duration,
    },
    /// The issuer's answer cannot be used.
    #[error("the answer of the issuer {issuer} cannot be used: {reason}")]
    Malformed {
        /// Its URL.
        issuer: String,
        /// Why, without text of the answer.
        reason: &'static str,
    },
}

/// Why a proxy opened no connection to the API server. No request was sent.
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
    /// The proxy requires a user and a password, and its URL has none that it accepts.
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
        /// The requested host and port.
        target: String,
    },
    /// A SOCKS5 proxy refused to connect.
    #[error("the proxy does not connect to {target}: {}", of_reply(*.reply))]
    SocksRefused {
        /// The code of the reply (RFC 1928, section 6).
        reply: u8,
        /// The requested host and port.
        target: String,
    },
    /// The name of the API server is longer than SOCKS5 can carry.
    #[error("the host of the endpoint is longer than 255 bytes, which SOCKS5 cannot carry")]
    LongHost,
}

/// Why a stream over a websocket ended early. Readers carry it as the cause of their `std::io::Error`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The server's answer 101 does not open a websocket with channels.
    #[error("the server does not speak a websocket with channels: {0}")]
    Handshake(&'static str),
    /// The server broke the rules of the protocol.
    #[error("the server broke the websocket protocol: {0}")]
    Protocol(String),
    /// A frame is longer than any server sends.
    #[error("a frame of the websocket is longer than {0} bytes")]
    TooLarge(usize),
    /// The server closed the websocket with a code that is not the normal one.
    #[error("the server closed the websocket with code {code}: {reason}")]
    Closed {
        /// The code of RFC 6455 section 7.4.
        code: u16,
        /// The server's reason; empty if it gave none.
        reason: String,
    },
    /// The connection ended before the server ended the stream.
    #[error("the connection was cut off")]
    CutOff,
    /// The server did not answer a ping: it is gone, or something on the way forwards nothing.
    #[error("the server did not answer a ping within {0:?}")]
    Silent(Duration),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[source] Arc<io::Error>),
    /// A port of the pod cannot be reached, or what listened there is gone.
    #[error("port {port} of the pod: {reason}")]
    Port {
        /// The port.
        port: u16,
        /// What the node says.
        reason: String,
    },
    /// The command has ended, and its status does not decode or was never sent.
    #[error("the status of the command cannot be read: {0}")]
    Status(String),
    /// The protocol that the server chose cannot do this.
    #[error("{0}")]
    Unsupported(&'static str),
}

fn hinted(hint: &Option<String>) -> String {
    hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default()
}

fn printed(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
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

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Broken(source) => source.kind(),
            StreamError::CutOff => io::ErrorKind::UnexpectedEof,
            StreamError::Silent(_) => io::ErrorKind::TimedOut,
            StreamError::Unsupported(_) => io::ErrorKind::Unsupported,
            StreamError::Port { .. } => io::ErrorKind::ConnectionRefused,
            StreamError::Closed { .. } => io::ErrorKind::ConnectionAborted,
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
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
