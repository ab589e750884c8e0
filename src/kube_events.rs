//! A subscription as the stream that kube-rs's runtime reads: `watcher::Event`s.
//!
//! The order is `Init`, an `InitApply` for each initial object, one `InitDone`, then `Apply` and `Delete`. A later list, a
//! restart or a rewind brings differences, no second `Init`. A `Delete` waits for `InitDone`: before that kube-rs's store would
//! forget it.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use informer_actors::subscription::{Events, Marked, MarkedEvents, Notify, Subscription};
use informer_client::representation::LazyBody;
use informer_core::meta::ObjectKey;
use kube_runtime::watcher::{Error, Event};
use serde::de::DeserializeOwned;

/// A subscription as a stream of kube-rs's `watcher::Event`; made by [`kube_events`].
#[must_use = "a stream does nothing until it is polled"]
pub struct KubeEvents<S: Send + Sync + 'static, K = S> {
    events: MarkedEvents<S>,
    /// The flag: the object was deleted. `None` if it does not decode: then it is left out.
    to_kube: fn(&S, bool) -> Option<K>,
    waiting: VecDeque<Event<K>>,
    initial: Initial<K>,
}

enum Initial<K> {
    NotBegun,
    /// With the bodies of what was deleted meanwhile.
    UnderWay(BTreeMap<ObjectKey, K>),
    Done,
}

/// A subscription as a replacement of the stream that kube-rs's `watcher` returns: `reflect`,
/// `applied_objects`, `Controller::for_stream` and the other adaptors of kube-rs run on it. It never yields
/// an error: an informer retries by itself, and shows failures in its status and by `Informer::on_error`. Do
/// not poll `events` before: what was taken from it is missing among the initial events.
///
/// It yields `Init`, `InitApply` for each object that was there, `InitDone`, and then `Apply` and `Delete`.
/// Where kube-rs's watcher begins again with `Init` after it has lost its place, this stream yields the
/// differences. A filter of the subscription applies: an object that leaves it is a `Delete`. It ends when
/// the subscription does.
///
/// **Cost.** kube-rs's runtime owns its objects, so each event clones its object, and its `reflector` keeps a
/// second store beside the informer's: a program that reads through a `Lister` does not need it, but
/// `Controller` does. `Controller::for_stream` needs kube-runtime's feature
/// `unstable-runtime-stream-control`, and shared streams (`for_shared_stream`) need
/// `unstable-runtime-subscribe`; this crate enables neither. The example `kube_controller` is a complete one.
///
/// ```
/// use actix_informer::prelude::*;
/// use actix_informer::subscription::kube_events;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_runtime::WatchStreamExt;
/// use kube_runtime::reflector;
///
/// # fn demo(maps: Informer<ConfigMap>) -> Result<(), Box<dyn std::error::Error>> {
/// let (reader, writer) = reflector::store();
/// // Was: watcher(api, watcher::Config::default()).default_backoff()
/// let stream = kube_events(maps.events()?).reflect(writer).applied_objects();
/// # drop((stream, reader));
/// # Ok(()) }
/// ```
pub fn kube_events<K: Clone + Send + Sync + 'static>(events: Events<K>) -> KubeEvents<K> {
    KubeEvents::new(events, |body, _| Some(body.clone()))
}

/// As [`kube_events`], for an informer with lazy bodies: each event decodes its object. kube-rs owns its objects,
/// so nothing is decoded twice. An object that does not decode is left out, and counts as undecodable in its
/// informer. Of a deleted one that does not decode only the metadata are delivered, if the kind decodes without
/// the rest; a kind that does not is missing among the deletions.
pub fn lazy_kube_events<K: DeserializeOwned + Send + Sync + 'static>(
    events: Events<LazyBody<K>>,
) -> KubeEvents<LazyBody<K>, K> {
    KubeEvents::new(events, |body, is_deleted| {
        body.decode().ok().or_else(|| is_deleted.then(|| body.outline()).flatten())
    })
}

impl<S: Send + Sync + 'static, K> KubeEvents<S, K> {
    fn new(events: Events<S>, to_kube: fn(&S, bool) -> Option<K>) -> Self {
        Self { events: events.marked(), to_kube, waiting: VecDeque::new(), initial: Initial::NotBegun }
    }

    /// The subscription of this stream.
    pub fn subscription(&self) -> &Subscription<S> {
        self.events.subscription()
    }

    fn take(&mut self, marked: Marked<S>) {
        let to_kube = self.to_kube;
        match (&mut self.initial, marked) {
            (Initial::UnderWay(deleted), Marked::Event(Notify::Deleted { last, .. })) => {
                deleted.extend(to_kube(last.body(), true).map(|body| (last.key().clone(), body)));
            }
            (Initial::UnderWay(deleted), Marked::Event(notify)) => {
                deleted.remove(notify.key());
                self.waiting.extend(to_kube(notify.subject().body(), false).map(Event::InitApply));
            }
            (Initial::UnderWay(deleted), Marked::InitDone) => {
                let deleted = std::mem::take(deleted).into_values().map(Event::Delete);
                self.waiting.push_back(Event::InitDone);
                self.waiting.extend(deleted);
                self.initial = Initial::Done;
            }
            (_, Marked::Event(Notify::Deleted { last, .. })) => {
                self.waiting.extend(to_kube(last.body(), true).map(Event::Delete));
            }
            (_, Marked::Event(notify)) => {
                self.waiting.extend(to_kube(notify.subject().body(), false).map(Event::Apply));
            }
            (_, Marked::InitDone) => {}
        }
    }
}

