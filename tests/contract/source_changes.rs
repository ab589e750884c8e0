//! Sources that are added and removed while an informer runs, and sources that take over from others (INF-80, INF-81).
//!
//! Two scripted servers that receive the same writes have the same objects in the same versions: they are two sources
//! of one cluster whose scopes overlap.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use actix::Actor;
use informer_actors::informer::{AddSourceError, HandOverError, Informer, InformerBuilder};
use informer_actors::informer::{RemoveSourceError, WaitError, WaitForError};
use informer_actors::list_watch::SourceSpec;
use informer_actors::runtime::Runtime;
use informer_actors::testing::{Faults, Recorder, RecorderHandle, Server, Site, kill_at};
use informer_core::delta_fifo::QueueOrder;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{ObjectKey, ResourceVersion, SourceId};
use informer_core::reflector::{ReflectorConfig, SourceState};

use crate::world::{LONG, pass, settle, until};

fn id(name: &str) -> SourceId {
    SourceId::new(name)
}

fn spec(name: &str, server: &Server<String>) -> SourceSpec<String> {
    SourceSpec::new(id(name), server.connect(), ReflectorConfig::new("texts"))
}

/// Servers of these names with these objects each, in the same versions where the keys are the same.
fn servers<const N: usize>(names: [&str; N], keys: &[&str]) -> [Server<String>; N] {
    names.map(|name| {
        let server = Server::named(id(name));
        keys.iter().for_each(|key| drop(server.apply(key, String::new())));
        server
    })
}

fn builder(runtime: &Runtime, sources: &[(&str, &Server<String>)]) -> InformerBuilder<String> {
    let builder = Informer::builder(runtime, "texts");
    sources.iter().fold(builder, |builder, (name, server)| builder.source_with(spec(name, server)))
}

async fn started(runtime: &Runtime, sources: &[(&str, &Server<String>)]) -> Informer<String> {
    let informer = builder(runtime, sources).start().expect("the spec is valid");
    informer.synced_within(LONG).await.expect("it syncs");
    informer
}

struct Received {
    subscription: informer_actors::subscription::Subscription<String>,
    received: RecorderHandle<String>,
}

fn subscribed(informer: &Informer<String>) -> Received {
    let (recorder, received) = Recorder::new();
    Received { subscription: informer.subscribe(recorder.start()).expect("it runs"), received }
}

impl Received {
    /// The events delivered since the last call, once all of them have come.
    async fn lines(&self, informer: &Informer<String>) -> Vec<String> {
        until(|| self.received.agrees_with(&informer.snapshot()).is_ok()).await;
        settle().await;
        let lines = self.received.lines();
        self.received.clear_lines();
        lines
    }
}

fn content(informer: &Informer<String>) -> Vec<(ObjectKey, ResourceVersion)> {
    let snapshot = informer.snapshot();
    snapshot.iter().map(|object| (object.key().clone(), object.version().clone())).collect()
}

fn listed(informer: &Informer<String>) -> Vec<String> {
    informer.status().sources.iter().map(|source| source.source.as_str().to_owned()).collect()
}

#[test]
fn inf_80_a_source_that_is_added_is_listed_delivered_and_followed_and_synced_stays_true() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b] = [servers(["a"], &["x/1"]), servers(["b"], &["y/1"])].map(|[server]| server);
        let informer = started(&runtime, &[("a", &a)]).await;
        let received = subscribed(&informer);
        received.subscription.synced_within(LONG).await.expect("one object");
        received.lines(&informer).await;
        b.hold_lists(true);
        informer.add_source(spec("b", &b)).expect("the name is free");
        settle().await;
        assert_eq!(listed(&informer), ["a", "b"]);
        informer.synced().await.expect("latched");
        assert!(informer.status().synced && informer.snapshot().len() == 1);
        b.hold_lists(false);
        informer.source_synced(&id("b")).await.expect("it lists");
        assert_eq!(informer.snapshot().len(), 2);
        assert_eq!(received.lines(&informer).await, ["Added(InitialList) y/1@2"]);
        let version = b.apply("y/2", String::new());
        informer.lister().wait_for_source(&id("b"), &version, LONG).await.expect("it is followed");
        assert_eq!(received.lines(&informer).await, ["Added(Watch) y/2@3"]);
        let empty = Server::named(id("empty"));
        informer.add_source(spec("empty", &empty)).expect("the name is free");
        informer.source_synced(&id("empty")).await.expect("an empty list is a list");
    });
}

