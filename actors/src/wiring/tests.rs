//! What no handle can provoke: messages of an epoch that is over, still in mailboxes.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use informer_core::delta::{Cause, Replacement, WatchPart};
use informer_core::delta_fifo::{Bounds, Discipline};
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::restart::RestartPolicy;

use super::{Family, InformerSpec, SourceSpec, start};
use crate::mailbox::ask;
use crate::messages::{Changes, Delta, Epoch, Pop, Replace, Resync};
use crate::runtime::Runtime;
use crate::testing::Server;

const OVER: Epoch = Epoch(7);

fn family(runtime: &Runtime, server: &Server<String>) -> Family<String> {
    let source = SourceSpec {
        id: SourceId::default(),
        connect: server.connect(),
        config: ReflectorConfig::new("texts"),
    };
    let spec = InformerSpec {
        name: "texts".into(),
        sources: vec![source],
        indices: Vec::new(),
        bounds: Bounds::default(),
        discipline: Discipline::default(),
        restarts: RestartPolicy::default(),
    };
    start(runtime, spec)
}

fn stranger() -> Object<String> {
    let version = ResourceVersion::from_number(999).expect("not zero");
    let key = ObjectKey::cluster("stranger");
    Object::new(Meta { key, uid: None, version, source: SourceId::default(), wire_bytes: 1 }, String::new())
}

#[test]
fn rf_24_a_question_of_an_epoch_that_is_over_ends_and_takes_no_batch_from_who_asks_now() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::new();
        let family = family(&runtime, &server);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(ask(&family.fifo, Pop(OVER, PhantomData)).await.is_err());
        let version = server.apply("a/one", String::new());
        tokio::time::sleep(Duration::from_secs(1)).await;
        let snapshot = family.shared.published.snapshot();
        assert_eq!(snapshot.version(&SourceId::default()), Some(&version));
        family.kin.stop.cancel();
    });
}

#[test]
fn rf_31_messages_of_an_epoch_that_is_over_are_ignored_and_counted() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = Server::new();
        let family = family(&runtime, &server);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = family.shared.published.snapshot();
        let source = SourceId::default();
        let delta =
            Delta { epoch: OVER, source: source.clone(), parts: vec![WatchPart::Applied(stranger())] };
        ask(&family.fifo, delta).await.expect("answered");
        let replacement =
            Replacement::new(stranger().version().clone(), Cause::Relist, vec![stranger()], Vec::new());
        ask(&family.fifo, Replace { epoch: OVER, source, replacement }).await.expect("answered");
        ask(&family.fifo, Resync { epoch: OVER, due: Arc::default() }).await.expect("answered");
        let changes =
            Changes { epoch: OVER, snapshot: before.clone(), changes: Arc::default(), resync: None };
        ask(&family.processor, changes).await.expect("answered");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(family.shared.board.read().data.stale_messages, 4);
        assert!(family.shared.published.snapshot().ptr_eq(&before), "nothing was published");
        family.kin.stop.cancel();
    });
}