impl<S: Send + Sync + Unpin + 'static, K: Unpin> Stream for KubeEvents<S, K> {
    type Item = Result<Event<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if matches!(self.initial, Initial::NotBegun) {
            self.initial = Initial::UnderWay(BTreeMap::new());
            return Poll::Ready(Some(Ok(Event::Init)));
        }
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            match ready!(Pin::new(&mut self.events).poll_next(cx)) {
                Some(marked) => self.take(marked),
                None => return Poll::Ready(None),
            }
        }
    }
}

informer_core::debug_as!([S: Send + Sync + 'static, K] KubeEvents<S, K>, self, events = self.events);

#[cfg(all(test, feature = "testing"))]
mod tests {
    use std::sync::Arc;

    use futures_util::StreamExt;
    use informer_actors::informer::Informer;
    use informer_actors::list_watch::{Connect, SourceSpec};
    use informer_actors::runtime::Runtime;
    use informer_actors::testing::Server;
    use informer_core::meta::SourceId;
    use informer_core::reflector::ReflectorConfig;

    use super::*;

    async fn given(events: &mut KubeEvents<String>) -> Vec<String> {
        let mut given = Vec::new();
        loop {
            let next = tokio::time::timeout(std::time::Duration::from_millis(5), events.next());
            given.push(match next.await {
                Ok(Some(Ok(Event::Init))) => "Init".to_owned(),
                Ok(Some(Ok(Event::InitApply(body)))) => format!("InitApply {body}"),
                Ok(Some(Ok(Event::InitDone))) => "InitDone".to_owned(),
                Ok(Some(Ok(Event::Apply(body)))) => format!("Apply {body}"),
                Ok(Some(Ok(Event::Delete(body)))) => format!("Delete {body}"),
                _ => return given,
            });
        }
    }

    // LIS-44: given a subscription as kube-rs's stream of watcher events, when it is read, then Init comes
    // first, InitApply for each object that was there, InitDone once, and then Apply and Delete; a relist
    // brings differences and no second Init; what is deleted before InitDone is a Delete behind it.
    // - a Init, InitApply, InitDone, then Apply and Delete, also after a relist
    // - b no Delete before InitDone:
    //   `lis_44_what_is_deleted_before_the_end_of_the_initial_events_is_deleted_behind_it`
    #[test]
    fn lis_44_the_stream_is_that_of_a_watcher_which_never_begins_again() {
        Runtime::simulated(1).run(|runtime| async move {
            let server = Server::<String>::new();
            server.apply("a/one", "1".to_owned());
            server.apply("a/two", "2".to_owned());
            let connected = server.clone();
            let texts = Informer::builder(&runtime, "texts").source(move || connected.clone());
            let texts = texts.start().expect("the spec is sound");
            let mut events = kube_events(texts.events().expect("it runs"));
            texts.synced().await.expect("it syncs");
            assert_eq!(given(&mut events).await, ["Init", "InitApply 1", "InitApply 2", "InitDone"]);
            server.apply("a/one", "3".to_owned());
            assert_eq!(given(&mut events).await, ["Apply 3"]);
            server.freeze_watches(true);
            server.delete("a/two");
            server.apply("a/new", "4".to_owned());
            server.compact();
            server.freeze_watches(false);
            server.end_watches(None);
            let version = server.version();
            let limit = std::time::Duration::from_secs(60);
            texts.lister().wait_for(&version, limit).await.expect("it lists again");
            assert_eq!(given(&mut events).await, ["Apply 4", "Delete 2"], "a relist brings differences");
        });
    }

    #[test]
    fn lis_44_what_is_deleted_before_the_end_of_the_initial_events_is_deleted_behind_it() {
        Runtime::simulated(1).run(|runtime| async move {
            let (first, second) = (Server::<String>::new(), Server::<String>::named(SourceId::new("second")));
            first.apply("a/one", "1".to_owned());
            first.apply("a/two", "2".to_owned());
            second.hold_lists(true);
            let (one, two) = (first.clone(), second.clone());
            let texts = Informer::builder(&runtime, "texts").source(move || one.clone());
            let connect: Connect<String> = Arc::new(move || Box::new(two.clone()));
            let second_source =
                SourceSpec::new(SourceId::new("second"), connect, ReflectorConfig::new("texts"));
            let texts = texts.source_with(second_source).start().expect("the spec is sound");
            let mut events = kube_events(texts.events().expect("it runs"));
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
            assert_eq!(given(&mut events).await, ["Init", "InitApply 1", "InitApply 2"]);
            first.delete("a/one");
            first.delete("a/two");
            assert_eq!(given(&mut events).await, Vec::<String>::new());
            first.apply("a/two", "3".to_owned());
            assert_eq!(given(&mut events).await, ["InitApply 3"]);
            second.hold_lists(false);
            texts.synced().await.expect("it syncs");
            assert_eq!(given(&mut events).await, ["InitDone", "Delete 1"]);
        });
    }
}