#[test]
fn inf_80_a_source_that_is_removed_is_asked_no_more_and_the_objects_that_only_it_held_are_deleted() {
    for queue_order in [QueueOrder::InOrder, QueueOrder::PerKey] {
        Runtime::simulated(1).run(|runtime| async move {
            let [a, b] = servers(["a", "b"], &["x/both", "x/other"]);
            b.apply("y/own", String::new());
            let informer = builder(&runtime, &[("a", &a), ("b", &b)]).queue_order(queue_order).start();
            let informer = informer.expect("the spec is valid");
            informer.synced_within(LONG).await.expect("it syncs");
            let received = subscribed(&informer);
            received.subscription.synced_within(LONG).await.expect("three objects");
            received.lines(&informer).await;
            b.apply("y/late", String::new());
            informer.remove_source(&id("b")).await.expect("it is there");
            assert_eq!(listed(&informer), ["a"]);
            assert_eq!(content(&informer), a.content());
            let mut lines = received.lines(&informer).await;
            lines.retain(|line| !line.contains("y/late"));
            assert_eq!(lines, ["Missed(Relist) y/own@4"]);
            let asked = b.requests().len();
            b.apply("y/own", "unseen".to_owned());
            a.apply("x/both", "seen".to_owned());
            pass(LONG).await;
            assert_eq!(b.requests().len(), asked, "it receives no further request");
            assert_eq!(content(&informer), a.content());
            assert!(informer.shutdown(LONG).await.is_clean());
        });
    }
}

#[test]
fn inf_80_a_name_that_comes_back_with_other_keys_begins_anew() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b] = servers(["a", "b"], &["x/1"]);
        (0..20).for_each(|n| drop(b.apply(&format!("y/{n}"), String::new())));
        let informer = started(&runtime, &[("a", &a), ("b", &b)]).await;
        informer.remove_source(&id("b")).await.expect("it is there");
        let status = informer.status();
        assert!(status.source(&id("b")).is_none() && informer.snapshot().version(&id("b")).is_none());
        let [other] = servers(["b"], &["z/1", "z/2"]);
        informer.add_source(spec("b", &other)).expect("the name is free again");
        informer.source_synced(&id("b")).await.expect("it lists");
        let mut expected = a.content();
        expected.extend(other.content());
        assert_eq!(content(&informer), expected);
        assert!(other.requests()[0].contains("version=\"\""), "no version is left: {:?}", other.requests());
        let counters = informer.status().source(&id("b")).expect("it is there").counters.clone();
        assert_eq!((counters.relists, counters.failures), (0, 0), "no count is left");
        assert_eq!(informer.status().data.older_replaces, 0);
    });
}

#[test]
fn inf_80_what_cannot_be_added_or_removed_is_refused_by_type_and_changes_nothing() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b, c] = servers(["a", "b", "c"], &["x/1"]);
        let informer = started(&runtime, &[("a", &a)]).await;
        let taken = informer.add_source(spec("a", &b)).expect_err("there is one");
        assert_eq!(taken.to_string(), "informer \"texts\" has a source \"a\"");
        let clustered = spec("b", &b).in_cluster("eu".parse().expect("a name"));
        let refused = informer.add_source(clustered).expect_err("the first names none");
        assert!(matches!(refused, AddSourceError::MixedClusters { has_cluster: true, .. }), "{refused}");
        let last = informer.remove_source(&id("a")).await.expect_err("an informer has a source");
        assert_eq!(last.to_string(), "source \"a\" is the last one of informer \"texts\"");
        let unknown = informer.remove_source(&id("b")).await.expect_err("there is none");
        assert!(matches!(unknown, RemoveSourceError::UnknownSource { .. }), "{unknown}");
        let unknown = informer.source_synced(&id("b")).await.expect_err("there is none");
        assert_eq!(unknown.to_string(), "informer \"texts\" has no source \"b\"");
        let over = informer.hand_over(&[id("z")], vec![spec("b", &b)]).await.expect_err("there is none");
        assert!(matches!(over, HandOverError::Remove(RemoveSourceError::UnknownSource { .. })), "{over}");
        let over = informer.hand_over(&[id("a")], vec![spec("b", &b), spec("a", &c)]).await;
        assert!(matches!(over, Err(HandOverError::Add(AddSourceError::NameTaken { .. }))), "{over:?}");
        assert_eq!(listed(&informer), ["a"]);
        informer.shutdown(LONG).await;
        let stopped = informer.add_source(spec("b", &b)).expect_err("it has stopped");
        assert!(matches!(stopped, AddSourceError::Stopped { .. }), "{stopped}");
        let stopped = informer.remove_source(&id("a")).await.expect_err("it has stopped");
        assert!(matches!(stopped, RemoveSourceError::Stopped { .. }), "{stopped}");
    });
}

