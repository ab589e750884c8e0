//! Who is restarted, after which wait, and when it ends.

use super::*;
use proptest::prelude::*;

fn at(seconds: u64) -> Moment {
    Moment { now: Duration::from_secs(seconds), chance: 0.0 }
}

fn panicked() -> Exit {
    Exit::Panicked("index out of bounds".into())
}

fn after(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn the_role_and_the_exit_decide_what_follows() {
    use OnFailure::{GiveUp, RestartAlone};
    use RestartVerdict::{Done, Restart, RestartGroup};
    let restart = Restart { after: after(800) };
    let group = RestartGroup { after: after(800) };
    let given_up = |reason: &str| RestartVerdict::GiveUp { reason: reason.into() };
    let failed = || Exit::Failed("its thread is gone".into());
    for (on_failure, exit, verdict) in [
        (RestartAlone, Exit::Finished, Done),
        (RestartAlone, Exit::Asked, Done),
        (RestartAlone, failed(), restart.clone()),
        (RestartAlone, panicked(), restart),
        (OnFailure::RestartGroup, Exit::Finished, Done),
        (OnFailure::RestartGroup, Exit::Asked, Done),
        (OnFailure::RestartGroup, failed(), group.clone()),
        (OnFailure::RestartGroup, panicked(), group),
        (GiveUp, Exit::Finished, Done),
        (GiveUp, Exit::Asked, Done),
        (GiveUp, failed(), given_up("failed: its thread is gone")),
        (GiveUp, panicked(), given_up("panicked: index out of bounds")),
    ] {
        let mut history = RestartHistory::new(RestartPolicy::default());
        assert_eq!(history.decide(on_failure, &exit, at(0)), verdict, "{on_failure:?} {exit:?}");
    }
}

#[test]
fn inf_45_the_sixth_failure_within_ten_minutes_gives_up_for_ever() {
    let mut history = RestartHistory::new(RestartPolicy::default());
    for (second, wait) in [(0, 800), (100, 1_600), (200, 3_200), (300, 6_400), (400, 12_800)] {
        let verdict = history.decide(OnFailure::RestartGroup, &panicked(), at(second));
        assert_eq!(verdict, RestartVerdict::RestartGroup { after: after(wait) });
    }
    let RestartVerdict::GiveUp { reason } = history.decide(OnFailure::RestartGroup, &panicked(), at(599))
    else {
        panic!("restarted a sixth time");
    };
    assert_eq!(&*reason, "panicked: index out of bounds (after 5 restarts within 600s)");
    assert_eq!(
        history.decide(OnFailure::RestartGroup, &panicked(), at(9_999)),
        RestartVerdict::GiveUp { reason }
    );
    assert_eq!(history.decide(OnFailure::RestartGroup, &Exit::Asked, at(9_999)), RestartVerdict::Done);
    assert_eq!(history.restarts(), 5);
}

#[test]
fn restarts_older_than_the_window_are_forgotten_but_waits_stay_long_until_it_is_quiet() {
    let mut history = RestartHistory::new(RestartPolicy::default());
    for second in [0, 100, 200, 300, 400] {
        history.decide(OnFailure::RestartAlone, &panicked(), at(second));
    }
    let verdict = history.decide(OnFailure::RestartAlone, &panicked(), at(600));
    assert_eq!(verdict, RestartVerdict::Restart { after: after(25_600) });
    let verdict = history.decide(OnFailure::RestartAlone, &panicked(), at(1_200));
    assert_eq!(verdict, RestartVerdict::Restart { after: after(800) }, "ten quiet minutes");
    assert_eq!(history.restarts(), 7);
}

proptest! {
    #[test]
    fn no_window_ever_holds_more_restarts_than_the_limit(
        limit in 0_u32..6,
        gaps in prop::collection::vec(0_u64..400, 1..60),
    ) {
        let policy = RestartPolicy { limit, ..RestartPolicy::default() };
        let mut history = RestartHistory::new(policy);
        let (mut now, mut restarts, mut gave_up) = (0, Vec::new(), false);
        for gap in gaps {
            now += gap;
            match history.decide(OnFailure::RestartAlone, &panicked(), at(now)) {
                RestartVerdict::Restart { after } => {
                    prop_assert!(!gave_up, "restarted after giving up");
                    prop_assert!(after >= policy.backoff.base && after <= policy.backoff.cap * 2);
                    restarts.push(now);
                }
                RestartVerdict::GiveUp { .. } => gave_up = true,
                other => prop_assert!(false, "{:?}", other),
            }
            let recent = restarts.iter().filter(|restart| now - **restart < policy.window.as_secs()).count();
            prop_assert!(recent <= limit as usize);
            prop_assert!(!gave_up || limit == 0 || recent > 0, "gave up for nothing recent");
            if gave_up { break; }
        }
        prop_assert_eq!(history.restarts() as usize, restarts.len());
    }
}
