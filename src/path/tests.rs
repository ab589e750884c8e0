//! Tests of paths: a change leaves its marks in order, from the socket to the reconcile and to what it wrote.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::{Hop, PastBody, PastState, Path, SpanExporter, chrome_trace, otlp_request};
use crate::client::Client;
use crate::client::api::{DeleteParams, PostParams};
use crate::controller::{Controller, Outcome, ReconcileError, Request};
use crate::object::ObjectKey;
use crate::prelude::*;
use crate::testing::{ApiServer, World};

fn map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

/// Copies `web` to `copy` once.
async fn reconcile(client: Client, request: Request<ConfigMap>) -> Result<Outcome, ReconcileError> {
    if request.key().name() == "web" {
        let maps = client.api::<ConfigMap>().namespaced("default");
        request.written(&maps.create(&PostParams::default(), &map("copy")).await?);
    }
    Ok(Outcome::Done)
}

/// The path of `web`, which is made after the informer is synced.
async fn made(runtime: Runtime, choose: impl Fn(&Runtime)) -> (Path, Path) {
    let server = ApiServer::builder().seed(7).in_process(runtime.wall_time()).start().await;
    let server = server.expect("it starts");
    let client = Client::in_process(&runtime, server.service());
    let maps = client.resource::<ConfigMap>().namespace("default").informer(&runtime).expect("sound");
    let maps = maps.start().expect("it starts");
    let writer = client.clone();
    let reconcile = move |request| reconcile(writer.clone(), request);
    let controller = Controller::builder(&maps).name("copies").reconcile(reconcile).start().expect("sound");
    maps.synced_within(Duration::from_secs(60)).await.expect("it syncs");
    choose(&runtime);
    let api = client.api::<ConfigMap>().namespaced("default");
    api.create(&PostParams::default(), &map("web")).await.expect("it is new");
    tokio::time::sleep(Duration::from_secs(10)).await;
    let of = |name: &str| runtime.paths().of(&ObjectKey::namespaced("default", name));
    let paths = (of("web"), of("copy"));
    drop(controller);
    paths
}

fn hops(path: &Path) -> Vec<Hop> {
    path.marks.iter().map(|mark| mark.hop).collect()
}

const OF_A_CHANGE: [Hop; 12] = [
    Hop::Read,
    Hop::Scanned,
    Hop::Decoded,
    Hop::Queued,
    Hop::Published,
    Hop::Distributed,
    Hop::Delivered,
    Hop::KeyAdded,
    Hop::Handled,
    Hop::KeyTaken,
    Hop::Written,
    Hop::Reconciled,
];

#[test]
fn in_a_simulation_each_change_leaves_its_marks_from_the_socket_to_what_the_reconcile_wrote() {
    let (web, copy) = Runtime::simulated(7).run(|runtime| made(runtime, |_| ()));
    let expected: Vec<Hop> = OF_A_CHANGE.into_iter().chain([Hop::Seen]).collect();
    let mut of_web = hops(&web);
    // Whether the subscriber or the worker is next is the scheduler's choice.
    of_web.sort_unstable();
    let mut sorted = expected.clone();
    sorted.sort_unstable();
    assert_eq!(of_web, sorted, "{web}");
    assert!(web.marks.is_sorted_by_key(|mark| mark.at), "{web}");
    let written = web.marks.iter().find(|mark| mark.hop == Hop::Written).expect("it is there");
    assert_eq!(written.key, ObjectKey::namespaced("default", "copy"));
    assert_eq!(written.other, Some(ObjectKey::namespaced("default", "web")), "who caused it");
    let read = copy.marks.iter().find(|mark| mark.hop == Hop::Read).expect("it comes back by the watch");
    assert_eq!(read.version, written.version, "{copy}");
}

