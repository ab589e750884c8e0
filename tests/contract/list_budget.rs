//! The list budget of a runtime: how many lists and watch-lists may be open at once, and what gives a permit back.
//!
//! Every source here is counted from outside: a list is open from its request to its end, a watch-list until its end
//! bookmark, and both until their stream is dropped.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, stream};
use informer_actors::informer::Informer;
use informer_actors::list_watch::SourceSpec;
use informer_actors::list_watch::{Connect, KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Faults, Site};
use informer_actors::testing::{Server, kill_at};
use informer_core::delta::{ListPart, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::{ReflectorConfig, SourceState};
use informer_core::request::{ListRequest, WatchRequest};

use crate::world::{LONG, pass, three};

/// How many lists are open, and the most that were open at once.
#[derive(Clone, Default)]
struct Gauge(Arc<(AtomicUsize, AtomicUsize)>);

struct Open(Gauge);

impl Gauge {
    fn open(&self) -> Open {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        Open(self.clone())
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A server whose lists and watch-lists are counted while they are open.
struct Counted {
    server: Server<String>,
    gauge: Gauge,
}

impl ListWatch<String> for Counted {
    fn list(&self, request: ListRequest, known: KnownObjects<String>) -> ListStream<String> {
        let open = request.name.is_none().then(|| self.gauge.open());
        self.server.list(request, known).map(move |part| (part, &open).0).boxed_local()
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<String>) -> WatchStream<String> {
        let mut open = request.initial_events.then(|| self.gauge.open());
        let ends = |parts: &[WatchPart<String>]| {
            parts.iter().any(|part| matches!(part, WatchPart::Bookmark { initial_events_end: true, .. }))
        };
        let answer = self.server.watch(request, known).map(move |parts| {
            if parts.as_ref().is_ok_and(|parts| ends(parts)) {
                drop(open.take());
            }
            parts
        });
        answer.boxed_local()
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        self.server.get(key)
    }
}

fn counted(id: SourceId, server: &Server<String>, gauge: &Gauge) -> SourceSpec<String> {
    let (server, gauge) = (server.clone(), gauge.clone());
    let connect: Connect<String> =
        Arc::new(move || Box::new(Counted { server: server.clone(), gauge: gauge.clone() }));
    SourceSpec::new(id, connect, ReflectorConfig::new("texts"))
}

fn informer(runtime: &Runtime, name: &str, server: &Server<String>, gauge: &Gauge) -> Informer<String> {
    let builder = Informer::builder(runtime, name).source_with(counted(SourceId::default(), server, gauge));
    builder.start().expect("the spec is valid")
}

/// Ten informers on a budget of one, whose first ten requests are refused; lists take 10 s each.
fn refused_ten_times(refusal: fn() -> ListWatchError) {
    Runtime::simulation(3).lists_at_once(1).build().run(|runtime| async move {
        let (server, gauge) = (Server::new(), Gauge::default());
        three(&server);
        server.answer_after(Duration::from_secs(10));
        server.refuse((0..10).map(|_| refusal()));
        let informers: Vec<_> =
            (0..10).map(|n| informer(&runtime, &format!("texts-{n}"), &server, &gauge)).collect();
        for informer in &informers {
            informer.synced_within(LONG).await.expect("each syncs");
        }
        assert_eq!(gauge.most(), 1, "open at once after {}", refusal());
    });
}

#[test]
fn ref_55_refused_watch_lists_wait_for_the_budget_again_whatever_the_refusal_is() {
    refused_ten_times(|| ListWatchError::Overloaded {
        message: "busy".into(),
        retry_after: Some(Duration::from_secs(1)),
    });
    refused_ten_times(|| ListWatchError::Denied("no".into()));
    refused_ten_times(|| ListWatchError::NotFound("no such kind".into()));
    refused_ten_times(|| ListWatchError::Status { code: 500, reason: "".into(), message: "no".into() });
    refused_ten_times(|| ListWatchError::Expired("too old".into()));
    refused_ten_times(|| ListWatchError::WatchListUnsupported("no".into()));
    refused_ten_times(|| ListWatchError::source("connection refused"));
}

/// A source of three pages of one object each, which records each page that it is asked for.
struct Paged {
    name: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
    /// Refuses one request for the second page with 410.
    expires: Arc<AtomicUsize>,
}

impl ListWatch<String> for Paged {
    fn list(&self, request: ListRequest, _known: KnownObjects<String>) -> ListStream<String> {
        let page: usize = request.token.map_or(0, |token| token.parse().expect("a token of ours"));
        self.asked
            .lock()
            .expect("no test panics while it holds the lock")
            .push(format!("{}{page}", self.name));
        if page == 1 && self.expires.swap(0, Ordering::SeqCst) == 1 {
            return after_a_second(vec![Err(ListWatchError::Expired("too old".into()))]);
        }
        let meta = Meta::new(
            ObjectKey::cluster(format!("page-{page}")),
            ResourceVersion::from_number(10).expect("not zero"),
            SourceId::default(),
        )
        .wire_bytes(1);
        let version = meta.version.clone();
        let object = Object::new(meta, String::new());
        let token = (page < 2).then(|| (page + 1).to_string());
        after_a_second(vec![Ok(ListPart::Objects(vec![object])), Ok(ListPart::End { version, token })])
    }

    fn watch(&self, _request: WatchRequest, _known: KnownObjects<String>) -> WatchStream<String> {
        stream::iter([Ok(Vec::new())]).chain(stream::pending()).boxed_local()
    }

    fn get(
        &self,
        _key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        Box::pin(async { Ok(None) })
    }
}

fn after_a_second<T: 'static>(parts: Vec<T>) -> stream::LocalBoxStream<'static, T> {
    let later = async move {
        pass(Duration::from_secs(1)).await;
        stream::iter(parts)
    };
    stream::once(later).flatten().boxed_local()
}

/// The pages in the order in which three informers on a budget of one have asked for them.
fn pages_asked(expires: usize) -> Vec<String> {
    Runtime::simulation(3).lists_at_once(1).build().run(|runtime| async move {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let expires = Arc::new(AtomicUsize::new(expires));
        let informers: Vec<_> = ["A", "B", "C"]
            .into_iter()
            .map(|name| {
                let (asked, expires) = (Arc::clone(&asked), Arc::clone(&expires));
                let connect: Connect<String> = Arc::new(move || {
                    Box::new(Paged { name, asked: Arc::clone(&asked), expires: Arc::clone(&expires) })
                });
                let config = ReflectorConfig { watch_list: false, ..ReflectorConfig::new(name) };
                let source = SourceSpec::new(SourceId::default(), connect, config);
                Informer::builder(&runtime, name).source_with(source).start().expect("the spec is valid")
            })
            .collect();
        for informer in &informers {
            informer.synced_within(LONG).await.expect("each syncs");
        }
        let asked = asked.lock().expect("no test panics while it holds the lock");
        asked.clone()
    })
}

#[test]
fn ref_55_a_paged_list_holds_one_permit_from_its_first_page_to_its_last() {
    assert_eq!(pages_asked(0), ["A0", "A1", "A2", "B0", "B1", "B2", "C0", "C1", "C2"]);
}

#[test]
fn ref_55_a_list_that_starts_over_at_once_keeps_its_permit() {
    assert_eq!(pages_asked(1), ["A0", "A1", "A0", "A1", "A2", "B0", "B1", "B2", "C0", "C1", "C2"]);
}

#[test]
fn ref_55_waiting_for_the_budget_is_not_a_failure_and_no_deadline_runs_meanwhile() {
    Runtime::simulation(3).lists_at_once(1).build().run(|runtime| async move {
        let (slow, quick, gauge) = (Server::new(), Server::new(), Gauge::default());
        (0..20).for_each(|n| drop(slow.apply(&format!("a/{n}"), String::new())));
        slow.objects_per_part(1);
        slow.pause_between_parts(Duration::from_secs(10));
        three(&quick);
        let first = informer(&runtime, "first", &slow, &gauge);
        let second = informer(&runtime, "second", &quick, &gauge);
        pass(Duration::from_secs(180)).await;
        assert!(matches!(second.state(), SourceState::Starting), "{:?}", second.state());
        assert!(quick.requests().is_empty());
        first.synced_within(LONG).await.expect("it syncs in the end");
        second.synced_within(LONG).await.expect("then it is the second one's turn");
        assert_eq!(second.status().sources[0].counters.failures, 0);
        assert_eq!((quick.requests().len(), gauge.most()), (1, 1));
    });
}

/// The first informer lists and holds the only permit; after `end` the second must get it.
fn permit_comes_back<F>(faults: Faults, end: impl FnOnce(Informer<String>, Server<String>) -> F)
where
    F: Future<Output = ()>,
{
    Runtime::simulation(3).faults(faults).lists_at_once(1).build().run(|runtime| async move {
        let (live, held, free) = (Server::new(), Server::named(SourceId::new("held")), Server::new());
        let gauge = Gauge::default();
        three(&live);
        three(&held);
        held.hold_lists(true);
        held.pause_between_parts(Duration::from_millis(2_500));
        let builder = Informer::builder(&runtime, "first");
        let builder = [(SourceId::default(), &live), (SourceId::new("held"), &held)]
            .into_iter()
            .fold(builder, |builder, (id, server)| builder.source_with(counted(id, server, &gauge)));
        let first = builder.start().expect("the spec is valid");
        pass(Duration::from_secs(1)).await;
        let second = informer(&runtime, "second", &free, &gauge);
        pass(Duration::from_secs(1)).await;
        assert_eq!((live.requests().len(), held.requests().len(), free.requests().len()), (1, 1, 0));
        end(first.clone(), live.clone()).await;
        second.synced_within(Duration::from_secs(5)).await.expect("the permit was given back");
        held.hold_lists(false);
        if !first.status().stopped {
            first.synced_within(LONG).await.expect("the first gets it again");
        }
        assert_eq!(gauge.most(), 1);
    });
}

#[test]
fn ref_55_a_stop_in_mid_list_gives_the_permit_back() {
    permit_comes_back(Faults::default(), |first, _| async move {
        assert!(first.shutdown(Duration::from_secs(1)).await.is_clean());
    });
}

// REF-55: given a list budget of n and more than n informers that list, page, are refused (429, 403, 404,
// 410, 500, watch-list unknown), start over at once, or stop, crash or are restarted in mid-list, when the
// open requests are counted, then never more than n lists and watch-lists before their end are open, a list
// holds one permit from its first page to its last, waiting for a permit is not a failure and no deadline
// runs meanwhile, and every end gives the permit back.
// - a never more than n are open, whatever the refusal:
//   `ref_55_refused_watch_lists_wait_for_the_budget_again_whatever_the_refusal_is`
// - b one permit from the first page to the last:
//   `ref_55_a_paged_list_holds_one_permit_from_its_first_page_to_its_last`
// - c what starts over at once keeps its permit: `ref_55_a_list_that_starts_over_at_once_keeps_its_permit`
// - d waiting is not a failure, no deadline runs:
//   `ref_55_waiting_for_the_budget_is_not_a_failure_and_no_deadline_runs_meanwhile`
// - e a stop gives it back: `ref_55_a_stop_in_mid_list_gives_the_permit_back`
// - f a crashed reflector gives it back: `ref_55_a_reflector_that_panics_in_mid_list_gives_the_permit_back`
// - g a restart of the group gives it back
#[test]
fn ref_55_a_group_that_is_restarted_in_mid_list_gives_the_permit_back() {
    permit_comes_back(kill_at(Site::DeltaFifoPush, 2), |_, live| async move {
        live.apply("a/one", "kills the queue".to_owned());
    });
}

#[test]
fn ref_55_a_reflector_that_panics_in_mid_list_gives_the_permit_back() {
    let armed = Arc::new(AtomicBool::new(false));
    let hook = Arc::clone(&armed);
    let faults = Faults::new(move |site| {
        let killed = site == Site::ReflectorReceived && hook.swap(false, Ordering::SeqCst);
        assert!(!killed, "killed in mid-list");
    });
    permit_comes_back(faults, |first, _| async move {
        armed.store(true, Ordering::SeqCst);
        first.wait_until(|status| status.sources[1].restarts == 1).await.expect("it runs");
    });
}

// REF-56: given a list that brings neither an object nor the end of a page, when 90 s have passed since the
// last one, then it is dropped, that is a failure with a typed timeout error, and its permit of the list
// budget is free.
// - a dropped after 90 s without an object or page, with a typed error:
//   `ref_56_a_list_that_brings_no_new_object_for_90_s_has_failed`
// - b each object and page counts:
//   `ref_56_each_page_and_each_object_that_cannot_be_read_gives_a_list_its_90_s_anew`
// - c also while parts without objects never pause:
//   `ref_56_parts_without_objects_do_not_extend_the_deadline_of_a_list`
// - d its permit is free
#[test]
fn ref_56_a_list_that_brings_no_new_object_for_90_s_fails_and_gives_its_permit_back() {
    Runtime::simulation(3).lists_at_once(1).build().run(|runtime| async move {
        let (endless, free, gauge) = (Server::new(), Server::new(), Gauge::default());
        three(&endless);
        endless.serve_watch_list(false);
        endless.hold_lists(true);
        let first = informer(&runtime, "first", &endless, &gauge);
        let second = informer(&runtime, "second", &free, &gauge);
        pass(Duration::from_secs(89)).await;
        assert!(free.requests().is_empty() && matches!(first.state(), SourceState::Listing { received: 3 }));
        second.synced_within(Duration::from_secs(3)).await.expect("the permit is free again");
        let status = &first.status().sources[0];
        let error = status.last_error.as_ref().expect("it has failed").to_string();
        assert_eq!(status.counters.failures, 1);
        assert_eq!(error, "timed out: texts: the next object of a list did not come within 90s");
        endless.hold_lists(false);
        first.synced_within(LONG).await.expect("it is asked again");
    });
}
