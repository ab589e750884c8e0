//! How children end, whichever ends first: the child, its stop token, its parent, the arbiter or the runtime.

use std::sync::Arc;
use std::time::Duration;

use informer_core::restart::RestartVerdict;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{ALONE, Notes, Noting, parent, say, settle};
use crate::runtime::Runtime;
use crate::runtime::faults::{Faults, Site};
use crate::supervision::children::Children;
use crate::supervision::owner::Mailbox;
use crate::supervision::parent::{ChildContext, Parent, StopOn};

/// Starts a child, and gives its address and a receiver for its last verdict.
fn started(
    parent: &Arc<Parent>,
    stop: CancellationToken,
    notes: &Notes,
) -> (actix::Addr<Noting>, oneshot::Receiver<Option<RestartVerdict>>) {
    let Mailbox(address, inbox) = Mailbox::new();
    let (ended, end) = oneshot::channel();
    let context = ChildContext { stop: StopOn::Token(stop), ..parent.context("child", ALONE) };
    context.start(inbox, notes.clone(), move |verdict| drop(ended.send(verdict)));
    (address, end)
}

#[test]
fn a_child_ends_with_its_own_scope_with_its_parent_or_when_nobody_holds_its_address() {
    Runtime::simulated(7).run(|runtime| async move {
        let ((parent, owner), notes) = (parent(&runtime), Notes::default());
        let scope = parent.stop.child_token();
        let (_first, first_end) = started(&parent, scope.clone(), &notes);
        let (_second, second_end) = started(&parent, parent.stop.child_token(), &notes);
        let (third, third_end) = started(&parent, parent.stop.child_token(), &notes);
        settle().await;
        drop(third);
        assert_eq!(third_end.await, Ok(Some(RestartVerdict::Done)));
        scope.cancel();
        assert_eq!(first_end.await, Ok(Some(RestartVerdict::Done)));
        parent.stop.cancel();
        assert_eq!(second_end.await, Ok(Some(RestartVerdict::Done)));
        parent.tasks.close();
        parent.tasks.wait().await;
        assert_eq!(notes.read().iter().filter(|line| *line == "dropped").count(), 3);
        assert_eq!(owner.read(), ["child has finished"], "only the third ended by itself");
    });
}

#[test]
fn a_child_that_waits_out_its_backoff_ends_at_the_stop_at_once() {
    Runtime::simulated(7).run(|runtime| async move {
        let ((parent, _owner), notes) = (parent(&runtime), Notes::default());
        let (actor, end) = started(&parent, parent.stop.clone(), &notes);
        say(&actor, &["die"]).await;
        let before = runtime.now();
        parent.stop.cancel();
        assert_eq!(end.await, Ok(Some(RestartVerdict::Done)));
        assert_eq!(runtime.now(), before);
    });
}

#[test]
fn a_panic_while_a_child_is_dropped_does_not_hide_its_end() {
    let faults = Faults::new(|site| assert!(site != Site::Dropped, "in its drop"));
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let ((parent, _owner), notes) = (parent(&runtime), Notes::default());
        let (_actor, end) = started(&parent, parent.stop.clone(), &notes);
        settle().await;
        parent.stop.cancel();
        assert_eq!(end.await, Ok(Some(RestartVerdict::Done)));
        parent.tasks.close();
        parent.tasks.wait().await;
    });
}

#[tokio::test]
async fn the_end_of_a_runtime_ends_every_child_also_one_that_is_started_afterwards() {
    let runtime = Runtime::threads().decoders(1).start().expect("the system gives threads");
    let ((parent, _owner), notes) = (parent(&runtime), Notes::default());
    let (actor, end) = started(&parent, parent.stop.clone(), &notes);
    let children = Children::<u8, Noting>::new(Arc::clone(&parent), ALONE);
    children.add(1, "one", notes.clone());
    assert_eq!(say(&actor, &["a"]).await, 1);
    runtime.shutdown(Duration::from_secs(60)).await.expect("nothing blocks it");
    assert_eq!(end.await, Ok(None), "no verdict: its arbiter has ended first");
    assert_eq!(say(&actor, &["b"]).await, 0, "an ask fails");
    assert!(children.remove(&1).await, "a wait for its end returns");
    let (_late, late_end) = started(&parent, parent.stop.clone(), &notes);
    assert_eq!(late_end.await, Ok(None));
    assert!(children.add(1, "late", notes));
    assert!(children.remove(&1).await);
    parent.tasks.close();
    parent.tasks.wait().await;
}
