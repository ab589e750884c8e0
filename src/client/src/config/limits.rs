//! How long each step of a request may take.
//!
//! Answers "which limits are there, and how are they set?" The limit of a plugin is beside its policy
//! ([`Config::plugin_limit`]), that of a whole request in `requests.rs`. Invariants:
//! 1. Each limit has a setter, and each default its reason.
//! 2. A limit counts for its own step: credentials are obtained before the limit of the head begins.
//!
//! Read next: `../layers/deadline.rs` and `../transport/awc/connector.rs`, which obey.

use std::time::Duration;

use super::Config;

/// How long the head of an answer may take.
pub(crate) const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// How long a read of the body may take, except for watches.
pub(crate) const READ_DEADLINE: Duration = Duration::from_secs(30);

/// The limits of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For the lookup of a name.
    pub(crate) lookup: Duration,
    /// For a TCP connection to one of its addresses.
    pub(crate) connect: Duration,
    /// For the TLS handshake with the server.
    pub(crate) handshake: Duration,
    /// For TLS with a proxy and its answer.
    pub(crate) proxy: Duration,
    pub(crate) head: Duration,
    /// For the heads of what takes longer: lists, and requests that may write.
    pub(crate) slow_head: Duration,
    pub(crate) read: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A resolver asks each of its servers for 5 s (resolv.conf, `timeout`): the second and the third get their turn.
            lookup: Duration::from_secs(15),
            connect: Duration::from_secs(5),
            handshake: Duration::from_secs(5),
            // The proxy has to reach the server meanwhile.
            proxy: Duration::from_secs(10),
            head: HEAD_DEADLINE,
            // The API server gives up after 60 s (`--request-timeout`), an admission webhook after 30 s.
            slow_head: Duration::from_secs(65),
            read: READ_DEADLINE,
        }
    }
}

impl Limits {
    /// Longer than the steps of a connection together, each of which has better words.
    pub(crate) fn whole_connection(&self) -> Duration {
        [self.lookup, self.connect, self.proxy, self.handshake, Duration::from_secs(1)]
            .into_iter()
            .fold(Duration::ZERO, Duration::saturating_add)
    }
}

impl Config {
    /// How long the lookup of the server's or the proxy's name may take; 15 s unless set.
    pub fn lookup_limit(mut self, limit: Duration) -> Self {
        self.limits.lookup = limit;
        self
    }

    /// How long a TCP connection may take, when the address is known; 5 s unless set.
    pub fn connect_limit(mut self, limit: Duration) -> Self {
        self.limits.connect = limit;
        self
    }

    /// How long the TLS handshake with the server may take; 5 s unless set.
    pub fn handshake_limit(mut self, limit: Duration) -> Self {
        self.limits.handshake = limit;
        self
    }

    /// How long a proxy may take to reach the server and to say so; 10 s unless set.
    pub fn proxy_limit(mut self, limit: Duration) -> Self {
        self.limits.proxy = limit;
        self
    }

    /// How long the head of an answer may take, with the connection if one has to be made: of a read of one object, and of
    /// a watch. 30 s unless set.
    pub fn head_limit(mut self, limit: Duration) -> Self {
        self.limits.head = limit;
        self
    }

    /// As [`Self::head_limit`], of a list and of a request that may write. 65 s unless set: an API server gives up after
    /// 60 s, and only its answer says whether anything was written.
    pub fn slow_head_limit(mut self, limit: Duration) -> Self {
        self.limits.slow_head = limit;
        self
    }

    /// How long each read of a body may take, except those of watches, and of other streams; 30 s unless set.
    pub fn read_limit(mut self, limit: Duration) -> Self {
        self.limits.read = limit;
        self
    }
}