#[test]
fn a_key_that_is_followed_leaves_its_marks_and_no_other_does() {
    let follow = |runtime: &Runtime| {
        runtime.paths().sample(0);
        runtime.paths().follow(&ObjectKey::namespaced("default", "web")).expect("it is the first");
    };
    let (web, copy) = Runtime::simulated(7).run(|runtime| made(runtime, follow));
    assert_eq!(web.marks.len(), OF_A_CHANGE.len() + 1, "{web}");
    assert_eq!(hops(&copy), [Hop::Written], "only what the followed key did to it: {copy}");
}

#[test]
fn the_states_of_a_key_that_is_followed_are_kept_and_go_when_it_is_not() {
    Runtime::simulated(7).run(|runtime| async move {
        let (server, key) = (ApiServer::builder().seed(7), ObjectKey::namespaced("default", "web"));
        let server = server.in_process(runtime.wall_time()).start().await.expect("it starts");
        let client = Client::in_process(&runtime, server.service());
        let maps = client.resource::<ConfigMap>().namespace("default").informer(&runtime).expect("sound");
        let maps = maps.start().expect("it starts");
        maps.synced_within(Duration::from_secs(60)).await.expect("it syncs");
        let api = client.api::<ConfigMap>().namespaced("default");
        let made = api.create(&PostParams::default(), &map("early")).await.expect("it is new");
        tokio::time::sleep(Duration::from_secs(1)).await;
        runtime.paths().follow(&key).expect("it is the first");
        runtime.paths().follow(&ObjectKey::namespaced("default", "early")).expect("there is room");
        let mut web = api.create(&PostParams::default(), &map("web")).await.expect("it is new");
        web.data = Some([("size".to_owned(), "L".to_owned())].into());
        api.replace("web", &PostParams::default(), &web).await.expect("it is there");
        api.delete("web", &DeleteParams::default()).await.expect("it is there");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let states = runtime.paths().states(&key);
        let [first, second, third] = &states[..] else { panic!("{states:?}") };
        let text = |state: &PastState| match &state.body {
            PastBody::Object(text) => text.to_string(),
            other => format!("{other:?}"),
        };
        assert!(!text(first).contains("size") && text(second).contains("size"), "{states:?}");
        assert_eq!((&third.body, &*first.informer), (&PastBody::Deleted, maps.name()));
        let early = ObjectKey::namespaced("default", "early");
        assert_eq!(runtime.paths().states(&early), [], "nothing has changed: {made:?}");
        runtime.paths().unfollow(&key);
        assert_eq!(runtime.paths().states(&key), []);
    });
}

/// Each span with those around it, and how many are open.
#[derive(Clone, Default)]
struct Spans {
    seen: Arc<Mutex<Vec<String>>>,
    open: Arc<std::sync::atomic::AtomicUsize>,
}

struct Named(String);

impl<S> Layer<S> for Spans
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        id: &tracing::span::Id,
        context: Context<'_, S>,
    ) {
        let span = context.span(id).expect("it is new");
        if !["change", "reconcile"].contains(&span.name()) {
            return;
        }
        let mut named = Named(span.name().to_owned());
        attributes.record(&mut named);
        span.extensions_mut().insert(named);
        let around = span.scope().from_root();
        let around = around.filter_map(|span| Some(span.extensions().get::<Named>()?.0.clone()));
        self.seen.lock().expect("no panic under it").push(around.collect::<Vec<_>>().join(" > "));
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    fn on_close(&self, id: tracing::span::Id, context: Context<'_, S>) {
        if context.span(&id).is_some_and(|span| span.extensions().get::<Named>().is_some()) {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl tracing::field::Visit for Named {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        if ["key", "object"].contains(&field.name()) {
            self.0 += &format!(" {value:?}");
        }
    }
}

#[test]
fn one_trace_of_spans_shows_who_caused_what_and_each_span_ends() {
    // tracing remembers for each line of code whether anybody records it: also if another thread reaches it first.
    let _registered = tracing::Dispatch::new(tracing_subscriber::registry());
    let spans = Spans::default();
    let subscriber = tracing_subscriber::registry().with(spans.clone());
    tracing::subscriber::with_default(subscriber, || {
        tracing::callsite::rebuild_interest_cache();
        drop(Runtime::simulated(7).run(|runtime| made(runtime, |_| ())));
    });
    let mut seen = spans.seen.lock().expect("no panic under it").clone();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            "change default/web",
            "change default/web > change default/copy",
            "change default/web > change default/copy > reconcile default/copy",
            "change default/web > reconcile default/web",
        ]
    );
    assert_eq!(spans.open.load(Ordering::Relaxed), 0, "the last one ends seconds after the last write");
}

