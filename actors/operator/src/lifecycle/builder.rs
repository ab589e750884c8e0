//! The settings of an operator, and its start. The operator owns one child, its actor.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::lifecycle::machine::{DrainLimits, Lifecycle, PartId, Phase};
use informer_core::restart::{RestartPolicy, Role};
use informer_core::words::Brief;
use tokio_util::sync::CancellationToken;

use super::content::Content;
use super::part::Part;
use super::run::Executor;
use super::status::Named;
use super::{LastHandle, Operator, OperatorView, RegisteredOperator, Shared};
use informer_actors::inner::{
    ALONE, ChildEvent, Ended, Group, Locked, Mailbox, Named as Registered, Owner, Parent, Runner,
};
use informer_actors::runtime::Runtime;

/// An operator that is not started yet.
#[must_use = "a builder does nothing until it is started"]
pub struct OperatorBuilder {
    runtime: Runtime,
    name: Arc<str>,
    parts: Vec<Named>,
    limits: DrainLimits,
    policy: RestartPolicy,
}

/// Why an operator did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartOperatorError {
    /// It has more than one election.
    #[error("operator {operator:?} has two elections, {first:?} and {second:?}")]
    TwoElections {
        /// Its name.
        operator: Arc<str>,
        /// The name of one.
        first: Arc<str>,
        /// The name of the other.
        second: Arc<str>,
    },
    /// The runtime was shut down.
    #[error("the runtime was shut down: operator {operator:?} cannot start on it")]
    RuntimeStopped {
        /// Its name.
        operator: Arc<str>,
    },
}

struct OperatorOwner(Arc<str>);

impl OperatorBuilder {
    pub(super) fn new(runtime: &Runtime) -> Self {
        Self {
            runtime: runtime.clone(),
            name: "operator".into(),
            parts: Vec::new(),
            limits: DrainLimits::default(),
            policy: Lifecycle::PATIENT,
        }
    }

    /// Its name, for status and logs. `operator` unless set.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// A part that reports the state of the operator: it starts first, and stops last.
    pub fn probes(self, part: impl Part) -> Self {
        self.part(Phase::Probes, part)
    }

    /// An informer, a factory or another cache. Work starts when each of them is ready.
    pub fn cache(self, part: impl Part) -> Self {
        self.part(Phase::Caches, part)
    }

    /// Work that every replica does.
    pub fn work(self, part: impl Part) -> Self {
        self.part(Phase::Work, part)
    }

    /// The election that decides whether this process leads, by
    /// [`PartContext::leads`](super::PartContext::leads). As a part it starts when the caches are filled, and
    /// so does the leader's work. A declared [`Election`](crate::election::Election) takes part from then on.
    /// One that was started takes part from its own start, and may hold the lease before the caches are
    /// filled. It ends when the leader's work has ended.
    pub fn election(self, part: impl Part) -> Self {
        self.part(Phase::Election, part)
    }

    /// A recorder of events about the leader's work. When that work has ended, it sends what waits, before
    /// the lease is released. Give a recorder for work of every replica to [`Self::cache`]: it then ends
    /// after that work.
    pub fn events(self, part: impl Part) -> Self {
        self.part(Phase::Events, part)
    }

    /// Work that only the leader does. It starts when the lease is acquired and is dropped at once when the
    /// lease is lost. Without an election it starts after the caches.
    pub fn leader_work(self, part: impl Part) -> Self {
        self.part(Phase::LeaderWork, part)
    }

    /// A part of this phase. Parts of one phase start in the order in which they are given.
    pub fn part(mut self, phase: Phase, part: impl Part) -> Self {
        let (name, stale_limit) = (part.name(), part.stale_limit());
        self.parts.push(Named { phase, name, part: Arc::new(part), stale_limit });
        self
    }

    /// How long the parts of this phase may take to end what they have begun; after that they are dropped.
    /// [`DrainLimits`] has the defaults.
    pub fn drain_limit(mut self, phase: Phase, limit: Duration) -> Self {
        self.limits = self.limits.with(phase, limit);
        self
    }

