//! A controller without the type of its objects, for lists of many kinds. The last handle dropped stops it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use informer_core::meta::ObjectKey;
use tokio_util::sync::CancellationToken;

use super::{Controller, ControllerEnd, ControllerStatus, Handle, Trigger};
use crate::queue::{Added, NotDrained};
use informer_actors::informer::{AnyInformer, Body};

/// A running controller of any kind. Cheap to clone; the last handle dropped stops the controller.
#[derive(Clone)]
#[must_use = "a controller stops when its last handle is dropped, and `let _ = ..` drops it at once: keep it, as in `let controller = ..`"]
pub struct AnyController(Arc<dyn Erased>);

pub(super) trait Erased: Send + Sync {
    fn name(&self) -> &str;
    fn status(&self) -> ControllerStatus;
    fn informers(&self) -> Vec<AnyInformer>;
    fn trigger(&self, key: ObjectKey) -> Added;
    fn drain(&self, limit: Duration) -> BoxFuture<'_, Result<(), NotDrained>>;
    fn shut_down(&self);
    fn end(&self) -> ControllerEnd;
    /// Cancelled when it no longer follows one of its informers.
    fn lost(&self) -> CancellationToken;
    fn stop_grace(&self) -> Duration;
}

impl<S: Body> Erased for Handle<S> {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn status(&self) -> ControllerStatus {
        self.shared.status(&self.feeds)
    }

    fn informers(&self) -> Vec<AnyInformer> {
        self.shared.watched.iter().map(|watched| watched.any_informer()).collect()
    }

    fn trigger(&self, key: ObjectKey) -> Added {
        Trigger::new(&self.shared).trigger(key)
    }

    fn drain(&self, limit: Duration) -> BoxFuture<'_, Result<(), NotDrained>> {
        self.shared.drain(&self.feeds, limit).boxed()
    }

    fn shut_down(&self) {
        self.shared.shut_down(&self.feeds);
    }

    fn end(&self) -> ControllerEnd {
        self.shared.end.clone()
    }

    fn lost(&self) -> CancellationToken {
        self.shared.lost.clone()
    }

    fn stop_grace(&self) -> Duration {
        self.shared.limits.stop_grace
    }
}

impl AnyController {
    /// As [`Controller::name`].
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// As [`Controller::status`].
    pub fn status(&self) -> ControllerStatus {
        self.0.status()
    }

    /// As [`Controller::informers`].
    pub fn informers(&self) -> Vec<AnyInformer> {
        self.0.informers()
    }

    /// As [`Controller::trigger`].
    pub fn trigger(&self, key: ObjectKey) -> Added {
        self.0.trigger(key)
    }

    /// As [`Controller::drain`].
    ///
    /// # Errors
    /// As there.
    pub async fn drain(&self, limit: Duration) -> Result<(), NotDrained> {
        self.0.drain(limit).await
    }

    /// As [`Controller::shut_down`].
    pub fn shut_down(&self) {
        self.0.shut_down();
    }

    /// As [`Controller::ended`].
    pub async fn ended(&self) {
        self.end().ended().await;
    }

    /// As [`Controller::end`].
    pub fn end(&self) -> ControllerEnd {
        self.0.end()
    }

    pub(crate) fn stop_grace(&self) -> Duration {
        self.0.stop_grace()
    }

    pub(crate) async fn lost(&self) {
        self.0.lost().cancelled().await;
    }
}

impl<S: Body> From<Controller<S>> for AnyController {
    fn from(controller: Controller<S>) -> Self {
        Self(controller.0)
    }
}

impl<S: Body> From<&Controller<S>> for AnyController {
    fn from(controller: &Controller<S>) -> Self {
        controller.clone().into()
    }
}

informer_core::debug_as!(AnyController, self, name = self.name());
