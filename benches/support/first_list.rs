//! Measures the first list of an informer, several times.
//!
//! Answers "what does it cost until all objects are listed, stored and delivered?". The objects are made once and shared
//! by all rounds; their allocations are neither made nor freed in the measured time. Invariants:
//! 1. Each round is a new informer on the same threads, and ends when its subscriber has handled the last object.

use actix_informer::runtime::Runtime;
use criterion::measurement::Measurement;
use informer_core::meta::{Object, ResourceVersion};

use super::cost::spent;
use super::objects::{Body, Population};
use super::pipeline::{Pipeline, threads};

/// The objects, and the runtime of the informers.
pub(crate) struct FirstList {
    objects: Vec<Object<Body>>,
    version: ResourceVersion,
    runtime: Runtime,
}

impl FirstList {
    /// Makes `keys` objects.
    pub(crate) fn new(keys: usize) -> Self {
        let mut population = Population::new(keys);
        Self { objects: population.everything(), version: population.version(), runtime: threads() }
    }

    /// The cost of this many first lists.
    pub(crate) fn run<M: Measurement>(&self, measurement: &M, times: u64) -> M::Value {
        let one = |sum: M::Value, _| {
            let mut started = None;
            let cost = spent(measurement, || {
                started = Some(Pipeline::start(&self.runtime, &self.objects, self.version.clone(), 1));
            });
            started.into_iter().for_each(Pipeline::stop);
            measurement.add(&sum, &cost)
        };
        (0..times).fold(measurement.zero(), one)
    }
}
