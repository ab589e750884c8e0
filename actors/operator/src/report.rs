//! A report of everything that runs on a runtime.
//!
//! A call copies figures and sends no message to an actor, so it also works when a thread is blocked. Entries
//! come in the order in which they were made. An informer or a work queue is listed until nothing of it runs
//! any more, a subscription until no actor runs for it.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::controller::{ControllerStatus, RegisteredController};
use crate::election::{ElectionStatus, RegisteredElection};
use crate::events::{RecorderReport, RegisteredRecorder};
use crate::lifecycle::{OperatorStatus, RegisteredOperator};
use crate::queue::{QueueReport, RegisteredQueue};
use informer_actors::inner::{informer_reports, memory_of};
use informer_actors::runtime::{ArbiterHealth, Runtime};
use informer_actors::status::{InformerReport, MemoryReport};
#[cfg(feature = "kubernetes")]
use informer_client::{ClientFigures, inner::Traffic};

/// How a runtime and everything on it is doing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RuntimeReport {
    /// When it was made, as time since the runtime's start.
    pub at: Duration,
    /// Its threads for actors and async closures.
    pub arbiters: Vec<ArbiterHealth>,
    /// Bytes that are dropped and not yet freed.
    pub bytes_to_free: usize,
    /// Its informers.
    pub informers: Vec<InformerReport>,
    /// Its work queues, those of controllers, too.
    pub work_queues: Vec<QueueReport>,
    /// Its controllers that have a handle.
    pub controllers: Vec<ControllerStatus>,
    /// Its operators with their parts.
    pub operators: Vec<OperatorStatus>,
    /// Its event recorders.
    pub recorders: Vec<RecorderReport>,
    /// Its leader elections.
    pub elections: Vec<ElectionStatus>,
    /// The clients of its informers, recorders and elections, and those that it carries: clones of one client
    /// are one. A client is listed until nothing uses it any more.
    #[cfg(feature = "kubernetes")]
    pub clients: Vec<ClientFigures>,
}

/// The report of a runtime. In the prelude.
pub trait Reporting {
    /// How it and everything on it is doing: all figures that there are. Blocks for no longer than copies
    /// take; its cost grows with the number of informers, sources, subscriptions, queues and keys that are
    /// being processed, and with nothing else.
    fn report(&self) -> RuntimeReport;

    /// What the caches of its informers hold: bytes by kind and by field, of samples. Costs some microseconds for each
    /// informer. See [`MemoryReport`].
    ///
    /// ```
    /// use actix_informer::prelude::*;
    ///
    /// let runtime = Runtime::threads().start()?;
    /// let memory = runtime.memory();
    /// println!("{memory}");
    /// if let Some(largest) = memory.informers.first() {
    ///     let saved = largest.share_of(&["status", "metadata.annotations"]);
    ///     println!("{}: without these two {:.0} % less", largest.informer, saved * 100.0);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn memory(&self) -> MemoryReport;
}

impl Reporting for Runtime {
    fn memory(&self) -> MemoryReport {
        memory_of(&self.registrants())
    }

    fn report(&self) -> RuntimeReport {
        let registrants = self.registrants();
        RuntimeReport {
            at: self.now(),
            arbiters: self.arbiters(),
            bytes_to_free: self.bytes_to_free(),
            informers: informer_reports(&registrants),
            work_queues: of_kind::<RegisteredQueue>(&registrants).map(|queue| queue.report()).collect(),
            controllers: of_kind::<RegisteredController>(&registrants)
                .filter_map(|controller| controller.status())
                .collect(),
            operators: of_kind::<RegisteredOperator>(&registrants)
                .map(|operator| operator.status())
                .collect(),
            recorders: of_kind::<RegisteredRecorder>(&registrants)
                .map(|recorder| recorder.report())
                .collect(),
            elections: of_kind::<RegisteredElection>(&registrants)
                .map(|election| election.report())
                .collect(),
            #[cfg(feature = "kubernetes")]
            clients: of_kind::<Traffic>(&self.observed()).map(|client| client.figures()).collect(),
        }
    }
}

fn of_kind<T: Any + Send + Sync>(registrants: &[Arc<dyn Any + Send + Sync>]) -> impl Iterator<Item = Arc<T>> {
    registrants.iter().filter_map(|registrant| Arc::clone(registrant).downcast().ok())
}
