//! What only real threads can show: embedding, several runtimes, and many subscribers that come and go.
//!
//! Real time without sleeps: every wait is for a condition, with a limit that a healthy run never comes near.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::Subscriber;
use informer_actors::testing::{Recorder, RecorderHandle, Server};

/// A limit that a healthy wait never comes near.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn informer(runtime: &Runtime, server: &Server<String>) -> Informer<String> {
    let connected = server.clone();
    Informer::builder(runtime, "texts").source(move || connected.clone()).start().expect("the spec is valid")
}

/// An informer that lists, follows and ends, in any async main.
async fn follows_and_ends() {
    let server = Server::new();
    server.apply("a/one", "1".to_owned());
    let (first, second) = (start(), start());
    let (kept, stopped) = (informer(&first, &server), informer(&second, &server));
    kept.synced_within(LIMIT).await.expect("it syncs");
    stopped.synced_within(LIMIT).await.expect("it syncs");
    assert!(stopped.shutdown(LIMIT).await.is_clean());
    drop(stopped);
    second.shutdown(LIMIT).await.expect("nothing blocks it");
    let version = server.apply("a/two", "2".to_owned());
    kept.lister().wait_for(&version, LIMIT).await.expect("the other runtime runs on");
    let pulse = first.arbiters().iter().all(|arbiter| arbiter.since_pulse < LIMIT);
    assert!(pulse, "its arbiters show a pulse");
}

pub(crate) fn start() -> Runtime {
    Runtime::threads().start().expect("threads can be started")
}

pub(crate) fn block_on<T>(builder: &mut tokio::runtime::Builder, future: impl Future<Output = T>) -> T {
    builder.enable_all().build().expect("a runtime").block_on(future)
}

// INF-48: given two `Runtime`s in one process, inside tokio (both flavours) and actix mains, when one is
// stopped and joined, then its threads are gone, the other runs on, and no signal handler was installed.
// - a inside tokio, both flavours, and actix mains, one is stopped and the other runs on
// - b its threads are gone: `inf_10_after_a_runtimes_shutdown_none_of_its_threads_remains`
// - c no signal handler was installed: `inf_48_no_signal_handler_is_installed`
#[test]
fn inf_48_informers_run_in_any_async_main_and_two_runtimes_do_not_affect_each_other() {
    block_on(tokio::runtime::Builder::new_multi_thread().worker_threads(2), follows_and_ends());
    block_on(&mut tokio::runtime::Builder::new_current_thread(), follows_and_ends());
    actix_rt::System::new().block_on(follows_and_ends());
}

// INF-10: given stop and join, when they return, then no actor, task, connection or thread of this informer
// (of the `Runtime`: none at all) remains.
// - a no part of the informer asks or delivers any more:
//   `inf_10_after_a_shutdown_no_part_of_the_informer_asks_or_delivers_any_more`
// - b no actor, no closure and no request of it is left when shutdown returns:
//   `inf_10_when_a_shutdown_returns_no_actor_no_closure_and_no_request_of_the_informer_remains`
// - c none of the runtime's threads remains
#[test]
fn inf_10_after_a_runtimes_shutdown_none_of_its_threads_remains() {
    let threads = || {
        std::fs::read_dir("/proc/self/task").map(|tasks| {
            tasks
                .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok())
                .filter(|name| name.starts_with("only-here"))
                .count()
        })
    };
    block_on(&mut tokio::runtime::Builder::new_current_thread(), async {
        let runtime = Runtime::threads().name("only-here").start().expect("threads can be started");
        let server = Server::new();
        let informer = informer(&runtime, &server);
        informer.synced_within(LIMIT).await.expect("it syncs");
        server.apply("a/one", String::new());
        let (received, hears) = tokio::sync::oneshot::channel();
        let mut received = Some(received);
        let blocking = informer.subscribe(Subscriber::blocking(move |_| {
            received.take().map(|received| received.send(()));
        }));
        hears.await.expect("a thread of the callback pool runs");
        // Threads of other tests come and go, and a listing may then leave some out.
        let there = || threads().map_or(true, |count| count >= 2);
        assert!((0..1_000).any(|_| there()), "they are there");
        informer.shutdown(LIMIT).await;
        drop((blocking, informer));
        runtime.shutdown(LIMIT).await.expect("nothing blocks it");
        // The system lists a thread for a moment after it was joined.
        let gone = async {
            while threads().is_ok_and(|count| count > 0) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, gone).await.expect("they are gone");
    });
}

