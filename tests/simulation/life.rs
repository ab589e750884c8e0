//! One random run of one informer, drawn from a seed.
//!
//! Answers "what happens in this run?". What is drawn beforehand is in `plan.rs`, what must hold in `verdict.rs`.
//! Every choice comes from the seed's own stream of random numbers, none from a clock or a map; the trace is the same
//! for the same seed.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::PoisonError;
use std::time::Duration;

use informer_actors::informer::{AddIndexError, Informer};
use informer_actors::runtime::Runtime;
use informer_core::index::Index;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, SourceId};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::cluster::Cluster;
use crate::dice::Dice;
use crate::host::Host;
use crate::plan::{Armed, Ending, IN_EXCHANGES, Plan, kills};
use crate::sources::Origin;
use crate::subscribers::{Handle, Subscriber};
use crate::verdict;
use crate::windows::Windows;

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
    pub(crate) cluster: Option<Cluster>,
    pub(crate) windows: Windows,
    pub(crate) subscribers: Vec<Subscriber>,
    /// Indices that are being added.
    pub(crate) adding: Vec<(String, JoinHandle<Result<(), AddIndexError>>)>,
    signals: mpsc::UnboundedReceiver<()>,
    armed: Armed,
    /// How many kills may be asked for.
    kills_left: usize,
    pub(crate) trace: String,
}

/// What a run has done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) trace: String,
    /// What happened while sources took over from each other.
    pub(crate) windows: Windows,
}

/// Runs once.
pub(crate) fn live(seed: u64) -> Run {
    let mut dice = Dice::new(seed);
    let plan = Plan::draw(&mut dice);
    let (signal, signals) = mpsc::unbounded_channel();
    let armed = Armed::default();
    let simulation = Runtime::simulation(seed)
        .faults(kills(&mut dice, signal, Armed::clone(&armed)))
        .start_jitter(plan.jitter)
        .lists_at_once(plan.lists_at_once);
    simulation.build().run(|runtime| async move {
        let mut life = Life::begin(runtime.clone(), plan, dice, (signals, armed));
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
            Ending::Dropped => {
                let windows = life.windows.clone();
                return Run { trace: verdict::ends_when_it_is_dropped(life).await, windows };
            }
        }
        let Life { origins, cluster, windows, mut trace, .. } = life;
        for host in hosts(&origins, cluster.as_ref()) {
            writeln!(trace, "{:?}", host.server.requests()).expect("a string takes all");
        }
        writeln!(trace, "after {:?}", runtime.now()).expect("a string takes all");
        Run { trace, windows }
    })
}

/// The servers of a run.
pub(crate) fn hosts<'a>(
    origins: &'a [Origin],
    cluster: Option<&'a Cluster>,
) -> impl Iterator<Item = &'a Host> + Clone {
    origins.iter().map(|origin| &origin.host).chain(cluster.map(|cluster| &cluster.host))
}

impl Life {
    fn begin(
        runtime: Runtime,
        plan: Plan,
        mut dice: Dice,
        (signals, armed): (mpsc::UnboundedReceiver<()>, Armed),
    ) -> Self {
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
        let cluster = plan.cluster.as_ref().map(|source| Cluster::new(source, &mut dice));
        if let Some(cluster) = &cluster {
            builder = builder.namespaces(cluster.sources());
        }
        let informer = builder.start().expect("the spec is valid");
        Self {
            plan,
            dice,
            runtime,
            informer,
            origins,
            cluster,
            windows: Windows::default(),
            subscribers: Vec::new(),
            adding: Vec::new(),
            signals,
            armed,
            kills_left: 2,
            trace: String::new(),
        }
    }

    async fn step(&mut self) {
        self.look();
        match self.cluster.take() {
            Some(mut cluster) if self.dice.one_in(2) => {
                self.step_of_cluster(&mut cluster);
                self.cluster = Some(cluster);
            }
            cluster => {
                self.cluster = cluster;
                self.step_of_origin().await;
            }
        }
        while self.signals.try_recv().is_ok() {
            self.add_index();
        }
        self.pause().await;
    }

    /// Notes which changes of sources are under way, and whether a server's rewind is noticed.
    fn look(&mut self) {
        let of_cluster = self.cluster.as_ref().and_then(|cluster| cluster.window(&self.informer));
        let open: BTreeSet<_> = self.origins.iter().filter_map(Origin::window).chain(of_cluster).collect();
        if !open.is_empty() && self.kills_left > 0 && self.dice.one_in(6) {
            self.kills_left -= 1;
            let site = self.dice.pick(&IN_EXCHANGES);
            *self.armed.lock().unwrap_or_else(PoisonError::into_inner) = Some(site);
        }
        self.windows.look(open, self.informer.status().restarts);
        for origin in &mut self.origins {
            let reached = origin.reached(&self.informer);
            origin.host.is_noticed(&reached);
        }
        if let Some(cluster) = &mut self.cluster {
            let reached = cluster.reached(&self.informer);
            cluster.host.is_noticed(&reached);
        }
    }

