//! One life of one informer, drawn from a seed.
//!
//! Answers "what may happen, and what must hold?". Every choice comes from the seed's own stream of chance, none from
//! a clock or a map; the trace it returns is the same for the same seed.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::Duration;

use actix::{Actor, AtomicResponse, Context, Handler, WrapFuture};
use informer_actors::faults::{Faults, Site};
use informer_actors::informer::Informer;
use informer_actors::messages::Notify;
use informer_actors::runtime::{Chance, Runtime};
use informer_actors::seat::EndReason;
use informer_actors::subscription::{SubscribeOptions, Subscription, WhenFull};
use informer_actors::testing::{Recorder, RecorderHandle, Server};
use informer_core::delta_fifo::{Bounds, Discipline};
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::ResourceVersion;

const LONG: Duration = Duration::from_secs(24 * 3600);
const SITES: [Site; 11] = [
    Site::ReflectorStarted,
    Site::ReflectorReceived,
    Site::DeltaFifoPush,
    Site::DeltaFifoPop,
    Site::IndexerStarted,
    Site::IndexerApply,
    Site::IndexerReplace,
    Site::IndexerPublished,
    Site::ProcessorChanges,
    Site::ProcessorFannedOut,
    Site::SupervisorExited,
];

/// A stream of choices.
struct Dice(Chance);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        ((self.0.draw() * bound as f64) as usize).min(bound - 1)
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// A subscriber, what it was told, and how its events are handled.
struct Subscriber {
    subscription: Subscription<String>,
    told: RecorderHandle<String>,
}

/// An actor that takes its time.
struct Slow {
    told: RecorderHandle<String>,
    pause: Duration,
}

impl Actor for Slow {
    type Context = Context<Self>;
}

impl Handler<Notify<String>> for Slow {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) -> Self::Result {
        self.told.record(&notify);
        let pause = self.pause;
        AtomicResponse::new(Box::pin(async move { tokio::time::sleep(pause).await }.into_actor(self)))
    }
}

/// At most two murders a life: each at the nth visit of a site.
fn murders(dice: &mut Dice) -> Faults {
    let planned: Vec<(Site, usize)> =
        (0..dice.below(3)).map(|_| (dice.pick(&SITES), 1 + dice.below(12))).collect();
    let visits = Mutex::new(vec![0_usize; planned.len()]);
    Faults::new(move |here| {
        let due = {
            let mut visits = visits.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let counted = planned.iter().zip(visits.iter_mut()).filter(|((site, _), _)| *site == here);
            counted.fold(false, |due, ((_, nth), visit)| {
                *visit += 1;
                due || visit == nth
            })
        };
        assert!(!due, "murdered at {here:?}");
    })
}

/// Lives one life and returns its trace.
pub(crate) fn live(seed: u64) -> String {
    let mut dice = Dice(Chance::new(seed, 1));
    let faults = murders(&mut dice);
    let jitter = Duration::from_millis(dice.below(200) as u64);
    Runtime::simulation(seed).faults(faults).start_jitter(jitter).build().run(|runtime| async move {
        let server = Server::new();
        server.serve_watch_list(!dice.one_in(3));
        server.objects_per_part(1 + dice.below(80));
        server.answer_after(Duration::from_millis(dice.pick(&[0, 5, 5, 60, 2_000])));
        server.pause_between_parts(Duration::from_millis(dice.pick(&[0, 0, 0, 1, 20])));
        for n in 0..dice.below(400) {
            server.apply(&format!("a/{n}"), "first".to_owned());
        }
        let connected = server.clone();
        let discipline = dice.pick(&[Discipline::InOrder, Discipline::PerKey]);
        let batch = dice.pick(&[250, 250, 7, 1]);
        let informer = Informer::builder(&runtime, "lives")
            .discipline(discipline)
            .bounds(Bounds { batch, ..Bounds::default() })
            .source(move || connected.clone())
            .index("body", |object| [object.body().clone()])
            .start()
            .expect("the spec is sound");
        let mut life =
            Life { dice, server, informer, subscribers: Vec::new(), newest: None, trace: Rc::default() };
        for _ in 0..60 {
            life.step().await;
            life.check_versions();
        }
        life.heal().await;
        life.judge().await;
        let mut trace = life.trace.borrow().clone();
        writeln!(trace, "{:?} after {:?}", life.server.requests(), runtime.now())
            .expect("a string takes all");
        trace
    })
}

struct Life {
    dice: Dice,
    server: Server<String>,
    informer: Informer<String>,
    subscribers: Vec<Subscriber>,
    newest: Option<ResourceVersion>,
    trace: Rc<RefCell<String>>,
}

