//! Objects that are created and deleted at once, and which subscribers receive both events. LIS-32.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use informer_actors::subscription::Notify;

use crate::world::{nothing, pass, run, until};

const ROUNDS: usize = 300;

#[test]
fn lis_32_an_operator_is_notified_300_times_in_a_row_of_a_child_that_is_created_and_deleted_at_once() {
    run(nothing, |world| async move {
        let (rounds, added) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (gone, came, server) = (Arc::clone(&rounds), Arc::clone(&added), world.server.clone());
        let make = move || {
            server.apply("a/child", "of the operator".to_owned());
            server.delete("a/child").expect("somebody deletes it at once");
        };
        let make_again = make.clone();
        // It creates its child whenever it is notified that the child is deleted.
        let _operator = world.informer.for_each(move |notify| {
            match notify {
                Notify::Added { .. } => drop(came.fetch_add(1, Ordering::Relaxed)),
                Notify::Deleted { .. } if gone.fetch_add(1, Ordering::Relaxed) + 1 < ROUNDS => make_again(),
                _ => {}
            }
            ready(())
        });
        world.synced().await;
        world.streaming().await;
        make();
        until(|| rounds.load(Ordering::Relaxed) == ROUNDS).await;
        assert_eq!(added.load(Ordering::Relaxed), ROUNDS);
    });
}

// LIS-32: given an object that is created and deleted at once, when a `Coalesce` subscriber has nothing under
// way, then it receives both events; when it is behind, it receives the last such life of each key, between
// the last event it received and the state that is there then; what came and went inside a gap that a relist
// closed is delivered to nobody.
// - a with nothing under way both are delivered, as they came:
//   `lis_32_a_subscriber_with_nothing_under_way_receives_events_as_they_came`
// - b an operator that creates its child again is notified of each end, 300 times:
//   `lis_32_an_operator_is_notified_300_times_in_a_row_of_a_child_that_is_created_and_deleted_at_once`
// - c behind, the last life of each key is delivered
// - d also of a key that a list has yet to deliver:
//   `lis_32_a_brief_life_of_a_key_that_a_list_has_yet_to_deliver_is_delivered_in_its_place`
#[test]
fn lis_32_a_slow_subscriber_receives_the_last_life_of_a_key_that_came_and_went_while_it_was_behind() {
    run(nothing, |world| async move {
        let received = Arc::new(AtomicUsize::new(0));
        let heard = Arc::clone(&received);
        let _slow = world.informer.for_each(move |_| {
            heard.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(60))
        });
        world.synced().await;
        world.streaming().await;
        world.apply("a/busy", "1").await;
        for number in 0..20 {
            world.apply("a/child", &number.to_string()).await;
            world.delete("a/child").await;
        }
        pass(Duration::from_secs(600)).await;
        assert_eq!(
            received.load(Ordering::Relaxed),
            3,
            "the busy object, and the child once created and deleted"
        );
    });
}
