//! One candidate and a lease that the test writes: a test for each sentence about one candidate.

use std::time::Duration;

use super::*;

mod coordinated;
mod ending;
mod props;

/// A candidate and the lease of its server, on one clock.
pub(super) struct Stage {
    pub(super) candidate: ElectionMachine,
    pub(super) lease: Option<LeaseRecord>,
    pub(super) now: Duration,
    /// What was asked for, in order: `read`, `create`, `update`, and what the registration needs.
    pub(super) asked: Vec<&'static str>,
    /// The next writes are refused.
    pub(super) conflicts: u32,
    pub(super) registration: Option<CandidateRecord>,
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
/// The time of day at the start, by the clock of the server and of this candidate.
pub(super) const DAY: Duration = Duration::from_secs(1_000_000);

pub(super) fn held_by(holder: &str, transitions: u64) -> LeaseRecord {
    let acquired = Some(DAY);
    LeaseRecord {
        holder: holder.into(),
        duration_seconds: 15,
        acquired,
        renewed: acquired,
        transitions,
        preferred_holder: "".into(),
    }
}

impl Stage {
    pub(super) fn new(settings: Settings) -> Self {
        let candidate = ElectionMachine::new(settings);
        let (lease, registration) = (None, None);
        Self { candidate, lease, now: Duration::ZERO, asked: Vec::new(), conflicts: 0, registration }
    }

    pub(super) fn with_lease(lease: LeaseRecord) -> Self {
        Self { lease: Some(lease), ..Self::new(Settings::new("me")) }
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { now: self.now, wall: DAY + self.now, chance: 0.0 }
    }

    /// Asks and answers until nothing is due.
    pub(super) fn settle(&mut self) {
        while let Some(effect) = self.candidate.poll_effect(self.moment()) {
            self.answer(effect);
        }
    }

    pub(super) fn answer(&mut self, effect: Effect) {
        let moment = self.moment();
        match effect {
            Effect::Read => {
                self.asked.push("read");
                let lease = self.lease.clone();
                self.candidate.handle_read(lease.map_or(Read::Absent, Read::Found), moment);
            }
            Effect::Create(record) | Effect::Update(record) if self.conflicts == 0 => {
                self.asked.push(if self.lease.is_none() { "create" } else { "update" });
                self.lease = Some(record);
                self.candidate.handle_written(LeaseWritten::Done, moment);
            }
            Effect::Create(_) | Effect::Update(_) => {
                self.asked.push("conflict");
                self.conflicts -= 1;
                self.candidate.handle_written(LeaseWritten::Conflict, moment);
            }
            Effect::ReadCandidate => {
                let registration = self.registration;
                self.candidate.handle_candidate(registration.map_or(Read::Absent, Read::Found), moment);
            }
            Effect::CreateCandidate(renewed) | Effect::RenewCandidate(renewed) => {
                self.asked.push("register");
                let pinged = self.registration.and_then(|registration| registration.pinged);
                self.registration = Some(CandidateRecord { pinged, renewed: Some(renewed) });
                self.candidate.handle_candidate_written(LeaseWritten::Done, moment);
            }
            Effect::WithdrawCandidate => {
                self.asked.push("withdraw");
                self.registration = None;
                self.candidate.handle_candidate_written(LeaseWritten::Done, moment);
            }
        }
    }

    /// Lets time pass, with all that is due on the way.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        while let Some(due) = self.candidate.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.settle();
        }
        self.now = end;
    }

    pub(super) fn fence(&self) -> Option<u64> {
        self.candidate.leading(self.now).map(|leading| leading.fence)
    }

    pub(super) fn lease(&self) -> &LeaseRecord {
        self.lease.as_ref().expect("a lease")
    }
}

#[test]
fn le_01_without_a_lease_it_is_created_with_us_as_holder_and_no_transitions() {
    let mut stage = Stage::new(Settings::new("me"));
    stage.settle();
    assert_eq!(stage.asked, ["read", "create"]);
    assert_eq!(*stage.lease(), LeaseRecord { transitions: 0, ..held_by("me", 0) });
    assert_eq!(stage.fence(), Some(0));
}

