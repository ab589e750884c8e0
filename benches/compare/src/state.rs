//! Hashes many pods into one number, to compare the client's cache with the server's state.
//!
//! Answers "are these the same pods?" for two processes. Every field of every pod counts, except `managedFields`, which
//! one client keeps and another does not. Invariants:
//! 1. The result does not depend on the order of the pods.
//! 2. One pod is copied at a time, so that the comparison hardly changes the measured memory.

use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Write};

use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};

/// How many pods, and what they come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    objects: u64,
    sum: u64,
}

impl State {
    /// The state that is made of these pods.
    pub(crate) fn of<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> anyhow::Result<Self> {
        let mut state = Self::default();
        for pod in pods {
            state.add(pod)?;
        }
        Ok(state)
    }

    /// Adds one pod.
    pub(crate) fn add(&mut self, pod: &Pod) -> anyhow::Result<()> {
        let mut hashed = Hashed(DefaultHasher::new());
        if pod.metadata.managed_fields.is_some() {
            let mut pod = pod.clone();
            pod.metadata.managed_fields = None;
            serde_json::to_writer(&mut hashed, &pod)?;
        } else {
            serde_json::to_writer(&mut hashed, pod)?;
        }
        self.objects += 1;
        self.sum = self.sum.wrapping_add(hashed.0.finish());
        Ok(())
    }
}

/// What is written becomes a hash.
struct Hashed(DefaultHasher);

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
