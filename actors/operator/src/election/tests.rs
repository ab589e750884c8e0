//! Elections on simulated time over a lease in memory: takeovers, ends, deaths of the actor, and reads from other threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::election::machine::{Effect, Leading, LeaseRecord};
use futures_util::future::LocalBoxFuture;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::cell::News;
use super::*;
use informer_actors::inner::{Faults, Site};
use informer_actors::runtime::Runtime;

mod work;

const SECOND: Duration = Duration::from_secs(1);

/// A lease in memory.
#[derive(Default)]
struct Server {
    lease: Mutex<(u64, Option<LeaseRecord>)>,
    is_silent: AtomicBool,
    asked: AtomicU64,
}

impl Server {
    fn lease(&self) -> LeaseRecord {
        self.lease.lock().unwrap().1.clone().expect("a lease")
    }

    fn answer(&self, effect: Effect, known: &AtomicU64) -> Result<LeaseAnswer, LockError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut lease = self.lease.lock().unwrap();
        let (version, record) = &mut *lease;
        match effect {
            Effect::Read => {}
            Effect::Create(_) if record.is_some() => return Err(LockError::Conflict),
            Effect::Update(_) if *version != known.load(Ordering::Relaxed) => {
                return Err(LockError::Conflict);
            }
            Effect::Create(written) | Effect::Update(written) => {
                (*version, *record) = (*version + 1, Some(written));
                known.store(*version, Ordering::Relaxed);
                return Ok(LeaseAnswer::Written);
            }
            other => panic!("{other:?}"),
        }
        known.store(*version, Ordering::Relaxed);
        Ok(LeaseAnswer::Lease(record.clone()))
    }
}

struct Lock(Arc<Server>, Arc<AtomicU64>);

impl LeaseLock for Lock {
    fn send(&self, effect: Effect) -> LocalBoxFuture<'static, Result<LeaseAnswer, LockError>> {
        let (server, known) = (Arc::clone(&self.0), Arc::clone(&self.1));
        Box::pin(async move {
            sleep(Duration::from_millis(5)).await;
            if server.is_silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            let answer = server.answer(effect, &known);
            sleep(Duration::from_millis(5)).await;
            answer
        })
    }
}

fn candidate_with(runtime: &Runtime, server: &Arc<Server>, settings: Settings) -> Election {
    let server = Arc::clone(server);
    let make: MakeLock = Arc::new(move || Box::new(Lock(Arc::clone(&server), Arc::default())));
    Election::start(runtime, "shop/operator", settings, make).expect("it starts")
}

fn candidate(runtime: &Runtime, server: &Arc<Server>, identity: &str) -> Election {
    candidate_with(runtime, server, Settings::new(identity))
}

#[test]
fn another_leads_when_the_lease_of_a_crashed_leader_has_run_out_and_not_before() {
    Runtime::simulated(1).run(|runtime| async move {
        let server = Arc::default();
        let first = candidate(&runtime, &server, "first");
        let term = first.acquired().await.expect("it leads");
        let second = candidate(&runtime, &server, "second");
        sleep(60 * SECOND).await;
        assert_eq!((first.fence(), second.fence()), (Some(0), None));
        assert_eq!(second.status().why_not, Some(WhyNot::HeldBy("first".into())));
        drop(first);
        let crashed = Instant::now();
        timeout(SECOND, term.ended()).await.expect("the last handle is gone");
        let next = second.acquired().await.expect("it leads");
        assert_eq!(next.fence(), 1);
        assert!((13..=24).contains(&crashed.elapsed().as_secs()), "{:?}", crashed.elapsed());
    });
}

