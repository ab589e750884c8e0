//! An informer for a set of snapshots: without its type, and without keeping it running.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use informer_core::meta::{ResourceVersion, SourceId};
use informer_core::snapshot::{Snapshot, SourceVersions};

use crate::informer::{Informer, WaitForError};
use crate::pipeline::messages::Body;
use crate::weak_informer::WeakInformer;

pub(crate) trait Observed: Send + Sync {
    fn name(&self) -> Arc<str>;

    /// `None` if the informer has no handle.
    fn newest(&self) -> Option<Arc<dyn TakenSnapshot>>;

    /// `None`: the only source.
    fn reaches<'a>(
        &'a self,
        source: Option<&'a SourceId>,
        version: &'a ResourceVersion,
        limit: Duration,
    ) -> BoxFuture<'a, Result<(), WaitForError>>;
}

pub(crate) trait TakenSnapshot: Send + Sync {
    fn len(&self) -> usize;
    fn versions(&self) -> &SourceVersions;

    fn as_any(&self) -> &dyn Any;
}

pub(crate) struct TakenOf<S: Body> {
    informer: WeakInformer<S>,
    snapshot: Snapshot<S>,
}

impl<S: Body> TakenOf<S> {
    pub(crate) fn of(&self, informer: &Informer<S>) -> Option<&Snapshot<S>> {
        self.informer.is(informer).then_some(&self.snapshot)
    }
}

impl<S: Body> TakenSnapshot for TakenOf<S> {
    fn len(&self) -> usize {
        self.snapshot.len()
    }

    fn versions(&self) -> &SourceVersions {
        self.snapshot.versions()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<S: Body> Observed for WeakInformer<S> {
    fn name(&self) -> Arc<str> {
        Self::name(self).into()
    }

    fn newest(&self) -> Option<Arc<dyn TakenSnapshot>> {
        let snapshot = self.upgrade()?.snapshot();
        Some(Arc::new(TakenOf { informer: self.clone(), snapshot }))
    }

    fn reaches<'a>(
        &'a self,
        source: Option<&'a SourceId>,
        version: &'a ResourceVersion,
        limit: Duration,
    ) -> BoxFuture<'a, Result<(), WaitForError>> {
        async move {
            let Some(informer) = self.upgrade() else {
                let (informer, wanted) = (Observed::name(self), version.clone());
                return Err(WaitForError::Stopped { informer, wanted });
            };
            let lister = informer.lister();
            drop(informer);
            match source {
                Some(source) => lister.wait_for_source(source, version, limit).await,
                None => lister.wait_for(version, limit).await,
            }
        }
        .boxed()
    }
}
