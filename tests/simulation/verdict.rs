//! What must hold at the end of a run.
//!
//! Answers "was anything lost, invented, or left waiting?". Invariants:
//! 1. A run whose servers recovered ends with the union of what the servers hold, true indices, and subscribers that
//!    received exactly the events that lead there.
//! 2. Whatever ends first, every wait ends, and it ends at that moment, not at its limit.
//! 3. A subscriber that ended early ended for a reason that the run gave it, and received no contradiction.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use informer_actors::informer::{AddIndexError, Informer, WaitError};
use informer_actors::subscription::{CALL_GRACE, EndReason};
use informer_actors::testing::RecorderHandle;
use informer_core::meta::ObjectKey;

use crate::cluster::Cluster;
use crate::life::{LONG, Life, WINDOW, filed_under, hosts};
use crate::sources::Change;
use crate::subscribers::{Handle, Subscriber};

/// How long an end may take that nothing blocks.
const SOON: Duration = Duration::from_secs(2);

/// The servers recover; everything must become right.
pub(crate) async fn judge(life: &mut Life) {
    let caught_up = heal(life).await;
    if caught_up || !life.plan.may_stay_behind {
        let (missing, status) = (difference(life), life.informer.status());
        assert!(caught_up, "a recovered server was not followed: {missing:?}: {status:?}");
        store_is_true(life);
        indices_are_true(life).await;
        subscribers_received_the_truth(life).await;
        no_life_was_told_twice(life);
        let status = life.informer.status();
        assert!(status.failed.is_none() && status.synced, "{status:?}");
        assert!(life.informer.shutdown(LONG).await.is_clean());
    } else {
        let limit = life.dice.pick(&[Duration::ZERO, SOON, LONG]);
        let ended = tokio::time::timeout(LONG + LONG, life.informer.shutdown(limit)).await;
        assert!(ended.is_ok(), "a shutdown of {limit:?} did not end");
    }
    everything_has_ended(life).await;
}

/// Lets every server behave, and waits until what it holds has arrived. Some servers get one more write, some
/// do not, and some are empty: nothing may wait for a change to come.
async fn heal(life: &mut Life) -> bool {
    for host in hosts(&life.origins, life.cluster.as_ref()) {
        host.server.freeze_watches(false);
        host.server.hold_lists(false);
        host.server.answer_after(Duration::from_millis(5));
        host.server.pause_between_parts(Duration::ZERO);
    }
    let mut caught_up = true;
    let limit = if life.plan.may_stay_behind { Duration::from_secs(600) } else { LONG };
    for number in 0..life.origins.len() {
        caught_up &= heal_origin(life, number, limit).await;
    }
    let informer = life.informer.clone();
    if let Some(cluster) = &mut life.cluster {
        let synced = tokio::time::timeout(limit, informer.namespaces_synced()).await;
        caught_up &= matches!(synced, Ok(Ok(())));
        caught_up &= becomes(limit, || {
            let reached = cluster.reached(&informer);
            cluster.host.is_noticed(&reached)
        })
        .await;
        if life.dice.one_in(2) {
            cluster.host.apply("c00/last", "the end".to_owned());
        }
    }
    let is_plain = hosts(&life.origins, None).all(|host| host.rewinds == 0) && life.cluster.is_none();
    // Of a single source the wait for its version says that the store has all of it.
    caught_up && (is_plain || becomes(limit, || difference(life).is_none()).await)
}

async fn heal_origin(life: &mut Life, number: usize, limit: Duration) -> bool {
    let (informer, origin) = (life.informer.clone(), &mut life.origins[number]);
    if tokio::time::timeout(limit, origin.settled()).await.is_err() {
        return false;
    }
    let is_noticed = becomes(limit, || {
        let reached = origin.reached(&informer);
        origin.host.is_noticed(&reached)
    });
    if !is_noticed.await {
        return false;
    }
    if life.dice.one_in(2) {
        origin.host.apply(&format!("n{number}/last"), "the end".to_owned());
    }
    let version = origin.host.server.version();
    if !origin.is_followed {
        return true;
    }
    informer.lister().wait_for_source(&origin.id, &version, limit).await.is_ok()
}