#[test]
fn a_shutdown_gives_the_lease_back_and_another_leads_soon() {
    Runtime::simulated(2).run(|runtime| async move {
        let server = Arc::default();
        let first = candidate(&runtime, &server, "first");
        let (term, guard) = (first.acquired().await.expect("it leads"), first.validity());
        let second = candidate(&runtime, &server, "second");
        sleep(10 * SECOND).await;
        assert!(guard.may_begin());
        let began = Instant::now();
        let mut ending = Box::pin(first.shutdown(5 * SECOND));
        assert!(futures_util::poll!(&mut ending).is_pending());
        assert!(!guard.may_begin() && term.has_ended(), "at once");
        assert_eq!(ending.await, Ok(()));
        assert_eq!((&*server.lease().holder, server.lease().duration_seconds), ("", 1));
        assert_eq!(
            first.acquired().await.map(|term| term.fence()),
            Err(ElectionOver { lease: "shop/operator".into() })
        );
        assert!(first.status().over);
        assert_eq!((first.health(SECOND), first.shutdown(SECOND).await), (Ok(()), Ok(())));
        second.acquired().await.expect("it leads");
        assert!(began.elapsed() < 5 * SECOND, "{:?}", began.elapsed());
    });
}

#[test]
fn le_08_when_the_server_falls_silent_the_term_ends_at_the_renew_deadline_and_the_election_stays_healthy() {
    Runtime::simulated(3).run(|runtime| async move {
        let server: Arc<Server> = Arc::default();
        let leader = candidate(&runtime, &server, "me");
        let term = leader.acquired().await.expect("it leads");
        server.is_silent.store(true, Ordering::Relaxed);
        let silent = Instant::now();
        leader.lost().await;
        assert!(term.has_ended() && !leader.is_leader());
        assert!((9_900..=10_000).contains(&silent.elapsed().as_millis()), "{:?}", silent.elapsed());
        sleep(9 * SECOND).await;
        let status = leader.status();
        assert_eq!(status.why_not, Some(WhyNot::NotRenewed(10 * SECOND)));
        assert_eq!(status.last_error.as_deref(), Some("no answer within 5s"));
        sleep(2 * SECOND).await;
        assert_eq!(leader.health(Duration::ZERO), Ok(()), "a restart of the process would not help");
        let began = Instant::now();
        let left = leader.shutdown(3 * SECOND).await.expect_err("the server is silent").to_string();
        assert!(left.contains("was not given back: no answer within 5s"), "{left}");
        assert!(began.elapsed() < 4 * SECOND);
        server.is_silent.store(false, Ordering::Relaxed);
    });
}

#[test]
fn le_08_a_term_that_the_actor_has_not_ended_when_its_lease_and_the_tolerance_are_over_is_unhealthy() {
    Runtime::simulated(8).run(|runtime| async move {
        let (lease, settings) = ("shop/operator".into(), Settings::new("me"));
        let arbiter = runtime.own_arbiter("election").expect("a thread");
        // What an actor has written that does nothing more.
        let time = (arbiter.handle().clock().clone(), runtime.chance());
        let cell = Cell::new(lease, settings, time, CancellationToken::new());
        let cell = Arc::new(cell);
        let guard = Validity::of_any_term(Arc::clone(&cell));
        let until = cell.now() + 10 * SECOND;
        let leading = Some(Leading { fence: 0, until });
        let (figures, holder) = (ElectionFigures::default(), "me".into());
        cell.publish(News {
            leading,
            holder,
            why_not: WhyNot::NotTried,
            kept_since: None,
            figures,
            last_error: None,
            write_error: None,
            failing_since: None,
        });
        sleep(35 * SECOND).await;
        assert!(!guard.may_begin() && cell.term().is_none(), "nothing of it begins");
        assert_eq!(cell.health(20 * SECOND), Ok(()));
        sleep(SECOND).await;
        let lease = "shop/operator".into();
        assert_eq!(cell.health(20 * SECOND), Err(Unhealthy::Stuck { lease, late: 26 * SECOND }));
        cell.end_life();
        assert_eq!(cell.health(20 * SECOND), Ok(()), "its actor has died, and is built again");
    });
}

