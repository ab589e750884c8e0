//! Why a factory gives no informer.
//!
//! Answers "which request, and what is to be changed?". Invariants:
//! 1. Every text names the resource or the informer, and what to do where that is not plain.
//!
//! Read next: `shared.rs`, which refuses.

use std::sync::Arc;

use informer_actors::informer::StartError;

use crate::client;

/// Why a factory does not give or start an informer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FactoryError {
    /// The description cannot be requested, or its representation needs a name.
    #[error(transparent)]
    Client(#[from] client::Error),
    /// The name means several resources, or one that cannot be followed.
    #[error(transparent)]
    Discovery(#[from] client::DiscoveryError),
    /// The informer could not be declared.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The informer exists, and was requested with another setting that is not part of its key.
    #[error("informer {informer:?} exists with another {setting}: requests of one informer must agree in it")]
    Different {
        /// The informer's name.
        informer: Arc<str>,
        /// The setting: `name`, `size limit` or `list settings`.
        setting: &'static str,
    },
    /// The factory was shut down.
    #[error("the informer factory was shut down")]
    ShutDown,
}
