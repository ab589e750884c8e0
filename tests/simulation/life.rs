//! One random run of one informer, drawn from a seed.
//!
//! Answers "what happens in this run?". What is drawn beforehand is in `plan.rs`, what must hold in `verdict.rs`.
//! Every choice comes from the seed's own stream of random numbers, none from a clock or a map; the trace is the same
//! for the same seed.

use std::fmt::Write;
use std::time::Duration;

use informer_actors::informer::{AddIndexError, Informer};
use informer_actors::runtime::Runtime;
use informer_core::index::Index;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::Object;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::dice::Dice;
use crate::plan::{Ending, Plan, kills};
use crate::sources::Origin;
use crate::subscribers::{Handle, Subscriber};
use crate::verdict;

/// A day; no wait of a healthy run takes that long.
pub(crate) const LONG: Duration = Duration::from_secs(24 * 3600);

/// How many events an actor may have in its mailbox.
pub(crate) const WINDOW: usize = 64;

pub(crate) struct Life {
    pub(crate) plan: Plan,
    pub(crate) dice: Dice,
    pub(crate) runtime: Runtime,
    pub(crate) informer: Informer<String>,
    pub(crate) origins: Vec<Origin>,
    pub(crate) subscribers: Vec<Subscriber>,
    /// Indices that are being added.
    pub(crate) adding: Vec<(String, JoinHandle<Result<(), AddIndexError>>)>,
    signals: mpsc::UnboundedReceiver<()>,
    pub(crate) trace: String,
}

/// Runs once and returns its trace.
pub(crate) fn live(seed: u64) -> String {
    let mut dice = Dice::new(seed);
    let plan = Plan::draw(&mut dice);
    let (signal, signals) = mpsc::unbounded_channel();
    let simulation = Runtime::simulation(seed)
        .faults(kills(&mut dice, signal))
        .start_jitter(plan.jitter)
        .lists_at_once(plan.lists_at_once);
    simulation.build().run(|runtime| async move {
        let mut life = Life::begin(runtime.clone(), plan, dice, signals);
        for _ in 0..life.dice.below(3) {
            life.subscribe();
        }
        for _ in 0..life.plan.steps {
            life.step().await;
            life.check_versions();
        }
        match life.plan.ending {
            Ending::Judged => verdict::judge(&mut life).await,
            Ending::RuntimeFirst => verdict::ends_with_its_runtime(&mut life).await,
            Ending::Dropped => return verdict::ends_when_it_is_dropped(life).await,
        }
        for origin in &life.origins {
            writeln!(life.trace, "{:?}", origin.server.requests()).expect("a string takes all");
        }
        writeln!(life.trace, "after {:?}", runtime.now()).expect("a string takes all");
        life.trace
    })
}

impl Life {
    fn begin(runtime: Runtime, plan: Plan, dice: Dice, signals: mpsc::UnboundedReceiver<()>) -> Self {
        let origins: Vec<Origin> =
            plan.sources.iter().enumerate().map(|(number, source)| Origin::new(number, source)).collect();
        let mut builder = Informer::builder(&runtime, "lives")
            .queue_order(plan.queue_order)
            .bounds(plan.bounds)
            .restarts(plan.restarts)
            .index_with(index("body"));
        for origin in &origins {
            builder = builder.source_with(origin.spec(&origin.id));
        }
        let informer = builder.start().expect("the spec is valid");
        let (subscribers, adding, trace) = (Vec::new(), Vec::new(), String::new());
        Self { plan, dice, runtime, informer, origins, subscribers, adding, signals, trace }
    }

    async fn step(&mut self) {
        let at = self.dice.below(self.origins.len());
        self.origins[at].settle().await;
        match self.dice.below(20) {
            0..=4 => self.write(at),
            5 => self.origins[at].server.bookmark(),
            6 => self.origins[at].server.compact(),
            7 => self.origins[at].server.end_watches(None),
            8 => {
                let error = self.error();
                self.origins[at].server.end_watches(Some(error));
            }
            9 => {
                let errors: Vec<_> = (0..1 + self.dice.below(4)).map(|_| self.error()).collect();
                self.origins[at].server.refuse(errors);
            }
            10 => self.origins[at].server.freeze_watches(self.dice.one_in(2)),
            11 => self.origins[at].server.hold_lists(self.dice.one_in(3)),
            12 | 13 => self.subscribe(),
            14 => self.add_index(),
            15 => {
                let late = self.dice.milliseconds(&[0, 5, 300, 7_000, 40_000]);
                self.origins[at].server.answer_after(late);
                let pause = self.dice.milliseconds(&[0, 0, 1, 200]);
                self.origins[at].server.pause_between_parts(pause);
            }
            16 => self.origins[at].paged.expire(),
            17 | 18 => self.change_source(at),
            _ if !self.subscribers.is_empty() => self.leave().await,
            _ => {}
        }
        while self.signals.try_recv().is_ok() {
            self.add_index();
        }
        self.pause().await;
    }

