//! The options of one request.
//!
//! Answers "what differs for this request from the settings of its client?" They travel in the extensions of the
//! request, so every way to send one takes them. Invariants:
//! 1. What is not set here is as the client's [`Config`](super::Config) says.
//!
//! Read next: `layers.rs`, which reads them.

use std::time::Duration;

/// What differs for one request. Insert it into the extensions of the request.
///
/// ```
/// use std::time::Duration;
///
/// use actix_informer::client::RequestOptions;
/// use actix_informer::http::Request;
///
/// let mut request = Request::get("/version").body(Vec::<u8>::new())?;
/// request.extensions_mut().insert(RequestOptions::new().timeout(Duration::from_secs(2)).max_retries(0));
/// # Ok::<(), actix_informer::http::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_retries: Option<u32>,
}

impl RequestOptions {
    /// Nothing differs.
    pub fn new() -> Self {
        Self::default()
    }

    /// The whole request takes at most this long: with waiting for its turn, retries and its body. Of a watch only
    /// until it is open.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// It is sent again at most so often; 0: never. See [`Config::max_retries`](super::Config::max_retries).
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = Some(retries);
        self
    }
}
