//! What a factory says about the subscriptions of its informers (FAC-15).

use std::sync::Arc;

use actix_informer::factory::InformerFactory;
use informer_actors::subscription::{Policy, SubscribeOptions, Subscriber, WhenFull};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::factory::{Cluster, run};
use crate::world::{LONG, settle, until};

const MIB: usize = 1 << 20;

fn every(mib: usize, when_full: WhenFull) -> Policy {
    Policy::Every { bytes: mib * MIB, when_full }
}

/// Every event of all kinds, of Secrets only the newest, and for Nodes another bound.
fn factory(cluster: &Cluster) -> InformerFactory {
    InformerFactory::builder(&cluster.runtime, &cluster.client)
        .deliver_every(MIB, WhenFull::Restate)
        .configure::<Secret>(|secrets| secrets.deliver_newest())
        .configure::<Node>(|nodes| nodes.deliver_every(2 * MIB, WhenFull::Disconnect))
        .build()
}

#[test]
fn fac_15_how_events_wait_is_said_for_all_kinds_for_one_kind_and_for_one_subscription() {
    run(|cluster| async move {
        let factory = factory(&cluster);
        let maps = factory.informer::<ConfigMap>().expect("declared");
        let secrets = factory.informer::<Secret>().expect("declared");
        let nodes = factory.informer::<Node>().expect("declared");
        let of_maps = |options| {
            let ready = |_| std::future::ready(());
            maps.subscribe_with(options, Subscriber::each(ready)).expect("it runs").status().policy
        };
        assert_eq!(of_maps(SubscribeOptions::new()), every(1, WhenFull::Restate));
        assert_eq!(
            of_maps(SubscribeOptions::new().every(3 * MIB, WhenFull::Disconnect)),
            every(3, WhenFull::Disconnect)
        );
        assert_eq!(of_maps(SubscribeOptions::new().newest()), Policy::Coalesce);
        let of_secrets = secrets.for_each(|_| std::future::ready(())).expect("it runs");
        let of_nodes = nodes.for_each(|_| std::future::ready(())).expect("it runs");
        assert_eq!(of_secrets.status().policy, Policy::Coalesce);
        assert_eq!(of_nodes.status().policy, every(2, WhenFull::Disconnect));
    });
}

// FAC-15: given a factory that says how events wait for subscribers, when a subscription is made, then that
// holds for all kinds; what is said of one kind, and what the subscription says, comes before it.
// - a for all kinds, for one kind, and for one subscription:
//   `fac_15_how_events_wait_is_said_for_all_kinds_for_one_kind_and_for_one_subscription`
// - b each event is delivered then
#[test]
fn fac_15_a_slow_subscriber_of_such_an_informer_receives_each_event() {
    run(|cluster| async move {
        cluster.create("default", "one");
        let maps = factory(&cluster).informer::<ConfigMap>().expect("declared");
        let gate = Arc::new(Semaphore::new(0));
        let passed = Arc::clone(&gate);
        let slow = maps.subscribe_with(
            SubscribeOptions::new().one_at_a_time(),
            Subscriber::each(move |_| {
                let passed = Arc::clone(&passed);
                async move { passed.acquire().await.expect("it is not closed").forget() }
            }),
        );
        let slow = slow.expect("it runs");
        maps.begin();
        maps.synced_within(LONG).await.expect("it lists");
        for n in 0..10 {
            let metadata = json!({"name": "one", "namespace": "default"});
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"n": n.to_string()}});
            cluster.server.update(map).expect("it is there");
            settle().await;
        }
        gate.add_permits(100);
        until(|| slow.status().delivered == 11).await;
        assert_eq!((slow.status().coalesced, slow.status().depth), (0, 0));
    });
}
