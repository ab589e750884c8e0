//! The builder of an informer.

use std::sync::Arc;
use std::time::Duration;

use informer_core::delta_fifo::{Bounds, QueueOrder};
use informer_core::index::{AnyIndex, Index};
use informer_core::listener::{Policy, WhenFull};
use informer_core::meta::{Object, SourceId};
use informer_core::reflector::ReflectorConfig;
use informer_core::restart::RestartPolicy;

use crate::all_informers;
use crate::informer::{Informer, NamespaceSources, StartError, describe};
use crate::list_watch::{Connect, ListWatch};
use crate::pipeline::messages::Body;
use crate::pipeline::source_spec::SourceSpec;
use crate::pipeline::status::ResourceName;
use crate::pipeline::wiring::InformerSpec;
use crate::runtime::Runtime;

/// The settings of an informer that has not been started.
#[must_use = "a builder does nothing until `start`"]
pub struct InformerBuilder<S: Body> {
    runtime: Runtime,
    spec: InformerSpec<S>,
    namespaces: Vec<NamespaceSources<S>>,
}

impl<S: Body> Informer<S> {
    /// Begins an informer of this name on `runtime`. It needs at least one source. The name appears in its
    /// status, log lines and errors. A name in use is not refused: the second informer gets a number after it
    /// (`pods-2`), and [`Informer::name`] returns the result. A name is free again when its informer is
    /// stopped.
    ///
    /// The example `custom_source` is complete.
    pub fn builder(runtime: &Runtime, name: impl Into<Arc<str>>) -> InformerBuilder<S> {
        let spec = InformerSpec {
            name: name.into(),
            resource: None,
            sources: Vec::new(),
            namespaces: Vec::new(),
            indices: Vec::new(),
            bounds: Bounds::default(),
            queue_order: QueueOrder::default(),
            resync: None,
            policy: Policy::default(),
            restarts: RestartPolicy::default(),
        };
        InformerBuilder { runtime: runtime.clone(), spec, namespaces: Vec::new() }
    }
}

impl<S: Body> Informer<S> {
    /// Starts a declared informer ([`InformerBuilder::declare`]): its sources are followed from now on.
    /// Returns at once; nothing is listed yet. Further calls, and calls after the stop, do nothing.
    pub fn begin(&self) {
        if self.0.pipeline.begin() {
            let informer = self.name();
            tracing::debug!(target: "actix_informer::informer", informer, "the informer has started");
        }
    }

    /// Whether it was started. Remains true after the stop.
    pub fn has_begun(&self) -> bool {
        self.0.pipeline.shared.begun.is_cancelled()
    }

    /// Whether it was stopped, or is being stopped, for whatever reason. Its handles then return what it
    /// published last.
    pub fn has_stopped(&self) -> bool {
        self.0.ending.stop_reading.is_cancelled()
    }
}

impl<S: Body> InformerBuilder<S> {
    /// Adds the source `default`, made by `connect` on the informer's arbiter, with default settings.
    pub fn source<L>(self, connect: impl Fn() -> L + Send + Sync + 'static) -> Self
    where
        L: ListWatch<S> + 'static,
    {
        let connect: Connect<S> = Arc::new(move || Box::new(connect()));
        let config = ReflectorConfig::new(&*self.spec.name);
        self.source_with(SourceSpec::new(SourceId::default(), connect, config))
    }

    /// Adds a source with its own name and settings. An informer can have several sources for one store: for
    /// example two namespaces or two shards.
    pub fn source_with(mut self, source: SourceSpec<S>) -> Self {
        self.spec.sources.push(source);
        self
    }

    /// Follows namespaces that may change while it runs, each with its own source; see
    /// [`Informer::set_namespaces`]. An informer of several clusters may have one such set for each.
    pub fn namespaces(mut self, sources: NamespaceSources<S>) -> Self {
        self.namespaces.push(sources);
        self
    }

    /// Adds a secondary index of texts, which is read by its name: each object is filed under the values that
    /// `values` returns for it. A panic loses only that entry, and is counted. [`Self::index_with`] takes any
    /// other index.
    pub fn index<V>(
        self,
        name: impl Into<Arc<str>>,
        values: impl Fn(&Object<S>) -> V + Send + Sync + 'static,
    ) -> Self
    where
        V: IntoIterator<Item = String>,
    {
        self.index_with(Index::new(name, values))
    }

    /// Adds a secondary index by its handle, which also reads it: with values of any ordered type, fallible,
    /// or shared by several informers.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::informer::{Index, Informer};
    /// use actix_informer::runtime::Runtime;
    ///
    /// let by_length = Index::<String, usize>::new("length", |text| [text.len()]);
    /// let runtime = Runtime::threads().start()?;
    /// let builder = Informer::builder(&runtime, "texts").index_with(&by_length);
    /// # drop(builder);
    /// // Of a running informer: by_length.range(&informer.snapshot(), 80..)?
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn index_with(mut self, index: impl Into<AnyIndex<S>>) -> Self {
        self.spec.indices.push(index.into());
        self
    }

    /// The bounds of the queue between reflectors and store. Each must be at least 1, otherwise the start is
    /// refused. Default: 512 parts, 4 MiB, batches of 250.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.spec.bounds = bounds;
        self
    }

