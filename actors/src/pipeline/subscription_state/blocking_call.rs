//! The call of a blocking closure that is under way, for subscriptions that limit their calls.
//!
//! Answers "has this call taken too long, and is it reported?". The closure's host notes when a call begins and ends; the
//! Listener looks at it when it is due. Invariants:
//! 1. A call is reported once.
//!
//! Read next: `listener/delivery.rs`, which looks.

use std::time::Duration;

use informer_core::meta::ObjectKey;

use super::SubscriptionState;

/// A call that is under way.
#[derive(Debug)]
pub(super) struct BlockingCall {
    key: ObjectKey,
    began: Duration,
    is_overdue: bool,
}

impl BlockingCall {
    /// The key of its event, if it has taken longer than the limit.
    pub(super) fn stuck_on(&self) -> Option<&ObjectKey> {
        self.is_overdue.then_some(&self.key)
    }
}

/// What a look at the call under way shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallCheck {
    /// It has to end by then; or, if none is under way, none can be overdue before.
    DueAt(Duration),
    /// It has become overdue, with the event of this key.
    Overdue(ObjectKey),
}

impl SubscriptionState {
    /// A blocking closure is called with the event of this key.
    pub(crate) fn begin_call(&self, key: &ObjectKey, now: Duration) {
        let call = BlockingCall { key: key.clone(), began: now, is_overdue: false };
        self.figures().rare.get_or_insert_default().call = Some(call);
    }

    /// The call has returned.
    pub(crate) fn end_call(&self) {
        let call = self.figures().rare.as_mut().and_then(|rare| rare.call.take());
        drop(call);
    }

    /// Whether the call under way is overdue; one that is found to be is counted, and reported this once.
    pub(crate) fn check_call(&self, limit: Duration, now: Duration) -> CallCheck {
        let mut figures = self.figures();
        let rare = figures.rare.get_or_insert_default();
        let Some(call) = rare.call.as_mut().filter(|call| !call.is_overdue) else {
            return CallCheck::DueAt(now.saturating_add(limit));
        };
        let until = call.began.saturating_add(limit);
        if now < until {
            return CallCheck::DueAt(until);
        }
        call.is_overdue = true;
        let key = call.key.clone();
        rare.overran += 1;
        CallCheck::Overdue(key)
    }
}
