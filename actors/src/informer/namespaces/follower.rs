//! The actor that exchanges the sources of a set of namespaces, as `informer_core::namespaces` plans.
//!
//! A restart loses nothing: all state is in the set and in the sources. A namespace that cannot be followed is shown,
//! logged when the reason changes, and tried again while wanted; until then the change is not synced. The actor
//! receives no messages. It stops with the informer or its cluster. If it fails, it restarts alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Supervised, WrapFuture};
use futures_util::future::join_all;
use informer_core::indexer::Successors;
use informer_core::meta::SourceId;
use informer_core::namespaces::{AllStep, Names, Plan, plan};
use informer_core::restart::{OnFailure, Role};
use informer_core::words::{QUOTED, one_line};

use self::looking::Looked;
use crate::informer::sources::{begin_all, begin_removal};
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_set::{ClusterWideRefusal, NamespaceSet, Wanted};
use crate::pipeline::source_spec::{Member, SourceSpec};
use crate::pipeline::status::NamespacesStatus;
use crate::pipeline::wiring::Pipeline;
use crate::runtime::faults::Site;
use crate::runtime::sleep_until;
use crate::supervision::owner::{Child, Mailbox};

mod looking;

const FOLLOW_AT_ONCE: usize = 250;
/// Sources removed before the actor looks again.
const LEAVE_AT_ONCE: usize = 32;
const RETRY_FAILED: Duration = Duration::from_secs(30);
const LEAST_RETRY: Duration = Duration::from_secs(1);

const FOLLOWER: Role = Role { on_failure: OnFailure::RestartAlone, follows_group: false, tells_owner: true };

pub(crate) struct FollowerSpec<S: Body> {
    pipeline: Pipeline<S>,
    set: Arc<NamespaceSet<S>>,
    /// Kept so that a restart finds the mailbox open.
    _address: Addr<Follower<S>>,
}

pub(crate) struct Follower<S: Body> {
    spec: FollowerSpec<S>,
}

impl<S: Body> Follower<S> {
    pub(crate) fn start(pipeline: &Pipeline<S>, set: Arc<NamespaceSet<S>>) {
        let Mailbox(address, inbox) = Mailbox::new();
        let name = match &set.cluster {
            Some(cluster) => format!("namespaces/{cluster}"),
            None => "namespaces".to_owned(),
        };
        let spec = FollowerSpec { pipeline: pipeline.clone(), set, _address: address };
        pipeline.parent.context(&name, FOLLOWER).start(inbox, spec, |_| ());
    }
}

impl<S: Body> Actor for Follower<S> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(follow(self.spec.clone()).into_actor(self).map(|(), _, ctx| ctx.stop()));
    }
}

impl<S: Body> Supervised for Follower<S> {}

impl<S: Body> Child for Follower<S> {
    type Spec = FollowerSpec<S>;

    fn build(spec: &FollowerSpec<S>) -> Self {
        Self { spec: spec.clone() }
    }
}

async fn follow<S: Body>(spec: FollowerSpec<S>) {
    let FollowerSpec { pipeline, set, .. } = spec;
    let mut exchange = Exchange { pipeline, set, failed: BTreeMap::new(), planned: None };
    loop {
        let (changed, moved) =
            (exchange.set.changed.count(), exchange.pipeline.shared.board.sources_moved().count());
        if exchange.pipeline.parent.stop.is_cancelled() {
            return;
        }
        match exchange.step(changed).await {
            Step::Taken => tokio::task::yield_now().await,
            Step::Nothing => exchange.until_news(changed, moved).await,
            Step::Over => return,
        }
    }
}

enum Step {
    Taken,
    Nothing,
    /// The cluster was removed, and nothing of it is left.
    Over,
}

struct Exchange<S: Body> {
    pipeline: Pipeline<S>,
    set: Arc<NamespaceSet<S>>,
    /// Namespaces for which no source could be made.
    failed: BTreeMap<Arc<str>, Failed>,
    /// The last look that found nothing to do.
    planned: Option<Looked>,
}

