//! The end of a controller: the moment from which nothing of it runs any more.
//!
//! Answers "does a reconcile still work, wherever it runs, also when every handle of its controller is gone?". Whatever
//! works for a controller holds a [`Task`]: each worker, each request, each wait for a write, each stream. Invariants:
//! 1. A controller has ended when its last `Task` is dropped, whatever dropped it: also a tokio runtime that has ended.
//! 2. A request is part of its controller until it is dropped. What an actor does with it counts until its answer.
//!
//! Read next: `start.rs` and `worker.rs`, which hold them.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

/// Something that works for a controller. Cloning copies a pointer.
#[derive(Clone)]
pub(super) struct Task {
    /// Its last drop says that the controller has ended.
    _end: Arc<DropGuard>,
}

/// Says when nothing of a controller runs any more. It does not keep the controller running, so it can be asked after
/// the last handle is dropped. Cloning copies a pointer.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use actix_informer::controller::{Controller, Outcome, Request};
/// # use actix_informer::informer::Informer;
/// # use actix_informer::runtime::Runtime;
/// # use actix_informer::testing::Server;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let server = Server::<String>::new();
/// # let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
/// let reconcile = |_: Request<String>| async { Ok(Outcome::Done) };
/// let controller = Controller::builder(&texts).reconcile(reconcile).start()?;
/// let end = controller.end();
/// drop(controller); // it is shut down, and what runs has its grace
/// assert!(!end.has_ended());
/// end.ended().await;
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
/// ```
#[derive(Debug, Clone)]
pub struct ControllerEnd {
    name: Arc<str>,
    over: CancellationToken,
}

impl ControllerEnd {
    /// That of a controller which is about to start, and the first of its tasks.
    pub(super) fn new(name: &Arc<str>) -> (Self, Task) {
        let over = CancellationToken::new();
        let task = Task { _end: Arc::new(over.clone().drop_guard()) };
        (Self { name: Arc::clone(name), over }, task)
    }

    /// The name of the controller.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether nothing of it runs any more.
    pub fn has_ended(&self) -> bool {
        self.over.is_cancelled()
    }

    /// As [`Controller::ended`](super::Controller::ended).
    pub async fn ended(&self) {
        self.over.cancelled().await;
    }
}
