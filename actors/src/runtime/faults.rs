//! The fault hook: fail points at which a test may kill an actor.
//!
//! A hook panics inside the actor, as a bug would. Each site lies between two effects, where a death could lose or
//! repeat something. Without a hook a fail point costs one branch.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A fail point: a place in an actor where a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Site {
    /// The Reflector is being started.
    ReflectorStarted,
    /// The Reflector's session has received something.
    ReflectorReceived,
    /// The DeltaFifo is being started.
    DeltaFifoStarted,
    /// The DeltaFifo has received parts or a list, before it queues them.
    DeltaFifoPush,
    /// The DeltaFifo is asked for a batch, before it answers.
    DeltaFifoPop,
    /// The Indexer is being started.
    IndexerStarted,
    /// The Indexer has a batch, before it applies it.
    IndexerApply,
    /// The Indexer is in the middle of a Replace.
    IndexerReplace,
    /// The Indexer has published, before it sends the changes to the Processor.
    IndexerPublished,
    /// The Processor is being started.
    ProcessorStarted,
    /// The Processor attaches a listener.
    ProcessorAttach,
    /// The Processor has changes, before it sends them to a listener.
    ProcessorChanges,
    /// The Processor has sent changes to the listeners and waits for them.
    ProcessorFannedOut,
    /// A Listener is being started.
    ListenerStarted,
    /// A Listener has received changes, before it records them.
    ListenerChanges,
    /// The subscriber of a Listener has handled what was delivered, before the Listener notes it.
    ListenerHandled,
    /// The sources of a set of namespaces are about to be exchanged by a plan.
    NamespacesPlanned,
    /// The actor of a work queue is being started.
    WorkQueueStarted,
    /// The actor of a work queue was told that something has changed, or was asked for a key, before it looks.
    WorkQueueLook,
    /// The actor of a work queue has taken a key, before it hands it out.
    WorkQueueTaken,
    /// The actor of an event recorder is being started.
    RecorderStarted,
    /// The actor of an event recorder was told that something has changed, before it looks for requests.
    RecorderLook,
    /// The actor of an event recorder has an answer, before it records it.
    RecorderAnswered,
    /// The actor of a leader election is being started.
    ElectionStarted,
    /// The actor of a leader election is about to send a request.
    ElectionAsks,
    /// The actor of a leader election has an answer, before it takes it in.
    ElectionAnswered,
    /// The actor of an operator is being started.
    OperatorStarted,
    /// The actor of an operator was told that something has changed, or a part is due, before it looks.
    OperatorLook,
    /// The Supervisor has received an exit, before it decides.
    SupervisorExited,
    /// Any actor is about to be polled: a turn begins.
    TurnBegun,
    /// The poll of an actor has returned; not called if it panicked.
    TurnEnded,
    /// Any actor is being rebuilt after its own failure or a failure in its group.
    Rebuild,
    /// Any actor is being dropped at its end.
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
    /// Calls `hook` at every site; the hook panics where the test wants an actor to die.
    #[cfg(any(test, feature = "testing"))]
    pub fn new(hook: impl Fn(Site) + Send + Sync + 'static) -> Self {
        Self { hook: Some(Arc::new(hook)), stall: None }
    }

    /// While `stalled` is set, the Indexer skips its work at `site`: at [`Site::IndexerApply`] it loses the batch and
    /// does nothing more, at [`Site::IndexerReplace`] it takes its turns without any effect.
    #[cfg(any(test, feature = "testing"))]
    pub fn stalling(site: Site, stalled: Arc<AtomicBool>) -> Self {
        Self { hook: None, stall: Some((site, stalled)) }
    }

    pub(crate) fn stalls(&self, here: Site) -> bool {
        self.stall.as_ref().is_some_and(|(site, stalled)| *site == here && stalled.load(Ordering::Relaxed))
    }

    /// Calls the hook, if one is installed.
    #[doc(hidden)]
    pub fn fail_point(&self, site: Site) {
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