#[test]
fn without_a_choice_there_are_no_marks_and_what_has_ended_has_none() {
    let off = |runtime: &Runtime| runtime.paths().sample(0);
    Runtime::simulated(7).run(|runtime| async move {
        let (web, copy) = made(runtime.clone(), off).await;
        assert_eq!((hops(&web), hops(&copy)), (vec![], vec![]));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(runtime.paths().all().marks.is_empty(), "{}", runtime.paths().all());
    });
}

#[test]
fn the_trace_is_what_perfetto_reads() {
    let (web, _) = Runtime::simulated(7).run(|runtime| made(runtime, |_| ()));
    let trace: Value = serde_json::from_str(&chrome_trace(&web)).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    for event in events {
        // The fields that Chrome's trace format asks of complete events and of names.
        let needed: &[&str] = match event["ph"].as_str() {
            Some("X") => &["name", "cat", "pid", "tid", "ts", "dur"],
            Some("M") => &["name", "pid", "tid", "args"],
            other => panic!("{other:?} in {event}"),
        };
        assert!(needed.iter().all(|field| !event[field].is_null()), "{event}");
        assert!(event["dur"].as_f64().is_none_or(|dur| dur >= 0.0), "{event}");
    }
    let spans = events.iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(spans, web.marks.len());
    let processes = events.iter().filter(|event| event["name"] == "process_name");
    let names: Vec<_> = processes.map(|event| event["args"]["name"].clone()).collect();
    assert_eq!(names, [json!("configmaps/ns=default"), json!("copies")]);
}

#[test]
fn as_spans_one_trace_shows_who_caused_what_through_own_writes() {
    let (web, copy) = Runtime::simulated(7).run(|runtime| made(runtime, |_| ()));
    let mut both = web.clone();
    both.add(copy);
    both.marks.dedup();
    let request = otlp_request(&both, "copies", Duration::from_secs(1_700_000_000));
    let request: Value = serde_json::from_str(&request).expect("JSON");
    let spans = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("a list").clone();
    let named = |name: &str| {
        let found = spans.iter().find(|span| span["name"] == name);
        found.unwrap_or_else(|| panic!("no {name:?} in {spans:#?}")).clone()
    };
    let first = named("change of default/web");
    let reconcile = named("copies: reconcile of default/web");
    let second = named("change of default/copy");
    assert_eq!(first["parentSpanId"], "", "nobody here has made it");
    assert_eq!(reconcile["parentSpanId"], first["spanId"]);
    assert_eq!(second["parentSpanId"], reconcile["spanId"], "the reconcile has written it");
    assert!(spans.iter().filter(|span| span["name"] == "published").count() >= 2);
    let traces: std::collections::BTreeSet<_> =
        [&first, &reconcile, &second].map(|one| one["traceId"].to_string()).into();
    assert_eq!(traces.len(), 1);
    for span in &spans {
        let id = |field: &str, length: usize| {
            let text = span[field].as_str().expect("text");
            assert!(
                text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{field}: {span}"
            );
        };
        id("traceId", 32);
        id("spanId", 16);
        let nanos =
            |field: &str| span[field].as_str().and_then(|text| text.parse::<u64>().ok()).expect("a number");
        assert!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano"), "{span}");
    }
    let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| span["spanId"].to_string()).collect();
    assert_eq!(ids.len(), spans.len(), "each span has an id of its own");
}

