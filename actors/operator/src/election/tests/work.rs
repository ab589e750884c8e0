//! Work of a term that goes on when the term has ended (LE-15).

use super::*;

/// A leader whose term has ended, because the server was silent or because its actor has died.
async fn after_its_term(leader: &Election, server: &Server, dies: &AtomicBool, is_death: bool) {
    if is_death {
        dies.store(true, Ordering::Relaxed);
        leader.lost().await;
    } else {
        server.is_silent.store(true, Ordering::Relaxed);
        leader.lost().await;
        server.is_silent.store(false, Ordering::Relaxed);
    }
}

/// What an actor writes that the test is.
fn cell(runtime: &Runtime) -> Arc<Cell> {
    let arbiter = runtime.own_arbiter("election").expect("a thread");
    let (settings, time) = (Settings::new("me"), (arbiter.handle().clock().clone(), runtime.chance()));
    Arc::new(Cell::new("shop/operator".into(), settings, time, CancellationToken::new()))
}

fn news(leading: Option<Leading>) -> News {
    let (figures, holder) = (ElectionFigures::default(), "me".into());
    News {
        leading,
        holder,
        why_not: WhyNot::NotTried,
        kept_since: None,
        figures,
        last_error: None,
        write_error: None,
        failing_since: None,
    }
}

#[test]
fn le_15_while_work_of_a_former_term_goes_on_this_process_does_not_lead_and_another_may() {
    for is_death in [false, true] {
        let dies: Arc<AtomicBool> = Arc::default();
        let trigger = Arc::clone(&dies);
        let faults = Faults::new(move |here| {
            let dies = here == Site::ElectionAsks && trigger.swap(false, Ordering::Relaxed);
            assert!(!dies, "as a bug would");
        });
        Runtime::simulation(11).faults(faults).build().run(|runtime| async move {
            let server = Arc::default();
            let leader = candidate(&runtime, &server, "me");
            let term = leader.acquired().await.expect("it leads");
            let (one, two) = (term.begin_work().expect("it lasts"), term.begin_work().expect("it lasts"));
            sleep(60 * SECOND).await;
            assert!(term.validity().may_begin() && leader.fence() == Some(0), "its own term goes on");
            after_its_term(&leader, &server, &dies, is_death).await;
            assert!(term.begin_work().is_none() && !term.validity().may_begin());
            let other = candidate(&runtime, &server, "other");
            let taken = timeout(60 * SECOND, other.acquired()).await.expect("nobody renews the lease");
            assert_eq!(taken.expect("it leads").fence(), 1);
            other.shutdown(SECOND).await.expect("the lease is given back");
            drop(one);
            sleep(60 * SECOND).await;
            assert_eq!(leader.status().why_not, Some(WhyNot::FormerWork));
            assert_eq!((leader.fence(), &*server.lease().holder), (None, ""), "the second work goes on");
            drop(two);
            let next = timeout(5 * SECOND, leader.acquired()).await.expect("nothing of it is left");
            assert_eq!(next.expect("it leads").fence(), 2);
            assert!(leader.validity().may_begin() && !term.validity().may_begin());
            assert!(term.begin_work().is_none() && term.has_ended(), "a term that has ended stays so");
        });
    }
}

#[test]
fn le_15_work_that_keeps_the_process_from_leading_for_more_than_ten_minutes_makes_it_unhealthy() {
    Runtime::simulated(14).run(|runtime| async move {
        let server: Arc<Server> = Arc::default();
        let leader = candidate(&runtime, &server, "me");
        let term = leader.acquired().await.expect("it leads");
        let work = term.begin_work().expect("it lasts");
        sleep(3_600 * SECOND).await;
        assert_eq!(leader.health(SECOND), Ok(()), "work of its own term");
        server.is_silent.store(true, Ordering::Relaxed);
        sleep(3_600 * SECOND).await;
        assert_eq!(leader.health(SECOND), Ok(()), "the server is silent");
        server.is_silent.store(false, Ordering::Relaxed);
        sleep(590 * SECOND).await;
        assert_eq!(leader.health(SECOND), Ok(()));
        sleep(20 * SECOND).await;
        assert!(
            matches!(leader.health(SECOND), Err(Unhealthy::FormerWork { .. })),
            "{:?}",
            leader.health(SECOND)
        );
        drop(work);
        assert_eq!(leader.health(SECOND), Ok(()));
        leader.acquired().await.expect("it leads");
        sleep(3_600 * SECOND).await;
        assert_eq!(leader.health(SECOND), Ok(()));
    });
}

#[test]
fn a_renewal_that_is_shown_late_wakes_who_has_looked_meanwhile() {
    Runtime::simulated(15).run(|runtime| async move {
        let cell = cell(&runtime);
        let leading = |cell: &Cell| Some(Leading { fence: 0, until: cell.now() + 10 * SECOND });
        cell.publish(news(leading(&cell)));
        let seen = cell.changes.count();
        sleep(SECOND).await;
        cell.publish(news(leading(&cell)));
        assert_eq!(cell.changes.count(), seen, "nobody has seen a change");
        sleep(11 * SECOND).await;
        assert!(cell.term().is_none());
        cell.publish(news(leading(&cell)));
        assert!(cell.term().is_some() && cell.changes.count() > seen);
    });
}

#[test]
fn le_15_a_shutdown_and_the_end_of_the_last_handle_do_not_wait_for_work_of_a_term() {
    Runtime::simulated(12).run(|runtime| async move {
        let server = Arc::default();
        let leader = candidate(&runtime, &server, "me");
        let work = leader.acquired().await.expect("it leads").begin_work().expect("it lasts");
        leader.shutdown(SECOND).await.expect("the lease is given back");
        assert_eq!(&*server.lease().holder, "");
        drop(work);
        let leader = candidate(&runtime, &server, "me");
        let term = leader.acquired().await.expect("it leads");
        let work = term.begin_work().expect("it lasts");
        drop(leader);
        timeout(SECOND, term.ended()).await.expect("at once");
        assert!(term.begin_work().is_none());
        drop(work);
    });
}

#[test]
fn le_15_a_term_is_known_by_its_own_number_also_if_the_fencing_number_comes_again() {
    Runtime::simulated(13).run(|runtime| async move {
        let cell = cell(&runtime);
        let leading = Some(Leading { fence: 0, until: cell.now() + 10 * SECOND });
        let any = Validity::of_any_term(Arc::clone(&cell));
        cell.publish(news(leading));
        let first = any.bound().expect("it lasts");
        cell.publish(news(leading));
        assert!(first.may_begin(), "the same term");
        cell.publish(news(None));
        assert!(!first.may_begin() && any.bound().is_none());
        cell.publish(news(leading)); // somebody has deleted the lease
        assert!(any.may_begin() && !first.may_begin());
        assert!(first.bound().is_none() && any.bound().is_some_and(|second| second.may_begin()));
    });
}
