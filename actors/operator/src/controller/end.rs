//! The end of a controller. Each worker, request, wait for a write and stream holds a [`Task`]; the last drop
//! is the end, also when a tokio runtime ends. The wait for the answer of an actor holds a [`Task`], too.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

#[derive(Clone)]
pub(super) struct Task {
    /// Its last drop marks the controller as ended.
    _end: Arc<DropGuard>,
}

/// Reports when nothing of a controller runs any more. It does not keep the controller running, so it can be
/// used after the last handle is dropped. Cloning copies a pointer.
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
    /// Also returns the first task.
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
