//! A coordinated election: a controller of the server chooses the leader. The test is the controller.

use super::*;

fn candidate() -> Stage {
    Stage::new(Settings { coordinated: true, ..Settings::new("me") })
}

#[test]
fn a_candidate_registers_and_waits_until_it_is_chosen() {
    let mut stage = candidate();
    stage.pass(5 * SECOND);
    assert_eq!(stage.registration.expect("registered").renewed, Some(DAY));
    assert_eq!((stage.lease.is_none(), stage.candidate.why_not()), (true, &WhyNot::NotChosen));
    stage.lease = Some(LeaseRecord { duration_seconds: 5, acquired: None, ..held_by("me", 2) });
    stage.pass(2 * SECOND);
    assert_eq!((stage.fence(), stage.lease().transitions, stage.lease().duration_seconds), (Some(3), 3, 15));
    stage.pass(20 * SECOND);
    assert_eq!((stage.fence(), stage.candidate.figures().terms), (Some(3), 1), "one term");
}

#[test]
fn a_candidate_takes_no_lease_that_is_free_or_has_run_out() {
    for lease in [held_by("", 2), held_by("other", 2), held_by("me", 2)] {
        let mut stage = candidate();
        stage.settle();
        stage.lease = Some(lease.clone());
        stage.candidate.observe(lease.clone(), stage.now);
        stage.now += 60 * SECOND;
        stage.settle();
        assert_eq!((stage.fence(), stage.lease()), (None, &lease));
        assert_eq!(*stage.candidate.why_not(), WhyNot::NotChosen);
    }
}

#[test]
fn le_10_when_another_is_preferred_we_stop_renewing_and_leave_the_lease_to_run_out() {
    let mut stage = candidate();
    stage.lease = Some(held_by("me", 2));
    stage.pass(4 * SECOND);
    assert_eq!(stage.fence(), Some(3));
    let preferred = LeaseRecord { preferred_holder: "newer".into(), ..stage.lease().clone() };
    stage.lease = Some(preferred.clone());
    stage.pass(SECOND * 2);
    assert_eq!((stage.fence(), stage.candidate.why_not()), (None, &WhyNot::HandsOver("newer".into())));
    stage.pass(60 * SECOND);
    assert_eq!(*stage.lease(), preferred, "nothing was written");
    stage.lease = Some(held_by("newer", 3));
    stage.pass(SECOND * 5);
    assert_eq!(*stage.candidate.why_not(), WhyNot::HeldBy("newer".into()));
}

#[test]
fn le_10_a_lease_that_prefers_us_is_renewed() {
    let mut stage = candidate();
    stage.lease = Some(LeaseRecord { preferred_holder: "me".into(), ..held_by("me", 2) });
    stage.pass(4 * SECOND);
    assert_eq!(stage.fence(), Some(3));
    assert_eq!(&*stage.lease().preferred_holder, "me");
}

#[test]
fn le_11_a_candidate_that_is_pinged_renews_its_registration_at_the_next_attempt() {
    let mut stage = candidate();
    stage.settle();
    // The controller's clock is a minute ahead.
    let pinged = Some(DAY + 60 * SECOND);
    stage.registration = Some(CandidateRecord { pinged, renewed: Some(DAY) });
    stage.pass(2 * SECOND);
    assert_eq!(stage.registration, Some(CandidateRecord { pinged, renewed: pinged }), "not before the ping");
    let registrations = |stage: &Stage| stage.asked.iter().filter(|asked| **asked == "register").count();
    let after_answer = registrations(&stage);
    stage.pass(20 * SECOND);
    assert_eq!(registrations(&stage), after_answer, "one answer is enough");
    stage.pass(300 * SECOND);
    assert_eq!(registrations(&stage), after_answer + 1, "and now and then one unasked");
}

