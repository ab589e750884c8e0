//! The actor that exchanges the sources of a set of namespaces.
//!
//! Answers "who follows new namespaces, and leaves those that are not wanted any more?". `informer_core::namespaces`
//! decides what to do; this actor looks at what is there, carries the plan out, and looks again. Invariants:
//! 1. It remembers nothing that it needs after a restart: what is wanted is in the set, what is there with the sources.
//! 2. One plan is carried out at a time. Changes that come meanwhile are coalesced: the next plan looks at the newest.
//! 3. A namespace that cannot be followed is logged once, and the others are followed.
//!
//! Mailbox: it receives no messages. It stops with the informer. If it fails, it is restarted alone; the sources go on
//! meanwhile. Read next: `pipeline/namespace_set.rs`, the set.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use futures_util::future::join_all;
use informer_core::indexer::Successors;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::SourceId;
use informer_core::namespaces::{AllFollowed, AllStep, Followed, Names, Plan, Progress, plan};
use informer_core::reflector::SourceState;
use informer_core::restart::{OnFailure, Role};
use informer_core::words::{QUOTED, one_line};

use crate::informer::sources::{begin_all, begin_removal};
use crate::pipeline::messages::Body;
use crate::pipeline::namespace_set::{NamespaceSet, Refused, Wanted};
use crate::pipeline::source_spec::{Member, SourceSpec};
use crate::pipeline::status::NamespacesStatus;
use crate::pipeline::wiring::Pipeline;
use crate::runtime::faults::Site;
use crate::runtime::sleep_until;
use crate::supervision::child::{Child, Mailbox};

/// So many sources are removed at once; then the actor looks again.
const LEAVE_AT_ONCE: usize = 32;
/// A cluster-wide source that is refused is asked for again after this at the earliest.
const LEAST_RETRY: Duration = Duration::from_secs(1);

/// Restarted alone: no source depends on it.
const FOLLOWER: Role = Role { on_failure: OnFailure::RestartAlone, follows_group: false, tells_owner: true };

/// What a Follower is built from.
pub(crate) struct FollowerSpec<S: Body> {
    pipeline: Pipeline<S>,
    set: Arc<NamespaceSet<S>>,
    /// Kept so that a restart finds the mailbox open.
    _address: Addr<Follower<S>>,
}

/// The actor that exchanges the sources of one set.
pub(crate) struct Follower<S: Body> {
    spec: FollowerSpec<S>,
}

impl<S: Body> Follower<S> {
    /// Starts the actor of this set.
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
        ctx.spawn(follow(self.spec.clone()).into_actor(self));
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
    let mut exchange = Exchange { pipeline, set, failed: BTreeSet::new() };
    loop {
        let (changed, moved) =
            (exchange.set.changed.count(), exchange.pipeline.shared.board.sources_moved().count());
        if exchange.pipeline.parent.stop.is_cancelled() {
            return;
        }
        if exchange.step().await {
            tokio::task::yield_now().await;
        } else {
            exchange.until_news(changed, moved).await;
        }
    }
}

/// One set with the sources of its informer.
struct Exchange<S: Body> {
    pipeline: Pipeline<S>,
    set: Arc<NamespaceSet<S>>,
    /// The namespaces for which no source could be made.
    failed: BTreeSet<Arc<str>>,
}

/// The sources of the set as they are.
struct Found {
    followed: Followed,
    ids: Vec<(SourceId, Option<Arc<str>>)>,
}

impl<S: Body> Exchange<S> {
    /// Carries one plan out; false if there was nothing to do.
    async fn step(&mut self) -> bool {
        let Some(Wanted { names, generation }) = self.set.wanted() else { return false };
        let names = self.followable(names);
        let found = self.find();
        self.note_refusal(&found);
        let policy = self.set.policy();
        let may_ask = self.set.refused().is_none_or(|refused| refused.until <= self.now());
        let next = plan(&names, &found.followed, policy, may_ask);
        self.show(&names, &next);
        self.pipeline.shared.fail_point(Site::NamespacesPlanned);
        if next.is_empty() {
            self.set.join(generation);
            if is_synced(&found.followed) && self.has_settled(&found.followed) {
                self.set.sync(generation);
            }
            return false;
        }
        self.carry_out(next, &found.ids, &names, generation).await;
        true
    }