    /// How often a part that fails is started again, and after which waits. Unless set, it is started again
    /// as long as the operator runs, after waits from 0.8 to 60 s.
    pub fn restarts(mut self, policy: RestartPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Starts the operator. Its parts run on the tokio runtime in which this is called, or without one on the
    /// runtime's thread for async callbacks. Returns at once: [`Operator::ready_within`] waits.
    ///
    /// # Errors
    /// When it has two elections, or the runtime was shut down.
    pub fn start(self) -> Result<Operator, StartOperatorError> {
        let mut elections = self.parts.iter().filter(|named| named.phase == Phase::Election);
        if let (Some(first), Some(second)) = (elections.next(), elections.next()) {
            let (first, second) = (Arc::clone(&first.name), Arc::clone(&second.name));
            return Err(StartOperatorError::TwoElections { operator: self.name, first, second });
        }
        self.started()
    }

    fn started(self) -> Result<Operator, StartOperatorError> {
        let Self { runtime, name, mut parts, limits, policy } = self;
        let Some(registration) = runtime.register(Registered::Operator, &name) else {
            return Err(StartOperatorError::RuntimeStopped { operator: name });
        };
        // Stable: parts of one phase stay in the given order.
        parts.sort_by_key(|named| named.phase);
        let phases: Vec<_> = parts.iter().map(|named| named.phase).collect();
        let holding = parts.iter().enumerate().filter(|(_, named)| named.part.holds());
        let lifecycle = Lifecycle::new(&phases, limits, policy);
        let lifecycle = holding.fold(lifecycle, |lifecycle, (at, _)| lifecycle.holding(PartId(at)));
        let (name, stop) = (Arc::clone(registration.name()), CancellationToken::new());
        let owner = Arc::new(OperatorOwner(Arc::clone(&name)));
        let supervised = (RestartPolicy::default(), stop.clone());
        let parent = Parent::start(&name, owner, Group::none(), &runtime, supervised);
        let time = (parent.arbiter.clock().clone(), runtime.chance());
        let Mailbox(address, inbox) = Mailbox::<Runner<Shared>>::new();
        let shared = Arc::new(Shared {
            executor: Executor::here(&runtime),
            content: Locked::new(Content::new(lifecycle), time),
            over: CancellationToken::new(),
            has_ended: AtomicBool::new(false),
            changed: Default::default(),
            name,
            runtime,
            parts,
            actor: address,
            stop,
        });
        registration.list(Arc::new(RegisteredOperator(Arc::clone(&shared))));
        let spec = (Arc::clone(&shared), parent.faults.clone());
        let ended = Arc::clone(&shared);
        parent.context("operator", ALONE).start(inbox, spec, move |_| {
            ended.end();
            drop(registration);
            ended.over.cancel();
        });
        let view = OperatorView(Arc::clone(&shared));
        Ok(Operator { view, _last: Arc::new(LastHandle(shared)) })
    }
}

impl Owner for OperatorOwner {
    fn child_changed(&self, actor: &Arc<str>, _role: Role, event: ChildEvent<'_>) {
        let operator = &self.0;
        match event {
            ChildEvent::Restarts { exit, after } => {
                tracing::error!(target: "actix_informer::operator", %operator, %actor, "operator {operator}: its actor {}; it starts again in {}, and its parts run on", Ended(exit), Brief(after));
            }
            ChildEvent::Ended { exit } => {
                tracing::debug!(target: "actix_informer::operator", %operator, %actor, "operator {operator}: its actor {}", Ended(exit));
            }
            ChildEvent::GivenUp { reason } => {
                tracing::error!(target: "actix_informer::operator", %operator, %actor, "operator {operator}: its actor {reason}; it is not started again: every part is dropped");
            }
            ChildEvent::Revived => {}
        }
    }
}

impl fmt::Debug for OperatorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.parts.iter().map(|named| (named.phase, &named.name)).collect::<Vec<_>>();
        f.debug_struct("OperatorBuilder")
            .field("name", &self.name)
            .field("parts", &parts)
            .finish_non_exhaustive()
    }
}