/// Whether this becomes true within the limit.
async fn becomes(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let mut left = limit;
    while !is_so() {
        if left.is_zero() {
            return false;
        }
        tokio::time::sleep(SOON).await;
        left = left.saturating_sub(SOON);
    }
    true
}

/// What the cache has and the servers have not, and the other way round.
fn difference(life: &Life) -> Option<String> {
    let snapshot = life.informer.snapshot();
    let held: BTreeMap<ObjectKey, String> =
        snapshot.iter().map(|object| (object.key().clone(), object.version().to_string())).collect();
    let followed = life.origins.iter().filter(|origin| origin.is_followed);
    let served = followed.flat_map(|origin| origin.host.server.content());
    let served = served.chain(life.cluster.iter().flat_map(Cluster::served));
    let served: BTreeMap<ObjectKey, String> =
        served.map(|(key, version)| (key, version.to_string())).collect();
    (held != served).then(|| format!("{held:?} is not {served:?}"))
}

fn store_is_true(life: &Life) {
    let difference = difference(life);
    assert!(difference.is_none(), "the cache is not what the servers have: {difference:?}");
    let snapshot = life.informer.snapshot();
    let single = snapshot.versions().iter().filter(|(id, _)| !Cluster::owns(id)).count();
    let followed = life.origins.iter().filter(|origin| origin.is_followed).count();
    assert_eq!(single, followed, "every source has listed, and no other is left");
}

/// Every index that was added is there, and files every object where it belongs.
async fn indices_are_true(life: &mut Life) {
    let mut names = vec!["body".to_owned()];
    for (name, adding) in std::mem::take(&mut life.adding) {
        let added = tokio::time::timeout(LONG, adding).await.expect("it is answered").expect("no panic");
        // The Indexer may have crashed over it, and the question was asked again.
        assert!(matches!(added, Ok(()) | Err(AddIndexError::Exists(_))), "{name}: {added:?}");
        names.push(name);
    }
    let built = || {
        let snapshot = life.informer.snapshot();
        names.iter().all(|name| snapshot.by_index(name, "the end").is_ok())
    };
    eventually("every index is there", || if built() { Ok(()) } else { Err("it is not") }).await;
    let snapshot = life.informer.snapshot();
    for name in &names {
        let mut filed: BTreeMap<String, Vec<ObjectKey>> = BTreeMap::new();
        for object in snapshot.iter() {
            let mut values = filed_under(name, object);
            values.sort();
            values.dedup();
            for value in values {
                filed.entry(value).or_default().push(object.key().clone());
            }
        }
        for (value, mut keys) in filed {
            let found = snapshot.by_index(name, &value).expect("the index is there");
            let mut found: Vec<ObjectKey> = found.map(|object| object.key().clone()).collect();
            found.sort();
            keys.sort();
            assert!(found == keys, "{name}: {value}: {found:?} is not {keys:?}");
        }
        let gone = snapshot.by_index(name, "a value of nothing").expect("the index is there").count();
        assert_eq!(gone, 0);
    }
}

/// What was told as deleted comes back in a newer version only, whichever source took over meanwhile: nothing that lives
/// was told as deleted, and nothing that was deleted came back.
///
/// Not seen: one wrong return of a key for each time its server went back, whenever that is. When a source has noticed
/// that is not in the events; the store's own histories (`indexer/tests/hand_over/rewinds.rs`) tell which returns are right.
fn no_life_was_told_twice(life: &Life) {
    // Where it is true, and how often the server of that went back: so often may each object.
    let origins = life.origins.iter().enumerate().filter(|(_, origin)| !origin.was_removed);
    let origins = origins.map(|(number, origin)| (format!("n{number}/"), origin.host.rewinds));
    let of_cluster = |cluster: &Cluster| -> Vec<_> {
        cluster.stayed.iter().map(|name| (format!("{name}/"), cluster.host.rewinds)).collect()
    };
    let stayed: Vec<(String, usize)> = origins.chain(life.cluster.iter().flat_map(of_cluster)).collect();
    for subscriber in &life.subscribers {
        let mut gone: BTreeMap<String, u64> = BTreeMap::new();
        let mut backs: BTreeMap<String, usize> = BTreeMap::new();
        for line in subscriber.received.lines() {
            let (what, object) = line.split_once(' ').expect("what happened, and to which object");
            let (key, version) = object.split_once('@').expect("a key at a version");
            let Some((_, rewinds)) = stayed.iter().find(|(namespace, _)| key.starts_with(namespace)) else {
                continue;
            };
            let version: u64 = version.parse().expect("a number");
            if what.starts_with("Deleted") || what.starts_with("Missed") {
                gone.insert(key.to_owned(), version);
            } else if let Some(deleted) = gone.remove(key)
                && deleted >= version
            {
                let of_key = || -> Vec<String> {
                    let lines = subscriber.received.lines().into_iter();
                    lines.filter(|line| line.contains(&format!(" {key}@"))).collect()
                };
                let backs = backs.entry(key.to_owned()).or_default();
                *backs += 1;
                assert!(
                    *backs <= *rewinds,
                    "{line} after it was told as deleted at {deleted}: {:?}",
                    of_key()
                );
            }
        }
    }
}

