//! INF-11: a subscription that is shut down inside its own callback would wait for itself; it gets an error at once
//! instead.

use std::sync::{Arc, Mutex};

use informer_actors::subscription::EndReason;
use informer_actors::subscription::{ShutdownError, Subscriber, Subscription};
use informer_actors::testing::Server;
use tokio::sync::watch;

use crate::blocking::on_threads;
use crate::threads::{LIMIT, block_on, informer, start};
use crate::world::{LONG, run, settle, three};

/// A slot with a subscription that its own callback takes out.
type Shelf = Arc<Mutex<Option<Subscription<String>>>>;

fn take(shelf: &Shelf) -> Option<Subscription<String>> {
    shelf.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
}

#[test]
fn inf_11_a_shutdown_inside_its_own_async_callback_is_an_error_at_once() {
    run(three, |world| async move {
        world.synced().await;
        let (shelf, result) = (Shelf::default(), watch::Sender::new(None));
        let (own, mut received) = (Arc::clone(&shelf), result.subscribe());
        let subscription = world.informer.for_each(move |_| {
            let (own, result) = (Arc::clone(&own), result.clone());
            async move {
                settle().await;
                if let Some(own) = take(&own) {
                    result.send_replace(Some(own.shutdown(LONG).await));
                }
            }
        });
        *shelf.lock().expect("no panic") = Some(subscription.expect("it runs"));
        let before = world.runtime.now();
        received.wait_for(Option::is_some).await.expect("the callback runs");
        assert_eq!(*received.borrow(), Some(Err(ShutdownError::OwnCallback)));
        assert!(world.runtime.now() - before < std::time::Duration::from_secs(1), "at once");
    });
}

#[test]
fn inf_11_a_shutdown_inside_its_own_blocking_callback_is_an_error_at_once() {
    on_threads(async {
        let (runtime, server) = (start(), Server::new());
        let informer = informer(&runtime, &server);
        let (shelf, result) = (Shelf::default(), watch::Sender::new(None));
        let (own, mut received, ends) = (Arc::clone(&shelf), result.subscribe(), watch::Sender::new(None));
        let mut ended = ends.subscribe();
        let subscription = informer.subscribe(Subscriber::blocking(move |_| {
            let Some(own) = take(&own) else { return };
            let shutdown = block_on(&mut tokio::runtime::Builder::new_current_thread(), own.shutdown(LIMIT));
            result.send_replace(Some(shutdown));
            ends.send_replace(Some(()));
        }));
        *shelf.lock().expect("no panic") = Some(subscription.expect("it runs"));
        server.apply("a/one", String::new());
        let error = received.wait_for(Option::is_some);
        tokio::time::timeout(LIMIT, error).await.expect("in time").expect("the callback runs");
        assert_eq!(*received.borrow(), Some(Err(ShutdownError::OwnCallback)));
        ended.wait_for(Option::is_some).await.expect("the callback returns");
        assert!(informer.shutdown(LIMIT).await.is_clean());
    });
}

#[test]
fn a_shutdown_inside_another_subscriptions_callback_waits_as_usual() {
    run(three, |world| async move {
        let other = Arc::new(Mutex::new(Some(world.watched().subscription)));
        let result = watch::Sender::new(None);
        let mut received = result.subscribe();
        let caller = world.informer.for_each(move |_| {
            let (other, result) = (Arc::clone(&other), result.clone());
            async move {
                if let Some(other) = take(&other) {
                    result.send_replace(Some(other.shutdown(LONG).await));
                }
            }
        });
        received.wait_for(Option::is_some).await.expect("the callback runs");
        assert_eq!(*received.borrow(), Some(Ok(())));
        assert_ne!(caller.expect("it runs").ended(), Some(EndReason::SubscriberGone));
    });
}