// LE-02: given a lease held by other, renewed recently by local observation, when trying, then refused.
// - a refused as long as it is seen to be renewed, whatever times its writer's clock shows
// - b it lasts as long as its own record says, from when it was seen
// - c never may two begin work, whatever their clocks show, if those count suspensions and run about equally
//   fast: `never_may_two_begin_work_and_no_two_terms_have_one_number`
#[test]
fn le_02_a_lease_that_another_renews_is_not_taken_and_one_that_stands_still_for_its_duration_is() {
    let mut stage = Stage::with_lease(held_by("other", 3));
    for renewal in 1..20 {
        // Its writer's clock is of no account: this one runs backwards.
        let renewed = Some(DAY - renewal * SECOND);
        stage.lease = Some(LeaseRecord { renewed, ..held_by("other", 3) });
        stage.pass(10 * SECOND);
        assert_eq!((stage.fence(), stage.candidate.why_not()), (None, &WhyNot::HeldBy("other".into())));
    }
    let seen_last = stage.candidate.observed.as_ref().expect("a lease").since;
    while stage.fence().is_none() {
        stage.pass(SECOND / 2);
    }
    assert!(stage.now >= seen_last + 15 * SECOND, "{:?} after {seen_last:?}", stage.now);
    assert!(stage.now <= seen_last + 18 * SECOND, "{:?} after {seen_last:?}", stage.now);
    assert_eq!((&*stage.lease().holder, stage.fence()), ("me", Some(4)));
}

#[test]
fn le_02_a_lease_lasts_as_long_as_its_own_record_says() {
    let short = LeaseRecord { duration_seconds: 1, ..held_by("other", 0) };
    let mut stage = Stage::with_lease(short);
    stage.settle();
    assert_eq!(stage.fence(), None, "it was seen just now");
    stage.pass(2 * SECOND);
    assert_eq!(stage.fence(), Some(1));
}

#[test]
fn le_04_a_lease_without_a_holder_is_taken_at_once() {
    let mut stage = Stage::with_lease(held_by("", 7));
    stage.settle();
    assert_eq!((stage.asked.as_slice(), stage.fence()), (["read", "update"].as_slice(), Some(8)));
}

#[test]
fn le_05_the_leader_renews_without_reading_and_reads_once_after_a_conflict() {
    let mut stage = Stage::new(Settings::new("me"));
    stage.pass(5 * SECOND);
    assert_eq!(stage.asked, ["read", "create", "update", "update"]);
    stage.asked.clear();
    stage.conflicts = 1;
    stage.pass(4 * SECOND);
    assert_eq!(stage.asked, ["conflict", "read", "update", "update"]);
    assert_eq!(stage.fence(), Some(0), "it led all the time");
    let ElectionFigures { terms, slow_paths, conflicts, .. } = stage.candidate.figures();
    assert_eq!((terms, slow_paths, conflicts), (1, 1, 1));
    assert_eq!(stage.lease().acquired, Some(DAY), "it has held it since the start");
}

#[test]
fn le_06_durations_that_do_not_fit_together_are_refused() {
    let settings = |lease: u64, renew: u64, retry: u64| {
        let millis = Duration::from_millis;
        let (lease_duration, renew_deadline, retry_period) = (millis(lease), millis(renew), millis(retry));
        Settings { lease_duration, renew_deadline, retry_period, ..Settings::new("me") }.check()
    };
    assert_eq!(settings(15_000, 10_000, 2_000), Ok(()));
    assert!(matches!(settings(10_000, 10_000, 2_000), Err(SettingsError::LeaseNotLonger { .. })));
    assert!(matches!(settings(15_000, 2_400, 2_000), Err(SettingsError::DeadlineNotLonger { .. })));
    assert_eq!(settings(15_000, 2_401, 2_000), Ok(()));
    for (lease, renew, retry) in [(999, 10, 1), (15_000, 0, 0), (15_000, 10_000, 0)] {
        assert!(matches!(settings(lease, renew, retry), Err(SettingsError::TooShort { .. })));
    }
    assert!(matches!(settings(u64::MAX, 10_000, 2_000), Err(SettingsError::TooLong(_))));
    assert_eq!(Settings::new("").check(), Err(SettingsError::NoIdentity));
}

