//! A recorder with its actor in simulated time: what arrives, what a flush says, and the actor's death at each of its steps.

use crate::report::Reporting;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;

use super::*;
use informer_actors::inner::{Faults, Site, locked, sleep};

const LONG: Duration = Duration::from_secs(3_600);
const SECOND: Duration = Duration::from_secs(1);

/// What a server has received, and how it answers.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Of each event on it: name, reason and count.
    events: Vec<(String, String, u32)>,
    most_at_once: usize,
    at_once: usize,
    is_down: bool,
    panics_on: Option<&'static str>,
    latency: Duration,
}

impl Server {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut locked(&self.0));
    }

    fn events(&self) -> Vec<(String, u32)> {
        locked(&self.0).events.iter().map(|(_, reason, count)| (reason.clone(), *count)).collect()
    }

    fn answer(&self, request: EventRequest) -> Answer {
        let mut state = locked(&self.0);
        state.at_once -= 1;
        if state.is_down {
            return Answer::Later { after: None, why: "it is down".to_owned() };
        }
        let found = state.events.iter_mut().find(|(name, ..)| *name == request.name);
        match (request.verb, found) {
            (Verb::Create, None) => {
                state.events.push((request.name, request.event.reason.clone(), request.count));
                Answer::Done
            }
            (Verb::Create, Some(_)) => Answer::Exists,
            (_, Some((.., count))) => {
                *count = request.count;
                Answer::Done
            }
            (_, None) => Answer::NotFound,
        }
    }
}

impl EventSink for Server {
    fn send(&self, request: EventRequest) -> LocalBoxFuture<'static, Answer> {
        let server = self.clone();
        let mut state = locked(&self.0);
        let (panics, latency) = (state.panics_on == Some(&*request.event.reason), state.latency);
        state.at_once += usize::from(!panics);
        state.most_at_once = state.most_at_once.max(state.at_once);
        drop(state);
        assert!(!panics, "lost the way");
        async move {
            sleep(latency).await;
            server.answer(request)
        }
        .boxed_local()
    }
}

fn event(reason: &str) -> Event {
    let pod = Reference { kind: "Pod".to_owned(), name: "web".to_owned(), ..Reference::default() };
    Event::new(pod, EventType::Normal, EventText { reason, action: "Act", note: "it" })
}

fn started(runtime: &Runtime) -> (EventRecorder, Server) {
    let server = Server::default();
    (EventRecorder::start(runtime, "test", RecorderConfig::default(), server.clone()), server)
}

#[test]
fn rec_08_while_the_server_is_stuck_events_are_taken_or_dropped_at_once_and_all_taken_ones_arrive() {
    Runtime::simulated(7).run(|runtime| async move {
        let (recorder, server) = started(&runtime);
        let recorder = recorder.spam_key(|event| event.reason.clone());
        server.change(|state| state.latency = LONG);
        let before = runtime.now();
        let emitted: Vec<_> = (0..1_200).map(|n| recorder.emit(event(&format!("Reason{n}")))).collect();
        assert_eq!(runtime.now(), before, "nothing has waited");
        let (taken, dropped) = emitted.split_at(1_000);
        assert!(taken.iter().all(|one| *one == Emitted::Accepted));
        assert!(dropped.iter().all(|one| *one == Emitted::Dropped(DropReason::Full)));
        sleep(SECOND).await;
        server.change(|state| state.latency = Duration::ZERO);
        recorder.flush(2 * LONG).await.expect("all is sent");
        let arrived: Vec<String> = server.events().into_iter().map(|(reason, _)| reason).collect();
        assert_eq!(arrived.len(), 1_000);
        assert!((0..1_000).all(|n| arrived.contains(&format!("Reason{n}"))));
        assert_eq!(recorder.figures().dropped(DropReason::Full), 200);
        assert_eq!(locked(&server.0).most_at_once, 4);
    });
}

#[test]
fn rec_09_a_shutdown_sends_what_waits_and_the_repeats_of_series_and_refuses_more() {
    Runtime::simulated(7).run(|runtime| async move {
        let (recorder, server) = started(&runtime);
        for _ in 0..5 {
            recorder.emit(event("Pulled"));
            recorder.flush(LONG).await.expect("it is sent");
        }
        assert_eq!(server.events(), [("Pulled".to_owned(), 2)]);
        recorder.emit(event("Killed"));
        recorder.shutdown(LONG).await.expect("it is sent");
        assert_eq!(server.events(), [("Pulled".to_owned(), 5), ("Killed".to_owned(), 1)]);
        assert_eq!(recorder.emit(event("Killed")), Emitted::Dropped(DropReason::Closed));
    });
}

#[test]
fn rec_09_a_shutdown_says_what_is_left_at_its_limit_and_why_and_it_is_still_sent_later() {
    Runtime::simulated(7).run(|runtime| async move {
        let (recorder, server) = started(&runtime);
        server.change(|state| state.is_down = true);
        recorder.emit(event("Pulled"));
        recorder.emit(event("Killed"));
        let before = runtime.now();
        let left = recorder.shutdown(5 * SECOND).await.expect_err("the server is down");
        assert_eq!((left.left, runtime.now() - before), (2, 5 * SECOND));
        let text = left.to_string();
        assert!(
            text.starts_with(
                "recorder test: 2 events were not sent; the last failure: cannot create the event"
            ),
            "{text}"
        );
        server.change(|state| state.is_down = false);
        recorder.flush(LONG).await.expect("they are sent");
        assert_eq!(server.events().len(), 2);
    });
}