struct Failed {
    why: Arc<str>,
    retry_at: Duration,
}

impl<S: Body> Exchange<S> {
    async fn step(&mut self, changed: u64) -> Step {
        let Some(Wanted { names, generation }) = self.set.wanted() else { return Step::Nothing };
        self.note_refusal();
        self.failed.retain(|name, _| names.contains(name));
        let looked = self.look(changed);
        if self.planned.as_ref() != Some(&looked) {
            let wanted = self.followable(&names);
            let found = self.find();
            let next = plan(&wanted, &found.followed, self.set.policy(), looked.may_ask);
            self.show(&names, next.cluster_wide);
            self.pipeline.shared.fail_point(Site::NamespacesPlanned);
            if !next.is_empty() {
                self.planned = None;
                self.carry_out(next, &found.ids, &wanted, generation).await;
                return Step::Taken;
            }
            self.planned = Some(looked);
            self.set.join(generation);
        }
        if self.has_settled() {
            let failed = self.failed.iter().next();
            let failed = failed.map(|(name, failed)| (Arc::clone(name), Arc::clone(&failed.why)));
            if failed.is_none() {
                self.set.sync(generation);
            }
            self.set.fail(generation, failed);
        }
        let shared = &self.pipeline.shared;
        let is_over = names.is_empty() && shared.sources.members(self.set.number) == 0;
        if is_over && shared.namespaces.end(&self.set) {
            shared.board.end_namespaces(self.set.number);
            return Step::Over;
        }
        Step::Nothing
    }

    async fn carry_out(
        &mut self,
        next: Plan,
        ids: &BTreeMap<Option<Arc<str>>, SourceId>,
        wanted: &Names,
        generation: u64,
    ) {
        // A yield lets the cluster-wide source bring a list: look again before it is removed.
        let leaves_all = matches!(next.all, Some(AllStep::Leave)) && next.follow.len() <= FOLLOW_AT_ONCE;
        for (at, namespace) in next.follow.into_iter().enumerate() {
            if at > 0 && at % FOLLOW_AT_ONCE == 0 {
                tokio::task::yield_now().await;
            }
            let made = self.set.source_of(&namespace);
            self.begin(Some(namespace), made);
        }
        match &next.all {
            Some(AllStep::Follow(names)) => self.follow_all(names),
            Some(AllStep::Filter(names)) => {
                let filter = self.set.filter();
                filter.iter().for_each(|filter| filter.ask(Names::clone(names)));
            }
            _ => {}
        }
        self.set.join(generation);
        let leaving = next.leave.into_iter().take(LEAVE_AT_ONCE).map(Some).chain(leaves_all.then_some(None));
        let begin = |namespace: Option<Arc<str>>| {
            let id = ids.get(&namespace)?;
            // Objects of an unwanted namespace pass to no other source.
            let passes = namespace.is_none_or(|namespace| wanted.contains(&namespace));
            let others = || self.pipeline.shared.sources.successors_in_set(self.set.number);
            begin_removal(&self.pipeline, id, if passes { others() } else { Successors::none() }).ok()
        };
        let over: Vec<_> = leaving.filter_map(begin).collect();
        join_all(over.iter().map(|over| over.cancelled())).await;
    }

    fn follow_all(&mut self, names: &Names) {
        if let Some(made) = self.set.source_of_all() {
            let made = made.map(|source| self.set.filtered(source, names));
            self.begin(None, made);
        }
    }

    fn begin(&mut self, namespace: Option<Arc<str>>, made: Result<SourceSpec<S>, Arc<str>>) {
        let member = Member { set: self.set.number, namespace: namespace.clone() };
        let joined = made.and_then(|spec| {
            let spec = SourceSpec { member: Some(member), ..spec };
            begin_all(&self.pipeline, vec![spec], true)
                .map_err(|refusal| format!("the source {:?} is there already", refusal.id.as_str()).into())
        });
        match (joined, namespace) {
            (Ok(()), Some(namespace)) => drop(self.failed.remove(&namespace)),
            (Ok(()), None) => {}
            (Err(why), Some(namespace)) => self.fail(namespace, &why),
            (Err(why), None) => self.refuse(one_line(&why, QUOTED).into()),
        }
    }

