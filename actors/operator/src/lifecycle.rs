//! An operator: its probes, caches, controllers and election start in order, stop in reverse, and fail alone.
//!
//! A part is anything that implements [`Part`]; one supervised actor starts and stops them. A part that
//! fails, panics or hangs is started again or waits alone; the status shows why. A lost lease drops only the
//! leader's work. Nothing installs a signal handler.
//!
//! ```text
//!  start:  probes ─▶ caches ─▶ (each is ready) ─▶ work, election, events ─▶ (the lease is acquired) ─▶ the leader's work
//!  stop:   probes ◀─ caches ◀─────────────────── work ◀─ election (releases the lease) ◀─ events ◀─── the leader's work
//! ```

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::lifecycle::machine::Lifecycle;
use actix::Addr;
use tokio_util::sync::CancellationToken;

pub use crate::lifecycle::machine::{DrainLimits, PartState, Phase, Stage};
pub use builder::{OperatorBuilder, StartOperatorError};
pub use controller::{ControllerPart, controller};
pub use part::{Part, PartContext, PartError, Stale, StaleLimit, Task, task};
pub use status::{OperatorReport, OperatorStatus, PartEnd, PartStatus};

use content::Content;
use informer_actors::inner::{Locked, Registrant, Run, Runner, Signal, within};
use informer_actors::runtime::Runtime;
use run::Executor;
use status::Named;

mod actor;
mod builder;
mod cache;
mod content;
mod controller;
#[cfg(feature = "kubernetes")]
mod kubernetes;
pub mod machine;
mod part;
mod run;
mod status;

/// For what parts do not report.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A running operator. Cheap to clone; when the last handle is dropped, every part is dropped at once:
/// [`Self::drain`] ends them in order.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use actix_informer::informer::Informer;
/// use actix_informer::operator::{Operator, PartContext, task};
/// use actix_informer::runtime::Runtime;
/// # use actix_informer::testing::Server;
/// # use std::time::Duration;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let server = Server::<String>::new();
/// let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).declare()?;
/// let reader = texts.clone();
/// let count = task("count", move |context: PartContext| {
///     let reader = reader.clone();
///     async move {
///         println!("{} texts", reader.snapshot().len()); // the cache is filled
///         context.ready();
///         context.stopping().await; // what it has begun it ends here
///         Ok(())
///     }
/// });
/// let operator = Operator::builder(&runtime).name("demo").cache(texts).work(count).start()?;
/// operator.ready_within(Duration::from_secs(30)).await?; // the error names what is missing, and why
/// let report = operator.drain().await;
/// assert!(report.is_clean(), "{report}");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
/// ```
#[derive(Clone)]
#[must_use = "an operator ends when its last handle is dropped, and `let _ = ..` drops it at once: keep it, as in `let operator = ..`"]
pub struct Operator {
    view: OperatorView,
    _last: Arc<LastHandle>,
}

/// What probes and the parts see of an operator. It keeps nothing running.
#[derive(Clone)]
pub struct OperatorView(Arc<Shared>);

/// Not every part is ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operator {operator:?} is not ready: {}", missing.join("; "))]
#[non_exhaustive]
pub struct NotReady {
    /// The operator.
    pub operator: Arc<str>,
    /// What is missing, each with the reason.
    pub missing: Vec<String>,
}

struct Shared {
    name: Arc<str>,
    runtime: Runtime,
    /// In the order of their starts.
    parts: Vec<Named>,
    executor: Executor,
    content: Locked<Content>,
    actor: Addr<Runner<Self>>,
    changed: Signal,
    has_ended: AtomicBool,
    stop: CancellationToken,
    /// Cancelled when nothing of the actor exists any more.
    over: CancellationToken,
}

pub(crate) struct RegisteredOperator(Arc<Shared>);

struct LastHandle(Arc<Shared>);

impl Operator {
    /// The builder of an operator whose actor runs on this runtime.
    pub fn builder(runtime: &Runtime) -> OperatorBuilder {
        OperatorBuilder::new(runtime)
    }

