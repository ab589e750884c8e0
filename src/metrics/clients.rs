//! Metrics of clients: client-go's names and labels, and what they lack.
//!
//! Clients of one server share their series. The last counts of an ended client stay in them: a counter must not go back.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_client::ClientFigures;

use super::write::{Family, Labels, Samples, Value, times};

/// Servers whose clients have ended; further ones are forgotten.
const MOST_SERVERS: usize = 100;

/// The figures of the last scrape, and the sums of ended clients.
#[derive(Debug, Default)]
pub(super) struct Seen {
    live: BTreeMap<u64, ClientFigures>,
    ended: BTreeMap<Arc<str>, ClientFigures>,
}

impl Seen {
    /// Returns each client, and for each server the sums of ended clients.
    pub(super) fn update(&mut self, clients: Vec<ClientFigures>) -> Vec<(Labels, ClientFigures)> {
        let clients: BTreeMap<u64, ClientFigures> =
            clients.into_iter().map(|client| (client.number, client)).collect();
        for (number, client) in std::mem::take(&mut self.live) {
            if !clients.contains_key(&number) {
                let is_room = self.ended.len() < MOST_SERVERS;
                match self.ended.get_mut(&client.server) {
                    Some(ended) => ended.add(client),
                    None if !is_room => {}
                    None => {
                        let mut ended = client;
                        ended.credentials.expire_in = None;
                        self.ended.insert(Arc::clone(&ended.server), ended);
                    }
                }
            }
        }
        self.live = clients;
        let all = self.live.values().chain(self.ended.values());
        all.map(|client| (vec![("host", client.server.to_string())], client.clone())).collect()
    }
}

fn code(code: Option<u16>) -> String {
    // As client-go.
    code.map_or_else(|| "<error>".to_owned(), |code| code.to_string())
}

pub(super) const CLIENTS: &[Family<ClientFigures>] = &[
    Family::counter(
        "rest_client_requests",
        "Requests that were sent, by status code and method",
        |client, samples| {
            for row in &client.requests {
                samples.with([("code", &code(row.code)), ("method", row.method)], Value::Count(row.count));
            }
        },
    ),
    Family::counter(
        "rest_client_request_retries",
        "Requests that were sent again, by the status code before and the verb",
        |client, samples| {
            for row in client.requests.iter().filter(|row| row.retries > 0) {
                samples.with([("code", &code(row.code)), ("verb", row.method)], Value::Count(row.retries));
            }
        },
    ),
    Family::counter(
        "rest_client_resource_requests",
        "Requests that were sent, by what they asked for",
        |client, samples| {
            for row in &client.requests {
                let labels = [("code", &*code(row.code)), ("verb", row.verb), ("resource", &*row.resource)];
                samples.with(labels, Value::Count(row.count));
            }
        },
    ),
    Family::histogram(
        "rest_client_request_duration_seconds",
        "How long it took until the head of an answer came",
        |client, samples| of_methods(client, samples, |method| times(&method.head)),
    ),
    Family::histogram(
        "rest_client_rate_limiter_duration_seconds",
        "How long requests waited for their turn under the client's own limits",
        |client, samples| of_methods(client, samples, |method| times(&method.waits)),
    ),
    Family::histogram("rest_client_request_size_bytes", "The bodies of requests", |client, samples| {
        of_methods(client, samples, |method| Value::Sizes(Box::new(method.sent)));
    }),
    Family::histogram(
        "rest_client_response_size_bytes",
        "The bodies of answers, those of watches and streams left out",
        |client, samples| of_methods(client, samples, |method| Value::Sizes(Box::new(method.received))),
    ),
    Family::gauge(
        "rest_client_credentials_expire_seconds",
        "How long credentials of a plugin or login are still valid",
        |client, samples| {
            let left = client.credentials.expire_in.iter();
            left.for_each(|left| samples.add(Value::Least(left.as_secs_f64())));
        },
    ),
    Family::counter(
        "rest_client_credential_renewals",
        "How often credentials were read or obtained again, by result",
        |client, samples| {
            samples.with([("result", "success")], Value::Count(client.credentials.renewals));
            samples.with([("result", "error")], Value::Count(client.credentials.failures));
        },
    ),
];

fn of_methods(
    client: &ClientFigures,
    samples: &mut Samples<'_>,
    value: impl Fn(&informer_client::MethodFigures) -> Value,
) {
    for method in &client.methods {
        samples.with([("verb", method.method)], value(method));
    }
}

/// Without a host, as client-go.
pub(super) const PLUGINS: &[Family<ClientFigures>] = &[Family::counter(
    "rest_client_exec_plugin_call",
    "Calls of a credential plugin or of the issuer of a login, by their outcome",
    |client, samples| {
        let calls = &client.credentials.calls;
        for (code, status, count) in [
            ("0", "no_error", calls.succeeded),
            ("1", "plugin_not_found_error", calls.not_started),
            ("1", "plugin_execution_error", calls.failed),
            ("1", "client_internal_error", calls.malformed),
        ] {
            if count > 0 {
                samples.with([("code", code), ("call_status", status)], Value::Count(count));
            }
        }
    },
)];
