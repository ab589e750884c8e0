//! A reference to an informer that does not keep it running. It upgrades while there is a handle, also after a
//! shutdown.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::informer::Informer;
use crate::pipeline::messages::Body;
use crate::running::Running;
use crate::runtime::within;

/// A reference to an informer that does not keep it running. Cloning it copies a few pointers.
///
/// ```
/// # use informer_actors::face as actix_informer;
/// # #[cfg(feature = "testing")] {
/// use actix_informer::informer::Informer;
/// use actix_informer::runtime::Runtime;
/// # use actix_informer::testing::Server;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let server = Server::<String>::new();
/// let informer = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
/// let weak = informer.downgrade();
/// assert_eq!(weak.name(), "texts");
/// assert!(weak.upgrade().is_some());
/// drop(informer); // the last strong handle: the informer stops
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), actix_informer::informer::StartError>(()) }).unwrap(); }
/// ```
pub struct WeakInformer<S: Body> {
    running: Weak<Running<S>>,
    name: Arc<str>,
    stop_reading: CancellationToken,
    over: CancellationToken,
}

impl<S: Body> Informer<S> {
    /// A reference that does not keep this informer running. Costs a few pointers and no message.
    pub fn downgrade(&self) -> WeakInformer<S> {
        let ending = &self.0.ending;
        let (running, over) = (Arc::downgrade(&self.0), ending.over.clone());
        let stop_reading = ending.stop_reading.clone();
        WeakInformer { running, name: Arc::clone(&self.0.pipeline.parent.name), stop_reading, over }
    }
}

impl<S: Body> WeakInformer<S> {
    /// The informer, while a handle, a lister or a subscription of it exists anywhere. Never blocks.
    pub fn upgrade(&self) -> Option<Informer<S>> {
        self.running.upgrade().map(Informer)
    }

    /// Whether a handle, a lister or a subscription exists anywhere: whether [`Self::upgrade`] would return
    /// one.
    pub fn is_held(&self) -> bool {
        self.running.strong_count() > 0
    }

    /// Waits until the informer has stopped and all of its actors have ended.
    pub async fn ended(&self) {
        self.over.cancelled().await;
    }

    /// As [`Self::ended`], for at most `limit`; false at the limit.
    pub async fn ended_within(&self, limit: Duration) -> bool {
        within(limit, self.ended()).await.is_some()
    }

    /// Whether the informer was stopped, or is being stopped, as [`Informer::has_stopped`].
    pub fn has_stopped(&self) -> bool {
        self.stop_reading.is_cancelled()
    }

    /// Whether the informer has stopped and all of its actors have ended. Never blocks.
    pub fn has_ended(&self) -> bool {
        self.over.is_cancelled()
    }

    pub(crate) fn is(&self, informer: &Informer<S>) -> bool {
        std::ptr::eq(self.running.as_ptr(), Arc::as_ptr(&informer.0))
    }

    /// The name that the informer has, or had.
    pub fn name(&self) -> &str {
        &self.name
    }
}

informer_core::clone_of!([S: Body] WeakInformer<S> { running, name, stop_reading, over });

informer_core::debug_as!([S: Body] WeakInformer<S>, self, name = self.name);
