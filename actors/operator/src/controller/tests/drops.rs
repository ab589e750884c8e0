//! Bodies whose drop is code of a user.

use std::sync::OnceLock;

use tokio::time::sleep;

use super::*;
use crate::controller::Trigger;

/// A body that asks for a reconcile when its last state is dropped, and may panic then.
struct Asking {
    number: u32,
    is_last: bool,
    trigger: Arc<OnceLock<Trigger>>,
    log: Log,
}

/// The server clones a body for the last state of its object.
impl Clone for Asking {
    fn clone(&self) -> Self {
        let (trigger, log) = (Arc::clone(&self.trigger), self.log.clone());
        Self { number: self.number, is_last: true, trigger, log }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if !self.is_last {
            return;
        }
        self.log.line(format!("{} is dropped", self.number));
        if let Some(trigger) = self.trigger.get() {
            trigger.trigger(key("a/other"));
        }
        assert_ne!(self.number, 13, "in a drop");
    }
}

/// Two objects of one name are deleted, one after the other. Gives what was reconciled and dropped.
fn dropped_last_states(first: u32, takes: Duration) -> Vec<String> {
    let lines = cell(Vec::new());
    let seen = Arc::clone(&lines);
    run(move |world| async move {
        let (server, trigger, log) = (Server::<Asking>::new(), Arc::new(OnceLock::new()), Log::default());
        let source = server.clone();
        let informer = Informer::builder(&world.runtime, "asking").source(move || source.clone());
        let informer = informer.start().expect("a sound spec");
        let noted = log.clone();
        let reconcile = move |request: Request<Asking>| {
            noted.line(format!("{} {}", request.key(), request.deleted().map_or(0, |last| last.number)));
            drop(request);
            async move {
                sleep(takes).await;
                DONE
            }
        };
        let controller = Controller::builder(&informer).reconcile(reconcile).start().expect("it starts");
        assert!(trigger.set(controller.triggers()).is_ok());
        for number in [first, first + 1] {
            let (trigger, log) = (Arc::clone(&trigger), log.clone());
            server.apply("a/one", Asking { number, is_last: false, trigger, log });
            sleep(secs(1)).await;
            server.delete("a/one");
            sleep(Duration::from_millis(100)).await;
            // From here on only the controller has the last state.
            server.compact();
            sleep(secs(1)).await;
        }
        sleep(secs(60)).await;
        assert_eq!(controller.status().kept.deleted, 0);
        assert_eq!(controller.status().not_followed, [""; 0]);
        drop(controller);
        *locked(&seen) = log.take();
    });
    std::mem::take(&mut *locked(&lines))
}

#[test]
fn ctl_24_a_body_whose_drop_uses_its_own_controller_locks_nothing() {
    for takes in [Duration::from_millis(500), secs(10)] {
        let lines = dropped_last_states(1, takes);
        for expected in ["1 is dropped", "2 is dropped", "a/other 0", "a/one 2"] {
            assert!(lines.iter().any(|line| line == expected), "{expected:?} in {lines:?}");
        }
    }
}

#[test]
fn ctl_24_a_body_that_panics_when_it_is_dropped_costs_no_key_and_no_subscription() {
    for takes in [Duration::from_millis(500), secs(10)] {
        let lines = dropped_last_states(13, takes);
        for expected in ["13 is dropped", "14 is dropped", "a/other 0", "a/one 14"] {
            assert!(lines.iter().any(|line| line == expected), "{expected:?} in {lines:?}");
        }
    }
}
