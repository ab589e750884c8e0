//! How long an informer keeps its arbiter at a time, while large lists come, fail, go back, and are let go.
//!
//! Answers "does anything that is O(objects) happen in one go?" by figures, not by a bar: a task on the arbiter that is
//! always ready looks at the thread's own processor time, and at how many objects were made, indexed or dropped there,
//! between two of its polls. In between every other task of the thread is polled once at most, so a figure is the sum of
//! one turn of each. No network: the source makes its objects itself, on the arbiter, 64 at a time. Invariants:
//! 1. One arbiter; each case has a runtime of its own.
//! 2. What is counted is counted by the thread that does it: what is freed elsewhere is in no figure.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_informer::faults::{Faults, Site};
use actix_informer::prelude::*;
use anyhow::Context;
use futures_util::future::LocalBoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio::time::sleep;

const LONG: Duration = Duration::from_secs(600);
/// Objects in one piece of a list.
const PART: usize = 64;
const SUBSCRIBERS: usize = 10;

thread_local! {
    /// Objects that this thread has made, indexed or dropped since the last look.
    static TOUCHED: Cell<usize> = const { Cell::new(0) };
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
    answers: Mutex<VecDeque<Answer>>,
    /// The watches end with 410 when it says so.
    expired: watch::Sender<bool>,
    turns: Turns,
}

fn version(number: usize) -> ResourceVersion {
    ResourceVersion::from_number(number as u64).expect("a count is not zero")
}

impl Script {
    fn new(count: usize, answers: &[Answer], turns: &Turns) -> Self {
        let answers = Mutex::new(answers.iter().copied().collect());
        Self(Arc::new(Scripted { count, answers, expired: watch::Sender::new(false), turns: turns.clone() }))
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

    fn objects(&self) -> impl Iterator<Item = Vec<Object<Body>>> + use<> {
        let count = self.0.count;
        let object = |n: usize| {
            let key = ObjectKey::namespaced(format!("n{:03}", n % 200), format!("{n:07}"));
            let source = SourceId::default();
            Object::new(
                Meta { key, uid: None, version: version(n + 1), source, wire_bytes: 8_800 },
                Body::new(),
            )
        };
        (0..count).step_by(PART).map(move |from| (from..count.min(from + PART)).map(object).collect())
    }
}

impl ListWatch<Body> for Script {
    fn list(&self, _request: ListRequest, _known: Known<Body>) -> ListStream<Body> {
        let answer = self.0.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let end = match answer {
            Some(Answer::Fails) => Err(ListWatchError::Protocol("it broke".into())),
            Some(Answer::Older) => Ok(self.0.count),
            _ => Ok(self.0.count + 1),
        };
        let end = end.map(|reached| ListPart::End { version: version(reached), token: None });
        let parts = stream::iter(self.objects().map(|objects| Ok(ListPart::Objects(objects))));
        parts.chain(stream::once(async { end })).boxed_local()
    }