    async fn carry_out(
        &mut self,
        next: Plan,
        ids: &[(SourceId, Option<Arc<str>>)],
        wanted: &Names,
        generation: u64,
    ) {
        for namespace in next.follow {
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
        let leaves_all = matches!(next.all, Some(AllStep::Leave));
        let leaving = next.leave.iter().take(LEAVE_AT_ONCE).map(Some).chain(leaves_all.then_some(None));
        let begin = |namespace: Option<&Arc<str>>| {
            let (id, _) = ids.iter().find(|(_, of)| of.as_ref() == namespace)?;
            // What nobody wants any more passes to no other source.
            let passes = namespace.is_none_or(|namespace| wanted.contains(namespace));
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
        let Err(why) = joined else { return };
        let (informer, why) = (&self.pipeline.parent.name, one_line(&why, QUOTED));
        if let Some(namespace) = namespace {
            tracing::error!(target: "actix_informer::informer", %informer, %namespace, "namespace {namespace} cannot be followed: {why}");
            self.failed.insert(namespace);
        } else {
            self.refuse(why.into());
        }
    }

    /// Goes on without the cluster-wide source for a while.
    fn refuse(&self, reason: Arc<str>) {
        let Some(policy) = self.set.policy() else { return };
        if self.set.refused().is_none_or(|refused| refused.reason != reason) {
            let (informer, seconds) = (&self.pipeline.parent.name, policy.retry_after.as_secs());
            tracing::warn!(target: "actix_informer::informer", %informer, "the namespaces are followed one by one, as one cluster-wide watch is refused: {reason}; it is asked for again in {seconds} s");
        }
        let until = self.now().saturating_add(policy.retry_after.max(LEAST_RETRY));
        self.set.refuse(Some(Refused { reason, until }));
    }

    /// The wanted namespaces without those for which no source could be made.
    fn followable(&mut self, names: Names) -> Names {
        self.failed.retain(|name| names.contains(name));
        if self.failed.is_empty() {
            return names;
        }
        Arc::new(names.difference(&self.failed).cloned().collect())
    }

    fn find(&self) -> Found {
        let shared = &self.pipeline.shared;
        let snapshot = shared.published.snapshot();
        let mut found = Found { followed: Followed::default(), ids: Vec::new() };
        for (id, namespace, is_leaving) in shared.sources.of_set(self.set.number) {
            let has_listed = snapshot.version(&id).is_some();
            if let Some(namespace) = &namespace {
                let progress = match (is_leaving, has_listed) {
                    (true, _) => Progress::Leaving,
                    (false, true) => Progress::Listed,
                    (false, false) => Progress::Listing,
                };
                found.followed.each.insert(Arc::clone(namespace), progress);
            } else {
                let filter = self.set.filter().unwrap_or_default();
                let (asked, listed) = (filter.asked(), filter.listed());
                let is_refused = self.refusal(&id).is_some();
                found.followed.all = Some(AllFollowed { asked, listed, is_refused, is_leaving });
            }
            found.ids.push((id, namespace));
        }
        found
    }

    /// Why the cluster-wide source cannot be used, if its server forbids it or it is given up.
    fn refusal(&self, id: &SourceId) -> Option<Arc<str>> {
        match self.pipeline.shared.board.of_source(id, |status| status.state.clone())? {
            SourceState::Denied { error: error @ ListWatchError::Denied(_), .. } => {
                Some(one_line(&error.to_string(), QUOTED).into())
            }
            SourceState::GivenUp { reason } => Some(reason),
            _ => None,
        }
    }

    /// Keeps why the cluster-wide source is refused, and when it is asked for again.
    fn note_refusal(&self, found: &Found) {
        let of_all = found.ids.iter().find(|(_, namespace)| namespace.is_none());
        let Some((id, _)) = of_all else { return };
        match self.refusal(id) {
            Some(reason) => self.refuse(reason),
            None => self.set.refuse(None),
        }
    }

    fn show(&self, names: &Names, next: &Plan) {
        let refused = self.set.refused();
        let status = NamespacesStatus {
            cluster: self.set.cluster.clone(),
            wanted: names.len(),
            cluster_wide: next.cluster_wide,
            next_try_at: refused.as_ref().map(|refused| refused.until),
            refused: refused.map(|refused| refused.reason),
        };
        self.pipeline.shared.board.show_namespaces(self.set.number, status);
    }

    /// Waits until something has changed that a plan looks at.
    async fn until_news(&self, changed: u64, moved: u64) {
        let shared = &self.pipeline.shared;
        let retry_at = self.set.refused().map(|refused| refused.until).filter(|until| *until > self.now());
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

    /// Whether the cluster-wide source has brought exactly what is asked for, if it is there.
    fn has_settled(&self, followed: &Followed) -> bool {
        followed.all.is_none() || self.set.filter().is_none_or(|filter| filter.is_settled())
    }

    fn now(&self) -> Duration {
        self.pipeline.shared.runtime.now()
    }
}

/// Whether every source has listed.
fn is_synced(followed: &Followed) -> bool {
    followed.each.values().all(|progress| *progress == Progress::Listed)
        && followed.all.as_ref().is_none_or(|all| all.listed.as_ref() == Some(&all.asked))
}

impl<S: Body> Clone for FollowerSpec<S> {
    fn clone(&self) -> Self {
        let (pipeline, set, address) = (self.pipeline.clone(), Arc::clone(&self.set), self._address.clone());
        Self { pipeline, set, _address: address }
    }
}
