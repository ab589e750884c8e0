//! A controller in the report of its runtime, and its stop when the runtime ends first.
//!
//! Answers "which controllers run here, and how is each doing?". A controller is listed as long as it has a handle; being
//! listed keeps nothing running. Read next: `status.rs`, what is shown; `runtime/registry.rs`.

use std::fmt;
use std::sync::{Arc, Weak};

use tokio_util::sync::CancellationToken;

use super::{ControllerStatus, Handle};
use crate::pipeline::messages::Body;
use crate::runtime::Registrant;

/// A controller of any kind, as its runtime knows it.
pub(crate) struct RegisteredController(Weak<dyn Reported>);

impl RegisteredController {
    /// How it is doing; `None` when its last handle was dropped.
    pub(crate) fn status(&self) -> Option<ControllerStatus> {
        self.0.upgrade().map(|controller| controller.status())
    }
}

/// Lists this controller until its last handle is dropped.
pub(super) fn list<S: Body>(handle: &Arc<Handle<S>>) {
    let weak = Arc::downgrade(handle);
    if let Some(registration) = &handle.registration {
        registration.list(Arc::new(RegisteredController(weak)));
    }
}

impl Registrant for RegisteredController {
    fn stop(&self) {
        if let Some(controller) = self.0.upgrade() {
            controller.stop();
        }
    }

    fn abandon(&self) {}

    fn over(&self) -> CancellationToken {
        // The threads of the runtime are waited for by the runtime. What runs on the program's own tokio runtime is not:
        // it may need the thread that waits here. `Controller::ended` waits for it.
        let over = CancellationToken::new();
        over.cancel();
        over
    }
}

impl fmt::Debug for RegisteredController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegisteredController").field(&self.status().map(|status| status.name)).finish()
    }
}

/// What a runtime needs of a controller, whatever its objects are.
trait Reported: Send + Sync {
    fn status(&self) -> ControllerStatus;
    fn stop(&self);
}

impl<S: Body> Reported for Handle<S> {
    fn status(&self) -> ControllerStatus {
        self.shared.status(&self.feeds)
    }

    fn stop(&self) {
        self.shared.shut_down(&self.feeds);
    }
}
