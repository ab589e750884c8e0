//! Measures the longest turns of an informer's arbiter, while large lists arrive, fail, rewind, and are freed.
//!
//! Answers "does any O(objects) work happen in one turn?" with figures. A turn is one poll of one actor: until it is
//! over nothing else on its thread runs. It is to last at most 5 ms of the thread's processor time and to make, index or
//! drop at most 250 objects. A round is what a neighbour waits for: all that runs on the arbiter between two polls of a
//! task that yields, so a turn or two of each actor that has work; it has no limit of its own. There is no network: the
//! source has its objects made on the decode pool, 64 at a time, as the client has them decoded there. Invariants:
//! 1. One arbiter; each case has a runtime of its own.
//! 2. Each thread counts its own work: objects that are freed on another thread are in no figure.
//! 3. Processor time is too long now and then, and never too short: a virtual machine that is stopped for 15 ms counts
//!    them as its own. So each case runs several times, and the least figure counts. Numbers of objects are the most.
//!
//! Read next: `turns/measure.rs`, how a turn is measured.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_informer::prelude::*;
use actix_informer::runtime::DecodePool;
use actix_informer::testing::Site;
use anyhow::Context;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use tokio::sync::watch;
use tokio::time::sleep;

use measure::{Longest, Turns, Work, touch};

mod measure;
mod namespaces;
mod waits;

const LONG: Duration = Duration::from_secs(600);
/// Objects in one piece of a list.
const PART: usize = 64;
/// Pieces that are made at a time.
const AT_ONCE: usize = 3;
const SUBSCRIBERS: usize = 10;
/// How often each case runs.
const RUNS: usize = 3;
/// The bars for one turn.
const MOST_OBJECTS: usize = 250;
const MOST_CPU: Duration = Duration::from_millis(5);

/// Objects that are not dropped yet, on whatever thread.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

