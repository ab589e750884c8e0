//! Lists are read while they arrive, and count only when they are whole. Only for the in-memory server: it holds a
//! byte back.
//!
//! Answers "is a list decoded before its last byte, and is none of it visible before that?"

use actix_informer::prelude::*;

use crate::followed::Followed;
use crate::stage::{LONG, Pod, Stage};

const PODS: usize = 2_000;

pub(crate) async fn a_list_is_decoded_before_its_last_byte_and_published_after_it(stage: Stage) {
    let (api, namespace) = (&stage.api, &*stage.namespace);
    api.create_many(namespace, PODS).await;
    let expected = api.pods(&[namespace]).await;
    let faults = stage.server.in_memory().faults();
    faults.hold_list_tails();
    let source = stage.server.client().resource::<Pod>().namespace(namespace);
    let source = source.settings(|settings| settings.watch_list = false);
    let pods = Followed::start(source.informer(&stage.runtime).expect("a valid namespace"), &[namespace]);

    let nearly_all = PODS as u64 * 9 / 10;
    pods.state(|state| matches!(state, SourceState::Listing { received } if *received >= nearly_all)).await;
    assert!(pods.informer.snapshot().is_empty() && pods.first.received.is_empty());
    assert!(!pods.informer.status().synced);
    faults.release_list_tails();
    pods.informer.synced_within(LONG).await.expect("the list is whole");
    pods.holds(&expected).await;
}
