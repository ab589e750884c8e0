//! The running call of a blocking closure, for subscriptions that limit their calls. A call that takes too long is
//! counted and reported once.

use std::time::Duration;

use informer_core::meta::ObjectKey;

use super::SubscriptionState;

#[derive(Debug)]
pub(super) struct BlockingCall {
    key: ObjectKey,
    began: Duration,
    is_overdue: bool,
}

impl BlockingCall {
    pub(super) fn stuck_on(&self) -> Option<&ObjectKey> {
        self.is_overdue.then_some(&self.key)
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CallCheck {
    /// When the running call must end; if none runs, the earliest time at which one can be overdue.
    DueAt(Duration),
    Overdue(ObjectKey),
}

impl SubscriptionState {
    pub(crate) fn begin_call(&self, key: &ObjectKey, now: Duration) {
        let call = BlockingCall { key: key.clone(), began: now, is_overdue: false };
        self.0.figures.with(|figures| figures.rare.get_or_insert_default().call = Some(call));
    }

    /// Returns the key if the call took too long and was not reported before.
    pub(crate) fn end_call(&self, limit: Duration, now: Duration) -> Option<ObjectKey> {
        let (call, is_news) = self.0.figures.with(|figures| {
            let rare = figures.rare.as_mut()?;
            let call = rare.call.take()?;
            let is_news = !call.is_overdue && now.saturating_sub(call.began) > limit;
            rare.overran += u32::from(is_news);
            Some((call, is_news))
        })?;
        is_news.then_some(call.key)
    }

    pub(crate) fn check_call(&self, limit: Duration, now: Duration) -> CallCheck {
        self.0.figures.with(|figures| {
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
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use informer_core::listener::Policy;
    use informer_core::meta::ObjectKey;

    use super::super::{SubscriptionState, Times};
    use super::CallCheck;
    use crate::runtime::Label;

    const LIMIT: Duration = Duration::from_secs(5);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn lis_41_a_call_that_nobody_looked_at_is_counted_at_its_end_and_no_call_is_counted_twice() {
        let label = Label::closure("texts".into(), "slow".into());
        let state = SubscriptionState::new(Arc::new(label), Policy::Coalesce, Times::default(), at(0));
        let key = ObjectKey::namespaced("default", "a");
        state.begin_call(&key, at(0));
        assert_eq!(state.end_call(LIMIT, at(5)), None, "as long as it may take");
        state.begin_call(&key, at(10));
        assert_eq!(state.end_call(LIMIT, at(16)), Some(key.clone()));
        state.begin_call(&key, at(20));
        assert_eq!(state.check_call(LIMIT, at(25)), CallCheck::Overdue(key));
        assert_eq!(state.end_call(LIMIT, at(30)), None, "it was reported");
        assert_eq!(state.read().overran, 2);
    }
}
