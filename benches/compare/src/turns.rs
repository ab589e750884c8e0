//! Measures the longest turns of an informer's arbiter, while large lists arrive, fail, rewind, and are freed.
//!
//! Answers "does any O(objects) work happen in one turn?" with figures. A turn is one poll of one actor: until it is
//! over nothing else on its thread runs. It is to last at most 5 ms of the thread's processor time and to make, index or
//! drop at most 250 objects. A round is what a neighbour waits for: all that runs on the arbiter between two polls of a
//! task that yields, so a turn or two of each actor that has work; it has no limit of its own. There is no network: the
//! source has its objects made on the decode pool, 64 at a time, as the client has them decoded there. Invariants:
//! 1. One arbiter; each case has a runtime of its own.
//! 2. Each thread counts its own work: objects that are freed on another thread are in no figure.
//! 3. Processor time of a machine that is busy with other work is too long now and then, and never too short: of several
//!    runs the lowest figure counts. Numbers of objects are the same in each run.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_informer::prelude::*;
use actix_informer::runtime::DecodePool;
use actix_informer::testing::{Faults, Site};
use anyhow::Context;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, Stream, StreamExt, stream};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio::time::sleep;

const LONG: Duration = Duration::from_secs(600);
/// Objects in one piece of a list.
const PART: usize = 64;
/// Pieces that are made at a time.
const AT_ONCE: usize = 3;
const SUBSCRIBERS: usize = 10;
/// The bars for one turn.
const MOST_OBJECTS: usize = 250;
const MOST_CPU: Duration = Duration::from_millis(5);

thread_local! {
    /// Objects that this thread has made, indexed or dropped.
    static TOUCHED: Cell<usize> = const { Cell::new(0) };
    /// What it had done when the present turn began.
    static BEGUN: Cell<Work> = const { Cell::new(Work { cpu: Duration::ZERO, objects: 0 }) };
}

/// Objects that are not dropped yet, on whatever thread.
static ALIVE: AtomicUsize = AtomicUsize::new(0);

fn touch() {
    // At its end a thread has no counter any more.
    let _gone = TOUCHED.try_with(|touched| touched.set(touched.get() + 1));
}

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

/// The longest turns and rounds since the last look.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<Longest>>);

#[derive(Default, Clone, Copy)]
struct Longest {
    turn: Work,
    round: Work,
}

/// What a thread did in some stretch.
#[derive(Default, Clone, Copy)]
struct Work {
    cpu: Duration,
    objects: usize,
}

impl Work {
    /// All that this thread has done until now.
    fn now() -> Self {
        let cpu = clock_gettime(ClockId::ThreadCPUTime).try_into();
        Self { cpu: cpu.expect("this clock begins at zero and goes forward"), objects: TOUCHED.get() }
    }

    fn since(self) -> Self {
        let now = Self::now();
        Self { cpu: now.cpu.saturating_sub(self.cpu), objects: now.objects - self.objects }
    }

    fn or_more(&mut self, other: Self) {
        *self = Self { cpu: self.cpu.max(other.cpu), objects: self.objects.max(other.objects) };
    }
}

impl Turns {
    /// Measures the rounds of the thread that runs it.
    async fn look(self) {
        loop {
            let begun = Work::now();
            tokio::task::yield_now().await;
            self.longest().round.or_more(begun.since());
        }
    }

    /// Measures the turns of a runtime's actors, and calls `other` at every site.
    fn faults(&self, other: impl Fn(Site) + Send + Sync + 'static) -> Faults {
        let turns = self.clone();
        Faults::new(move |site| {
            other(site);
            match site {
                Site::TurnBegun => BEGUN.set(Work::now()),
                Site::TurnEnded => turns.longest().turn.or_more(BEGUN.get().since()),
                _ => {}
            }
        })
    }

    fn longest(&self) -> MutexGuard<'_, Longest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Longest {
        std::mem::take(&mut *self.longest())
    }
}

const ABOUT: &str = "A turn is one poll of one actor: at most 250 objects and 5 ms of CPU time. A round is what runs on\n\
the arbiter until a task that yields runs again; how long that is depends on how many actors there are.";

/// Runs every case with so many objects, and prints the longest turn of each.
pub(crate) fn run(objects: usize) -> anyhow::Result<()> {
    // An actor is killed on purpose: what is printed of a panic would cost its thread more than anything else.
    std::panic::set_hook(Box::new(|_| {}));
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!("\nWith {objects} objects. {ABOUT}");
    println!(
        "{:<58} {:>12} {:>8} {:>13} {:>8}",
        "the longest", "turn CPU ms", "objects", "round CPU ms", "objects"
    );
    main.block_on(async {
        first_list(objects).await?;
        failing_list(objects).await?;
        rewind(objects).await?;
        stalled(objects).await?;
        restart(objects).await?;
        subscribing(objects.min(1_000)).await?;
        last_handle(objects).await
    })
}

