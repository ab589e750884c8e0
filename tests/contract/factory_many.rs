//! Informers that come and go beside others that stay (FAC-11).

use std::sync::Arc;

use informer_core::index::Index;
use informer_operator::report::Reporting;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::factory::{keys, recorded, run};
use crate::world::{LONG, until};

/// How many informers stay.
const STAY: usize = 20;
/// How many are added and removed.
const COME_AND_GO: usize = 10_000;

// FAC-11: given 20 informers running, when others are added and removed ten thousand times, then those 20
// lose no event, and memory, actors and metrics return to where they were. (changed: ten thousand times
// instead of a thousand)
// - a those 20 lose no event
// - b the stores and indices of the others are freed, their actors and watches have ended, their metrics have
//   vanished
// - c memory is where it was, by bytes:
//   `fac_11_ten_thousand_informers_that_come_and_go_leave_memory_where_it_was`
#[test]
fn fac_11_while_ten_thousand_informers_come_and_go_twenty_others_lose_no_event_and_nothing_is_left() {
    run(|cluster| async move {
        let factory = cluster.factory();
        let of_number = |n: usize| factory.resource::<ConfigMap>().labels(format!("number={n}"));
        let staying: Vec<_> = (0..STAY)
            .map(|n| {
                factory.of(factory.resource::<ConfigMap>().labels(format!("none!={n}"))).expect("declared")
            })
            .collect();
        let watched: Vec<_> = staying.iter().map(recorded).collect();
        factory.start().expect("open");
        factory.synced_within(LONG).await.expect("they list");
        let in_stores = Arc::new(());
        let mut created = 0;
        for round in 0..COME_AND_GO {
            let one = factory.of(of_number(round % 7)).expect("declared anew");
            assert!(!one.status().synced, "another one than before");
            let in_store = Arc::clone(&in_stores);
            let index = Index::<ConfigMap>::new("count", move |_| [Arc::strong_count(&in_store).to_string()]);
            let weak = one.downgrade();
            one.add_index(&index).await.expect("the name is free");
            if round % 3 > 0 || round % 50 == 1 {
                one.begin();
            }
            if round % 50 == 1 {
                one.synced_within(LONG).await.expect("it lists");
                cluster.create("default", &format!("map-{created}"));
                created += 1;
            }
            drop((one, index));
            weak.ended().await;
        }
        for (informer, (_, received)) in staying.iter().zip(&watched) {
            until(|| received.len() == created).await;
            assert_eq!(received.agrees_with(&informer.snapshot()), Ok(()));
            assert_eq!(
                (keys(informer).len(), informer.status().restarts, informer.status().relists()),
                (created, 0, 0)
            );
        }
        assert_eq!(Arc::strong_count(&in_stores), 1, "their stores are freed");
        assert_eq!(factory.informers().len(), STAY);
        assert_eq!(cluster.runtime.report().informers.len(), STAY, "their metrics have ended");
        until(|| cluster.server.watches("configmaps") == STAY).await;
    });
}