    async fn step_of_origin(&mut self) {
        let at = self.dice.below(self.origins.len());
        self.origins[at].settle().await;
        match self.dice.below(21) {
            0..=4 => self.write(at),
            step @ 5..=11 => {
                let errors = self.errors();
                self.origins[at].host.disturb(step, errors, &mut self.dice);
            }
            12 | 13 => self.subscribe(),
            14 => self.add_index(),
            15 => self.origins[at].host.slow_down(&mut self.dice),
            16 => self.origins[at].host.paged.expire(),
            17 | 18 => {
                self.change_source(at);
                // What happens while it goes on.
                match self.dice.below(6) {
                    0..=2 => self.write(at),
                    3 => self.rewind(at),
                    _ => {}
                }
            }
            19 if self.dice.one_in(2) => self.origins[at].host.back_up(),
            19 => self.rewind(at),
            _ if !self.subscribers.is_empty() => self.leave().await,
            _ => {}
        }
    }

    fn step_of_cluster(&mut self, cluster: &mut Cluster) {
        match self.dice.below(20) {
            0..=4 => self.write_in(cluster),
            step @ 5..=11 => {
                let errors = self.errors();
                cluster.host.disturb(step, errors, &mut self.dice);
            }
            12 => cluster.host.slow_down(&mut self.dice),
            13 => {
                cluster.forbid(self.dice.one_in(2));
                if self.dice.one_in(3) {
                    self.rewind_in(cluster);
                }
            }
            14 => cluster.host.back_up(),
            15 => self.rewind_in(cluster),
            _ => {
                cluster.change(&self.informer, &mut self.dice);
                match self.dice.below(6) {
                    0..=2 => self.write_in(cluster),
                    3 | 4 => self.rewind_in(cluster),
                    _ => {}
                }
            }
        }
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
        let origin = &mut self.origins[at];
        let window = origin.window();
        for _ in 0..1 + self.dice.below(30) {
            let key = format!("n{at}/{}", self.dice.below(60));
            let deed = origin.host.write(&key, &mut self.dice);
            window.zip(deed).into_iter().for_each(|(window, deed)| self.windows.note(window, deed));
        }
    }

    fn write_in(&mut self, cluster: &mut Cluster) {
        let window = cluster.window(&self.informer);
        for _ in 0..1 + self.dice.below(30) {
            let deed = cluster.host.write(&Cluster::key(&mut self.dice), &mut self.dice);
            window.zip(deed).into_iter().for_each(|(window, deed)| self.windows.note(window, deed));
        }
    }

    /// The server is restored from its backup, and restarted.
    fn rewind(&mut self, at: usize) {
        let origin = &mut self.origins[at];
        let (window, reached) = (origin.window(), origin.reached(&self.informer));
        let deed = origin.host.rewind(&reached);
        window.zip(deed).into_iter().for_each(|(window, deed)| self.windows.note(window, deed));
    }

    fn rewind_in(&mut self, cluster: &mut Cluster) {
        let (window, reached) = (cluster.window(&self.informer), cluster.reached(&self.informer));
        let deed = cluster.host.rewind(&reached);
        window.zip(deed).into_iter().for_each(|(window, deed)| self.windows.note(window, deed));
    }

    fn errors(&mut self) -> Vec<ListWatchError> {
        (0..1 + self.dice.below(4)).map(|_| self.error()).collect()
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

    /// Versions never go back, but of a server that went back.
    fn check_versions(&mut self) {
        let snapshot = self.informer.snapshot();
        // A subscriber whose source changes may be followed by either source, or by none.
        let steady = |origin: &&mut Origin| origin.change.is_none() && origin.host.rewinds == 0;
        for origin in self.origins.iter_mut().filter(steady) {
            let reached = snapshot.version(&origin.id).cloned();
            assert!(reached >= origin.newest, "went back from {:?} to {reached:?}", origin.newest);
            origin.newest = reached;
        }
        let went_back = |id: &SourceId| {
            let of_cluster = self.cluster.iter().any(|all| Cluster::owns(id) && all.host.rewinds > 0);
            of_cluster || self.origins.iter().any(|origin| origin.owns(id) && origin.host.rewinds > 0)
        };
        let status = self.informer.status();
        let mut steady = status.sources.iter().filter(|source| !went_back(&source.source));
        assert!(steady.all(|source| source.counters.rewinds == 0), "{status:?}");
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