    /// Lets time pass; where a signal comes from inside the pipeline, an index is added at that moment.
    async fn pause(&mut self) {
        let pause = self.dice.milliseconds(&[0, 0, 1, 5, 50, 900, 5_000, 40_000]);
        let over = tokio::time::sleep(pause);
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                Some(()) = self.signals.recv() => self.add_index(),
                () = &mut over => return,
            }
        }
    }

    /// A source is removed, comes back, or takes over, unless such a change is already under way.
    fn change_source(&mut self, at: usize) {
        let followed = self.origins.iter().filter(|origin| origin.is_followed).count();
        let origin = &mut self.origins[at];
        if origin.change.is_some() {
        } else if !origin.is_followed {
            origin.add(&self.informer);
        } else if followed > 1 && self.dice.one_in(2) {
            origin.remove(&self.informer);
        } else {
            origin.hand_over(&self.informer);
        }
    }

    fn write(&mut self, at: usize) {
        let server = self.origins[at].server.clone();
        for _ in 0..1 + self.dice.below(30) {
            let key = format!("n{at}/{}", self.dice.below(60));
            let fate = self.dice.below(10);
            if fate == 0 || fate == 9 {
                server.delete(&key);
            }
            if fate > 0 {
                server.apply(&key, self.dice.below(1000).to_string());
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
        let joined = Subscriber::join(&self.informer, &mut self.dice);
        self.subscribers.push(joined.expect("the informer runs"));
    }

    /// A subscriber leaves: by dropping the handle, by a shutdown with some limit, or because its actor is
    /// dropped.
    async fn leave(&mut self) {
        let leaving = self.dice.below(self.subscribers.len());
        if self.dice.one_in(3) {
            return self.subscribers[leaving].abandon();
        }
        let subscriber = self.subscribers.remove(leaving);
        let limit = self.dice.pick(&[Duration::ZERO, Duration::from_secs(1), Duration::MAX]);
        if let (Handle::Held(subscription), true) = (subscriber.handle, self.dice.one_in(2)) {
            let before = subscription.status();
            // Being unfinished at the limit is a valid end; the test only requires that it ends.
            let ended = tokio::time::timeout(LONG, subscription.shutdown(limit)).await;
            writeln!(self.trace, "leaves: {ended:?}").expect("a string takes all");
            assert!(ended.is_ok(), "a shutdown of {limit:?} did not end: {before:?}");
            let received = subscriber.received.len();
            tokio::time::sleep(Duration::from_secs(1)).await;
            // What lay in an actor's mailbox is still handled.
            assert!(subscriber.received.len() <= received + WINDOW, "it received more after its shutdown");
        }
    }

    fn add_index(&mut self) {
        let name = format!("added-{}", self.adding.len());
        let (informer, spec) = (self.informer.clone(), index(&name));
        let adding = actix_rt::spawn(async move { informer.add_index(spec).await });
        self.adding.push((name, adding));
    }

    /// Versions never go back: these servers never rewind.
    fn check_versions(&mut self) {
        let snapshot = self.informer.snapshot();
        // A subscriber whose source changes may be followed by either source, or by none.
        for origin in self.origins.iter_mut().filter(|origin| origin.change.is_none()) {
            let reached = snapshot.version(&origin.id).cloned();
            assert!(reached >= origin.newest, "went back from {:?} to {reached:?}", origin.newest);
            origin.newest = reached;
        }
        let status = self.informer.status();
        assert!(status.sources.iter().all(|source| source.counters.rewinds == 0), "{status:?}");
    }
}

/// The value under which an index files an object: by the name of the index.
pub(crate) fn filed_under(index: &str, object: &Object<String>) -> Vec<String> {
    match index {
        "body" => vec![object.body().clone()],
        _ => object.body().chars().map(String::from).chain([object.key().name().to_owned()]).collect(),
    }
}

fn index(name: &str) -> Index<String> {
    let filed = name.to_owned();
    Index::new(name, move |object| filed_under(&filed, object))
}
