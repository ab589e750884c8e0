//! A factory as a part of an operator whose informer is given up. OP-01.
//!
//! Answers "does a cache that stands still show in the operator, and is it mended?".

use std::sync::atomic::Ordering;

use actix_informer::operator::{Operator, OperatorStatus, PartState};
use k8s_openapi::api::core::v1::{ConfigMap, Node};

use crate::factory::{keys, run_with};
use crate::revival::panics_while_on;
use crate::world::{LONG, until};

#[test]
fn op_01_a_factory_of_which_an_informer_is_given_up_has_failed_and_starts_again_with_it() {
    let (panics, faults) = panics_while_on();
    run_with(faults, |cluster| async move {
        let factory = cluster.factory();
        let (maps, _nodes) =
            (factory.informer::<ConfigMap>().expect("new"), factory.informer::<Node>().expect("new"));
        let operator = Operator::builder(&cluster.runtime).cache(factory).start().expect("it runs");
        operator.ready_within(LONG).await.expect("it is ready");
        panics.store(true, Ordering::Relaxed);
        cluster.create("default", "lethal");
        let part = |status: &OperatorStatus| status.part("informers").cloned();
        let failed = |status: &OperatorStatus| part(status).is_some_and(|part| part.last_error.is_some());
        let status = operator.wait_until(failed).await;
        let why = part(&status).and_then(|part| part.last_error).unwrap_or_default();
        assert!(why.contains("informer configmaps: a part of it is not restarted any more: "), "{why}");
        assert!(!operator.unready().is_empty());

        panics.store(false, Ordering::Relaxed);
        until(|| keys(&maps).iter().any(|key| key == "default/lethal")).await;
        let ready = |status: &OperatorStatus| part(status).is_some_and(|part| part.state == PartState::Ready);
        operator.wait_until(ready).await;
        assert!(operator.drain().await.is_clean());
    });
}