#[test]
fn rec_09_when_the_runtime_ends_while_events_are_emitted_nothing_panics_and_every_wait_ends() {
    Runtime::simulated(7).run(|runtime| async move {
        let (recorder, server) = started(&runtime);
        server.change(|state| state.latency = LONG);
        recorder.emit(event("Pulled"));
        let waiting = {
            let recorder = recorder.clone();
            actix_rt::spawn(async move { recorder.flush(10 * LONG).await })
        };
        sleep(SECOND).await;
        runtime.shutdown(LONG).await.expect("it ends");
        assert_eq!(waiting.await.expect("no panic").map_err(|left| left.left), Err(1));
        assert_eq!(recorder.emit(event("Killed")), Emitted::Dropped(DropReason::Closed));
        assert!(recorder.shutdown(LONG).now_or_never().is_some_and(|left| left.is_err()));
    });
}

#[test]
fn rec_09_what_waits_when_the_last_handle_is_dropped_is_still_sent_and_then_the_actor_ends() {
    Runtime::simulated(7).run(|runtime| async move {
        let (recorder, server) = started(&runtime);
        server.change(|state| state.latency = SECOND);
        for n in 0..10 {
            recorder.emit(event(&format!("Reason{n}")));
        }
        let over = recorder.shared.inside.over.clone();
        drop(recorder);
        over.cancelled().await;
        assert_eq!(server.events().len(), 10);
    });
}

#[test]
fn rec_11_a_series_is_told_after_six_idle_minutes_though_nothing_else_happens() {
    Runtime::simulated(7).run(|runtime| async move {
        let (recorder, server) = started(&runtime);
        for _ in 0..3 {
            recorder.emit(event("Pulled"));
            sleep(SECOND).await;
        }
        assert_eq!(server.events(), [("Pulled".to_owned(), 2)]);
        sleep(Duration::from_secs(6 * 60)).await;
        assert_eq!(server.events(), [("Pulled".to_owned(), 3)]);
        assert_eq!(recorder.figures().known, 0);
    });
}

#[test]
fn a_sink_that_panics_over_an_event_loses_that_event_alone() {
    Runtime::simulated(7).run(|runtime| async move {
        let (recorder, server) = started(&runtime);
        server.change(|state| state.panics_on = Some("Bad"));
        for reason in ["One", "Bad", "Two"] {
            recorder.emit(event(reason));
        }
        recorder.flush(LONG).await.expect("all is answered");
        assert_eq!(server.events(), [("One".to_owned(), 1), ("Two".to_owned(), 1)]);
        let figures = recorder.figures();
        assert_eq!((figures.refused["Panicked"], figures.dropped(DropReason::Refused)), (1, 1));
        assert!(
            figures
                .last_error
                .is_some_and(|error| error.text.ends_with("the sink has panicked: lost the way"))
        );
    });
}

#[test]
fn no_event_is_lost_or_doubled_when_the_actor_dies_at_any_of_its_steps() {
    for site in [Site::RecorderStarted, Site::RecorderLook, Site::RecorderAnswered] {
        for killed in 0..6 {
            let passed = AtomicU32::new(0);
            let faults = Faults::new(move |here| {
                assert!(here != site || passed.fetch_add(1, Relaxed) != killed, "killed here");
            });
            Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
                let (recorder, server) = started(&runtime);
                server.change(|state| state.latency = SECOND);
                for n in 0..10 {
                    recorder.emit(event(&format!("Reason{n}")));
                    sleep(SECOND / 3).await;
                }
                recorder.shutdown(LONG).await.expect("all is sent");
                let expected: Vec<_> = (0..10).map(|n| (format!("Reason{n}"), 1)).collect();
                let mut events = server.events();
                events.sort();
                assert_eq!(events, expected, "{site:?} {killed}");
            });
        }
    }
}

#[test]
fn a_recorder_whose_actor_is_given_up_refuses_events_and_ends_every_wait() {
    let faults = Faults::new(|here| assert!(here != Site::RecorderLook, "killed here"));
    Runtime::simulation(7).faults(faults).build().run(|runtime| async move {
        let (recorder, _server) = started(&runtime);
        recorder.emit(event("Pulled"));
        let left = recorder.flush(100 * LONG).await.expect_err("nobody sends");
        assert!(left.left == 1 && runtime.now() < LONG);
        assert_eq!(recorder.emit(event("Killed")), Emitted::Dropped(DropReason::Closed));
    });
}

#[test]
fn a_recorder_is_in_the_report_of_its_runtime_until_its_end_and_ends_with_it() {
    Runtime::simulated(7).run(|runtime| async move {
        let (recorder, server) = started(&runtime);
        server.change(|state| state.latency = SECOND);
        recorder.emit(event("Pulled"));
        let report = runtime.report().recorders.remove(0);
        assert_eq!((&report.name, report.figures.clone()), (recorder.name(), recorder.figures()));
        assert_eq!(report.figures.waiting + report.figures.in_flight, 1);
        recorder.shutdown(LONG).await.expect("all is sent");
        drop(recorder);
        sleep(SECOND).await;
        assert!(runtime.report().recorders.is_empty(), "nothing of it runs");
        let (other, _server) = started(&runtime);
        runtime.shutdown(LONG).await.expect("nothing blocks");
        assert_eq!(other.emit(event("Killed")), Emitted::Dropped(DropReason::Closed));
    });
}