    /// The resource that it follows, for its status and metrics.
    #[doc(hidden)]
    pub fn of_resource(mut self, resource: ResourceName) -> Self {
        self.spec.resource = Some(Arc::new(resource));
        self
    }

    /// The order in which parts leave the queue between reflectors and store. Default:
    /// [`QueueOrder::InOrder`], with which every snapshot is a state that the server had.
    pub fn queue_order(mut self, queue_order: QueueOrder) -> Self {
        self.spec.queue_order = queue_order;
        self
    }

    /// Subscriptions receive every object again once per period, unless they set their own period
    /// ([`SubscribeOptions::resync_every`](crate::subscription::SubscribeOptions::resync_every), where
    /// `Duration::MAX` means never). Default: never.
    pub fn resync_every(mut self, period: Duration) -> Self {
        self.spec.resync = Some(period);
        self
    }

    /// Subscriptions receive every event, one by one, as with
    /// [`SubscribeOptions::every`](crate::subscription::SubscribeOptions::every), unless they choose otherwise: by
    /// [`SubscribeOptions::newest`](crate::subscription::SubscribeOptions::newest), or by receiving
    /// keys alone. Default: [`Self::deliver_newest`].
    pub fn deliver_every(mut self, bytes: usize, when_full: WhenFull) -> Self {
        self.spec.policy = Policy::Every { bytes, when_full };
        self
    }

    /// A subscriber that lags receives the newest state of each object, unless it chooses every event. This
    /// is the default; it undoes [`Self::deliver_every`], for example in the settings of a factory.
    pub fn deliver_newest(mut self) -> Self {
        self.spec.policy = Policy::Coalesce;
        self
    }

    /// How often actors may be restarted. Default: each 5 times in 10 minutes, with waits that double from
    /// 0.8 s up to 30 s.
    pub fn restarts(mut self, policy: RestartPolicy) -> Self {
        self.spec.restarts = policy;
        self
    }

    /// Starts it and returns at once; nothing is listed yet.
    ///
    /// # Errors
    /// When the description contradicts itself, or the runtime was shut down.
    pub fn start(self) -> Result<Informer<S>, StartError> {
        let informer = self.declare()?;
        informer.begin();
        Ok(informer)
    }

    /// The informer before its start: its sources receive no request until [`Informer::begin`]. Everything
    /// else works on its handles as on those of a running one: subscriptions, listers, waits, indices,
    /// adding, removing and handing over sources, and the shutdown. So each part of a program can subscribe
    /// before the first event. Its state is
    /// [`SourceState::Declared`](informer_core::reflector::SourceState::Declared).
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// # #[cfg(feature = "testing")] {
    /// use actix_informer::informer::Informer;
    /// use actix_informer::runtime::Runtime;
    /// # use actix_informer::testing::Server;
    /// # use std::time::Duration;
    /// # Runtime::simulated(1).run(|runtime| async move {
    /// # let server = Server::<String>::new();
    /// # server.apply("default/web", "a text".to_owned());
    /// let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).declare()?;
    /// let audit = texts.for_each(|notify| async move { println!("{}", notify.key()) })?;
    /// let error = texts.synced_within(Duration::from_secs(3)).await.unwrap_err();
    /// assert!(error.to_string().contains("declared, not started (`begin`"), "{error}");
    /// texts.begin();
    /// audit.synced_within(Duration::from_secs(30)).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
    /// ```
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn declare(mut self) -> Result<Informer<S>, StartError> {
        for sources in self.namespaces {
            describe(&mut self.spec, sources)?;
        }
        let wanted = Arc::clone(&self.spec.name);
        let informer = Informer::declared(&self.runtime, self.spec)?;
        if *informer.name() != *wanted {
            let informer = informer.name();
            tracing::info!(target: "actix_informer::informer", informer, "{informer} is the name of this informer, because this runtime has one that is named {wanted}: if both follow the same objects, these are kept twice; an InformerFactory shares one informer");
        }
        all_informers::list(&informer);
        Ok(informer)
    }
}

informer_core::debug_as!([S: Body] InformerBuilder<S>, self,
    name = self.spec.name,
    sources = self.spec.sources
);