    /// Waits until nothing is missing.
    ///
    /// # Errors
    /// At the limit, or when it stops before: what is missing.
    pub async fn ready_within(&self, limit: Duration) -> Result<(), NotReady> {
        let ready = async {
            loop {
                let status =
                    self.wait_until(|status| status.unready().is_empty() || status.stage != Stage::Running);
                // A part that was stale for too long becomes ready without a change of the operator.
                if let Some(status) = within(LOOK_AGAIN, status).await {
                    return status.unready().is_empty();
                }
            }
        };
        if within(limit, ready).await == Some(true) {
            return Ok(());
        }
        Err(NotReady { operator: Arc::clone(&self.view.0.name), missing: self.unready() })
    }

    /// Waits until the status satisfies `enough`, and returns it. It also returns when the operator has
    /// stopped, since nothing changes after that. `enough` is called once for each change that is seen, and
    /// must not block.
    pub async fn wait_until(&self, enough: impl FnMut(&OperatorStatus) -> bool) -> OperatorStatus {
        self.view.0.wait_until(enough).await
    }

    /// Ends every part in reverse order, each phase within its limit, and waits for it. What does not end in
    /// time is dropped. Then no part holds anything any more: a port is free. Further calls wait for the same
    /// end.
    pub async fn drain(&self) -> OperatorReport {
        self.view.0.change(|lifecycle, now| lifecycle.stop(now));
        let status = self.wait_until(|status| status.stage == Stage::Stopped).await;
        // Every part has then ended what it holds.
        self.view.0.over.cancelled().await;
        OperatorReport::of(&status)
    }

    /// Runs until `stop` is ready, or until it is drained or shut down by another handle; then drains. Pass
    /// the future of a signal to end with it: nothing here installs a handler.
    pub async fn run_until(&self, stop: impl Future) -> OperatorReport {
        tokio::select! {
            biased;
            _ = stop => {}
            _status = self.wait_until(|status| status.stage != Stage::Running) => {}
        }
        self.drain().await
    }

    /// Drops every part at once, without waiting.
    pub fn shut_down(&self) {
        self.view.0.end();
    }

    /// What probes see. It does not keep the operator running.
    pub fn view(&self) -> &OperatorView {
        &self.view
    }

    /// The name of the operator.
    pub fn name(&self) -> &str {
        self.view.name()
    }

    /// As [`OperatorView::status`].
    pub fn status(&self) -> OperatorStatus {
        self.view.status()
    }

    /// As [`OperatorView::unready`].
    pub fn unready(&self) -> Vec<String> {
        self.view.unready()
    }
}

impl OperatorView {
    /// The name of the operator.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How it and each of its parts is doing.
    pub fn status(&self) -> OperatorStatus {
        self.0.status()
    }

    /// What is missing until it can do its work, each with the reason; empty when it is ready. A replica that
    /// waits for the lease is ready. So is a part whose data is out of date ([`Part::stale`]), unless it has
    /// a limit ([`Part::unready_when_stale_for`]).
    pub fn unready(&self) -> Vec<String> {
        self.status().unready()
    }

    /// Why the process should be restarted: parts that are not started again, and what [`Part::unhealthy`]
    /// returns. Empty if a restart would not help.
    pub fn unhealthy(&self) -> Vec<String> {
        self.status().unhealthy()
    }

    /// The runtime of its actor.
    pub fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }
}

impl Shared {
    fn change<R>(&self, call: impl FnOnce(&mut Lifecycle, Duration) -> R) -> R {
        let result = self.with(call);
        self.tell();
        result
    }

    fn tell(&self) {
        self.changed.raise();
        Run::tell(self, &self.actor);
    }

    fn end(&self) {
        self.kill_all();
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            self.parts.iter().for_each(Named::end);
        }
        self.stop.cancel();
        self.changed.raise();
    }

    async fn wait_until(&self, mut enough: impl FnMut(&OperatorStatus) -> bool) -> OperatorStatus {
        let look = || {
            let status = self.status();
            (enough(&status) || status.stage == Stage::Stopped).then_some(status)
        };
        self.changed.until(look).await
    }
}

impl RegisteredOperator {
    pub(crate) fn status(&self) -> OperatorStatus {
        self.0.status()
    }
}

impl Registrant for RegisteredOperator {
    fn stop(&self) {
        self.0.end();
    }

    fn abandon(&self) {
        self.0.end();
        self.0.over.cancel();
    }

    fn over(&self) -> CancellationToken {
        self.0.over.clone()
    }
}

impl Drop for LastHandle {
    fn drop(&mut self) {
        self.0.end();
    }
}

informer_core::debug_as!(Operator, self, name = self.name());

informer_core::debug_as!(OperatorView, self, name = self.name());
