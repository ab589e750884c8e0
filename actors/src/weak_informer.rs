//! A reference to an informer that does not keep it running.
//!
//! Answers "how does a cache, a factory or a dashboard remember an informer without keeping it alive?". Invariants:
//! 1. It does not count as a handle: the last strong handle that is dropped stops the informer,
//!    however many weak ones there are.
//! 2. After that, [`WeakInformer::upgrade`] gives `None` for ever; an informer that was shut down is still given while
//!    it has a handle.
//!
//! Read next: `informer.rs`, the strong handle; `any_informer.rs`, the one without a type.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::informer::Informer;
use crate::pipeline::messages::Body;
use crate::running::Running;

/// A reference to an informer that does not keep it running. Cloning it copies two pointers.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use informer_actors::informer::Informer;
/// use informer_actors::runtime::Runtime;
/// # use informer_actors::testing::Server;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let server = Server::<String>::new();
/// let informer = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
/// let weak = informer.downgrade();
/// assert_eq!(weak.name(), "texts");
/// assert!(weak.upgrade().is_some());
/// drop(informer); // the last strong handle: the informer stops
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), informer_actors::informer::StartError>(()) }).unwrap(); }
/// ```
pub struct WeakInformer<S: Body> {
    running: Weak<Running<S>>,
    name: Arc<str>,
}

impl<S: Body> Informer<S> {
    /// A reference that does not keep this informer running. Costs one pointer and no message.
    pub fn downgrade(&self) -> WeakInformer<S> {
        WeakInformer { running: Arc::downgrade(&self.0), name: Arc::clone(&self.0.pipeline.parent.name) }
    }
}

impl<S: Body> WeakInformer<S> {
    /// The informer, if a handle, a lister or a subscription of it is still held anywhere. Never blocks.
    pub fn upgrade(&self) -> Option<Informer<S>> {
        self.running.upgrade().map(Informer)
    }

    /// The name that the informer has, or had.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl<S: Body> Clone for WeakInformer<S> {
    fn clone(&self) -> Self {
        Self { running: Weak::clone(&self.running), name: Arc::clone(&self.name) }
    }
}

impl<S: Body> fmt::Debug for WeakInformer<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakInformer").field("name", &self.name).finish_non_exhaustive()
    }
}