async fn subscribers_received_the_truth(life: &mut Life) {
    let snapshot = life.informer.snapshot();
    for (n, subscriber) in life.subscribers.iter().enumerate() {
        let agrees = || subscriber.received.agrees_with(&snapshot);
        if !ended_early(subscriber) {
            if let Handle::Held(subscription) = &subscriber.handle
                && let Err(error) = subscription.synced_within(LONG).await
                && !ended_early(subscriber)
            {
                panic!("subscriber {n}: {error}");
            }
            eventually("a subscriber receives everything", || {
                if ended_early(subscriber) { Ok(()) } else { agrees() }
            })
            .await;
        }
        if ended_early(subscriber) {
            let why = agrees().err().unwrap_or_default();
            assert!(!why.contains("contradiction"), "subscriber {n}: {why}");
        }
        writeln!(life.trace, "{n}: {:?} {:?}", subscriber.ended(), subscriber.received.lines())
            .expect("a string takes all");
    }
}

/// Whether a subscription has ended by what happened in its run; any other end is a fault.
fn ended_early(subscriber: &Subscriber) -> bool {
    let status = subscriber.status();
    match status.ended {
        None => false,
        Some(EndReason::Overflow { dropped }) => {
            assert!(dropped > 0 && status.dropped == dropped, "{status:?}");
            true
        }
        Some(EndReason::SubscriberGone) if subscriber.abandoned => true,
        // A listener is never restarted: what waited for its subscriber is lost.
        Some(EndReason::ListenerFailed(why)) if why.contains("killed at Listener") => true,
        Some(other) => panic!("it ended: {other}"),
    }
}

/// The runtime ends first; every wait must end with it.
pub(crate) async fn ends_with_its_runtime(life: &mut Life) {
    let informer = life.informer.clone();
    let version = life.origins[0].host.server.version();
    let waits = [
        actix_rt::spawn({
            let informer = informer.clone();
            async move { drop(informer.synced().await) }
        }),
        actix_rt::spawn({
            let informer = informer.clone();
            async move { drop(informer.wait_until(|_| false).await) }
        }),
        actix_rt::spawn({
            let (informer, source) = (informer.clone(), life.origins[0].id.clone());
            async move { drop(informer.lister().wait_for_source(&source, &version, Duration::MAX).await) }
        }),
    ];
    let limit = life.dice.pick(&[SOON, LONG, Duration::MAX]);
    let ended = life.runtime.clone().shutdown(limit).await;
    assert!(ended.is_ok(), "{ended:?}");
    for wait in waits {
        tokio::time::timeout(SOON, wait).await.expect("a wait ends with the runtime").expect("no panic");
    }
    everything_has_ended(life).await;
    let report = tokio::time::timeout(SOON, informer.shutdown(LONG)).await;
    assert!(report.is_ok(), "an informer without a runtime ends at once");
}