    fn fail(&mut self, namespace: Arc<str>, why: &str) {
        let (informer, why) = (&self.pipeline.parent.name, Arc::<str>::from(one_line(why, QUOTED)));
        if self.failed.get(&namespace).is_none_or(|known| known.why != why) {
            let seconds = RETRY_FAILED.as_secs();
            tracing::error!(target: "actix_informer::informer", %informer, %namespace, "namespace {namespace} cannot be followed: {why}; it is tried again each {seconds} s");
        }
        let retry_at = self.now().saturating_add(RETRY_FAILED);
        self.failed.insert(namespace, Failed { why, retry_at });
    }

    /// Uses single sources for a while.
    fn refuse(&self, reason: Arc<str>) {
        let Some(policy) = self.set.policy() else { return };
        if self.set.refused().is_none_or(|refused| refused.reason != reason) {
            let (informer, seconds) = (&self.pipeline.parent.name, policy.retry_after.as_secs());
            tracing::warn!(target: "actix_informer::informer", %informer, "the namespaces are followed one by one, as one cluster-wide watch is refused: {reason}; it is asked for again in {seconds} s");
        }
        let until = self.now().saturating_add(policy.retry_after.max(LEAST_RETRY));
        self.set.refuse(Some(ClusterWideRefusal { reason, until }));
    }

    /// Without failed namespaces whose retry is not due.
    fn followable(&self, names: &Names) -> Names {
        let now = self.now();
        let waits = |name: &Arc<str>| self.failed.get(name).is_some_and(|failed| failed.retry_at > now);
        if self.failed.is_empty() {
            return Names::clone(names);
        }
        Arc::new(names.iter().filter(|name| !waits(name)).cloned().collect())
    }

    fn show(&self, names: &Names, cluster_wide: bool) {
        let refused = self.set.refused();
        let status = NamespacesStatus {
            cluster: self.set.cluster.clone(),
            wanted: names.len(),
            cluster_wide,
            next_try_at: refused.as_ref().map(|refused| refused.until),
            refused: refused.map(|refused| refused.reason),
            failed: self.failed.len(),
            failure: self
                .failed
                .iter()
                .next()
                .map(|(name, failed)| format!("{name:?}: {}", failed.why).into()),
        };
        self.pipeline.shared.board.show_namespaces(self.set.number, status);
    }

    async fn until_news(&self, changed: u64, moved: u64) {
        let shared = &self.pipeline.shared;
        let of_all = self.set.refused().map(|refused| refused.until);
        let of_failed = self.failed.values().map(|failed| failed.retry_at);
        let retry_at = of_all.into_iter().chain(of_failed).filter(|until| *until > self.now()).min();
        let retry = async {
            match retry_at {
                Some(at) => sleep_until(&shared.runtime.0.clock, at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.set.changed.since(changed) => {}
            () = shared.board.sources_moved().since(moved) => {}
            () = retry => {}
        }
    }

    /// Whether every source has listed, and the cluster-wide one, if any, has exactly what is wanted.
    fn has_settled(&self) -> bool {
        let sources = &self.pipeline.shared.sources;
        let all = sources.cluster_wide(self.set.number);
        let filter = all.and_then(|_| self.set.filter());
        let is_whole = filter.is_none_or(|filter| {
            let holdings = filter.holdings();
            holdings.is_settled() && holdings.listed() == Some(holdings.asked())
        });
        sources.missing(self.set.number) == 0 && is_whole
    }

    fn now(&self) -> Duration {
        self.pipeline.shared.runtime.now()
    }
}

informer_core::clone_of!([S: Body] FollowerSpec<S> { pipeline, set, _address });