    fn watch(&self, request: WatchRequest, _known: Known<Body>) -> WatchStream<Body> {
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

/// The longest turns since the last look.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<Longest>>);

#[derive(Default, Clone, Copy)]
struct Longest {
    cpu: Duration,
    objects: usize,
}

impl Turns {
    async fn look(self) {
        let cpu = || -> Duration {
            clock_gettime(ClockId::ThreadCPUTime)
                .try_into()
                .expect("this clock begins at zero and goes forward")
        };
        loop {
            TOUCHED.set(0);
            let begun = cpu();
            tokio::task::yield_now().await;
            let took = cpu().saturating_sub(begun);
            let mut longest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            longest.cpu = longest.cpu.max(took);
            longest.objects = longest.objects.max(TOUCHED.get());
        }
    }

    fn take(&self) -> Longest {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs every case with so many objects, and prints the longest turn of each.
pub(crate) fn run(objects: usize) -> anyhow::Result<()> {
    // An actor is killed on purpose: what is printed of a panic would cost its thread more than anything else.
    std::panic::set_hook(Box::new(|_| {}));
    let main = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    println!(
        "\n{:<58} {:>10} {:>10}",
        format!("the longest turn with {objects} objects"),
        "CPU ms",
        "objects"
    );
    main.block_on(async {
        first_list(objects).await?;
        failing_list(objects).await?;
        rewind(objects).await?;
        stalled(objects).await?;
        restart(objects).await?;
        last_handle(objects).await
    })
}

fn row(what: &str, turns: &Turns) {
    let Longest { cpu, objects } = turns.take();
    println!("{what:<58} {:>10.2} {objects:>10}", cpu.as_secs_f64() * 1e3);
}

/// Ends an informer and waits until its objects are free.
async fn over(runtime: Runtime, informer: Informer<Body>) -> anyhow::Result<()> {
    drop(informer);
    freed(0).await;
    Ok(runtime.shutdown(LONG).await?)
}

/// Waits until only so many objects are left.
async fn freed(left: usize) {
    while ALIVE.load(Ordering::Relaxed) > left {
        sleep(Duration::from_millis(10)).await;
    }
}

async fn first_list(objects: usize) -> anyhow::Result<()> {
    let (runtime, turns) = (Runtime::threads().start()?, Turns::default());
    let pods = Script::new(objects, &[], &turns).informer(&runtime, "first")?;
    let subscribed: Result<Vec<_>, _> =
        (0..SUBSCRIBERS).map(|_| pods.for_each(|_| std::future::ready(()))).collect();
    let subscribed = subscribed?;
    for subscription in &subscribed {
        subscription.synced_within(LONG).await?;
    }
    row(&format!("a first list, {SUBSCRIBERS} subscribers"), &turns);
    drop(subscribed);
    over(runtime, pods).await
}

async fn failing_list(objects: usize) -> anyhow::Result<()> {
    let (runtime, turns) = (Runtime::threads().start()?, Turns::default());
    let pods = Script::new(objects, &[Answer::Fails], &turns).informer(&runtime, "fails")?;
    pods.synced_within(LONG).await?;
    freed(objects).await;
    row("a list that fails at its end, and the next one", &turns);
    over(runtime, pods).await
}

async fn rewind(objects: usize) -> anyhow::Result<()> {
    let (runtime, turns) = (Runtime::threads().start()?, Turns::default());
    let script = Script::new(objects, &[Answer::Whole, Answer::Older, Answer::Older], &turns);
    let pods = script.informer(&runtime, "rewound")?;
    let subscription = pods.for_each(|_| std::future::ready(()))?;
    subscription.synced_within(LONG).await?;
    turns.take();
    script.0.expired.send_replace(true);
    let older = version(objects);
    pods.wait_until(|status| status.sources[0].version.as_ref() == Some(&older)).await?;
    script.0.expired.send_replace(false);
    freed(objects).await;
    row("a rewind, one subscriber", &turns);
    drop(subscription);
    over(runtime, pods).await
}

async fn stalled(objects: usize) -> anyhow::Result<()> {
    let (runtime, turns) = (Runtime::threads().start()?, Turns::default());
    let pods = Script::new(objects, &[], &turns).informer(&runtime, "stalled")?;
    let subscription = pods.for_each(|_| std::future::pending())?;
    pods.synced_within(LONG).await?;
    sleep(Duration::from_secs(1)).await;
    turns.take();
    drop(subscription);
    sleep(Duration::from_secs(1)).await;
    row("a subscriber that stalled before the list is dropped", &turns);
    over(runtime, pods).await
}

async fn restart(objects: usize) -> anyhow::Result<()> {
    let slices = AtomicUsize::new(0);
    let fatal = objects / 250;
    let faults = Faults::new(move |site| {
        let dies = site == Site::IndexerReplace && slices.fetch_add(1, Ordering::Relaxed) == fatal;
        assert!(!dies, "the Indexer dies on purpose");
    });
    let (runtime, turns) = (Runtime::threads().faults(faults).start()?, Turns::default());
    let pods = Script::new(objects, &[], &turns).informer(&runtime, "restarted")?;
    pods.synced_within(LONG).await?;
    freed(objects).await;
    row("a restart of the group in the middle of a list", &turns);
    over(runtime, pods).await
}

async fn last_handle(objects: usize) -> anyhow::Result<()> {
    let (runtime, turns) = (Runtime::threads().start()?, Turns::default());
    let small = Script::new(PART, &[], &turns).informer(&runtime, "small")?;
    let large = Script::new(objects, &[], &Turns::default()).informer(&runtime, "large")?;
    large.synced_within(LONG).await?;
    small.synced_within(LONG).await.context("the neighbour syncs")?;
    turns.take();
    drop(large);
    freed(PART).await;
    row("a large informer's last handle is dropped beside another", &turns);
    over(runtime, small).await
}
