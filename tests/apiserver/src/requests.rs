//! The requests of a server: how many may be answered at once, and the log of those it has seen, for tests that count them.
//!
//! Answers: may this request be answered now, and what did clients ask, in which order? A bound is off unless asked for,
//! because few tests need an overloaded server. Bodies and headers are not kept.
//! 1. At most `KEPT` requests are kept; the oldest are removed first.
//! 2. There is a bound for requests that read, and one for those that change something. Administrators (`system:masters`)
//!    and watches are always admitted, as by a real server without priorities.
//! 3. A request that is not admitted is refused at once, as plain text with `Retry-After: 1`, before its rights are
//!    checked.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::user::User;
use crate::cluster::status::ApiError;

/// How many requests are remembered.
const KEPT: usize = 10_000;

/// One request, as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// Its number: 0 for the first request of this server.
    pub number: u64,
    /// The HTTP method.
    pub method: String,
    /// The path, percent-decoded.
    pub path: String,
    /// The members of the query, percent-decoded, in their order.
    pub query: Vec<(String, String)>,
    /// The verb of the API (`list`, `watch`, `get`, `create`, ...); empty for paths that are not a resource.
    pub verb: String,
    /// The resource in kubectl's form (`pods`, `deployments.apps`); empty for other paths.
    pub resource: String,
}

impl Request {
    /// The value of a query member, if it was given.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
pub(crate) struct RequestLog {
    requests: VecDeque<Request>,
    next: u64,
}

impl RequestLog {
    pub(crate) fn push(&mut self, mut request: Request) {
        request.number = self.next;
        self.next += 1;
        if self.requests.len() == KEPT {
            self.requests.pop_front();
        }
        self.requests.push_back(request);
    }

    pub(crate) fn all(&self) -> Vec<Request> {
        self.requests.iter().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.requests.clear();
    }
}

const PRIVILEGED: &str = "system:masters";

/// The number of requests that may be in flight.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    reading: Option<Arc<Semaphore>>,
    changing: Option<Arc<Semaphore>>,
}

/// A permit of the server, held until it is dropped; nothing if requests are not counted.
pub(crate) type Place = Option<OwnedSemaphorePermit>;

impl Limits {
    /// This many requests of each sort; 0 for any number.
    pub(crate) fn new(reading: usize, changing: usize) -> Self {
        let room = |places: usize| {
            (places > 0).then(|| Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))))
        };
        Self { reading: room(reading), changing: room(changing) }
    }

    /// Admits a request; `verb` is that of the API, or the method in lower case.
    ///
    /// # Errors 429 if too many requests are in flight.
    pub(crate) fn admit(&self, verb: &str, user: &User) -> Result<Place, ApiError> {
        let room = match verb {
            "get" | "list" => &self.reading,
            "watch" => return Ok(None),
            _ => &self.changing,
        };
        let Some(room) = room.as_ref().filter(|_| !user.groups.iter().any(|group| group == PRIVILEGED))
        else {
            return Ok(None);
        };
        let place = Arc::clone(room).try_acquire_owned();
        place.map(Some).map_err(|_full| ApiError::by_code(429).with_retry_after(1).into_plain())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_removes_the_oldest_first() {
        let mut log = RequestLog::default();
        for _ in 0..KEPT + 3 {
            let (method, path, verb, resource) = <(String, String, String, String)>::default();
            log.push(Request { number: 0, method, path, query: Vec::new(), verb, resource });
        }
        let kept = log.all();
        assert_eq!((kept.len(), kept[0].number), (KEPT, 3));
    }

    #[test]
    fn api_21_a_request_above_the_limit_is_refused_at_once_and_administrators_are_admitted() {
        let limits = Limits::new(1, 2);
        let jane = User::new("jane").group("dev");
        let taken = limits.admit("list", &jane).unwrap();
        assert!(taken.is_some());
        let full = limits.admit("get", &jane).unwrap_err();
        assert_eq!((full.code(), full.retry_after(), full.is_plain()), (429, Some(1), true));
        assert!(limits.admit("watch", &jane).unwrap().is_none());
        assert!(limits.admit("get", &User::new("root").group("system:masters")).unwrap().is_none());
        let changing = [limits.admit("create", &jane).unwrap(), limits.admit("delete", &jane).unwrap()];
        assert!(limits.admit("patch", &jane).is_err());
        drop((taken, changing));
        assert!(limits.admit("get", &jane).is_ok() && limits.admit("patch", &jane).is_ok());
        assert!(Limits::default().admit("get", &jane).unwrap().is_none());
    }
}