#[test]
fn an_actor_that_dies_ends_its_term_before_the_next_one_is_built() {
    let armed: Arc<AtomicBool> = Arc::default();
    let trigger = Arc::clone(&armed);
    let faults = Faults::new(move |here| {
        let dies = here == Site::ElectionAsks && trigger.swap(false, Ordering::Relaxed);
        assert!(!dies, "as a bug would");
    });
    Runtime::simulation(9).faults(faults).build().run(|runtime| async move {
        let server = Arc::default();
        let leader = candidate(&runtime, &server, "me");
        let term = leader.acquired().await.expect("it leads");
        let (died, guard) = (Instant::now(), leader.validity());
        armed.store(true, Ordering::Relaxed);
        term.ended().await;
        assert!(died.elapsed() <= 2 * SECOND, "at its next step: {:?}", died.elapsed());
        assert_eq!((guard.may_begin(), leader.status().restarts), (false, 0));
    });
}

#[test]
fn a_declared_election_asks_nothing_until_it_begins_also_if_its_actor_dies() {
    for dies_first in [false, true] {
        let died: Arc<AtomicBool> = Arc::new(AtomicBool::new(!dies_first));
        let trigger = Arc::clone(&died);
        let faults = Faults::new(move |here| {
            assert!(here != Site::ElectionStarted || trigger.swap(true, Ordering::Relaxed), "as a bug would");
        });
        Runtime::simulation(10).faults(faults).build().run(|runtime| async move {
            let server: Arc<Server> = Arc::default();
            let lock = (Arc::clone(&server), Arc::default());
            let make: MakeLock = Arc::new(move || Box::new(Lock(Arc::clone(&lock.0), Arc::clone(&lock.1))));
            let declared = || Election::declare(&runtime, "shop/operator", Settings::new("me"), make.clone());
            let (leader, other) = (declared().expect("it starts"), declared().expect("it starts"));
            sleep(60 * SECOND).await;
            assert_eq!((server.asked.load(Ordering::Relaxed), leader.health(Duration::ZERO)), (0, Ok(())));
            assert_eq!(leader.status().why_not, Some(WhyNot::NotBegun));
            assert!(died.load(Ordering::Relaxed));
            leader.begin();
            assert_eq!(leader.acquired().await.expect("it leads").fence(), 0);
            leader.begin();
            assert_eq!(other.shutdown(SECOND).await, Ok(()), "it has nothing to give back");
            assert_eq!(leader.fence(), Some(0));
        });
    }
}

#[test]
fn an_actor_that_dies_at_any_of_its_steps_leads_again_in_a_new_term() {
    for site in [Site::ElectionStarted, Site::ElectionAsks, Site::ElectionAnswered] {
        for nth in 1..=4 {
            let count = AtomicU64::new(0);
            let faults = Faults::new(move |here| {
                let dies = here == site && count.fetch_add(1, Ordering::Relaxed) + 1 == nth;
                assert!(!dies, "as a bug would");
            });
            Runtime::simulation(4).faults(faults).build().run(|runtime| async move {
                let server: Arc<Server> = Arc::default();
                let leader = candidate(&runtime, &server, "me");
                sleep(60 * SECOND).await;
                let status = leader.status();
                assert!(status.fence.is_some(), "{site:?} {nth}: {status:?}");
                assert_eq!(server.lease().transitions, status.fence.unwrap(), "{site:?} {nth}");
                assert!(status.restarts <= 1 && status.why_not.is_none());
                assert_eq!(leader.shutdown(5 * SECOND).await, Ok(()));
                assert_eq!(&*server.lease().holder, "");
            });
        }
    }
}

#[test]
fn an_actor_that_dies_during_its_shutdown_gives_the_lease_back_all_the_same() {
    let armed: Arc<AtomicBool> = Arc::default();
    let trigger = Arc::clone(&armed);
    let faults = Faults::new(move |here| {
        let dies = here == Site::ElectionAsks && trigger.swap(false, Ordering::Relaxed);
        assert!(!dies, "as a bug would");
    });
    Runtime::simulation(5).faults(faults).build().run(|runtime| async move {
        let server = Arc::default();
        let leader = candidate(&runtime, &server, "me");
        leader.acquired().await.expect("it leads");
        armed.store(true, Ordering::Relaxed);
        assert_eq!(leader.shutdown(10 * SECOND).await, Ok(()));
        assert_eq!((&*server.lease().holder, leader.status().restarts), ("", 1));
    });
}

