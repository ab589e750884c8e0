//! A client of SOCKS version 5 (RFC 1928) with user and password (RFC 1929), as a state machine without I/O.
//!
//! ```text
//!  Method --> Login --> Reply --> Address --> Open
//!       \_______________^  (a proxy that asks for no login)
//! ```
//!
//! 1. It reads exactly the bytes of each answer: later bytes are the API server's.
//! 2. A login is sent only if the URL of the proxy has one and the proxy chooses it.

use std::net::IpAddr;

use secrecy::{ExposeSecret as _, SecretSlice};

use super::ProxyLogin;
use crate::endpoint::host_and_port;
use crate::error::ProxyError;

const VERSION: u8 = 5;
const LOGIN_VERSION: u8 = 1;
const NO_LOGIN: u8 = 0;
const LOGIN: u8 = 2;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

#[derive(Debug)]
pub(crate) enum SocksStep {
    Send(SecretSlice<u8>),
    /// Read exactly this many bytes for [`Socks5::handle_bytes`].
    Read(usize),
    /// The next byte comes from the API server.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Method,
    Login,
    /// Five bytes, with the length of the address.
    Reply,
    /// This many more bytes of the reply.
    Address(usize),
    Open,
}

pub(crate) struct Socks5<'a> {
    host: &'a str,
    port: u16,
    login: Option<&'a ProxyLogin>,
    state: State,
    to_send: Option<SecretSlice<u8>>,
}

impl<'a> Socks5<'a> {
    /// `host`: a name, or an address without brackets.
    pub(crate) fn new(host: &'a str, port: u16, login: Option<&'a ProxyLogin>) -> Result<Self, ProxyError> {
        if host.len() > usize::from(u8::MAX) {
            return Err(ProxyError::LongHost);
        }
        let greeting = match login {
            Some(_) => vec![VERSION, 2, NO_LOGIN, LOGIN],
            None => vec![VERSION, 1, NO_LOGIN],
        };
        Ok(Self { host, port, login, state: State::Method, to_send: Some(greeting.into()) })
    }

    pub(crate) fn poll_step(&mut self) -> SocksStep {
        if let Some(bytes) = self.to_send.take() {
            return SocksStep::Send(bytes);
        }
        match self.state {
            State::Method | State::Login => SocksStep::Read(2),
            State::Reply => SocksStep::Read(5),
            State::Address(length) => SocksStep::Read(length),
            State::Open => SocksStep::Open,
        }
    }

    pub(crate) fn handle_bytes(&mut self, bytes: &[u8]) -> Result<(), ProxyError> {
        let malformed = |why| Err(ProxyError::Malformed(why));
        match (self.state, bytes) {
            (State::Method, [VERSION, NO_LOGIN]) => self.request(),
            (State::Method, [VERSION, LOGIN]) => match self.login {
                Some(login) => {
                    self.to_send = Some(sent(login));
                    self.state = State::Login;
                }
                None => return Err(ProxyError::Login { is_given: false }),
            },
            (State::Method, [VERSION, NO_METHOD]) => {
                return Err(ProxyError::Login { is_given: self.login.is_some() });
            }
            (State::Method, [VERSION, _]) => return malformed("it chooses a login that was not offered"),
            (State::Method, _) => return malformed("it is not SOCKS5; is this the port of a SOCKS5 proxy?"),
            (State::Login, [LOGIN_VERSION, 0]) => self.request(),
            (State::Login, [LOGIN_VERSION, _]) => return Err(ProxyError::Login { is_given: true }),
            (State::Reply, [VERSION, 0, _, kind, first]) => {
                // Its first byte was read: the length, if it is a name.
                self.state = State::Address(match *kind {
                    IPV4 => 4 + 2 - 1,
                    IPV6 => 16 + 2 - 1,
                    NAME => usize::from(*first) + 2,
                    _ => return malformed("its reply has an address of an unknown type"),
                });
            }
            (State::Reply, [VERSION, reply, ..]) => {
                return Err(ProxyError::SocksRefused {
                    reply: *reply,
                    target: host_and_port(self.host, self.port),
                });
            }
            (State::Address(_), _) => self.state = State::Open,
            _ => return malformed("it is not the answer of SOCKS5 that follows here"),
        }
        Ok(())
    }

    fn request(&mut self) {
        let mut bytes = vec![VERSION, CONNECT, 0];
        match self.host.parse() {
            Ok(IpAddr::V4(address)) => {
                bytes.push(IPV4);
                bytes.extend(address.octets());
            }
            Ok(IpAddr::V6(address)) => {
                bytes.push(IPV6);
                bytes.extend(address.octets());
            }
            Err(_) => {
                // `new` has checked the length.
                bytes.extend([NAME, u8::try_from(self.host.len()).unwrap_or(u8::MAX)]);
                bytes.extend(self.host.as_bytes());
            }
        }
        bytes.extend(self.port.to_be_bytes());
        self.to_send = Some(bytes.into());
        self.state = State::Reply;
    }
}

/// By RFC 1929. The URL's parser has checked the lengths.
fn sent(login: &ProxyLogin) -> SecretSlice<u8> {
    let mut bytes = vec![LOGIN_VERSION];
    for text in [login.user.expose_secret(), login.password.expose_secret()] {
        bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
        bytes.extend(text);
    }
    bytes.into()
}

#[cfg(test)]
mod tests;
