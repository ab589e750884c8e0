//! A Reflector's session: it carries out the machine's effects, and reports the results.
//!
//! 1. Each `select!` is biased. The stop comes first. Data comes before the machine's timer: what has arrived is
//!    handled before a deadline. The GET for an undecodable object and its timer, at most one per second, come before
//!    data: a watch that is always ready would delay them for ever.
//! 2. A delivery is awaited before anything else is read: the back-pressure onto the socket.
//! 3. At most one GET for an undecodable object is open. A delivered list cancels it.
//! 4. The session owns a permit of the list budget while the machine needs it: for a list with all its pages, for a
//!    watch-list up to its end bookmark.
//!
//! ```text
//!   machine ──effects──▶ streams, asks, timer ──what happened──▶ machine
//! ```

use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ResourceVersion};
use informer_core::off_arbiter::OffArbiter;
use informer_core::reflector::{Delivery, Effect, ListWatchMachine, Moment, StreamId};
use informer_core::repair::RepairSchedule;
use tokio::sync::OwnedSemaphorePermit;

use super::filtering::Filtering;
use super::happened::{Happened, at_last, next_listed, next_watched, settled};
use super::passing_on::{self, UnderWay};
use super::{ReflectorSpec, questions};
use crate::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use crate::pipeline::messages::{Body, Delta, Epoch, Replace};
use crate::pipeline::sources::AskedFor;
use crate::pipeline::status::{Came, RepairCounters};
use crate::runtime::faults::Site;
use crate::runtime::mailbox::{Closed, ask};
use crate::runtime::{Arrival, RandomNumbers, sleep_until};

const SLICE: usize = 250;

/// Ends early when the DeltaFifo dies, and then waits for its own restart.
pub(super) async fn run<S: Body>(
    spec: ReflectorSpec<S>,
    epoch: Epoch,
    resume: Option<ResourceVersion>,
    first_life: bool,
) {
    let stop_reading = spec.shared.stop_reading.clone();
    let followed = async {
        spec.shared.begun.cancelled().await;
        let mut session = Session::new(spec, epoch, resume);
        if first_life {
            session.wait_for_turn().await;
        }
        session.follow().await;
    };
    tokio::select! {
        biased;
        () = stop_reading.cancelled() => {}
        () = followed => pending().await,
    }
}

struct Session<S: Body> {
    spec: ReflectorSpec<S>,
    epoch: Epoch,
    machine: ListWatchMachine<S>,
    source: Rc<dyn ListWatch<S>>,
    chance: RandomNumbers,
    list: Option<ListStream<S>>,
    watches: Vec<(StreamId, WatchStream<S>)>,
    question: Option<LocalBoxFuture<'static, Result<ResourceVersion, ListWatchError>>>,
    repairs: OffArbiter<RepairSchedule>,
    fetch: Option<LocalBoxFuture<'static, Option<Object<S>>>>,
    why_empty: Option<LocalBoxFuture<'static, ()>>,
    passing: UnderWay<S>,
    turn: Option<LocalBoxFuture<'static, OwnedSemaphorePermit>>,
    permit: Option<OwnedSemaphorePermit>,
    filtering: Filtering,
    /// What the status does not show yet.
    came: Came,
    arrival: Arc<Arrival>,
}

impl<S: Body> Session<S> {
    fn new(spec: ReflectorSpec<S>, epoch: Epoch, resume: Option<ResourceVersion>) -> Self {
        Self {
            epoch,
            machine: ListWatchMachine::new(spec.config.clone(), resume)
                .counting_from(spec.shared.board.counters(&spec.source))
                .releasing_to(&spec.shared.runtime.0.freeing.as_release()),
            source: Rc::from((spec.connect)()),
            chance: spec.shared.runtime.chance(),
            list: None,
            watches: Vec::new(),
            question: None,
            repairs: spec.shared.off_arbiter(RepairSchedule::new()),
            fetch: None,
            why_empty: None,
            passing: UnderWay::new(),
            turn: None,
            permit: None,
            filtering: Filtering::new(&spec),
            came: Came::default(),
            arrival: Arc::new(Arrival::new(
                spec.shared.runtime.0.clock.clone(),
                spec.shared.runtime.paths().clone(),
                Arc::clone(&spec.shared.name),
                (spec.shared.board.sizes(), spec.shared.board.saved()),
            )),
            spec,
        }
    }

    /// Spreads the first requests of informers that start together.
    async fn wait_for_turn(&mut self) {
        let jitter = self.spec.shared.runtime.0.start_jitter;
        if !jitter.is_zero() {
            let wait = jitter.mul_f64(self.chance.draw());
            let at = self.spec.shared.runtime.now().saturating_add(wait);
            sleep_until(&self.spec.shared.runtime.0.clock, at).await;
        }
    }

