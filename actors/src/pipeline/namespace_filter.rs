//! The [`Holdings`] of a cluster-wide source, shared by the actor that exchanges sources and the source's reflector. No
//! user's code runs under the lock.

use std::sync::{Mutex, MutexGuard};

use informer_core::namespaces::Names;
use informer_core::namespaces::holdings::Holdings;

use crate::runtime::locked::locked;
use crate::runtime::signal::Signal;

/// It outlives its reflector.
#[derive(Debug, Default)]
pub(crate) struct NamespaceFilter {
    holdings: Mutex<Holdings>,
    /// Raised when other namespaces are asked for.
    pub(crate) changed: Signal,
}

impl NamespaceFilter {
    /// Keeps these from its first list on.
    pub(crate) fn new(asked: Names) -> Self {
        Self { holdings: Mutex::new(Holdings::new(asked)), changed: Signal::default() }
    }

    /// Asks for these.
    pub(crate) fn ask(&self, asked: Names) {
        self.holdings().handle_asked(asked);
        self.changed.raise();
    }

    pub(crate) fn holdings(&self) -> MutexGuard<'_, Holdings> {
        locked(&self.holdings)
    }
}
