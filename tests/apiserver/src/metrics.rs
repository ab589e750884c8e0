//! The metrics of the server, and how Prometheus reads them.
//!
//! Answers: how many requests, events, open watches and objects? The names and labels are those of a real server; it
//! reports no metric that it does not count.
//! 1. A watch is counted when its head is sent, a refused request too.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::cluster::kind::ResourceId;
use crate::cluster::store::Cluster;
use crate::http::route::{Route, Target};
use crate::world::World;

/// What one request is counted as.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counted {
    code: u16,
    group: String,
    resource: String,
    scope: &'static str,
    sub: String,
    verb: String,
    version: String,
}

impl Counted {
    /// The labels of a request, before its code is known.
    pub(crate) fn of(route: &Route, path: &str, verb: &str, method: &str) -> Self {
        let mut counted = Self {
            code: 0,
            group: String::new(),
            resource: String::new(),
            scope: "",
            sub: String::new(),
            verb: method.to_owned(),
            version: String::new(),
        };
        match route {
            Route::Resource(target) => counted.resource_request(target, verb),
            // Clients can request any path; only paths that are served become labels.
            Route::Unknown => {}
            _ => path.clone_into(&mut counted.sub),
        }
        counted
    }

    fn resource_request(&mut self, target: &Target, verb: &str) {
        if matches!(verb, "list" | "watch" | "deletecollection") {
            self.verb = verb.to_uppercase();
        }
        self.scope = match (&target.name, &target.namespace) {
            (Some(_), _) => "resource",
            (None, Some(_)) => "namespace",
            (None, None) => "cluster",
        };
        self.group.clone_from(&target.group);
        self.resource.clone_from(&target.plural);
        self.version.clone_from(&target.version);
        self.sub = target.sub.clone().unwrap_or_default();
    }

    /// Removes the labels that name a resource if there is no such resource.
    pub(crate) fn unknown(mut self) -> Self {
        for text in [&mut self.group, &mut self.resource, &mut self.version, &mut self.sub] {
            text.clear();
        }
        self
    }
}

/// The counters.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Requests that are not answered yet: those that read, then those that change something.
    in_flight: [u64; 2],
    requests: BTreeMap<Counted, u64>,
    events: BTreeMap<(ResourceId, String), u64>,
}

impl Metrics {
    pub(crate) fn arrives(&mut self, method: &str) {
        self.in_flight[usize::from(changes(method))] += 1;
    }

    pub(crate) fn leaves(&mut self, method: &str) {
        self.in_flight[usize::from(changes(method))] -= 1;
    }

    pub(crate) fn request(&mut self, mut counted: Counted, code: u16) {
        counted.code = code;
        *self.requests.entry(counted).or_default() += 1;
    }

    /// Events handed to a watch of this resource in this version.
    pub(crate) fn events(&mut self, resource: &ResourceId, version: &str, count: usize) {
        let key = (resource.clone(), version.to_owned());
        *self.events.entry(key).or_default() += count as u64;
    }

    /// The text that Prometheus reads.
    pub(crate) fn text(&self, cluster: &Cluster) -> String {
        let mut out = String::new();
        head(&mut out, "apiserver_request_total", "counter", "Requests by verb, resource and code.");
        for (labels, count) in &self.requests {
            let Counted { code, group, resource, scope, sub, verb, version } = labels;
            let component = if resource.is_empty() { "" } else { "apiserver" };
            let _infallible = writeln!(
                out,
                "apiserver_request_total{{code=\"{code}\",component={component:?},dry_run=\"\",group={group:?},\
                 resource={resource:?},scope={scope:?},subresource={sub:?},verb={verb:?},version={version:?}}} {count}"
            );
        }
        head(&mut out, "apiserver_current_inflight_requests", "gauge", "Requests without their answer.");
        for (kind, count) in ["readOnly", "mutating"].iter().zip(self.in_flight) {
            let _infallible =
                writeln!(out, "apiserver_current_inflight_requests{{request_kind={kind:?}}} {count}");
        }
        head(&mut out, "apiserver_watch_events_total", "counter", "Events sent to watches.");
        for ((resource, version), count) in &self.events {
            let ResourceId { group, plural } = resource;
            let _infallible = writeln!(
                out,
                "apiserver_watch_events_total{{group={group:?},resource={plural:?},version={version:?}}} {count}"
            );
        }
        let (mut watches, mut objects) = (String::new(), String::new());
        for (resource, count, open) in cluster.counts() {
            let ResourceId { group, plural } = resource;
            if open > 0 {
                let _infallible = writeln!(
                    watches,
                    "apiserver_longrunning_requests{{component=\"apiserver\",group={group:?},resource={plural:?},verb=\"WATCH\"}} {open}"
                );
            }
            let _infallible = writeln!(
                objects,
                "apiserver_resource_objects{{group={group:?},resource={plural:?}}} {count}"
            );
        }
        head(&mut out, "apiserver_longrunning_requests", "gauge", "Open watches.");
        out += &watches;
        head(&mut out, "apiserver_resource_objects", "gauge", "Stored objects.");
        out + &objects
    }
}

fn changes(method: &str) -> bool {
    !matches!(method, "GET" | "HEAD" | "OPTIONS")
}

/// A request that is not answered yet; dropped with the answer, also if the client went away first.
#[derive(Debug)]
pub(crate) struct InFlight {
    world: Arc<World>,
    method: String,
}

impl InFlight {
    pub(crate) fn arrived(world: &Arc<World>, method: &str) -> Self {
        world.with(|inner| inner.metrics.arrives(method));
        Self { world: Arc::clone(world), method: method.to_owned() }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.world.with(|inner| inner.metrics.leaves(&self.method));
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _infallible = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}