    async fn follow(&mut self) {
        let mut taken = 0;
        self.machine.start();
        loop {
            let filter_seen = self.look_at_filter();
            while let Some(effect) = self.machine.poll_effect() {
                if self.carry_out(effect).await.is_err() {
                    return;
                }
            }
            self.give_permit_back();
            self.report();
            let happened = self.next(filter_seen).await;
            let brought = happened.objects();
            taken += brought;
            self.spec.shared.fail_point(Site::ReflectorReceived);
            if self.handle(happened).await.is_err() {
                return;
            }
            // A source that is always ready must not delay others. The next answer is assumed to be as large.
            if taken + brought > SLICE {
                taken = 0;
                tokio::task::yield_now().await;
            } else {
                tokio::task::coop::consume_budget().await;
            }
        }
    }

    /// An error: the DeltaFifo has died, which ends this epoch.
    async fn carry_out(&mut self, effect: Effect<S>) -> Result<(), Closed> {
        match effect {
            Effect::AcquireListPermit => self.acquire_permit(),
            Effect::List { request, everything } => {
                self.fetch = self.fetch.take().filter(|_| self.spec.pass.is_none());
                self.filtering.begin(request.token.is_none());
                self.list = Some(self.source.list(request, self.known(everything)));
            }
            Effect::Watch { stream, request, everything } => {
                self.filtering.begin(request.initial_events);
                let now = self.moment();
                self.machine.handle_watch_sent(stream, now);
                self.watches.push((stream, self.source.watch(request, self.known(everything))));
            }
            Effect::Close(stream) => {
                let before = self.watches.len();
                self.watches.retain(|(open, _)| *open != stream);
                self.came.watch_ends.closed += (before - self.watches.len()) as u64;
                self.question = None;
            }
            Effect::Yield => tokio::task::yield_now().await,
            Effect::CloseList => (self.list, self.passing.page) = (None, Vec::new()),
            Effect::AskVersion(request) => self.question = Some(questions::version(&self.source, request)),
            Effect::Deliver(delivery) => self.deliver(delivery).await?,
            _ => {}
        }
        Ok(())
    }

    async fn deliver(&mut self, delivery: Delivery<S>) -> Result<(), Closed> {
        // The list is whole: the wait for a full queue needs no permit.
        self.give_permit_back();
        let (epoch, source) = (self.epoch, self.spec.source.clone());
        let now = self.moment();
        super::filtering::note(&self.spec, &delivery);
        match delivery {
            // Its removal was decided on what it brought until now: it brings no more lists.
            Delivery::Replace(_) if self.spec.shared.sources.is_leaving(&source) => pending().await,
            Delivery::Replace(replacement) => {
                // The state leaves Listing before the list can be published and `synced` become true.
                self.report();
                self.fetch = None;
                while !self.repairs.observe_replace(&replacement, SLICE, now) {
                    tokio::task::yield_now().await;
                }
                let why_empty = questions::why_empty(&self.spec, &self.source, &replacement);
                self.why_empty = why_empty.or_else(|| self.why_empty.take());
                let passed_on = passing_on::ends(&self.spec, &mut self.passing, &replacement).await;
                let published = passed_on.or_else(|| self.filtering.deliver());
                ask(&self.spec.fifo, Replace { epoch, source, replacement, published }).await
            }
            Delivery::Delta(parts) => {
                let parts = passing_on::delta(&self.spec, parts).await;
                self.repairs.observe_parts(&parts, now);
                ask(&self.spec.fifo, Delta { epoch, source, parts }).await
            }
            _ => Ok(()),
        }
    }

    /// A held permit is kept, as by a list that starts over.
    fn acquire_permit(&mut self) {
        if self.permit.is_some() || !self.spec.config.list_permit {
            return self.open_list();
        }
        let pool = self.spec.shared.runtime.0.lists.of(self.spec.cluster.as_ref());
        self.turn = Some(
            super::happened::turn(self.spec.shared.clone(), self.spec.source.clone(), pool).boxed_local(),
        );
    }

    fn open_list(&mut self) {
        let asked = AskedFor {
            is_first: self.machine.resource_version().is_none(),
            after_rewind: self.machine.rewinding_to().cloned(),
        };
        let floor = super::filtering::begin(&self.spec, asked);
        self.machine.not_older_than(floor.max(passing_on::newest(&self.spec)));
        let now = self.moment();
        self.machine.handle_list_permit(now);
    }

    fn give_permit_back(&mut self) {
        if !self.machine.needs_list_permit() {
            self.permit = None;
        }
    }

    fn known(&self, everything: bool) -> KnownObjects<S> {
        let published = (&self.spec.shared.published, everything || passing_on::is_rewound(&self.spec));
        KnownObjects::new(published, self.filtering.kept(), &self.arrival)
    }

