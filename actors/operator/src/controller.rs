//! Controllers: each key to which something happens is reconciled until it is in order.
//!
//! Workers take keys from a queue and call the function, which reads the cache and gets no event. A key is
//! reconciled with a state at least as new as what happened to it, never twice at once, and not before the
//! caches show what its last reconcile wrote, within a bound. A panic, an error or a hang affects only its
//! own key. Keys wait, not objects; all that is kept is bounded.
//!
//! ```text
//!  primary informer ──▶ Listener ──key──────────┐
//!  other informers ───▶ Listener ──map──keys──▶ Book (WorkQueue) ──▶ worker 1..n ──▶ reconcile(Request)
//!  triggers, streams, period ────────────keys───┘        ▲               │ Outcome, error, panic, time limit
//!                                                        └── key ◀── caches have seen its writes
//! ```

use std::sync::Arc;
use std::time::Duration;

use informer_core::meta::ObjectKey;

pub use crate::controller::machine::{
    Causes, EventKind, Failure, KeptFigures, MOST_ANSWERED, MOST_CAUSES, MOST_DELETED, MOST_RESTING,
    MOST_WITH_CAUSES, MOST_WRITES, Outcome, Reason,
};
pub use any::AnyController;
pub use builder::{ControllerBuilder, ReadyController, StartControllerError};
pub use request::{Reconcile, ReconcileError, Request};
pub(crate) use start::RegisteredController;
pub use status::{ControllerState, ControllerStatus, Counts, HANGS_AFTER};
pub use trigger::Trigger;

pub use informer_actors::inner::Selected;

use crate::queue::{Added, NotDrained};
use any::Erased;
use informer_actors::informer::{AnyInformer, Body};
use informer_actors::inner::Registration;
use shared::Shared;
use tokio_util::sync::{CancellationToken, DropGuard};
use watched::Feeds;

mod any;
mod builder;
mod feed;
mod following;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod machine;
mod request;
mod shared;
mod start;
mod status;
#[cfg(test)]
mod tests;
mod trigger;
mod watched;
mod worker;

/// A running controller; the module's documentation describes it. Cloning copies a pointer; the last handle
/// dropped shuts it down.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use actix_informer::controller::{Controller, Outcome, Request};
/// use actix_informer::informer::Informer;
/// use actix_informer::runtime::Runtime;
/// # use actix_informer::testing::Server;
/// # use std::time::Duration;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let server = Server::<String>::new();
/// # server.apply("default/one", "1".to_owned());
/// let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
/// let controller = Controller::builder(&texts)
///     .workers(8)
///     .time_limit(Duration::from_secs(30))
///     .reconcile(|request: Request<String>| async move {
///         match request.object() {
///             Some(text) => println!("{} is {}", request.key(), text.body()),
///             None => println!("{} is gone", request.key()),
///         }
///         Ok(Outcome::Done)
///     })
///     .start()?;
/// # texts.synced().await?;
/// # tokio::time::sleep(Duration::from_secs(1)).await;
/// assert_eq!(controller.status().counts.succeeded, 1);
/// controller.drain(Duration::from_secs(10)).await?; // what waits is finished
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
/// ```
#[must_use = "a controller stops when its last handle is dropped, and `let _ = ..` drops it at once: keep it, as in `let controller = ..`"]
pub struct Controller<S: Body>(Arc<Handle<S>>);

struct Handle<S: Body> {
    shared: Arc<Shared<S>>,
    feeds: Feeds,
    registration: Option<Registration>,
}

impl<S: Body> Controller<S> {
    /// Its name.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// How it is doing. O(informers and keys that are being reconciled).
    pub fn status(&self) -> ControllerStatus {
        self.0.status()
    }

    /// The informers that it watches, the primary one first.
    pub fn informers(&self) -> Vec<AnyInformer> {
        self.0.informers()
    }

    /// Requests a reconcile of this key, also if it rests until its object changes. Returns at once; refused
    /// after the stop.
    pub fn trigger(&self, key: ObjectKey) -> Added {
        self.0.trigger(key)
    }

