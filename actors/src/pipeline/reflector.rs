//! The Reflector: it follows one source. `informer_core::reflector` decides; a session carries out the requests. It
//! is restarted alone.
//!
//! 1. All IO is in that session: its drop, at a stop or a restart, ends every request.
//! 2. It reads nothing more until the DeltaFifo has taken what it read last.
//! 3. After a restart it continues at the newest version that its source has put into the queue in this epoch, else
//!    at the published one. It uses "0" or "" only without either: versions never go back for a reader.

mod filtering;
mod happened;
mod passing_on;
mod questions;
mod session;

use std::sync::Arc;

use actix::{Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Supervised, WrapFuture};
use informer_core::meta::{ClusterName, ResourceVersion, SourceId};
use informer_core::reflector::ReflectorConfig;

use crate::list_watch::Connect;
use crate::pipeline::delta_fifo::DeltaFifo;
use crate::pipeline::messages::{Body, Epoch};
use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::shared::PipelineShared;
use crate::runtime::PassesOn;
use crate::runtime::faults::Site;
use crate::supervision::owner::Child;

pub(crate) struct ReflectorSpec<S: Body> {
    pub(crate) shared: PipelineShared<S>,
    pub(crate) source: SourceId,
    pub(crate) cluster: Option<ClusterName>,
    pub(crate) connect: Connect<S>,
    pub(crate) config: ReflectorConfig,
    pub(crate) filter: Option<Arc<NamespaceFilter>>,
    pub(crate) pass: Option<Arc<dyn PassesOn<S>>>,
    pub(crate) fifo: Addr<DeltaFifo<S>>,
}

pub(crate) struct Reflector<S: Body> {
    spec: ReflectorSpec<S>,
    epoch: Epoch,
    first_life: bool,
}

impl<S: Body> Actor for Reflector<S> {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.spec.shared.fail_point(Site::ReflectorStarted);
        let session = session::run(self.spec.clone(), self.epoch, self.resume(), self.first_life);
        ctx.spawn(session.into_actor(self).map(|(), this, ctx| {
            if this.spec.shared.stop_reading.is_cancelled() {
                ctx.stop();
            }
        }));
    }
}

impl<S: Body> Supervised for Reflector<S> {
    fn restarting(&mut self, _ctx: &mut Context<Self>) {
        *self = Self::build(&self.spec.clone());
        self.first_life = false;
    }
}

impl<S: Body> Child for Reflector<S> {
    type Spec = ReflectorSpec<S>;

    fn build(spec: &ReflectorSpec<S>) -> Self {
        Self { spec: spec.clone(), epoch: spec.shared.published.epoch(), first_life: true }
    }
}

impl<S: Body> Reflector<S> {
    fn resume(&self) -> Option<ResourceVersion> {
        let published = || self.spec.shared.published.snapshot().newest_version(&self.spec.source).cloned();
        self.spec.shared.handed_over.newest(self.epoch, &self.spec.source).or_else(published)
    }
}

informer_core::clone_of!([S: Body] ReflectorSpec<S> {
    shared, source, cluster, connect, config, filter, pass, fifo
});