/// A collector: it keeps what is posted to it, and refuses once.
#[derive(Clone, Default)]
struct Collector {
    refuses: Arc<AtomicBool>,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    fn client(&self, runtime: &Runtime) -> Client {
        let this = self.clone();
        Client::in_process(runtime, move |request: http::Request<Bytes>| {
            assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/v1/traces"));
            assert_eq!(request.headers()["content-type"], "application/json");
            let is_refused = this.refuses.swap(false, Ordering::Relaxed);
            if !is_refused {
                let spans = serde_json::from_slice(request.body()).expect("JSON");
                this.requests.lock().expect("no panic under it").push(spans);
            }
            let code = if is_refused { 503 } else { 200 };
            let answer = http::Response::builder().status(code).header("content-type", "application/json");
            let body = futures_util::stream::iter([Ok(Bytes::from_static(b"{}"))]);
            std::future::ready(Ok(answer.body(body).expect("an answer")))
        })
    }

    fn spans(&self) -> Vec<Value> {
        let requests = self.requests.lock().expect("no panic under it").clone();
        let scopes =
            requests.iter().map(|request| request["resourceSpans"][0]["scopeSpans"][0]["spans"].clone());
        scopes.flat_map(|spans| spans.as_array().cloned().unwrap_or_default()).collect()
    }
}

#[test]
fn an_exporter_sends_each_span_once_and_counts_what_a_collector_refuses() {
    Runtime::simulated(7).run(|runtime| async move {
        let collector = Collector::default();
        runtime.paths().sample(1);
        let exporter = SpanExporter::start(&runtime, &collector.client(&runtime), "copies");
        let (web, _) = made(runtime.clone(), |_| ()).await;
        assert!(!web.marks.is_empty());
        tokio::time::sleep(Duration::from_secs(30)).await;
        let spans = collector.spans();
        let ids: std::collections::BTreeSet<_> =
            spans.iter().map(|span| span["spanId"].to_string()).collect();
        assert_eq!(ids.len(), spans.len(), "each once");
        assert!(spans.iter().any(|span| span["name"] == "copies: reconcile of default/web"));
        assert_eq!((exporter.figures().sent, exporter.figures().dropped), (spans.len() as u64, 0));
        collector.refuses.store(true, Ordering::Relaxed);
        drop(made(runtime.clone(), |_| ()).await);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(exporter.figures().dropped > 0, "{:?}", exporter.figures());
        let before = collector.requests.lock().expect("no panic under it").len();
        drop(exporter);
        drop(made(runtime.clone(), |_| ()).await);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(
            collector.requests.lock().expect("no panic under it").len(),
            before,
            "nothing after its drop"
        );
    });
}

#[test]
fn a_world_that_fails_shows_the_path_of_the_object_that_its_failure_names() {
    let run = || {
        World::simulated(7).run(|world| async move {
            world.start("reader", |host| async move {
                let maps = host.client().resource::<ConfigMap>().informer(host.runtime())?.start()?;
                let reading = maps.for_each(|_| async {})?;
                host.stopping().await;
                drop(reading);
                Ok::<(), Box<dyn std::error::Error>>(())
            });
            world.settles(Duration::from_secs(5), Duration::from_secs(60)).await;
            let api = world.client().api::<ConfigMap>().namespaced("default");
            api.create(&PostParams::default(), &map("web")).await.expect("it is new");
            let trace: Value = serde_json::from_str(&world.chrome_trace()).expect("JSON");
            assert!(trace["traceEvents"].is_array());
            world.eventually(Duration::from_secs(10), || Err::<(), _>("default/web has no data")).await;
        });
    };
    let panic = std::panic::catch_unwind(run).expect_err("it has no data");
    let text = panic.downcast_ref::<String>().expect("words");
    let (_, path) = text.split_once("the path of default/web:").unwrap_or_else(|| panic!("{text}"));
    assert!(path.contains("published") && path.contains("handled"), "{text}");
}