#[test]
fn inf_80_before_the_first_sync_an_added_source_counts_and_a_removed_one_does_not() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b, c] = servers(["a", "b", "c"], &["x/1"]);
        [&b, &c].iter().for_each(|server| server.hold_lists(true));
        let informer = builder(&runtime, &[("a", &a), ("b", &b)]).start().expect("the spec is valid");
        let received = subscribed(&informer);
        informer.add_source(spec("c", &c)).expect("the name is free");
        b.hold_lists(false);
        informer.source_synced(&id("b")).await.expect("it lists");
        settle().await;
        assert!(!informer.status().synced, "the third has not listed");
        let asked_for = informer.clone();
        let waiting = actix::spawn(async move { asked_for.source_synced(&id("c")).await });
        settle().await;
        informer.remove_source(&id("c")).await.expect("it is there");
        informer.synced_within(LONG).await.expect("the remaining sources have listed");
        received.subscription.synced_within(LONG).await.expect("and all of it is delivered");
        let waited = waiting.await.expect("no panic");
        assert!(matches!(waited, Err(WaitError::UnknownSource { .. })), "{waited:?}");
    });
}

#[test]
fn inf_80_a_subscription_waits_for_a_source_that_is_added_before_it_is_synced_and_not_for_a_later_one() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b, c, d] = servers(["a", "b", "c", "d"], &["x/1"]);
        [&b, &c, &d].iter().for_each(|server| server.hold_lists(true));
        let informer = builder(&runtime, &[("a", &a), ("b", &b)]).start().expect("the spec is sound");
        let received = subscribed(&informer);
        informer.source_synced(&id("a")).await.expect("it lists");
        informer.add_source(spec("c", &c)).expect("the name is free");
        b.hold_lists(false);
        informer.source_synced(&id("b")).await.expect("it lists");
        settle().await;
        let is_synced =
            |received: &Received| (informer.status().synced, received.subscription.status().synced);
        assert_eq!(is_synced(&received), (false, false), "never before its informer");
        c.hold_lists(false);
        received.subscription.synced_within(LONG).await.expect("all have listed, and all of it is delivered");
        informer.add_source(spec("d", &d)).expect("the name is free");
        let late = subscribed(&informer);
        settle().await;
        assert_eq!(is_synced(&received), (true, true), "latched");
        assert_eq!(is_synced(&late), (true, false), "it waits for those that there are");
        d.hold_lists(false);
        late.subscription.synced_within(LONG).await.expect("the last has listed");
    });
}

#[test]
fn inf_80_waiting_for_a_version_ends_when_the_source_is_removed() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b] = servers(["a", "b"], &["x/1"]);
        let informer = started(&runtime, &[("a", &a), ("b", &b)]).await;
        let (lister, never) = (informer.lister(), ResourceVersion::from_number(9_999).expect("not zero"));
        let waiting = actix::spawn(async move { lister.wait_for_source(&id("b"), &never, LONG * 9).await });
        settle().await;
        informer.remove_source(&id("b")).await.expect("it is there");
        let waited = waiting.await.expect("no panic");
        assert!(matches!(waited, Err(WaitForError::UnknownSource { .. })), "{waited:?}");
        let version = a.apply("x/2", String::new());
        informer.lister().wait_for(&version, LONG).await.expect("one source is left, and need not be named");
    });
}

#[test]
fn inf_80_a_removal_goes_on_when_nothing_waits_for_it_and_a_second_call_joins_it() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b] = servers(["a", "b"], &["x/1"]);
        b.apply("y/1", String::new());
        let informer = started(&runtime, &[("a", &a), ("b", &b)]).await;
        let b_id = id("b");
        {
            let mut removal = pin!(informer.remove_source(&b_id));
            let first = poll_fn(|cx| Poll::Ready(removal.as_mut().poll(cx))).await;
            assert!(first.is_pending());
        }
        let taken = informer.add_source(spec("b", &b)).expect_err("it is not yet removed");
        assert!(matches!(taken, AddSourceError::NameTaken { .. }), "{taken}");
        informer.remove_source(&id("b")).await.expect("it is the same removal");
        assert_eq!(content(&informer), a.content());
        informer.add_source(spec("b", &b)).expect("the name is free");
        // A stop in the middle ends the wait.
        let (first, second) = tokio::join!(informer.remove_source(&b_id), informer.shutdown(LONG));
        assert!(matches!(first, Err(RemoveSourceError::Stopped { .. }) | Ok(())), "{first:?}");
        assert!(second.is_clean(), "{second:?}");
    });
}

