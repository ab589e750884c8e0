//! What no handle can provoke: messages of an epoch that is over, still in mailboxes.

use std::sync::Arc;
use std::time::Duration;

use actix::Actor;
use informer_core::delta::{Cause, Change, Changes, Replacement, WatchPart};
use informer_core::delta_fifo::{Bounds, QueueOrder};
use informer_core::listener::Policy;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::processor::ListenerId;
use informer_core::reflector::ReflectorConfig;
use informer_core::restart::RestartPolicy;

use super::{InformerSpec, Pipeline, SourceSpec, Sources, start};
use crate::informer::Informer;
use crate::pipeline::messages::{Delta, Epoch, FanOut, Pop, Replace, Resync};
use crate::runtime::Runtime;
use crate::runtime::mailbox::{ask, ask_with};
use crate::testing::{Recorder, Server};

const OVER: Epoch = Epoch(7);

fn spec(server: &Server<String>) -> InformerSpec<String> {
    let source = SourceSpec::new(SourceId::default(), server.connect(), ReflectorConfig::new("texts"));
    InformerSpec {
        resource: None,
        name: "texts".into(),
        sources: vec![source],
        namespaces: Vec::new(),
        indices: Vec::new(),
        bounds: Bounds::default(),
        queue_order: QueueOrder::default(),
        resync: None,
        policy: Policy::default(),
        restarts: RestartPolicy::default(),
    }
}

fn pipeline(runtime: &Runtime, server: &Server<String>) -> Pipeline<String> {
    let (spec, sources) = (spec(server), Sources::default());
    sources.join(&spec.sources, false).expect("one source");
    let pipeline = start(runtime, spec, sources);
    pipeline.begin();
    pipeline
}

/// Lets everything that can run run: a second of simulated time, which costs none.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn stranger() -> Object<String> {
    let version = ResourceVersion::from_number(999).expect("not zero");
    let key = ObjectKey::cluster("stranger");
    Object::new(Meta::new(key, version, SourceId::default()).wire_bytes(1), String::new())
}

#[test]
fn rf_24_a_question_of_an_epoch_that_is_over_ends_and_takes_no_batch_from_who_asks_now() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::new();
        let pipeline = pipeline(&runtime, &server);
        settle().await;
        let pop = ask_with(&pipeline.fifo, |reply| Pop { epoch: OVER, spare: Vec::new(), reply });
        assert!(pop.await.is_err());
        let version = server.apply("a/one", String::new());
        settle().await;
        let snapshot = pipeline.shared.published.snapshot();
        assert_eq!(snapshot.version(&SourceId::default()), Some(&version));
        pipeline.parent.stop.cancel();
    });
}

// RF-31: given a group restart while Replace, Delta, Bookmark, Resync or Changes of the old epoch are still
// in mailboxes, when they arrive, then each is ignored and counted, and neither store nor subscribers change
// by it.
// - a each is ignored and counted
// - b the store does not change by it
// - c nor do subscribers
#[test]
fn rf_31_messages_of_an_epoch_that_is_over_are_ignored_and_counted_and_no_subscriber_receives_them() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::new();
        let informer = Informer::declared(&runtime, spec(&server)).expect("the spec is sound");
        informer.begin();
        let (recorder, received) = Recorder::new();
        let _subscription = informer.subscribe(recorder.start()).expect("it runs");
        let version = server.apply("a/one", String::new());
        informer.lister().wait_for(&version, Duration::from_secs(60)).await.expect("it arrives");
        settle().await;
        let (before, lines) = (informer.snapshot(), received.lines());
        assert_eq!(lines.len(), 1);
        let (pipeline, source) = (&informer.0.pipeline, SourceId::default());
        let far = ResourceVersion::from_number(9_999).expect("not zero");
        let bookmark = WatchPart::Bookmark { version: far, initial_events_end: false };
        for part in [WatchPart::Applied(stranger()), bookmark] {
            let delta = Delta { epoch: OVER, source: source.clone(), parts: vec![part] };
            ask(&pipeline.fifo, delta).await.expect("answered");
        }
        let replacement =
            Replacement::new(stranger().version().clone(), Cause::Relist, vec![stranger()], Vec::new());
        ask(&pipeline.fifo, Replace { epoch: OVER, source, replacement, published: None })
            .await
            .expect("answered");
        let due: Arc<[_]> = (0..10).map(ListenerId::new).collect();
        ask(&pipeline.fifo, Resync { epoch: OVER, due }).await.expect("answered");
        let change: Arc<[_]> = [Change::Added { object: stranger(), cause: Cause::Watch }].into();
        let changes = Some(Changes::Parts(change));
        let snapshot = before.clone();
        let answer = ask_with(&pipeline.processor, |reply| FanOut {
            epoch: OVER,
            snapshot,
            changes,
            resync: None,
            reply,
        });
        answer.await.expect("answered");
        settle().await;
        assert_eq!(informer.status().data.stale_messages, 5);
        assert!(informer.snapshot().ptr_eq(&before), "nothing was published");
        assert_eq!(received.lines(), lines, "no event was delivered");
    });
}
