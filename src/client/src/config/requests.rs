//! Settings of requests. Defaults are client-go's, unless a setting says why not.

use std::sync::Arc;
use std::time::Duration;

use super::Config;
use crate::warning::{OnWarning, Warning};

/// As client-go: enough for a server that restarts.
const DEFAULT_RETRIES: u32 = 10;
/// Each request uses a connection. By default a server accepts 400 reads and 200 writes at once from all
/// clients (`--max-requests-inflight`, `--max-mutating-requests-inflight`).
const DEFAULT_IN_FLIGHT: usize = 256;

#[derive(Clone)]
pub(crate) struct RequestSettings {
    pub(crate) user_agent: Option<String>,
    pub(crate) max_retries: u32,
    pub(crate) in_flight: usize,
    /// Requests a second, and burst.
    pub(crate) rate: Option<(u32, u32)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_warning: OnWarning,
    pub(crate) accepts_compression: bool,
}

impl Default for RequestSettings {
    fn default() -> Self {
        Self {
            user_agent: None,
            max_retries: DEFAULT_RETRIES,
            in_flight: DEFAULT_IN_FLIGHT,
            rate: None,
            timeout: None,
            on_warning: OnWarning::LogNew,
            accepts_compression: true,
        }
    }
}

impl Config {
    /// The name of the program in each request; `actix-informer/<version>` unless set. `Client::new` refuses
    /// a text that no header can hold.
    pub fn user_agent(mut self, name: impl Into<String>) -> Self {
        self.requests.user_agent = Some(name.into());
        self
    }

    /// How often a single request is sent again after the server has answered 429 or 5xx with a Retry-After
    /// header, or, if it is a GET or HEAD, after its connection broke before an answer. 10 unless set, as in
    /// client-go; 0: never.
    ///
    /// The server has not handled a request that it refuses in this way: any verb is sent again, with the
    /// same body. The wait is the one that the server names (seconds or a date). All waits of a request
    /// together are at most 5 minutes. Informers do not use this setting: they retry by their own rules.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.requests.max_retries = retries;
        self
    }

    /// The limit of requests under way at once, on all threads together; watches are not counted. Others wait
    /// for their turn in order. 256 unless set: each uses a connection. 0 means 1.
    pub fn max_in_flight(mut self, requests: usize) -> Self {
        self.requests.in_flight = requests.max(1);
        self
    }

    /// Sends at most `per_second` requests a second, after a first `burst` at once; others wait. The request
    /// that opens a watch counts, too. No limit unless set, or with 0 a second: the server's own limit (API
    /// priority and fairness) knows better who is too fast. client-go's default is 5 and 10.
    pub fn rate_limit(mut self, per_second: u32, burst: u32) -> Self {
        self.requests.rate = (per_second > 0).then_some((per_second, burst.max(1)));
        self
    }

    /// How long each single request may take in total: waiting for its turn, retries, its body. No limit
    /// unless set; [`Self::head_limit`], [`Self::slow_head_limit`] and [`Self::read_limit`] hold in any case.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.requests.timeout = Some(timeout);
        self
    }

    /// Calls this for each warning of the server (a `Warning` header with code 299: deprecated versions,
    /// unknown fields), on the thread that receives it: it must not block. If it panics, that is logged, and
    /// the request goes on.
    ///
    /// Unless set, each text is logged once, so that repeated requests of a deprecated version do not fill a
    /// log.
    pub fn on_warning(mut self, handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        self.requests.on_warning = OnWarning::Call(Arc::new(handler));
        self
    }

    /// As [`Self::on_warning`], but once for each text. 1,000 texts are remembered, and then all are
    /// forgotten together.
    pub fn on_new_warning(mut self, handler: impl Fn(&Warning) + Send + Sync + 'static) -> Self {
        self.requests.on_warning = OnWarning::CallNew(Arc::new(handler));
        self
    }

    /// Asks the server not to compress its answers (`disable-compression` of a kubeconfig): less work for
    /// both if the network is fast.
    pub fn disable_compression(mut self) -> Self {
        self.requests.accepts_compression = false;
        self
    }
}
