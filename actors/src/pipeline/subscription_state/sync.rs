//! What a wait for the sync of a subscription looks at.

use super::{EndReason, SubscriptionState};

impl SubscriptionState {
    /// Whether it is synced, which is Ok, or has ended before.
    pub(crate) fn sync_outcome(&self) -> Option<Result<(), EndReason>> {
        let figures = self.figures();
        match &figures.ended {
            _ if figures.synced => Some(Ok(())),
            Some(reason) => Some(Err(reason.clone())),
            None => None,
        }
    }

    /// Ready after the next change that can be waited for, from this call on.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + '_ {
        self.0.changed.notified()
    }
}