impl Life {
    async fn step(&mut self) {
        match self.dice.below(14) {
            0..=4 => self.write(),
            5 => self.server.bookmark(),
            6 => self.server.compact(),
            7 => self.server.end_watches(None),
            8 => {
                let error = self.error();
                self.server.end_watches(Some(error));
            }
            9 => {
                let errors: Vec<_> = (0..1 + self.dice.below(4)).map(|_| self.error()).collect();
                self.server.refuse(errors);
            }
            10 => self.server.freeze_watches(self.dice.one_in(2)),
            11 => self.server.hold_lists(self.dice.one_in(3)),
            12 => self.subscribe(),
            _ if !self.subscribers.is_empty() => {
                let leaving = self.dice.below(self.subscribers.len());
                self.subscribers.remove(leaving);
            }
            _ => {}
        }
        let pauses = [0, 0, 1, 5, 50, 900, 5_000, 40_000];
        tokio::time::sleep(Duration::from_millis(self.dice.pick(&pauses))).await;
    }

    fn write(&mut self) {
        for _ in 0..1 + self.dice.below(30) {
            let key = format!("a/{}", self.dice.below(60));
            let fate = self.dice.below(10);
            if fate == 0 || fate == 9 {
                self.server.delete(&key);
            }
            if fate > 0 {
                self.server.apply(&key, self.dice.below(1000).to_string());
            }
        }
    }

    fn error(&mut self) -> ListWatchError {
        match self.dice.below(8) {
            0 => ListWatchError::Expired("too old".into()),
            1 => ListWatchError::TooLargeVersion("too new".into()),
            2 => ListWatchError::Overloaded {
                message: "busy".into(),
                retry_after: Some(Duration::from_secs(3)),
            },
            3 => ListWatchError::Denied("forbidden".into()),
            4 => ListWatchError::NotFound("no such kind".into()),
            5 => ListWatchError::Timeout("no answer".into()),
            6 => ListWatchError::Unreadable("garbage".into()),
            _ => ListWatchError::source("down"),
        }
    }

    fn subscribe(&mut self) {
        let told: RecorderHandle<String> = Recorder::new().1;
        let recorded = told.clone();
        let mut options = SubscribeOptions::new();
        if self.dice.one_in(3) {
            options = options.resync_every(Duration::from_secs(1 + self.dice.below(100) as u64));
        }
        options = match self.dice.below(4) {
            0 => options.every(self.dice.below(2_500), WhenFull::Restate),
            1 => options.every(self.dice.below(4_000), WhenFull::Disconnect),
            _ => options,
        };
        let subscription = match self.dice.below(3) {
            0 => {
                let pause = Duration::from_millis(self.dice.below(3000) as u64);
                self.informer.subscribe_with(options, Slow { told: recorded, pause }.start())
            }
            1 => self.informer.for_each_with(options, move |notify| {
                recorded.record(&notify);
                let unlucky = notify.subject().body().ends_with('7');
                async move { assert!(!unlucky, "an unlucky number") }
            }),
            _ => self.informer.for_each_with(options, move |notify| {
                recorded.record(&notify);
                tokio::task::yield_now()
            }),
        };
        let subscription = subscription.expect("the informer runs");
        self.subscribers.push(Subscriber { subscription, told });
    }

    /// Versions never go back: this server never rewinds.
    fn check_versions(&mut self) {
        let reached = self.informer.snapshot().versions().first().map(|(_, version)| version.clone());
        assert!(reached >= self.newest, "went back from {:?} to {reached:?}", self.newest);
        assert_eq!(self.informer.status().sources[0].counters.rewinds, 0);
        self.newest = reached;
    }

    async fn heal(&mut self) {
        self.server.freeze_watches(false);
        self.server.hold_lists(false);
        let version = self.server.apply("z/last", "the end".to_owned());
        self.informer.lister().wait_for(&version, LONG).await.expect("a healed server is followed");
        // The listeners record what has just been published.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    async fn judge(&mut self) {
        let snapshot = self.informer.snapshot();
        let content: Vec<_> =
            snapshot.iter().map(|object| (object.key().clone(), object.version().clone())).collect();
        assert!(content == self.server.content(), "the cache is not what the server has");
        let indexed = snapshot.by_index("body", "the end").expect("the index is there").count();
        assert_eq!(indexed, 1);
        for (n, subscriber) in self.subscribers.iter().enumerate() {
            if let Some(EndReason::Overflow { dropped }) = subscriber.subscription.ended() {
                assert_eq!(subscriber.subscription.status().dropped, dropped);
                let why = subscriber.told.agrees_with(&snapshot).err().unwrap_or_default();
                assert!(dropped > 0 && !why.contains("contradiction"), "subscriber {n}: {why}");
                writeln!(self.trace.borrow_mut(), "{n}: {dropped} dropped, {:?}", subscriber.told.lines())
                    .expect("a string takes all");
                continue;
            }
            subscriber.subscription.synced_within(LONG).await.expect("every subscriber syncs");
            let agrees = || subscriber.told.agrees_with(&snapshot);
            for _ in 0..100_000 {
                if agrees().is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            assert_eq!(agrees(), Ok(()), "subscriber {n}");
            writeln!(self.trace.borrow_mut(), "{n}: {:?}", subscriber.told.lines())
                .expect("a string takes all");
        }
        let status = self.informer.status();
        assert!(status.failed.is_none(), "{status:?}");
        assert!(self.informer.shutdown(LONG).await.is_clean());
    }
}