#[test]
fn le_15_a_candidate_whose_former_work_goes_on_does_not_answer_the_controller() {
    let mut stage = candidate();
    stage.lease = Some(held_by("me", 2));
    stage.pass(4 * SECOND);
    stage.candidate.handle_work(true);
    let pinged = Some(DAY + 600 * SECOND);
    let registration = stage.registration.expect("registered");
    stage.pass(4 * SECOND);
    assert_eq!(stage.fence(), Some(3), "its own term goes on");
    stage.lease = Some(held_by("other", 4));
    stage.pass(4 * SECOND);
    stage.registration = Some(CandidateRecord { pinged, ..registration });
    stage.lease = Some(LeaseRecord { acquired: None, ..held_by("me", 5) });
    stage.pass(10 * SECOND);
    assert_eq!((stage.fence(), stage.candidate.why_not()), (None, &WhyNot::FormerWork));
    assert_eq!(stage.registration.expect("registered").renewed, registration.renewed, "no answer");
    stage.lease = Some(held_by("", 5));
    stage.pass(10 * SECOND);
    assert_eq!(*stage.candidate.why_not(), WhyNot::FormerWork, "nobody asks it, and that is why");
    stage.lease = Some(LeaseRecord { acquired: None, ..held_by("me", 5) });
    stage.candidate.handle_work(false);
    stage.pass(5 * SECOND);
    assert_eq!((stage.fence(), stage.registration.expect("registered").renewed), (Some(6), pinged));
}

#[test]
fn le_15_nor_does_one_whose_term_ends_while_it_looks_for_the_question() {
    let mut stage = candidate();
    stage.lease = Some(held_by("me", 2));
    stage.pass(4 * SECOND);
    stage.candidate.handle_work(true);
    let registration = stage.registration.expect("registered");
    stage.registration = Some(CandidateRecord { pinged: Some(DAY + 600 * SECOND), ..registration });
    stage.now = stage.candidate.poll_timeout().expect("the next attempt");
    let read = stage.candidate.poll_effect(stage.moment()).expect("a look for the question");
    assert_eq!(read, Effect::ReadCandidate);
    stage.now += 20 * SECOND; // the term ends
    stage.answer(read);
    stage.settle();
    assert_eq!(stage.registration.expect("registered").renewed, registration.renewed, "no answer");
    assert_eq!((stage.fence(), stage.candidate.why_not()), (None, &WhyNot::FormerWork));
}

#[test]
fn at_shutdown_the_registration_is_taken_back_before_the_lease() {
    let mut stage = candidate();
    stage.lease = Some(held_by("me", 2));
    stage.pass(4 * SECOND);
    stage.asked.clear();
    stage.candidate.handle_shutdown();
    stage.settle();
    assert_eq!(stage.asked, ["withdraw", "update"]);
    assert_eq!((&*stage.lease().holder, stage.registration, stage.candidate.is_over()), ("", None, true));
}

#[test]
fn a_registration_that_cannot_be_taken_back_does_not_hold_up_the_lease_and_is_tried_again_for_a_while() {
    let mut stage = candidate();
    stage.lease = Some(held_by("me", 2));
    stage.pass(4 * SECOND);
    let began = stage.now;
    stage.candidate.handle_shutdown();
    let (mut withdrawals, mut released) = (0, None);
    while !stage.candidate.is_over() {
        match stage.candidate.poll_effect(stage.moment()) {
            Some(Effect::WithdrawCandidate) => {
                withdrawals += 1;
                stage.candidate.handle_candidate_written(LeaseWritten::Failed, stage.moment());
            }
            Some(effect) => stage.answer(effect),
            None => stage.now = stage.candidate.poll_timeout().unwrap_or(stage.now).max(stage.now),
        }
        released = released.or_else(|| stage.candidate.is_released().then_some(stage.now - began));
    }
    assert_eq!(
        (released, withdrawals),
        (Some(Duration::ZERO), 8),
        "each retry period of the lease's duration"
    );
    assert!(stage.now - began <= 17 * SECOND && stage.lease().holder.is_empty());
}

#[test]
fn what_a_predecessor_has_registered_is_taken_back_at_shutdown() {
    let mut stage = candidate();
    stage.registration = Some(CandidateRecord { pinged: None, renewed: Some(DAY) });
    stage.candidate.handle_predecessor(stage.now);
    stage.candidate.handle_shutdown();
    stage.settle();
    assert_eq!(stage.asked, ["withdraw", "read"]);
    assert_eq!((stage.registration, stage.candidate.is_over()), (None, true));
}
