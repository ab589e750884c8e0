//! The [`Holdings`] of a cluster-wide source, shared by the follower and the source's reflector. No other lock is
//! taken under its lock.

use informer_core::namespaces::Names;
use informer_core::namespaces::holdings::Holdings;

use crate::runtime::locked::Guarded;
use crate::runtime::signal::Signal;

#[derive(Debug, Default)]
pub(crate) struct NamespaceFilter {
    holdings: Guarded<Holdings>,
    /// Raised when other namespaces are asked for.
    pub(crate) changed: Signal,
}

impl NamespaceFilter {
    /// Keeps these from its first list on.
    pub(crate) fn new(asked: Names) -> Self {
        Self { holdings: Guarded::new(Holdings::new(asked)), changed: Signal::default() }
    }

    pub(crate) fn ask(&self, asked: Names) {
        self.change(|holdings| holdings.handle_asked(asked));
        self.changed.raise();
    }

    /// Copies three pointers.
    pub(crate) fn holdings(&self) -> Holdings {
        self.holdings.with(|holdings| holdings.clone())
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Holdings) -> T) -> T {
        self.holdings.with(change)
    }
}