#[test]
fn a_lease_duration_is_written_in_whole_seconds_and_never_shorter() {
    let lease_duration = Duration::from_millis(15_100);
    let mut stage = Stage::new(Settings { lease_duration, ..Settings::new("me") });
    stage.settle();
    assert_eq!(stage.lease().duration_seconds, 16);
}

#[test]
fn le_08_a_term_that_is_not_ended_although_its_lease_ran_out_longer_ago_than_the_tolerance_is_unhealthy() {
    let mut stage = Stage::new(Settings::new("me"));
    stage.pass(SECOND);
    let shown = stage.candidate.leading(stage.now);
    let is_healthy =
        |shown, seconds| is_healthy(stage.candidate.settings(), shown, 5 * SECOND, seconds * SECOND);
    assert_eq!(shown.map(|term| term.until), Some(10 * SECOND));
    assert!(is_healthy(shown, 20), "the lease of 15 s and 5 s more");
    assert!(!is_healthy(shown, 21));
    assert!(is_healthy(None, 1_000), "the term was ended, or another leads");
}

#[test]
fn le_08_a_candidate_ends_its_term_at_the_renew_deadline_although_no_request_is_answered() {
    let mut stage = Stage::new(Settings::new("me"));
    stage.pass(SECOND);
    stage.now = 2 * SECOND;
    assert!(stage.candidate.poll_effect(stage.moment()).is_some(), "a renewal, which is not answered");
    stage.now = stage.candidate.poll_timeout().expect("the end of the term");
    assert_eq!((stage.now, stage.candidate.poll_effect(stage.moment())), (10 * SECOND, None));
    assert_eq!(stage.candidate.leading(Duration::ZERO), None, "at no time");
}

#[test]
fn a_declared_candidate_asks_nothing_until_it_begins_and_has_nothing_to_give_back() {
    let declared = || {
        let mut stage = Stage::new(Settings::new("me"));
        stage.candidate = ElectionMachine::new(Settings::new("me")).declared();
        stage.pass(100 * SECOND);
        assert_eq!((stage.candidate.why_not(), stage.candidate.poll_timeout()), (&WhyNot::NotBegun, None));
        assert!(stage.asked.is_empty());
        stage
    };
    let mut stage = declared();
    stage.candidate.handle_begin();
    assert_eq!(stage.candidate.why_not(), &WhyNot::NotTried);
    stage.settle();
    assert_eq!((stage.fence(), &stage.asked[..]), (Some(0), &["read", "create"][..]));
    stage.candidate.handle_begin();
    assert_eq!(stage.fence(), Some(0), "as before");
    let mut stage = declared();
    stage.candidate.handle_shutdown();
    stage.settle();
    assert!(stage.candidate.is_over() && stage.candidate.is_released() && stage.asked.is_empty());
}

#[test]
fn a_term_ends_when_the_last_renewal_was_sent_one_renew_deadline_ago() {
    let mut stage = Stage::new(Settings::new("me"));
    stage.pass(SECOND);
    stage.now = 2 * SECOND;
    let Some(Effect::Update(_)) = stage.candidate.poll_effect(stage.moment()) else {
        panic!("a renewal, which is not answered")
    };
    stage.now = Duration::from_millis(10_000);
    assert_eq!(stage.candidate.poll_timeout(), Some(10 * SECOND));
    assert_eq!(stage.fence(), None);
    assert_eq!(stage.candidate.poll_effect(stage.moment()), None);
    assert_eq!(*stage.candidate.why_not(), WhyNot::NotRenewed(10 * SECOND));
    assert_eq!(stage.candidate.figures().lost, 1);
}

#[test]
fn a_renewal_that_is_answered_after_the_end_of_its_term_begins_none_and_the_next_term_has_a_new_number() {
    let mut stage = Stage::new(Settings::new("me"));
    stage.settle();
    stage.now = 2 * SECOND;
    let Some(effect) = stage.candidate.poll_effect(stage.moment()) else { panic!("a renewal") };
    stage.now = 11 * SECOND; // its own deadline is at 12 s, that of the term was at 10 s
    stage.answer(effect);
    assert_eq!(stage.fence(), None);
    stage.pass(5 * SECOND);
    assert_eq!(stage.fence(), Some(1));
}