/// Every handle is dropped; the informer must end by itself.
pub(crate) async fn ends_when_it_is_dropped(life: Life) -> String {
    let Life { runtime, informer, origins, cluster, subscribers, adding, mut trace, .. } = life;
    // A wait for a change holds the informer.
    origins.iter().filter_map(|origin| origin.change.as_ref()).for_each(Change::abort);
    let received: Vec<_> = subscribers.iter().map(|subscriber| subscriber.received.clone()).collect();
    drop((informer, subscribers));
    for (name, adding) in adding {
        let added = tokio::time::timeout(LONG, adding).await;
        assert!(added.is_ok(), "{name} is still being added, and keeps its informer");
    }
    // What lies in mailboxes is handled, and calls that are under way may finish.
    tokio::time::sleep(CALL_GRACE + Duration::from_secs(1_000)).await;
    let hosts = || hosts(&origins, cluster.as_ref());
    let requests = || hosts().map(|host| host.server.requests().len()).sum::<usize>();
    let heard = || received.iter().map(RecorderHandle::len).sum::<usize>();
    let before = (requests(), heard());
    origins[0].host.server.apply("n0/afterwards", String::new());
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!((requests(), heard()), before, "it runs on without any handle");
    let again = Informer::builder(&runtime, "lives").source({
        let server = origins[0].host.server.clone();
        move || server.clone()
    });
    assert!(again.start().is_ok(), "its name is free");
    writeln!(trace, "{before:?} after {:?}", runtime.now()).expect("a string takes all");
    trace
}

/// Nothing follows, nothing waits, and every further request gets the answer that it has stopped.
async fn everything_has_ended(life: &mut Life) {
    for (name, adding) in std::mem::take(&mut life.adding) {
        let added = tokio::time::timeout(SOON, adding).await;
        assert!(added.is_ok(), "{name} is still being added");
    }
    for origin in &mut life.origins {
        let ended = match origin.change.take() {
            Some(Change::Removal(task)) => tokio::time::timeout(SOON, task).await.map(drop),
            Some(Change::HandOver(_, task)) => tokio::time::timeout(SOON, task).await.map(drop),
            None => Ok(()),
        };
        assert!(ended.is_ok(), "source {} is still being changed", origin.id);
    }
    for (n, subscriber) in life.subscribers.iter().enumerate() {
        if let Handle::Held(subscription) = &subscriber.handle {
            let ended = tokio::time::timeout(SOON, subscription.end()).await;
            assert!(ended.is_ok(), "subscriber {n} has not ended");
            let synced = tokio::time::timeout(SOON, subscription.synced()).await;
            assert!(synced.is_ok(), "subscriber {n} still waits for its sync");
        }
        if let Handle::Polled(polled) = &subscriber.handle {
            eventually("a stream ends", || if polled.has_ended() { Ok(()) } else { Err("it waits") }).await;
        }
    }
    let received: usize = life.subscribers.iter().map(|subscriber| subscriber.received.len()).sum();
    let hosts = || hosts(&life.origins, life.cluster.as_ref());
    let requests = || hosts().map(|host| host.server.requests().len()).sum::<usize>();
    let asked = requests();
    let joined = Subscriber::join(&life.informer, &mut life.dice);
    assert!(joined.is_err(), "a stopped informer takes no subscriber");
    let synced = life.informer.synced_within(LONG).await;
    assert!(matches!(synced, Ok(_) | Err(WaitError::Stopped { .. })), "{synced:?}");
    let newest = life.origins[0].host.server.apply("n0/afterwards", String::new());
    let lister = life.informer.lister();
    let waited = lister.wait_for_source(&life.origins[0].id, &newest, LONG);
    let waited = tokio::time::timeout(SOON, waited).await.expect("it does not wait for its limit");
    let is_bound = life.origins[0].host.rewinds > 0;
    assert!(waited.is_err() || is_bound, "nothing is followed any more");
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(requests(), asked, "no further request");
    let later: usize = life.subscribers.iter().map(|subscriber| subscriber.received.len()).sum();
    assert!(later <= received + WINDOW * life.subscribers.len(), "no further event");
}

/// Waits until `check` returns Ok; its last error is the failure.
async fn eventually<E: std::fmt::Display>(what: &str, mut check: impl FnMut() -> Result<(), E>) {
    for _ in 0..1_000 {
        if check().is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    if let Err(why) = check() {
        panic!("{what}: {why}");
    }
}
