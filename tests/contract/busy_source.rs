//! A watch that never pauses: its reflector still does its other work.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use informer_actors::informer::Informer;
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::Runtime;
use informer_core::delta::{Undecodable, WatchPart};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Meta, Object, ObjectKey, ResourceVersion, SourceId};
use informer_core::request::{ListRequest, WatchRequest};

use crate::world::pass;

const FLOOD: Duration = Duration::from_secs(600);
const STEP: Duration = Duration::from_millis(100);

/// A source with one object that does not decode, and one that changes for ten minutes without a pause.
struct Busy;

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

fn object(name: &str, number: u64) -> Object<String> {
    let meta = Meta::new(ObjectKey::cluster(name), version(number), SourceId::default()).wire_bytes(1);
    Object::new(meta, String::new())
}

/// Is ready at each poll, and each poll takes a tenth of a second: only this moves the paused clock.
fn flood() -> impl Stream<Item = Result<Vec<WatchPart<String>>, ListWatchError>> {
    let mut polls = 0;
    stream::poll_fn(move |cx| {
        polls += 1;
        // The first poll of `advance` moves the clock; its remaining polls would only yield.
        let _moved = Box::pin(tokio::time::advance(STEP)).poll_unpin(cx);
        std::task::Poll::Ready(Some(Ok(vec![WatchPart::Applied(object("busy", 10 + polls))])))
    })
    .take((FLOOD.as_millis() / STEP.as_millis()) as usize)
}

impl ListWatch<String> for Busy {
    fn list(&self, _request: ListRequest, _known: KnownObjects<String>) -> ListStream<String> {
        stream::pending().boxed_local()
    }

    fn watch(&self, _request: WatchRequest, _known: KnownObjects<String>) -> WatchStream<String> {
        let undecodable = Undecodable {
            key: ObjectKey::cluster("broken"),
            version: version(9),
            error: "no such field".into(),
        };
        let end = WatchPart::Bookmark { version: version(10), initial_events_end: true };
        let head = [Ok(Vec::new()), Ok(vec![WatchPart::Undecodable(undecodable), end])];
        stream::iter(head).chain(flood()).chain(stream::pending()).boxed_local()
    }

    fn get(
        &self,
        _key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        let answered = async {
            pass(Duration::from_millis(20)).await;
            Ok(Some(object("broken", 9)))
        };
        answered.boxed_local()
    }
}

// REF-58: given a set-aside object and a watch that never pauses, when the object's question is due, then it
// is asked and the object is still repaired; and a flood of changes of known objects does not put off the
// deadline of initial events.
// - a asked and repaired
// - b the deadline holds: `ref_58_a_flood_of_live_changes_does_not_put_the_deadline_of_initial_events_off`
#[test]
fn ref_58_a_watch_that_never_pauses_does_not_keep_an_undecodable_object_from_being_fetched() {
    Runtime::simulated(5).run(|runtime| async move {
        let informer =
            Informer::builder(&runtime, "busy").source(|| Busy).start().expect("the spec is valid");
        let repaired = informer.wait_until(|status| status.sources[0].repairs.repaired == 1).await;
        let asked = repaired.expect("it runs").sources[0].repairs.asked;
        assert_eq!(asked, 1);
        assert!(
            runtime.now() <= Duration::from_secs(125),
            "while it was busy, not after: {:?}",
            runtime.now()
        );
        assert!(informer.lister().get(&ObjectKey::cluster("broken")).is_some());
    });
}