/// Some allocations, as an object has them.
struct Body(#[expect(dead_code, reason = "it is there to be freed")] [Box<[u8; 64]>; 8]);

impl Body {
    fn new() -> Self {
        touch();
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self(std::array::from_fn(|n| Box::new([u8::try_from(n).unwrap_or_default(); 64])))
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        touch();
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How the source answers a list.
#[derive(Clone, Copy)]
enum Answer {
    Whole,
    /// Everything, and then an error in the place of the end.
    Fails,
    /// Everything at a version before that of the other lists.
    Older,
}

/// The source; clones are the same one.
#[derive(Clone)]
struct Script(Arc<Scripted>);

struct Scripted {
    count: usize,
    pool: DecodePool,
    answers: Mutex<VecDeque<Answer>>,
    /// The watches end with 410 when it says so.
    expired: watch::Sender<bool>,
    turns: Turns,
}

fn version(number: usize) -> ResourceVersion {
    ResourceVersion::from_number(number as u64).expect("a count is not zero")
}

impl Script {
    fn new(runtime: &Runtime, count: usize, answers: &[Answer], turns: &Turns) -> Self {
        let (pool, answers) = (runtime.decode_pool(), Mutex::new(answers.iter().copied().collect()));
        Self(Arc::new(Scripted {
            count,
            pool,
            answers,
            expired: watch::Sender::new(false),
            turns: turns.clone(),
        }))
    }

    fn informer(&self, runtime: &Runtime, name: &str) -> anyhow::Result<Informer<Body>> {
        let (source, meter) = (self.clone(), Mutex::new(Some(self.0.turns.clone())));
        let connect = move || {
            if let Some(turns) = meter.lock().unwrap_or_else(PoisonError::into_inner).take() {
                tokio::task::spawn_local(turns.look());
            }
            source.clone()
        };
        let builder = Informer::builder(runtime, name).source(connect).index("touched", |_| {
            touch();
            None::<String>
        });
        Ok(builder.start()?)
    }

    /// Every object, in parts that are made on the decode pool.
    fn objects(&self) -> impl Stream<Item = Vec<Object<Body>>> + use<> {
        let (count, pool) = (self.0.count, self.0.pool.clone());
        let object = |n: usize| {
            let key = ObjectKey::namespaced(format!("n{:03}", n % 200), format!("{n:07}"));
            let source = SourceId::default();
            Object::new(Meta::new(key, version(n + 1), source).wire_bytes(8_800), Body::new())
        };
        let part = move |from: usize| -> Vec<_> { (from..count.min(from + PART)).map(object).collect() };
        let made = move |from| {
            let pool = pool.clone();
            async move { pool.run(move || part(from)).await.expect("nothing panics there") }
        };
        stream::iter((0..count).step_by(PART)).map(made).buffered(AT_ONCE)
    }
}

impl ListWatch<Body> for Script {
    fn list(&self, _request: ListRequest, _known: KnownObjects<Body>) -> ListStream<Body> {
        let answer = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let end = match answer {
            Some(Answer::Fails) => Err(ListWatchError::Protocol("it broke".into())),
            Some(Answer::Older) => Ok(self.0.count),
            _ => Ok(self.0.count + 1),
        };
        let end = end.map(|reached| ListPart::End { version: version(reached), token: None });
        let parts = self.objects().map(|objects| Ok(ListPart::Objects(objects)));
        parts.chain(stream::once(async { end })).boxed_local()
    }

    fn watch(&self, request: WatchRequest, _known: KnownObjects<Body>) -> WatchStream<Body> {
        if request.initial_events {
            let refusal = ListWatchError::WatchListUnsupported("it lists".into());
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let mut expired = self.0.expired.subscribe();
        let ended = async move {
            // The sender lives as long as the source.
            let _said = expired.wait_for(|expired| *expired).await;
            Err::<Vec<WatchPart<Body>>, _>(ListWatchError::Expired("too old".into()))
        };
        stream::once(async { Ok(Vec::new()) }).chain(stream::once(ended)).boxed_local()
    }

    fn get(&self, _key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<Body>>, ListWatchError>> {
        async { Ok(None) }.boxed_local()
    }
}

const ABOUT: &str = "A turn is one poll of one actor: at most 250 objects and 5 ms of CPU time. A round is what runs on\n\
the arbiter until a task that yields runs again; how long that is depends on how many actors there are. CPU times are the\n\
least of 3 runs; in the last column is the longest turn of all.";

/// Runs every case with so many objects, and prints the longest turn of each.
pub(crate) fn run(objects: usize) -> anyhow::Result<()> {
    // An actor is killed on purpose: what is printed of a panic would cost its thread more than anything else.
    std::panic::set_hook(Box::new(|_| {}));
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("\nWith {objects} objects. {ABOUT}");
    println!(
        "{:<58} {:>12} {:>8} {:>13} {:>8} {:>8}",
        "the longest", "turn CPU ms", "objects", "round CPU ms", "objects", "of all"
    );
    main.block_on(async {
        row("a first list, 10 subscribers", || first_list(objects)).await?;
        row("a list that fails at its end, and the next one", || failing_list(objects)).await?;
        row("a rewind, one subscriber", || rewind(objects)).await?;
        row("a subscriber that stalled before the list is dropped", || stalled(objects)).await?;
        row("a restart of the group in the middle of a list", || restart(objects)).await?;
        row("1,000 subscriptions at once", || subscribing(objects.min(1_000))).await?;
        row("2,000 namespaces with ten subscribers", || namespaces::followed(2_000)).await?;
        row("a large informer's last handle is dropped beside another", || last_handle(objects)).await?;
        row("16,000 waits that events end", waits::run).await
    })
}

/// Runs a case several times, and prints its longest turn.
async fn row<F>(what: &str, case: impl Fn() -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<Longest>>,
{
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(case().await?);
    }
    let ms = |cpu: Option<Duration>| cpu.unwrap_or_default().as_secs_f64() * 1e3;
    let least = |work: fn(&Longest) -> Work| runs.iter().map(|run| work(run).cpu).min();
    let objects = |work: fn(&Longest) -> Work| runs.iter().map(|run| work(run).objects).max().unwrap_or(0);
    let (turn, round) = (|run: &Longest| run.turn, |run: &Longest| run.round);
    let is_above = objects(turn) > MOST_OBJECTS || least(turn) > Some(MOST_CPU);
    let verdict = if is_above { "  above the bar" } else { "" };
    println!(
        "{what:<58} {:>12.2} {:>8} {:>13.2} {:>8} {:>8.2}{verdict}",
        ms(least(turn)),
        objects(turn),
        ms(least(round)),
        objects(round),
        ms(runs.iter().map(|run| run.turn.cpu).max())
    );
    Ok(())
}

/// One informer in a runtime of its own.
struct Case {
    runtime: Runtime,
    turns: Turns,
    script: Script,
    pods: Informer<Body>,
}

impl Case {
    /// An informer of so many objects, whose first lists end as the answers say.
    fn start(name: &str, objects: usize, answers: &[Answer]) -> anyhow::Result<Self> {
        Self::start_with(|_| {}, name, objects, answers)
    }

    fn start_with(
        hook: impl Fn(Site) + Send + Sync + 'static,
        name: &str,
        objects: usize,
        answers: &[Answer],
    ) -> anyhow::Result<Self> {
        let turns = Turns::default();
        let runtime = Runtime::threads().faults(turns.faults(hook)).start()?;
        let script = Script::new(&runtime, objects, answers, &turns);
        let pods = script.informer(&runtime, name)?;
        Ok(Self { runtime, turns, script, pods })
    }

    /// Takes the longest turn, drops the subscriptions, ends the informer and waits until its objects are free.
    async fn end<T>(self, subscriptions: T) -> anyhow::Result<Longest> {
        let longest = self.turns.take();
        drop((subscriptions, self.pods));
        freed(0).await;
        self.runtime.shutdown(LONG).await?;
        Ok(longest)
    }
}

/// Waits until only so many objects are left.
async fn freed(left: usize) {
    while ALIVE.load(Ordering::Relaxed) > left {
        sleep(Duration::from_millis(10)).await;
    }
}

async fn first_list(objects: usize) -> anyhow::Result<Longest> {
    let case = Case::start("first", objects, &[])?;
    let subscribed: Result<Vec<_>, _> =
        (0..SUBSCRIBERS).map(|_| case.pods.for_each(|_| std::future::ready(()))).collect();
    let subscribed = subscribed?;
    for subscription in &subscribed {
        subscription.synced_within(LONG).await?;
    }
    case.end(subscribed).await
}

async fn failing_list(objects: usize) -> anyhow::Result<Longest> {
    let case = Case::start("fails", objects, &[Answer::Fails])?;
    case.pods.synced_within(LONG).await?;
    freed(objects).await;
    case.end(()).await
}

async fn rewind(objects: usize) -> anyhow::Result<Longest> {
    let case = Case::start("rewound", objects, &[Answer::Whole, Answer::Older, Answer::Older])?;
    let subscription = case.pods.for_each(|_| std::future::ready(()))?;
    subscription.synced_within(LONG).await?;
    case.turns.take();
    case.script.0.expired.send_replace(true);
    let older = version(objects);
    case.pods.wait_until(|status| status.sources[0].version.as_ref() == Some(&older)).await?;
    case.script.0.expired.send_replace(false);
    freed(objects).await;
    case.end(subscription).await
}

async fn stalled(objects: usize) -> anyhow::Result<Longest> {
    let case = Case::start("stalled", objects, &[])?;
    let subscription = case.pods.for_each(|_| std::future::pending())?;
    case.pods.synced_within(LONG).await?;
    sleep(Duration::from_secs(1)).await;
    case.turns.take();
    drop(subscription);
    sleep(Duration::from_secs(1)).await;
    case.end(()).await
}

async fn restart(objects: usize) -> anyhow::Result<Longest> {
    let slices = AtomicUsize::new(0);
    let fatal = objects / 250;
    let kill = move |site| {
        let dies = site == Site::IndexerReplace && slices.fetch_add(1, Ordering::Relaxed) == fatal;
        assert!(!dies, "the Indexer dies on purpose");
    };
    let case = Case::start_with(kill, "restarted", objects, &[])?;
    case.pods.synced_within(LONG).await?;
    freed(objects).await;
    case.end(()).await
}

async fn subscribing(objects: usize) -> anyhow::Result<Longest> {
    let case = Case::start("subscribed", objects, &[])?;
    case.pods.synced_within(LONG).await?;
    case.turns.take();
    let many: Result<Vec<_>, _> =
        (0..1_000).map(|_| case.pods.for_each(|_| std::future::ready(()))).collect();
    let many = many?;
    for subscription in &many {
        subscription.synced_within(LONG).await?;
    }
    case.end(many).await
}

async fn last_handle(objects: usize) -> anyhow::Result<Longest> {
    let small = Case::start("small", PART, &[])?;
    let large =
        Script::new(&small.runtime, objects, &[], &Turns::default()).informer(&small.runtime, "large")?;
    large.synced_within(LONG).await?;
    small.pods.synced_within(LONG).await.context("the neighbour syncs")?;
    small.turns.take();
    drop(large);
    freed(PART).await;
    small.end(()).await
}
