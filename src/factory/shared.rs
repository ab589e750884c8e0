//! The informers of a factory, by weak references.
//!
//! 1. What has ended is forgotten at the next new informer.
//! 2. An informer that was stopped while a handle is held is replaced by the next request.
//! 3. Under the lock no handle is dropped, and no code of the program runs except what makes a new informer.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, join, join_all};
use informer_actors::informer::{AnyInformer, Body, DrainReport, Informer, ShutdownReport, WeakInformer};
use informer_actors::runtime::Runtime;

use super::FactoryError;
use super::defaults::Defaults;
use informer_client::inner::OutsideKey;

use crate::client::{InformerKey, ResourceSource};
use crate::representation::Representation;

pub(super) struct Shared {
    runtime: Runtime,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_shut_down: bool,
    requests: u64,
    entries: HashMap<InformerKey, Entry>,
    /// Until all of their actors have ended.
    replaced: Vec<Arc<dyn Reference>>,
}

struct Entry {
    /// Orders by first request.
    number: u64,
    outside_key: OutsideKey,
    informer: Arc<dyn Reference>,
}

trait Reference: Any + Send + Sync {
    fn name(&self) -> &str;
    fn upgrade(&self) -> Option<AnyInformer>;
    fn is_held(&self) -> bool;
    fn has_ended(&self) -> bool;
    fn ended_within(&self, limit: Duration) -> BoxFuture<'_, bool>;
}

impl<S: Body> Reference for WeakInformer<S> {
    fn name(&self) -> &str {
        Self::name(self)
    }

    fn upgrade(&self) -> Option<AnyInformer> {
        Self::upgrade(self).map(AnyInformer::from)
    }

    fn is_held(&self) -> bool {
        Self::is_held(self)
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self)
    }

    fn ended_within(&self, limit: Duration) -> BoxFuture<'_, bool> {
        Self::ended_within(self, limit).boxed()
    }
}

/// `differs`: the setting in which the request differs.
struct FoundInformer<S: Body> {
    informer: Informer<S>,
    differs: Option<&'static str>,
}

impl Shared {
    pub(super) fn new(runtime: Runtime) -> Self {
        Self { runtime, state: Mutex::default() }
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(super) fn found_or_declared<K, R: Representation>(
        &self,
        description: ResourceSource<K, R>,
        defaults: &Defaults,
    ) -> Result<Informer<R::Body>, FactoryError> {
        let (key, outside_key) = (description.key()?, description.outside_key());
        let found = self.open()?.find(&key, &outside_key);
        if let Some(found) = found {
            return found.given();
        }
        let builder = defaults.configured(description.informer(&self.runtime)?);
        let mut state = self.open()?;
        // Another thread may have made it meanwhile.
        if let Some(found) = state.find(&key, &outside_key) {
            drop(state);
            return found.given();
        }
        let informer = builder.declare()?;
        state.insert(key, outside_key, Arc::new(informer.downgrade()));
        Ok(informer)
    }

    /// With a handle; running or declared.
    pub(super) fn held(&self) -> Result<Vec<(InformerKey, AnyInformer)>, FactoryError> {
        let mut all: Vec<_> = {
            let state = self.open()?;
            let reference = |(key, entry): (&InformerKey, &Entry)| {
                (entry.number, key.clone(), Arc::clone(&entry.informer))
            };
            state.entries.iter().map(reference).collect()
        };
        all.sort_by_key(|(number, ..)| *number);
        let handle = |(_, key, reference): (_, _, Arc<dyn Reference>)| Some((key, reference.upgrade()?));
        Ok(all.into_iter().filter_map(handle).filter(|(_, informer)| !informer.has_stopped()).collect())
    }

    pub(super) async fn shutdown(&self, limit: Duration) -> DrainReport {
        let mut references: Vec<_> = {
            let mut state = self.state();
            state.is_shut_down = true;
            let entries = state.entries.values().map(|entry| (entry.number, Arc::clone(&entry.informer)));
            let replaced = state.replaced.iter().map(|informer| (0, Arc::clone(informer)));
            replaced.chain(entries).collect()
        };
        references.sort_by_key(|(number, _)| *number);
        let informers: Vec<_> = references.iter().filter_map(|(_, reference)| reference.upgrade()).collect();
        let endings = references.iter().filter(|(_, reference)| !reference.is_held());
        let endings: Vec<_> = endings.map(|(_, reference)| reference).collect();
        let over = join_all(endings.iter().map(|reference| reference.ended_within(limit)));
        let (mut report, over) = join(AnyInformer::drain_all(&informers, limit), over).await;
        for (reference, _) in endings.iter().zip(over).filter(|(_, over)| !over) {
            let mut left = ShutdownReport::default();
            left.still_running = true;
            report.informers.push((reference.name().into(), left));
        }
        report
    }

    fn open(&self) -> Result<MutexGuard<'_, State>, FactoryError> {
        let state = self.state();
        if state.is_shut_down { Err(FactoryError::ShutDown) } else { Ok(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under this lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find<S: Body>(&self, key: &InformerKey, outside_key: &OutsideKey) -> Option<FoundInformer<S>> {
        let entry = self.entries.get(key)?;
        let reference: &dyn Any = &*entry.informer;
        let weak = reference.downcast_ref::<WeakInformer<S>>().expect("equal keys have one representation");
        if weak.has_stopped() {
            return None;
        }
        Some(FoundInformer { informer: weak.upgrade()?, differs: entry.outside_key.difference(outside_key) })
    }

    fn insert(&mut self, key: InformerKey, outside_key: OutsideKey, informer: Arc<dyn Reference>) {
        self.entries.retain(|_, entry| entry.informer.is_held() || !entry.informer.has_ended());
        self.replaced.retain(|informer| !informer.has_ended());
        self.requests += 1;
        let entry = Entry { number: self.requests, outside_key, informer };
        self.replaced.extend(self.entries.insert(key, entry).map(|replaced| replaced.informer));
    }
}

impl<S: Body> FoundInformer<S> {
    fn given(self) -> Result<Informer<S>, FactoryError> {
        match self.differs {
            None => Ok(self.informer),
            Some(setting) => Err(FactoryError::Different { informer: self.informer.name().into(), setting }),
        }
    }
}