#[test]
fn inf_80_a_given_up_or_refused_source_can_be_removed() {
    let dead = Faults::new(|site| assert!(site != Site::ReflectorStarted || !DEADLY.get(), "on purpose"));
    thread_local!(static DEADLY: Cell<bool> = const { Cell::new(false) });
    Runtime::simulation(1).faults(dead).build().run(|runtime| async move {
        let [a, b, c] = servers(["a", "b", "c"], &["x/1"]);
        c.refuse((0..999).map(|_| ListWatchError::Denied("no".into())));
        let informer = started(&runtime, &[("a", &a)]).await;
        DEADLY.set(true);
        informer.add_source(spec("b", &b)).expect("the name is free");
        let given_up = informer.source_synced(&id("b")).await.expect_err("it cannot start");
        assert!(matches!(given_up, WaitError::SourceGivenUp { .. }), "{given_up}");
        DEADLY.set(false);
        informer.add_source(spec("c", &c)).expect("the name is free");
        let is_denied = |state: SourceState| matches!(state, SourceState::Denied { .. });
        let denied =
            |name: &str| informer.status().source(&id(name)).is_some_and(|s| is_denied(s.state.clone()));
        until(|| denied("c")).await;
        informer.remove_source(&id("b")).await.expect("it is there");
        informer.remove_source(&id("c")).await.expect("it is there");
        assert_eq!((listed(&informer), informer.status().failed), (vec!["a".to_owned()], None));
        informer.add_source(spec("b", &b)).expect("the name is free");
        informer.source_synced(&id("b")).await.expect("nothing is left of its first run");
        assert_eq!(content(&informer), a.content());
    });
}

#[test]
fn inf_81_while_one_source_takes_over_from_another_nobody_is_notified_of_what_both_hold() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b, c] = servers(["a", "b", "c"], &["x/1", "x/2", "y/1"]);
        a.delete("x/2");
        let gone = a.content();
        b.delete("x/2");
        c.delete("x/2");
        b.apply("z/new", String::new());
        let informer = started(&runtime, &[("a", &a)]).await;
        let received = subscribed(&informer);
        received.subscription.synced_within(LONG).await.expect("two objects");
        received.lines(&informer).await;
        informer.hand_over(&[id("a")], vec![spec("b", &b)]).await.expect("it lists");
        assert_eq!((content(&informer), listed(&informer)), (b.content(), vec!["b".to_owned()]));
        assert_eq!(received.lines(&informer).await, ["Added(InitialList) z/new@6"]);
        c.apply("z/new", String::new());
        c.delete("z/new");
        informer.hand_over(&[id("b")], vec![spec("c", &c)]).await.expect("it lists");
        assert_eq!(received.lines(&informer).await, ["Missed(Relist) z/new@6"]);
        assert_eq!(content(&informer), gone);
        let version = c.apply("x/1", "followed".to_owned());
        informer.lister().wait_for(&version, LONG).await.expect("the new one is followed");
        assert_eq!(received.lines(&informer).await, ["Updated(Watch) x/1@8"]);
    });
}

// INF-81: given sources that take over from others (`hand_over`), when the new ones have listed, then the old
// ones are removed, and no subscriber is notified of what both hold; when a new one cannot list, then nothing
// is taken over.
// - a no subscriber is notified of what both hold:
//   `inf_81_while_one_source_takes_over_from_another_nobody_is_notified_of_what_both_hold`
// - b one that cannot list takes nothing over
#[test]
fn inf_81_a_new_source_that_cannot_list_takes_nothing_over() {
    Runtime::simulated(1).run(|runtime| async move {
        let [a, b] = servers(["a", "b"], &["x/1"]);
        b.refuse((0..9_999).map(|_| ListWatchError::Denied("no".into())));
        let informer = started(&runtime, &[("a", &a)]).await;
        let waited = tokio::time::timeout(LONG, informer.hand_over(&[id("a")], vec![spec("b", &b)])).await;
        assert!(waited.is_err(), "it waits on: {waited:?}");
        assert_eq!((listed(&informer), content(&informer)), (vec!["a".into(), "b".into()], a.content()));
        informer.remove_source(&id("b")).await.expect("the caller takes it back");
    });
}