#[test]
fn settings_that_do_not_fit_together_are_refused_and_every_wait_ends_with_the_runtime() {
    let ended = Runtime::simulated(6).run(|runtime| async move {
        let server: Arc<Server> = Arc::default();
        let broken = Settings { renew_deadline: 60 * SECOND, ..Settings::new("me") };
        let make: MakeLock = Arc::new(|| unreachable!("it does not start"));
        let error = Election::start(&runtime, "shop/operator", broken, make).expect_err("too long");
        assert_eq!(
            error.to_string(),
            "leader election shop/operator: lease duration 15s is not longer than the renew deadline 1m"
        );
        let leader = candidate(&runtime, &server, "me");
        let term = leader.acquired().await.expect("it leads");
        runtime.shutdown(SECOND).await.expect("it ends");
        assert!(term.has_ended());
        leader
    });
    assert!(!ended.is_leader() && ended.health(SECOND).is_err());
}

// LE-09: given concurrent Check and renew, when race-checked, then clean.
#[test]
fn le_09_health_and_status_are_read_by_other_threads_while_the_lease_is_renewed() {
    let runtime = Runtime::threads().start().expect("threads");
    let server: Arc<Server> = Arc::default();
    let settings = Settings {
        lease_duration: 2 * SECOND,
        renew_deadline: SECOND,
        retry_period: Duration::from_millis(1),
        ..Settings::new("me")
    };
    let leader = candidate_with(&runtime, &server, settings);
    assert!(
        runtime.arbiters().iter().any(|arbiter| arbiter.name == "informer-election"),
        "a thread of its own"
    );
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                while server.asked.load(Ordering::Relaxed) < 30 {
                    assert_eq!(leader.health(Duration::ZERO), Ok(()));
                    let status = leader.status();
                    assert_eq!(status.fence.is_some(), status.why_not.is_none(), "{status:?}");
                    assert_eq!(status.fence.is_some(), status.lasts_for > Duration::ZERO, "{status:?}");
                }
            });
        }
    });
    assert_eq!((leader.status().figures.terms, leader.fence()), (1, Some(0)));
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    waiting.block_on(async {
        assert_eq!(leader.shutdown(5 * SECOND).await, Ok(()));
        runtime.shutdown(5 * SECOND).await.expect("its thread has ended");
    });
}

/// A lock whose first update blocks the thread.
struct Blocking(Lock, Arc<Mutex<(std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>)>>);

impl LeaseLock for Blocking {
    fn send(&self, effect: Effect) -> LocalBoxFuture<'static, Result<LeaseAnswer, LockError>> {
        if matches!(effect, Effect::Update(_)) {
            let (blocked, release) = &*self.1.lock().unwrap();
            blocked.send(()).unwrap();
            let _ = release.recv();
        }
        self.0.send(effect)
    }
}

#[test]
fn every_wait_ends_although_the_thread_of_the_election_is_blocked() {
    let ((blocks, blocked), (release, released)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let channels = Arc::new(Mutex::new((blocks, released)));
    let runtime = Runtime::threads().start().expect("threads");
    let server: Arc<Server> = Arc::default();
    let make: MakeLock = Arc::new(move || {
        Box::new(Blocking(Lock(Arc::clone(&server), Arc::default()), Arc::clone(&channels)))
    });
    let leader = Election::start(&runtime, "shop/operator", Settings::new("me"), make).expect("it starts");
    let waiting = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    waiting.block_on(async {
        let term = leader.acquired().await.expect("it leads");
        blocked.recv().expect("its first renewal blocks");
        assert!(leader.is_leader() && !term.has_ended());
        let lost = tokio::spawn({
            let leader = leader.clone();
            async move { leader.lost().await }
        });
        runtime.clone().shutdown(Duration::from_millis(50)).await.expect_err("its thread is blocked");
        lost.await.expect("no panic");
        term.ended().await;
        assert!(!leader.is_leader() && leader.acquired().await.is_err() && leader.status().over);
        assert_eq!(leader.health(SECOND), Err(Unhealthy::Ended { lease: "shop/operator".into() }));
        assert!(leader.shutdown(3600 * SECOND).await.is_err(), "at once: nothing is left to wait for");
    });
    drop(release);
}