fn row(what: &str, turns: &Turns) {
    let Longest { turn, round } = turns.take();
    let ms = |work: Work| work.cpu.as_secs_f64() * 1e3;
    let verdict = if turn.objects > MOST_OBJECTS || turn.cpu > MOST_CPU { "  above the bar" } else { "" };
    println!(
        "{what:<58} {:>12.2} {:>8} {:>13.2} {:>8}{verdict}",
        ms(turn),
        turn.objects,
        ms(round),
        round.objects
    );
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

    /// Prints the longest turn, drops the subscriptions, ends the informer and waits until its objects are free.
    async fn end<T>(self, what: &str, subscriptions: T) -> anyhow::Result<()> {
        row(what, &self.turns);
        drop((subscriptions, self.pods));
        freed(0).await;
        Ok(self.runtime.shutdown(LONG).await?)
    }
}

/// Waits until only so many objects are left.
async fn freed(left: usize) {
    while ALIVE.load(Ordering::Relaxed) > left {
        sleep(Duration::from_millis(10)).await;
    }
}

async fn first_list(objects: usize) -> anyhow::Result<()> {
    let case = Case::start("first", objects, &[])?;
    let subscribed: Result<Vec<_>, _> =
        (0..SUBSCRIBERS).map(|_| case.pods.for_each(|_| std::future::ready(()))).collect();
    let subscribed = subscribed?;
    for subscription in &subscribed {
        subscription.synced_within(LONG).await?;
    }
    case.end(&format!("a first list, {SUBSCRIBERS} subscribers"), subscribed).await
}

async fn failing_list(objects: usize) -> anyhow::Result<()> {
    let case = Case::start("fails", objects, &[Answer::Fails])?;
    case.pods.synced_within(LONG).await?;
    freed(objects).await;
    case.end("a list that fails at its end, and the next one", ()).await
}

async fn rewind(objects: usize) -> anyhow::Result<()> {
    let case = Case::start("rewound", objects, &[Answer::Whole, Answer::Older, Answer::Older])?;
    let subscription = case.pods.for_each(|_| std::future::ready(()))?;
    subscription.synced_within(LONG).await?;
    case.turns.take();
    case.script.0.expired.send_replace(true);
    let older = version(objects);
    case.pods.wait_until(|status| status.sources[0].version.as_ref() == Some(&older)).await?;
    case.script.0.expired.send_replace(false);
    freed(objects).await;
    case.end("a rewind, one subscriber", subscription).await
}

async fn stalled(objects: usize) -> anyhow::Result<()> {
    let case = Case::start("stalled", objects, &[])?;
    let subscription = case.pods.for_each(|_| std::future::pending())?;
    case.pods.synced_within(LONG).await?;
    sleep(Duration::from_secs(1)).await;
    case.turns.take();
    drop(subscription);
    sleep(Duration::from_secs(1)).await;
    case.end("a subscriber that stalled before the list is dropped", ()).await
}

async fn restart(objects: usize) -> anyhow::Result<()> {
    let slices = AtomicUsize::new(0);
    let fatal = objects / 250;
    let kill = move |site| {
        let dies = site == Site::IndexerReplace && slices.fetch_add(1, Ordering::Relaxed) == fatal;
        assert!(!dies, "the Indexer dies on purpose");
    };
    let case = Case::start_with(kill, "restarted", objects, &[])?;
    case.pods.synced_within(LONG).await?;
    freed(objects).await;
    case.end("a restart of the group in the middle of a list", ()).await
}

async fn subscribing(objects: usize) -> anyhow::Result<()> {
    let case = Case::start("subscribed", objects, &[])?;
    case.pods.synced_within(LONG).await?;
    case.turns.take();
    let many: Result<Vec<_>, _> =
        (0..1_000).map(|_| case.pods.for_each(|_| std::future::ready(()))).collect();
    let many = many?;
    for subscription in &many {
        subscription.synced_within(LONG).await?;
    }
    case.end("1,000 subscriptions at once", many).await
}

async fn last_handle(objects: usize) -> anyhow::Result<()> {
    let small = Case::start("small", PART, &[])?;
    let large =
        Script::new(&small.runtime, objects, &[], &Turns::default()).informer(&small.runtime, "large")?;
    large.synced_within(LONG).await?;
    small.pods.synced_within(LONG).await.context("the neighbour syncs")?;
    small.turns.take();
    drop(large);
    freed(PART).await;
    small.end("a large informer's last handle is dropped beside another", ()).await
}
