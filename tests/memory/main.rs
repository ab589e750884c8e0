//! How much memory the machinery takes, counted by an allocator.
//!
//! A binary of its own, because a counting allocator counts for the whole process, and one test at a time. Figures are bounds of the contract, not measurements of speed.

use std::alloc::System;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use informer_actors::informer::Informer;
use informer_actors::runtime::Runtime;
use informer_actors::subscription::Subscriber;
use informer_actors::testing::Server;
use informer_core::delta_fifo::Bounds;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

mod allocations;
mod coming_and_going;
mod objects;
mod selection;
mod streaming;
mod work_queue;

use streaming::{BODY_BYTES, OBJECT_BYTES, OBJECTS, PART, Streaming};

/// Held by the test that counts: the allocator counts for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

const LONG: Duration = Duration::from_secs(3600);

/// Bytes that are allocated now.
fn held() -> usize {
    let stats = COUNTING.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn informer(runtime: &Runtime, server: &Server<String>) -> Informer<String> {
    let connected = server.clone();
    Informer::builder(runtime, "texts").source(move || connected.clone()).start().expect("the spec is valid")
}

/// Lets everything that can run run: a millisecond of simulated time.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// How much more an informer of ten objects holds for each of a thousand subscriptions that have received all
/// of them.
async fn each_of_many<T>(runtime: &Runtime, subscribe: impl AsyncFn(&Informer<String>) -> T) -> usize {
    let server = Server::new();
    (0..10).for_each(|n| drop(server.apply(&format!("a/{n}"), String::new())));
    let informer = informer(runtime, &server);
    informer.synced_within(LONG).await.expect("it syncs");
    let warm = subscribe(&informer).await;
    settle().await;
    let before = held();
    let mut many = Vec::with_capacity(1000);
    for _ in 0..1000 {
        many.push(subscribe(&informer).await);
    }
    settle().await;
    let each = (held() - before) / many.len();
    drop((warm, many));
    each
}

/// LIS-10: an idle subscription costs less than 2 KiB, its handle, its actor and its closure included.
async fn an_idle_subscription_is_small(runtime: &Runtime) {
    let closure = each_of_many(runtime, async |informer| {
        let subscription = informer.for_each(|_| std::future::ready(())).expect("it runs");
        subscription.synced().await.expect("it has received everything");
        subscription
    });
    let closure = closure.await;
    assert!(closure < 2 << 10, "an idle closure subscription holds {closure} bytes");
    let blocking = each_of_many(runtime, async |informer| {
        let subscription = informer.subscribe(Subscriber::blocking(|_| ())).expect("it runs");
        subscription.synced().await.expect("it has received everything");
        subscription
    });
    let blocking = blocking.await;
    assert!(blocking < 2 << 10, "an idle subscription of a blocking closure holds {blocking} bytes");
    let stream = each_of_many(runtime, async |informer| {
        let mut events = informer.events().expect("it runs");
        for _ in 0..10 {
            events.next().await.expect("it has received everything");
        }
        assert!(events.next().now_or_never().is_none(), "it waits for more");
        events
    });
    let stream = stream.await;
    assert!(stream < 2 << 10, "an idle stream holds {stream} bytes");
    println!(
        "an idle subscription holds {closure} bytes, of a blocking closure {blocking}, as a stream {stream}"
    );
}

/// INF-38: the replay of a late joiner is a cursor, not a queue.
async fn stalled_late_joiners_hold_a_cursor_each(runtime: &Runtime) {
    let server = Server::new();
    (0..100_000).for_each(|n| drop(server.apply(&format!("a/{n:05}"), String::new())));
    let informer = informer(runtime, &server);
    informer.synced_within(LONG).await.expect("it syncs");
    settle().await;
    let before = held();
    let joiners: Vec<_> =
        (0..50).map(|_| informer.for_each(|_| std::future::pending::<()>()).expect("it runs")).collect();
    settle().await;
    let each = (held() - before) / joiners.len();
    assert!(each < 32 << 10, "a stalled late joiner of 100,000 objects holds {each} bytes");
}

/// What an informer of 100,000 objects, each changed twice, holds with this many subscribers that stall from
/// before its first list on.
async fn held_with_early(runtime: &Runtime, subscribers: usize) -> usize {
    const OBJECTS: usize = 100_000;
    let before = held();
    let server = Server::new();
    server.hold_lists(true);
    (0..OBJECTS).for_each(|n| drop(server.apply(&format!("a/{n:05}"), String::new())));
    let informer = informer(runtime, &server);
    let stalled: Vec<_> = (0..subscribers)
        .map(|_| informer.for_each(|_| std::future::pending::<()>()).expect("it runs"))
        .collect();
    settle().await;
    server.hold_lists(false);
    informer.synced_within(LONG).await.expect("it syncs");
    for _ in 0..2 {
        for n in 0..OBJECTS {
            let version = server.apply(&format!("a/{n:05}"), String::new());
            if n % 200 == 199 {
                informer.lister().wait_for(&version, LONG).await.expect("it arrives");
                server.compact();
            }
        }
    }
    settle().await;
    let held = held() - before;
    drop((stalled, informer));
    settle().await;
    held
}

/// INF-38: the first list of a subscriber that joined before it is a cursor too, also while every object
/// changes twice.
async fn stalled_early_joiners_hold_a_cursor_each(runtime: &Runtime) {
    // The first run also frees what the tests before it have left.
    held_with_early(runtime, 0).await;
    let without = held_with_early(runtime, 0).await;
    let with = held_with_early(runtime, 50).await;
    let all = with.saturating_sub(without);
    assert!(all < 1_000_000, "50 subscribers that stalled before the first list hold {all} bytes");
}

/// REF-31: one survivor of a page does not keep the page.
async fn a_survivor_does_not_keep_its_page(runtime: &Runtime) {
    let server = Server::new();
    server.objects_per_part(1000);
    let informer = informer(runtime, &server);
    informer.synced_within(LONG).await.expect("it syncs");
    let body = "x".repeat(10_000);
    (0..1000).for_each(|n| drop(server.apply(&format!("a/{n}"), body.clone())));
    informer.lister().wait_for(&server.version(), LONG).await.expect("it arrives");
    let full = held();
    (1..1000).for_each(|n| drop(server.delete(&format!("a/{n}"))));
    server.compact();
    for n in 0..100 {
        informer.lister().wait_for(&server.apply("b/tick", n.to_string()), LONG).await.expect("it arrives");
    }
    server.compact();
    settle().await;
    let freed = full.saturating_sub(held());
    assert!(freed > 9_000_000, "only {freed} of about 10,000,000 bytes were freed");
    assert_eq!(informer.snapshot().len(), 2);
}

/// WL-20: while a watch-list streams, no more is held than the store in the end, the queue's bound, one part
/// of the stream and one pointer an object.
async fn a_streamed_list_is_held_once(runtime: &Runtime) {
    const BOUND: usize = 64 << 10;
    let before = held();
    let (source, peak) = Streaming::new();
    let (bounds, seen) = (Bounds { bytes: BOUND, ..Bounds::default() }, peak.clone());
    let informer = Informer::builder(runtime, "streamed").source(move || source.clone()).bounds(bounds);
    // An index that files nothing: it is called for each object while the store is built.
    let informer = informer.index("peak", move |_| {
        seen.look();
        None::<String>
    });
    let informer = informer.start().expect("the spec is valid");
    informer.synced_within(LONG).await.expect("it syncs");
    assert_eq!(informer.snapshot().len(), OBJECTS);
    settle().await;
    let in_the_end = held() - before;
    let peak = peak.highest() - before;
    let allowed = in_the_end + BOUND + PART * OBJECT_BYTES + OBJECTS * size_of::<usize>();
    assert!(in_the_end > OBJECTS * BODY_BYTES, "it is all there");
    assert!(peak <= allowed, "{peak} bytes at the peak, {in_the_end} in the end, {allowed} allowed");
}

/// LST-02: iterating a snapshot, or a namespace or an index value of it, allocates nothing per object.
async fn iterating_allocates_nothing_per_object(runtime: &Runtime) {
    let server = Server::new();
    (0..10_000).for_each(|n| drop(server.apply(&format!("a/{n}"), String::new())));
    let connected = server.clone();
    let builder = Informer::builder(runtime, "iterated").source(move || connected.clone());
    let informer = builder.index("all", |_| ["all".to_owned()]).start().expect("the spec is valid");
    informer.synced_within(LONG).await.expect("it syncs");
    let snapshot = informer.snapshot();
    let before = COUNTING.stats().allocations;
    assert_eq!(snapshot.iter().filter(|object| object.body().is_empty()).count(), 10_000);
    assert_eq!(snapshot.namespace("a").filter(|object| object.body().is_empty()).count(), 10_000);
    assert_eq!(snapshot.by_index("all", "all").expect("the index exists").count(), 10_000);
    let allocations = COUNTING.stats().allocations - before;
    assert!(allocations < 30, "{allocations} allocations");
}

/// IDX-22: with a snapshot kept, a publish copies no more than without one.
async fn a_kept_snapshot_costs_a_publish_nothing(runtime: &Runtime) {
    let server = Server::new();
    (0..5_000).for_each(|n| drop(server.apply(&format!("a/{n}"), String::new())));
    let informer = informer(runtime, &server);
    informer.synced_within(LONG).await.expect("it syncs");
    let lister = informer.lister();
    let update_all = async || {
        server.compact();
        let before = COUNTING.stats();
        for n in 0..5_000 {
            let version = server.apply(&format!("a/{}", n * 7 % 5_000), String::new());
            if n % 50 == 49 {
                lister.wait_for(&version, LONG).await.expect("it arrives");
            }
        }
        let now = COUNTING.stats();
        (now.allocations - before.allocations, now.bytes_allocated - before.bytes_allocated)
    };
    update_all().await;
    let without = update_all().await;
    let kept = informer.snapshot();
    let with = update_all().await;
    let is_more = |with: usize, without: usize| with > without + without / 50;
    assert!(
        !is_more(with.0, without.0),
        "{} allocations with a kept snapshot, {} without",
        with.0,
        without.0
    );
    assert!(
        !is_more(with.1, without.1),
        "{} bytes allocated with a kept snapshot, {} without",
        with.1,
        without.1
    );
    assert_eq!(kept.len(), 5_000);
}

// REF-31: given a page of 1,000 objects stored, when all but one are deleted, a few more publishes made and
// no snapshot kept, then the heap has fallen to about one object: no survivor pins its page.
// WL-20: given N objects streaming, when heap is measured, then the peak is at most the final store + the
// queue's byte bound + one read buffer + one pointer per object.
// LIS-10: given an idle subscription, when the heap is measured, then it costs < 2 KiB (client-go: 1024-slot
// ring and three goroutines).
// LST-02: given an empty selector over 1,000,000 objects, when listing, then no label is read, and iterating
// a snapshot, whole, by namespace or by index value, allocates nothing per object.
// - a over 1,000,000 objects no label is read
// - b and nothing is allocated per object
// - c nor by namespace or index value
// - d an object without labels is selected, too:
//   `lst_02_the_empty_selector_selects_every_object_also_those_without_labels`
#[test]
fn lis_10_and_wl_20_and_inf_38_and_ref_31_and_lst_02_memory_stays_within_the_bounds_of_the_contract() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Runtime::simulated(1).run(|runtime| async move {
        // As on real threads: in a simulation every change leaves marks.
        runtime.paths().sample(0);
        an_idle_subscription_is_small(&runtime).await;
        stalled_late_joiners_hold_a_cursor_each(&runtime).await;
        stalled_early_joiners_hold_a_cursor_each(&runtime).await;
        a_survivor_does_not_keep_its_page(&runtime).await;
        a_streamed_list_is_held_once(&runtime).await;
        a_kept_snapshot_costs_a_publish_nothing(&runtime).await;
        iterating_allocates_nothing_per_object(&runtime).await;
        selection::the_empty_selector_reads_no_label_of_a_million_objects();
    });
}

#[test]
fn fac_11_ten_thousand_informers_that_come_and_go_leave_memory_where_it_was() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Runtime::simulated(7).run(|runtime| async move {
        // As on real threads: in a simulation every change leaves marks.
        runtime.paths().sample(0);
        coming_and_going::informers_that_come_and_go_leave_nothing(&runtime).await;
    });
}

#[test]
fn an_object_in_a_store_costs_little_besides_its_body() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    objects::an_object_costs_little_besides_its_body();
}

#[test]
fn keys_in_a_work_queue_cost_less_than_100_bytes_each_besides_themselves() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    work_queue::the_keys_of_a_queue_are_small();
    work_queue::a_million_keys_of_which_half_are_delayed_are_small();
}
