//! The fault hook: where a test may kill an actor in mid-message.
//!
//! Answers "what if this actor dies exactly here?". In production the hook is empty and costs one branch; with the
//! feature `testing` a script of sites is installed and a strike panics inside the actor, as a bug of ours would.
//! Invariants:
//! 1. Without an installed hook a strike does nothing, and nothing stalls.
//! 2. Sites name places between two effects, where dying could lose or repeat something.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A place in an actor where a fault can strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Site {
    /// The Reflector is being started.
    ReflectorStarted,
    /// The Reflector's session has received something.
    ReflectorReceived,
    /// The DeltaFifo is being started.
    DeltaFifoStarted,
    /// The DeltaFifo has been handed parts or a list, before it queues them.
    DeltaFifoPush,
    /// The DeltaFifo is asked for a batch, before it answers.
    DeltaFifoPop,
    /// The Indexer is being started.
    IndexerStarted,
    /// The Indexer has a batch, before it applies it.
    IndexerApply,
    /// The Indexer is in the middle of a Replace.
    IndexerReplace,
    /// The Indexer has published and not yet told the Processor.
    IndexerPublished,
    /// The Processor is being started.
    ProcessorStarted,
    /// The Processor has changes, before it tells a listener.
    ProcessorChanges,
    /// The Processor has sent changes to the listeners and waits for them.
    ProcessorFannedOut,
    /// A Listener is being started.
    ListenerStarted,
    /// A Listener has been handed what it owes, before it records it.
    ListenerOwed,
    /// The Supervisor has been told of an exit, before it decides.
    SupervisorExited,
    /// Any actor is being rebuilt after its death, or that of its group.
    Rebuild,
    /// Any actor is being dropped, for good.
    Dropped,
}

type Hook = Arc<dyn Fn(Site) + Send + Sync>;

/// The installed hook, if any.
#[derive(Clone, Default)]
pub struct Faults {
    hook: Option<Hook>,
    stall: Option<(Site, Arc<AtomicBool>)>,
}

impl Faults {
    /// Calls `hook` at every site; a test's hook panics where it wants to.
    #[cfg(any(test, feature = "testing"))]
    pub fn new(hook: impl Fn(Site) + Send + Sync + 'static) -> Self {
        Self { hook: Some(Arc::new(hook)), stall: None }
    }

    /// While `stalled` is set, the Indexer does not do what it is about to do at `site`: at [`Site::IndexerApply`] it
    /// loses the batch and goes on with nothing, at [`Site::IndexerReplace`] it takes its turns without any effect.
    #[cfg(any(test, feature = "testing"))]
    pub fn stalling(site: Site, stalled: Arc<AtomicBool>) -> Self {
        Self { hook: None, stall: Some((site, stalled)) }
    }

    /// Whether what is to be done at this site is left undone.
    pub(crate) fn stalls(&self, here: Site) -> bool {
        self.stall.as_ref().is_some_and(|(site, stalled)| *site == here && stalled.load(Ordering::Relaxed))
    }

    /// Gives the hook its chance.
    pub(crate) fn strike(&self, site: Site) {
        if let Some(hook) = &self.hook {
            hook(site);
        }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.hook.is_some() || self.stall.is_some() {
            "Faults(installed)"
        } else {
            "Faults(none)"
        })
    }
}
