//! The builder of an informer.
//!
//! Answers "what may be said about an informer before it starts?". Every default stands at its setter. It decides
//! nothing and starts nothing before [`InformerBuilder::start`]. Invariants:
//! 1. Builders go by value and are `must_use`.
//!
//! Read next: `wiring.rs`, which builds what is described here.

use std::fmt;
use std::sync::Arc;

use informer_core::delta_fifo::{Bounds, Discipline};
use informer_core::index::IndexSpec;
use informer_core::meta::{Object, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::restart::RestartPolicy;

use crate::informer::{Informer, StartError};
use crate::list_watch::{Connect, ListWatch};
use crate::pipeline::messages::Body;
use crate::pipeline::wiring::{InformerSpec, SourceSpec};
use crate::runtime::Runtime;

/// An informer to be.
#[must_use = "a builder does nothing until `start`"]
pub struct InformerBuilder<S> {
    runtime: Runtime,
    spec: InformerSpec<S>,
}

impl<S: Body> Informer<S> {
    /// Begins an informer of this name on `runtime`. It needs at least one source. If a live informer of the runtime
    /// has the name when this one starts, a number is put behind it.
    ///
    /// See the example `custom_source` for a whole one.
    pub fn builder(runtime: &Runtime, name: impl Into<Arc<str>>) -> InformerBuilder<S> {
        let spec = InformerSpec {
            name: name.into(),
            sources: Vec::new(),
            indices: Vec::new(),
            bounds: Bounds::default(),
            discipline: Discipline::default(),
            restarts: RestartPolicy::default(),
        };
        InformerBuilder { runtime: runtime.clone(), spec }
    }
}

impl<S: Body> InformerBuilder<S> {
    /// Calls it otherwise: in its status, in logs and in errors. Give it a name when a runtime has several informers of
    /// one kind, such as `pods-web`. A taken name is not refused: the informer that starts second gets a number behind
    /// it (`pods-web-2`), and a name is free again when its informer is stopped. [`Informer::name`] tells the result.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Adds the source `default`, made by `connect` on the informer's arbiter, with default settings.
    pub fn source<L>(self, connect: impl Fn() -> L + Send + Sync + 'static) -> Self
    where
        L: ListWatch<S> + 'static,
    {
        let connect: Connect<S> = Arc::new(move || Box::new(connect()));
        let config = ReflectorConfig::new(&*self.spec.name);
        self.source_with(SourceSpec::new(SourceId::default(), connect, config))
    }

    /// Adds a source with a name and settings of its own. Several sources are one informer with one store: two
    /// namespaces, two shards.
    pub fn source_with(mut self, source: SourceSpec<S>) -> Self {
        self.spec.sources.push(source);
        self
    }

    /// Adds a secondary index: each object is filed under the values that `values` gives for it. A panic loses only
    /// that entry, and is counted.
    pub fn index<V>(
        self,
        name: impl Into<Arc<str>>,
        values: impl Fn(&Object<S>) -> V + Send + Sync + 'static,
    ) -> Self
    where
        V: IntoIterator<Item = String>,
    {
        self.index_with(IndexSpec::new(name, move |object| values(object).into_iter().collect::<Vec<_>>()))
    }

    /// Adds a secondary index that was made elsewhere, such as a fallible one.
    pub fn index_with(mut self, index: IndexSpec<S>) -> Self {
        self.spec.indices.push(index);
        self
    }

    /// The bounds between reflectors and store; each at least 1, else the start is refused. Default: 4,096 parts, 32 MiB,
    /// batches of 250.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.spec.bounds = bounds;
        self
    }

    /// In which order parts leave the queue between reflectors and store. Default: [`Discipline::InOrder`], with which
    /// every snapshot is a state that the server had.
    pub fn discipline(mut self, discipline: Discipline) -> Self {
        self.spec.discipline = discipline;
        self
    }

    /// How often actors may be restarted. Default: 5 times in 10 minutes each, waits of 0.8 s doubling to 30 s.
    pub fn restarts(mut self, policy: RestartPolicy) -> Self {
        self.spec.restarts = policy;
        self
    }

    /// Starts it and returns at once; nothing is listed yet.
    ///
    /// # Errors
    /// When the description contradicts itself, or the runtime was shut down.
    pub fn start(self) -> Result<Informer<S>, StartError> {
        Informer::start(&self.runtime, self.spec)
    }
}

impl<S> fmt::Debug for InformerBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InformerBuilder").field(&self.spec).finish()
    }
}
