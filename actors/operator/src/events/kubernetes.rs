//! Events about objects: what `kubectl describe` shows below an object.
//!
//! An event never delays or fails a reconcile: [`Recorder::event`] waits for nothing; what cannot be taken is
//! dropped and counted ([`figures`](events::EventRecorder::figures)). Repeats are counted in one event of the
//! server. From the tenth on, events of an object that differ only in their notes share one. An object has 25
//! requests at once, and one more each five minutes. What the server refuses is logged once in ten minutes,
//! and counted by its reason.
//!
//! The program needs the verbs `create` and `patch` of `events` in the group `events.k8s.io` (with
//! [`RecorderBuilder::core_v1`]: in the core group).

use std::ops::Deref;
use std::time::Duration;

use crate::events;
pub use crate::events::machine::{
    DropReason, Emitted, Event, EventText, EventType, LastError, RecorderFigures, Reference,
};
use crate::events::machine::{RecorderConfig, Repeats};
use informer_actors::runtime::Runtime;

pub use self::regarding::{Cached, Dynamic, Referenced, Regarding, Typed};
use self::sink::Sink;
pub use crate::events::NotFlushed;
use informer_client::{Client, LabelSelector};

mod regarding;
mod sink;

/// No recorder was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// Servers accept as the name of a controller what they accept as the key of a label.
    #[error(
        "{0:?} is not the name of a controller, such as website-operator or example.com/website-operator"
    )]
    Controller(String),
    /// The name of an instance has 1 to 128 bytes.
    #[error("{0:?} is not the name of an instance: it has 1 to 128 bytes")]
    Instance(String),
}

/// Sends the events of one controller; the module's documentation describes it. Cloning is cheap. What waits
/// when the last clone is dropped is still sent, as long as the runtime runs. What else it can do is described
/// at [`EventRecorder`](events::EventRecorder), to which it derefs: `figures`, `flush`, `shutdown`.
///
/// ```
/// use actix_informer::events::{EventText, EventType, Recorder};
/// use actix_informer::prelude::*;
/// use actix_informer::testing::ApiServer;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use std::time::Duration;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::builder().start().await?; // or a cluster: Client::from_environment()
/// let client = Client::new(Config::new(server.url())?)?;
/// let runtime = Runtime::threads().start()?;
/// let recorder = Recorder::builder(&client, &runtime, "price-operator").start()?;
///
/// let mut prices = ConfigMap::default();
/// prices.metadata.name = Some("prices".to_owned());
/// let maps = client.api::<ConfigMap>().namespaced("default");
/// let prices = maps.create(&PostParams::default(), &prices).await?;
/// let text = EventText { reason: "PricesRead", action: "Read", note: "12 prices are known" };
/// recorder.event(&prices, EventType::Normal, text);
///
/// recorder.shutdown(Duration::from_secs(5)).await?; // at the end: what waits is sent
/// assert_eq!(recorder.figures().created, 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Recorder {
    inner: events::EventRecorder,
}

/// The settings of a recorder that is not started yet. The defaults are client-go's.
#[must_use = "a builder does nothing until it is started"]
pub struct RecorderBuilder {
    client: Client,
    runtime: Runtime,
    controller: String,
    instance: Option<String>,
    config: RecorderConfig,
    spam_key: Option<SpamKey>,
}

type SpamKey = Box<dyn Fn(&Event) -> String + Send + Sync>;

/// An object about which something is to be said; made by [`Recorder::about`].
#[derive(Debug, Clone)]
#[must_use = "nothing is said yet"]
pub struct About<'a> {
    recorder: &'a Recorder,
    regarding: Reference,
    related: Option<Reference>,
}

impl Recorder {
    /// The builder of the recorder of the controller with this name, which each event names.
    pub fn builder(client: &Client, runtime: &Runtime, controller: impl Into<String>) -> RecorderBuilder {
        RecorderBuilder {
            client: client.clone(),
            runtime: runtime.clone(),
            controller: controller.into(),
            instance: None,
            config: RecorderConfig::default(),
            spam_key: None,
        }
    }