/// A scenario in which sources are added, removed and take over.
async fn exchange(runtime: &Runtime) -> u64 {
    let [a, b, c] = servers(["a", "b", "c"], &["x/1", "x/2", "y/1"]);
    b.apply("b/own", String::new());
    let informer = started(runtime, &[("a", &a)]).await;
    let received = subscribed(&informer);
    informer.add_source(spec("b", &b)).expect("the name is free");
    informer.source_synced(&id("b")).await.expect("it lists");
    b.apply("b/late", String::new());
    informer.remove_source(&id("b")).await.expect("it is there");
    assert_eq!(content(&informer), a.content());
    informer.hand_over(&[id("a")], vec![spec("c", &c)]).await.expect("it lists");
    assert_eq!((content(&informer), listed(&informer)), (c.content(), vec!["c".to_owned()]));
    informer.add_source(spec("b", &a)).expect("the name is free again");
    informer.remove_source(&id("b")).await.expect("it is there");
    assert_eq!(content(&informer), c.content());
    until(|| received.received.agrees_with(&informer.snapshot()).is_ok()).await;
    let lines = received.received.lines();
    let of_both = |line: &String| line.contains(" x/") || line.contains(" y/");
    assert!(lines.iter().filter(|line| of_both(line)).all(|line| line.starts_with("Added")), "{lines:?}");
    let status = informer.status();
    assert!(status.failed.is_none() && status.synced, "{status:?}");
    assert!(informer.shutdown(LONG).await.is_clean());
    status.restarts
}

// INF-80: given a running informer, when a source is added, then it is listed, delivered and followed, and a
// latched synced stays; when one is removed, then it is asked no more, what it had handed over is applied,
// objects that no other source holds are delivered as Deleted{exact: false, cause: Relist}, and its name may
// come back with other keys and begins anew; whatever crashes meanwhile, and whether or not anything waits
// for it.
// - a an added one is listed, delivered and followed, and synced stays true:
//   `inf_80_a_source_that_is_added_is_listed_delivered_and_followed_and_synced_stays_true`
// - b what it had put in leaves the queue first:
//   `inf_80_the_end_of_a_source_leaves_behind_all_that_it_has_put_in`
// - c a removed one is asked no more, and what it alone held is delivered as Deleted:
//   `inf_80_a_source_that_is_removed_is_asked_no_more_and_the_objects_that_only_it_held_are_deleted`
// - d the name comes back and begins anew, with a new restart history:
//   `inf_80_a_name_that_comes_back_with_other_keys_begins_anew`
// - e a taken or unknown name, the last source, a mixed cluster and a stopped informer are refused by type:
//   `inf_80_what_cannot_be_added_or_removed_is_refused_by_type_and_changes_nothing`
// - f before the first sync an added one counts and a removed one does not:
//   `inf_80_before_the_first_sync_an_added_source_counts_and_a_removed_one_does_not`
// - g a subscription that is not synced waits for it, one that is stays so:
//   `inf_80_a_subscription_waits_for_a_source_that_is_added_before_it_is_synced_and_not_for_a_later_one`
// - h a wait for its version ends with the removal:
//   `inf_80_waiting_for_a_version_ends_when_the_source_is_removed`
// - i a removal goes on without a waiter:
//   `inf_80_a_removal_goes_on_when_nothing_waits_for_it_and_a_second_call_joins_it`
// - j one that is given up or refused can be removed: `inf_80_a_given_up_or_refused_source_can_be_removed`
// - k a crash in the middle delays it and loses nothing
#[test]
fn inf_80_a_crash_in_the_middle_of_a_removal_or_a_hand_over_delays_it_and_loses_nothing() {
    let sites = [
        Site::ReflectorStarted,
        Site::ReflectorReceived,
        Site::DeltaFifoPush,
        Site::DeltaFifoPop,
        Site::IndexerApply,
        Site::IndexerReplace,
        Site::IndexerPublished,
        Site::ProcessorChanges,
        Site::ProcessorFannedOut,
        Site::SupervisorExited,
    ];
    for site in sites {
        for nth in 1..80 {
            let restarts = Cell::new(0);
            Runtime::simulation(3).faults(kill_at(site, nth)).build().run(|runtime| {
                let restarts = &restarts;
                async move { restarts.set(exchange(&runtime).await) }
            });
            if restarts.get() == 0 {
                assert!(nth > 3 || site == Site::SupervisorExited, "{site:?} is visited often");
                break;
            }
        }
    }
}
