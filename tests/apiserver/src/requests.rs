//! The log of requests the server has seen, for tests that count them.
//!
//! Answers: what did the client ask, and in which order? Bodies and headers are not kept.
//! 1. At most `KEPT` requests are kept; the oldest are removed first.
use std::collections::VecDeque;

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
}
