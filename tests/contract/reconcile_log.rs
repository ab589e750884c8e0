//! What a controller logs of its reconciles.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::testing::Server;
use informer_core::meta::{Meta, SourceId};
use informer_operator::controller::{Controller, Outcome, ReconcileError, Request};
use informer_operator::queue::FastSlow;
use tracing::Level;

use crate::log::recorded;

const SECOND: Duration = Duration::from_secs(1);

fn texts(runtime: &Runtime) -> (Server<String>, Informer<String>) {
    let server = Server::<String>::new();
    let connected = server.clone();
    let texts = Informer::builder(runtime, "texts").source(move || connected.clone());
    (server, texts.start().expect("a sound spec"))
}

#[test]
fn operator_6_a_reconcile_leaves_a_debug_line_with_cause_and_duration() {
    recorded(|log| {
        Runtime::simulated(7).run(|runtime| async move {
            let (server, texts) = texts(&runtime);
            server.apply("a/one", "1".into());
            let slow = |_: Request<String>| async {
                tokio::time::sleep(SECOND / 4).await;
                Ok(Outcome::Done)
            };
            let _controller = Controller::builder(&texts).reconcile(slow).start().expect("it starts");
            tokio::time::sleep(SECOND).await;
            let lines = log.with("was reconciled");
            let [line] = &lines[..] else { panic!("one line: {lines:?}") };
            assert_eq!(line.level, Level::DEBUG);
            assert_eq!(line.message, "controller texts: a/one was reconciled in 250ms");
            assert_eq!(line.field("cause"), Some("Added texts a/one (InitialList)"));
        });
    });
}

#[test]
fn operator_6_a_failed_reconcile_is_a_warning_at_first_and_when_its_cause_changes_with_attempt_and_next_try()
{
    recorded(|log| {
        Runtime::simulated(7).run(|runtime| async move {
            let (server, texts) = texts(&runtime);
            server.apply("a/one", "1".into());
            let why = Arc::new(Mutex::new(Some("refused")));
            let shown = Arc::clone(&why);
            let fails = move |_: Request<String>| {
                let why = *shown.lock().unwrap_or_else(PoisonError::into_inner);
                async move { why.map_or(Ok(Outcome::Done), |why| Err(ReconcileError::from(why))) }
            };
            let builder = Controller::builder(&texts).rate_limiter(FastSlow::new(SECOND, SECOND, 0));
            let _controller = builder.reconcile(fails).start().expect("it starts");
            let set = |to| *why.lock().unwrap_or_else(PoisonError::into_inner) = to;
            let told = async |to| {
                set(to);
                tokio::time::sleep(60 * SECOND).await;
                let lines = log.texts(Level::WARN);
                let repeats = log.with("again not reconciled").len();
                log.clear();
                (lines, repeats)
            };
            let (lines, repeats) = told(Some("refused")).await;
            let first = "WARN controller texts: a/one was not reconciled: refused (attempt 1, after 0ms; next try in 1s)";
            assert_eq!(lines, [first]);
            assert!((55..60).contains(&repeats), "{repeats} repeats are for debugging");
            let (lines, _) = told(Some("not found")).await;
            assert_eq!(lines.len(), 1, "its cause has changed: {lines:?}");
            assert!(lines[0].contains("not reconciled: not found (attempt 6"), "{lines:?}");
            assert_eq!(told(None).await.0, [""; 0]);
            set(Some("not found"));
            server.apply("a/one", "2".into());
            assert_eq!(told(Some("not found")).await.0.len(), 1, "it was in order meanwhile");
        });
    });
}

#[test]
fn operator_6_a_cache_that_does_not_show_what_was_written_is_a_warning_at_most_once_in_ten_minutes() {
    recorded(|log| {
        Runtime::simulated(7).run(|runtime| async move {
            let (server, texts) = texts(&runtime);
            server.apply("a/one", "1".into());
            let written = Arc::new(AtomicU64::new(1_000_000));
            let writes = move |request: Request<String>| {
                let version =
                    informer_core::meta::ResourceVersion::from_number(written.fetch_add(1, Relaxed));
                let version = version.expect("not zero");
                request.written_as::<String>(&Meta::new(request.key().clone(), version, SourceId::default()));
                async { Ok(Outcome::RequeueAfter(5 * SECOND)) }
            };
            let _controller = Controller::builder(&texts).reconcile(writes).start().expect("it starts");
            tokio::time::sleep(1_250 * SECOND).await;
            let warnings = log.texts(Level::WARN);
            assert_eq!(warnings.len(), 3, "at 5 s, after ten and after twenty minutes: {warnings:?}");
            assert!(warnings[0].contains("(1 writes since the last warning)"), "{warnings:?}");
            assert!(warnings[1].contains("(60 writes since the last warning)"), "{warnings:?}");
        });
    });
}