    /// A handle that does only that, and does not keep the controller running.
    pub fn triggers(&self) -> Trigger {
        Trigger::new(&self.0.shared)
    }

    /// Takes nothing new, and waits until what waits is reconciled and what runs has ended. Retries and
    /// delayed keys are discarded. If the informers have never been synced, or this program is not the
    /// leader, all keys that wait are discarded, too. At the limit what runs goes on: [`Self::shut_down`]
    /// ends it.
    ///
    /// # Errors
    /// When the time is up, or the runtime has ended: what is left.
    pub async fn drain(&self, limit: Duration) -> Result<(), NotDrained> {
        self.0.drain(limit).await
    }

    /// Takes nothing new, discards what waits, and signals what runs to end ([`Request::stopping`]); what
    /// still runs after the grace is dropped. Returns at once; [`Self::ended`] waits.
    pub fn shut_down(&self) {
        self.0.shut_down();
    }

    /// Waits until nothing of it runs any more, which follows a drain or a shutdown: no worker, no reconcile,
    /// no wait for a write and no stream of keys. A function has ended when its future is dropped, at the
    /// latest after the grace. An actor has ended when it has answered and has dropped its [`Request`]. An
    /// actor that is stuck is waited for without a limit, so give this wait one.
    pub async fn ended(&self) {
        self.0.shared.end.ended().await;
    }

    /// What says so after the last handle is dropped, too.
    pub fn end(&self) -> ControllerEnd {
        self.0.end()
    }
}

/// A controller, or an operator, that is dropped at once is a warning of the compiler.
///
/// ```
/// # #![deny(unused_must_use)]
/// # use informer_operator::controller::{Controller, Outcome, Request, StartControllerError};
/// # use informer_actors::informer::Informer;
/// fn start(texts: &Informer<String>) -> Result<(), StartControllerError> {
///     let reconcile = |_: Request<String>| async { Ok(Outcome::Done) };
///     let _controller = Controller::builder(texts).reconcile(reconcile).start()?;
///     Ok(())
/// }
/// ```
///
/// ```compile_fail
/// # #![deny(unused_must_use)]
/// # use informer_operator::controller::{Controller, Outcome, Request, StartControllerError};
/// # use informer_actors::informer::Informer;
/// fn start(texts: &Informer<String>) -> Result<(), StartControllerError> {
///     let reconcile = |_: Request<String>| async { Ok(Outcome::Done) };
///     Controller::builder(texts).reconcile(reconcile).start()?;
///     Ok(())
/// }
/// ```
///
/// ```
/// # #![deny(unused_must_use)]
/// # use informer_actors::runtime::Runtime;
/// # use informer_operator::lifecycle::{Operator, StartOperatorError};
/// fn start(runtime: &Runtime) -> Result<(), StartOperatorError> {
///     let _operator = Operator::builder(runtime).start()?;
///     Ok(())
/// }
/// ```
///
/// ```compile_fail
/// # #![deny(unused_must_use)]
/// # use informer_actors::runtime::Runtime;
/// # use informer_operator::lifecycle::{Operator, StartOperatorError};
/// fn start(runtime: &Runtime) -> Result<(), StartOperatorError> {
///     Operator::builder(runtime).start()?;
///     Ok(())
/// }
/// ```
#[cfg(doctest)]
struct Newcomer9DroppedAtOnce;

impl<S: Body> Drop for Handle<S> {
    fn drop(&mut self) {
        self.shut_down();
    }
}

informer_core::clone_of!([S: Body] Controller<S>);

informer_core::debug_as!([S: Body] Controller<S>, self, name = self.name());

/// Each worker, request, stream and wait of a controller holds one. The last drop is the end, also when a
/// tokio runtime ends.
#[derive(Clone)]
struct Task {
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
    fn new(name: &Arc<str>) -> (Self, Task) {
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

    /// As [`Controller::ended`].
    pub async fn ended(&self) {
        self.over.cancelled().await;
    }
}
