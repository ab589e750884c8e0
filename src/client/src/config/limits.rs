//! How long each step of a request may take. Credentials are obtained before the limit of the head begins.

use std::time::Duration;

use super::Config;

/// For the head of an answer.
pub(crate) const HEAD_DEADLINE: Duration = Duration::from_secs(30);
/// For a read of the body, except of a watch.
pub(crate) const READ_DEADLINE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) lookup: Duration,
    /// For TCP to one address.
    pub(crate) connect: Duration,
    pub(crate) handshake: Duration,
    pub(crate) proxy: Duration,
    pub(crate) head: Duration,
    pub(crate) slow_head: Duration,
    pub(crate) read: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A resolver waits 5 s for each server (resolv.conf, `timeout`): three servers are tried.
            lookup: Duration::from_secs(15),
            connect: Duration::from_secs(5),
            handshake: Duration::from_secs(5),
            // In this time the proxy must reach the server.
            proxy: Duration::from_secs(10),
            head: HEAD_DEADLINE,
            // The API server gives up after 60 s (`--request-timeout`), an admission webhook after 30 s.
            slow_head: Duration::from_secs(65),
            read: READ_DEADLINE,
        }
    }
}

impl Limits {
    /// Longer than all steps of a connection together: their own errors are more exact.
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

    /// How long the head of an answer may take for a read of one object and for a watch, including the time
    /// to connect. 30 s unless set.
    pub fn head_limit(mut self, limit: Duration) -> Self {
        self.limits.head = limit;
        self
    }

    /// As [`Self::head_limit`], for a list and a request that may write. 65 s unless set: an API server gives
    /// up after 60 s, and only its answer says whether anything was written.
    pub fn slow_head_limit(mut self, limit: Duration) -> Self {
        self.limits.slow_head = limit;
        self
    }

    /// How long each read of a body may take, except for watches and other streams; 30 s unless set.
    pub fn read_limit(mut self, limit: Duration) -> Self {
        self.limits.read = limit;
        self
    }
}