// INF-08: given storms of subscribe and drop while events flow, when run on threads and under 200 seeds of
// simulation, then no deadlock or panic, and each surviving subscription's events replay to the snapshot.
// - a on threads there is no deadlock and no panic
// - b nor under 200 seeds of simulation:
//   `every_random_run_ends_with_a_true_cache_and_subscribers_that_received_only_the_truth`
// - c each surviving subscription's events replay to the snapshot
#[test]
fn inf_08_storms_of_subscribers_that_come_and_go_while_events_flow_lose_nobody_an_event() {
    block_on(tokio::runtime::Builder::new_multi_thread().worker_threads(2), async {
        let (runtime, server) = (start(), Server::new());
        let informer = informer(&runtime, &server);
        let received: RecorderHandle<String> = Recorder::new().1;
        let recorded = received.clone();
        let survivor = informer
            .for_each(move |notify| {
                recorded.record(&notify);
                std::future::ready(())
            })
            .expect("it runs");
        let done = Arc::new(AtomicBool::new(false));
        let (writing, written) = (server.clone(), Arc::clone(&done));
        let writer = std::thread::spawn(move || {
            for n in 0..20_000_u32 {
                let key = format!("a/{}", n % 50);
                if n % 7 == 3 { drop(writing.delete(&key)) } else { drop(writing.apply(&key, n.to_string())) }
            }
            written.store(true, Ordering::Relaxed);
        });
        let mut joined = 0;
        while !done.load(Ordering::Relaxed) || joined < 50 {
            let subscription = informer.for_each(|_| std::future::ready(())).expect("it runs");
            if joined % 3 == 0 {
                subscription.synced_within(LIMIT).await.expect("it syncs");
            }
            drop(subscription);
            joined += 1;
        }
        writer.join().expect("no panic");
        informer.lister().wait_for(&server.version(), LIMIT).await.expect("everything arrives");
        survivor.synced_within(LIMIT).await.expect("it syncs");
        assert!(informer.shutdown(LIMIT).await.is_clean());
        received.agrees_with(&informer.snapshot()).expect("the events replay to the store");
        assert!(informer.status().failed.is_none() && informer.status().restarts == 0);
    });
}

// INF-52: given a build with panic = "abort", when compiled, then a compile error says why.
#[test]
fn inf_52_a_build_with_panic_abort_is_refused_with_the_reason() {
    let crate_root = concat!(env!("CARGO_MANIFEST_DIR"), "/actors/src/lib.rs");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let compiled = std::process::Command::new(compiler)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "-C",
            "panic=abort",
            "-o",
            "/dev/null",
        ])
        .arg(crate_root)
        .output()
        .expect("the compiler that built this test");
    let words = String::from_utf8_lossy(&compiled.stderr);
    assert!(words.contains("supervision restarts actors after panics"), "{words}");
}

/// The signals for which this process has a handler, except those of the libraries below: one bit each.
#[cfg(target_os = "linux")]
fn caught_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("its signals");
    // std reports an overflown stack by SIGBUS (7) and SIGSEGV (11); 32 and 33 belong to the C library.
    let own = [7, 11, 32, 33].iter().fold(0, |mask, signal| mask | 1_u64 << (signal - 1));
    u64::from_str_radix(caught.trim(), 16).expect("a mask") & !own
}

#[cfg(target_os = "linux")]
#[test]
fn inf_48_no_signal_handler_is_installed() {
    block_on(&mut tokio::runtime::Builder::new_current_thread(), async {
        let (runtime, server) = (start(), Server::new());
        let informer = informer(&runtime, &server);
        informer.synced_within(LIMIT).await.expect("it syncs");
        assert_eq!(caught_signals(), 0, "a bit for each signal");
        assert!(informer.shutdown(LIMIT).await.is_clean());
        drop(informer);
        runtime.shutdown(LIMIT).await.expect("nothing blocks it");
        assert_eq!(caught_signals(), 0, "a bit for each signal");
    });
}