    /// Says something about an object: an object of any type, one of a cache, or a reference to one.
    ///
    /// Does not block, and waits for nothing. What is returned may be ignored: what is dropped is counted.
    pub fn event<M>(
        &self,
        object: &impl Regarding<M>,
        event_type: EventType,
        text: EventText<'_>,
    ) -> Emitted {
        self.about(object).event(event_type, text)
    }

    /// An object about which several things are to be said, or one that has to do with another object.
    ///
    /// ```no_run
    /// # use actix_informer::events::{EventText, EventType, Recorder};
    /// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
    /// # fn demo(recorder: &Recorder, map: &ConfigMap, deployment: &Deployment) {
    /// let text = EventText { reason: "Rolled", action: "Roll", note: "the deployment has the new prices" };
    /// recorder.about(map).related(deployment).event(EventType::Normal, text);
    /// # }
    /// ```
    pub fn about<M>(&self, object: &impl Regarding<M>) -> About<'_> {
        About { recorder: self, regarding: object.reference(), related: None }
    }

    /// The name of the controller whose events it sends.
    pub fn controller(&self) -> &str {
        self.inner.name()
    }
}

impl Deref for Recorder {
    type Target = events::EventRecorder;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

informer_core::debug_as!(Recorder, self, controller = self.inner.name());

impl About<'_> {
    /// Names another object that has to do with it, such as the child that was made.
    pub fn related<M>(mut self, object: &impl Regarding<M>) -> Self {
        self.related = Some(object.reference());
        self
    }

    /// Says something about it; see [`Recorder::event`].
    pub fn event(&self, event_type: EventType, text: EventText<'_>) -> Emitted {
        let mut event = Event::new(self.regarding.clone(), event_type, text);
        event.related.clone_from(&self.related);
        self.recorder.inner.emit(event)
    }
}

impl RecorderBuilder {
    /// The name of this process, which each event names. Unless set, it is the value of `HOSTNAME`, which is
    /// the name of the pod; without it, the name of the controller.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// Sends events of the core group, as older programs do, instead of `events.k8s.io`: each repeat is a
    /// request that changes the count. Both are the same objects on the server.
    pub fn core_v1(mut self) -> Self {
        self.config.repeats = Repeats::Count;
        self
    }

    /// How many events may wait for the server; then new ones are dropped. 1,000 unless set.
    pub fn queue(mut self, events: usize) -> Self {
        self.config.queue = events;
        self
    }

    /// How many requests the events of one object may cause at once, and how long it takes until it may cause
    /// one more. 25 and 300 s unless set.
    pub fn spam_limit(mut self, at_once: u32, one_more_each: Duration) -> Self {
        (self.config.burst, self.config.refill) = (at_once, one_more_each);
        self
    }

    /// Events with the same text share that limit. Unless set, the events of one object do. It is called
    /// where an event is emitted.
    pub fn spam_key(mut self, key: impl Fn(&Event) -> String + Send + Sync + 'static) -> Self {
        self.spam_key = Some(Box::new(key));
        self
    }

    /// Similar events are sent as one from this many notes on, if each comes within this time after the one
    /// before. 10 and 600 s unless set; always from the 4,097th note on.
    pub fn combine(mut self, notes: u32, within: Duration) -> Self {
        (self.config.combined, self.config.combined_within) = (notes, within);
        self
    }

    /// Starts the recorder's actor.
    ///
    /// # Errors
    /// When no server would accept its names.
    pub fn start(self) -> Result<Recorder, RecorderError> {
        let Self { client, runtime, controller, instance, config, spam_key } = self;
        if LabelSelector::everything().has(&controller).is_err() {
            return Err(RecorderError::Controller(controller));
        }
        let hostname = || std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
        let instance = instance.or_else(hostname).unwrap_or_else(|| controller.clone());
        if instance.is_empty() || instance.len() > 128 {
            return Err(RecorderError::Instance(instance));
        }
        runtime.observe(client.backend().traffic());
        let sink = Sink::new(client, (&controller, &instance), config.repeats);
        let inner = events::EventRecorder::start(&runtime, controller, config, sink);
        let inner = match spam_key {
            Some(key) => inner.spam_key(key),
            None => inner,
        };
        Ok(Recorder { inner })
    }
}

informer_core::debug_as!(RecorderBuilder, self, controller = self.controller);