#[test]
fn a_lease_that_another_has_taken_ends_the_term_at_once() {
    let mut stage = Stage::new(Settings::new("me"));
    stage.settle();
    (stage.lease, stage.conflicts) = (Some(held_by("thief", 9)), 1);
    stage.pass(2 * SECOND);
    assert_eq!((stage.fence(), stage.candidate.why_not()), (None, &WhyNot::HeldBy("thief".into())));
}

#[test]
fn a_lease_that_is_deleted_is_made_again_by_its_leader_and_by_others_only_when_it_must_have_ended() {
    let mut leader = Stage::with_lease(held_by("", 4));
    leader.settle();
    (leader.lease, leader.conflicts) = (None, 1);
    leader.pass(2 * SECOND);
    assert_eq!((leader.fence(), leader.lease().transitions), (Some(5), 5), "the number does not go back");

    let mut other = Stage::with_lease(held_by("leader", 4));
    other.settle();
    other.lease = None;
    other.pass(14 * SECOND);
    assert_eq!((other.fence(), other.lease.is_none()), (None, true));
    assert_eq!(*other.candidate.why_not(), WhyNot::DeletedWhileHeld("leader".into()));
    other.pass(4 * SECOND);
    assert_eq!(other.fence(), Some(5));
}

#[test]
fn le_15_while_work_of_a_former_term_goes_on_a_lease_that_is_free_is_not_taken() {
    for lease in [None, Some(held_by("", 7)), Some(held_by("me", 7)), Some(held_by("crashed", 7))] {
        let mut stage = Stage::new(Settings::new("me"));
        stage.settle();
        stage.candidate.handle_work(true);
        stage.pass(4 * SECOND);
        assert_eq!(stage.fence(), Some(0), "its own term goes on");
        stage.now += 100 * SECOND;
        stage.lease = lease.clone();
        stage.asked.clear();
        stage.pass(60 * SECOND);
        assert_eq!((stage.fence(), &stage.lease), (None, &lease));
        assert_eq!(*stage.candidate.why_not(), WhyNot::FormerWork);
        assert!(stage.asked.len() > 20 && stage.asked.iter().all(|asked| *asked == "read"));
        let kept_since = stage.candidate.kept_since().expect("it could lead");
        assert!(stage.now - kept_since >= 40 * SECOND, "{kept_since:?}");
        let before = stage.lease.replace(held_by("other", 8));
        stage.pass(5 * SECOND);
        assert_eq!(stage.candidate.kept_since(), None, "another one leads");
        stage.lease = before.map(|lease| LeaseRecord { transitions: 9, holder: "".into(), ..lease });
        stage.candidate.handle_work(false);
        stage.pass(20 * SECOND);
        assert!(stage.fence() > Some(0) && stage.candidate.kept_since().is_none());
    }
}

#[test]
fn le_15_work_that_is_known_of_when_the_lease_was_read_keeps_it_from_being_taken() {
    let mut stage = Stage::with_lease(held_by("", 7));
    let read = stage.candidate.poll_effect(stage.moment()).expect("a read");
    stage.answer(read);
    stage.candidate.handle_work(true);
    stage.settle();
    assert_eq!((&stage.asked[..], stage.fence()), (&["read"][..], None));
}

#[test]
fn failures_are_tried_again_and_a_candidate_waits_a_random_time_between_one_and_2_2_retry_periods() {
    let mut candidate = ElectionMachine::new(Settings::new("me"));
    let at = |now, chance| Moment { now, wall: DAY, chance };
    assert_eq!(candidate.poll_effect(at(SECOND, 0.0)), Some(Effect::Read));
    candidate.handle_read(Read::Failed, at(SECOND, 0.0));
    assert_eq!(candidate.poll_timeout(), Some(3 * SECOND));
    assert_eq!(candidate.poll_effect(at(3 * SECOND, 0.0)), Some(Effect::Read));
    candidate.handle_read(Read::Failed, at(3 * SECOND, 0.5));
    assert_eq!(candidate.poll_timeout(), Some(Duration::from_millis(6_200)));
    assert_eq!((candidate.why_not(), candidate.figures().failures), (&WhyNot::Failed, 2));
}