    async fn next(&mut self, filter_seen: u64) -> Happened<S> {
        let clock = self.spec.shared.runtime.0.clock.clone();
        let (deadline, repair_due) = (self.machine.poll_timeout(), self.repairs.poll_timeout());
        // What is passed on may not be newer than a list under way.
        let repair_due = repair_due.filter(|_| self.spec.pass.is_none() || self.list.is_none());
        let machine = &self.machine;
        tokio::select! {
            biased;
            permit = settled(&mut self.turn) => {
                self.turn = None;
                Happened::Permitted(permit)
            }
            found = settled(&mut self.fetch) => {
                self.fetch = None;
                Happened::Fetched(found)
            }
            () = settled(&mut self.why_empty) => {
                self.why_empty = None;
                Happened::Explained
            }
            () = settled(&mut self.passing.settling) => {
                self.passing.settling = None;
                Happened::Explained
            }
            news = self.filtering.news(filter_seen) => Happened::Filter(news),
            () = at_last(&clock, repair_due) => Happened::RepairDue,
            answer = settled(&mut self.question) => {
                self.question = None;
                Happened::Version(answer)
            }
            (stream, item) = next_watched(&mut self.watches, |stream| machine.wants_watch_input(stream)) => {
                if item.is_none() {
                    self.watches.retain(|(open, _)| *open != stream);
                }
                Happened::Watched(stream, item)
            }
            part = next_listed(&mut self.list) => Happened::Listed(part),
            () = at_last(&clock, deadline) => Happened::Timeout,
        }
    }

    async fn handle(&mut self, happened: Happened<S>) -> Result<(), Closed> {
        let now = self.moment();
        match happened {
            Happened::RepairDue => {
                if let Some(key) = self.repairs.handle_timeout(now) {
                    self.fetch = Some(questions::object(&self.spec, &self.source, key));
                    self.count_repair(|repairs| &mut repairs.asked);
                }
            }
            Happened::Fetched(found) => {
                let good = self.repairs.handle_answer(found, now);
                self.count_repair(|repairs| match good {
                    Some(_) => &mut repairs.repaired,
                    None => &mut repairs.not_repaired,
                });
                if let Some(good) = good {
                    let (epoch, source) = (self.epoch, self.spec.source.clone());
                    let parts = passing_on::delta(&self.spec, vec![WatchPart::Fetched(good)]).await;
                    return ask(&self.spec.fifo, Delta { epoch, source, parts }).await;
                }
            }
            Happened::Filter(news) => {
                self.spec.shared.board.sources_moved().raise();
                return news;
            }
            Happened::Explained => {}
            happened => self.feed_machine(happened, now).await,
        }
        Ok(())
    }

    /// Without what is not kept; an error if an object is of another cluster.
    fn checked(&self, happened: Happened<S>) -> Happened<S> {
        match happened {
            Happened::Watched(stream, Some(Ok(parts))) => {
                Happened::Watched(stream, Some(self.filtering.intake.watched(parts)))
            }
            Happened::Listed(Some(Ok(part))) => Happened::Listed(Some(self.filtering.intake.listed(part))),
            other => other,
        }
    }

    async fn feed_machine(&mut self, happened: Happened<S>, mut now: Moment) {
        happened.count(&mut self.came);
        if let Happened::Watched(_, Some(Ok(parts))) = &happened {
            self.spec.shared.mark_arrived(&self.spec.source, parts, &self.arrival);
        }
        let checked = self.checked(happened);
        let happened = passing_on::came(&self.spec, &mut self.passing, &self.machine, checked).await;
        if self.spec.pass.is_some() {
            // A wait for the receiver is no silence of the server.
            now = self.moment();
        }
        match happened {
            Happened::Timeout => self.machine.handle_timeout(now),
            Happened::Permitted(permit) => {
                self.permit = Some(permit);
                self.open_list();
            }
            Happened::Version(answer) => self.machine.handle_version(answer, now),
            Happened::Watched(stream, Some(Ok(parts))) => self.machine.handle_watch_parts(stream, parts, now),
            Happened::Watched(stream, Some(Err(error))) => {
                self.watches.retain(|(open, _)| *open != stream);
                self.machine.handle_watch_end(stream, Err(error), now);
            }
            Happened::Watched(stream, None) => self.machine.handle_watch_end(stream, Ok(()), now),
            Happened::Listed(Some(Ok(part))) => self.machine.handle_list_part(part, now),
            Happened::Listed(ended) => {
                (self.list, self.passing.page) = (None, Vec::new());
                self.machine.handle_list_end(ended.map_or(Ok(()), |part| part.map(drop)), now);
            }
            Happened::RepairDue | Happened::Fetched(_) | Happened::Filter(_) | Happened::Explained => {}
        }
    }

    fn look_at_filter(&mut self) -> u64 {
        let seen = self.filtering.count();
        if self.filtering.look(&self.spec, self.machine.resource_version()) {
            let now = self.moment();
            self.machine.handle_list_wanted(now);
        }
        seen
    }

    fn count_repair(&self, counter: impl FnOnce(&mut RepairCounters) -> &mut u64) {
        self.spec.shared.board.update_source(&self.spec.source, |status| {
            *counter(&mut status.repairs) += 1;
            true
        });
    }

    fn moment(&mut self) -> Moment {
        self.chance.moment(&self.spec.shared.runtime.0.clock)
    }

    fn report(&mut self) {
        while let Some(line) = self.machine.poll_log() {
            super::happened::write(
                &self.spec.shared.name,
                &self.spec.source,
                &self.spec.config.resource,
                &line,
            );
        }
        let (shared, machine, came) = (&self.spec.shared, &self.machine, &mut self.came);
        let now = shared.runtime.now();
        shared.board.update_source(&self.spec.source, |status| status.follow(machine, came, now));
    }
}
