//! A controller as a part of an operator. Each life of the part is a new controller.
//!
//! 1. A dropped life shuts its controller down, and ends with its last reconcile: two lives never work at
//!    once.
//! 2. It is ready when its informers are synced; until then it names the others.
//! 3. Its drain leaves the grace: reconciles still running then are told to end, and dropped at the end of
//!    the time. If an actor works on, the lease is not released.
//! 4. The loss of an informer is a failure of the part.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, try_join_all};

use super::part::{Part, PartContext, PartError};
use crate::controller::AnyController;
use informer_actors::informer::AnyInformer;

/// A part made of a function that starts a controller, by [`controller`].
pub struct ControllerPart<F> {
    name: Arc<str>,
    start: F,
}

/// A part of this name that starts a controller with this function for each of its lives: once, or as
/// leader's work each time the lease is acquired. When the lease is lost, the controller takes no more keys.
/// A reconcile that runs is told to end, and is dropped after the grace of the controller; set this grace to
/// zero for a leader whose client is not guarded. The election of this operator does not lead again until the
/// controller has ended. An error of the function is a failure of the part, which is started again later.
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use actix_informer::controller::{Controller, Outcome, Request};
/// use actix_informer::informer::Informer;
/// use actix_informer::operator::{Operator, controller};
/// use actix_informer::runtime::Runtime;
/// # use actix_informer::testing::Server;
/// # use std::time::Duration;
/// # Runtime::simulated(1).run(|runtime| async move {
/// # let server = Server::<String>::new();
/// let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).declare()?;
/// let source = texts.clone();
/// let labeller = controller("labeller", move || {
///     let reconcile = |_: Request<String>| async { Ok(Outcome::Done) };
///     Controller::builder(&source).reconcile(reconcile).start()
/// });
/// let operator = Operator::builder(&runtime).cache(texts).leader_work(labeller).start()?;
/// operator.ready_within(Duration::from_secs(30)).await?;
/// assert!(operator.drain().await.is_clean());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap(); }
/// ```
pub fn controller<F, C, E>(name: impl Into<Arc<str>>, start: F) -> ControllerPart<F>
where
    F: Fn() -> Result<C, E> + Send + Sync + 'static,
    C: Into<AnyController>,
    E: Into<PartError>,
{
    ControllerPart { name: name.into(), start }
}

impl<F, C, E> Part for ControllerPart<F>
where
    F: Fn() -> Result<C, E> + Send + Sync + 'static,
    C: Into<AnyController>,
    E: Into<PartError>,
{
    fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    fn run(&self, context: PartContext) -> BoxFuture<'static, Result<(), PartError>> {
        match (self.start)() {
            Ok(controller) => run(controller.into(), context).boxed(),
            Err(error) => std::future::ready(Err(error.into())).boxed(),
        }
    }
}

informer_core::debug_as!([F] ControllerPart<F>, self, name = self.name);

async fn run(controller: AnyController, context: PartContext) -> Result<(), PartError> {
    let left = controller.clone();
    context.outlives(async move {
        left.shut_down();
        left.ended().await;
    });
    let informers = controller.informers();
    let awaited = informers.clone();
    context.waits_for(move || unsynced(&awaited));
    tokio::select! {
        biased;
        limit = context.stopping() => return drain(&controller, limit).await,
        synced = try_join_all(informers.iter().map(|informer| informer.synced())) => drop(synced?),
    }
    drop(informers);
    context.ready();
    tokio::select! {
        biased;
        limit = context.stopping() => drain(&controller, limit).await,
        () = controller.lost() => Err(format!("it does not follow {}", controller.status().not_followed.join(", ")).into()),
    }
}

fn unsynced(informers: &[AnyInformer]) -> Option<String> {
    let missing = informers.iter().filter_map(|informer| {
        let why = Part::missing(informer)?;
        Some(format!("informer {} is not synced: {why}", informer.name()))
    });
    let missing: Vec<_> = missing.collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

async fn drain(controller: &AnyController, limit: Duration) -> Result<(), PartError> {
    // What outlives this needs the grace, and at least a tenth: the reason of a late end is reported before
    // the drop.
    let left = controller.stop_grace().max(limit / 10);
    Ok(controller.drain(limit.saturating_sub(left)).await?)
}
