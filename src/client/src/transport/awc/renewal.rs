//! Moves open watches to a connection with the newest TLS configuration.
//!
//! Answers "must this watch end because its connection is outdated?" A renewed token does not end a watch: the server
//! has checked the old one when the watch began. Invariants:
//! 1. A watch ends at most 20 s after a renewal of the TLS configuration has been seen here, and cleanly: its reader asks
//!    for a new one from the last version, as after any end.
//! 2. Certificate files are looked at also while no request is sent.
//!
//! Read next: `../../identity.rs`.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::identity::Identities;

/// How often an open watch looks: the files themselves are read once a minute for all watches together.
const LOOK_EACH: Duration = Duration::from_secs(20);

/// The interest of one open watch in renewals.
pub(super) struct Renewal {
    identities: Arc<Identities>,
    connections: u64,
    look_at: Instant,
}

impl Renewal {
    /// For a watch on a connection of the TLS configuration with this count; nothing if it cannot change.
    pub(super) fn new(identities: &Arc<Identities>, connections: u64) -> Option<Self> {
        let look_at = Instant::now() + LOOK_EACH;
        identities.tls_can_change().then(|| Self { identities: Arc::clone(identities), connections, look_at })
    }

    /// Resolves when the connection is outdated. A caller that stops waiting loses nothing.
    pub(super) async fn is_needed(&mut self) {
        loop {
            sleep_until(self.look_at).await;
            // A renewal that fails is logged there; the old connection stays.
            let _ = self.identities.current().await;
            if self.identities.connections() != self.connections {
                return;
            }
            self.look_at = Instant::now() + LOOK_EACH;
        }
    }
}

#[cfg(test)]
mod tests;
