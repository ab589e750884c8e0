//! The one wait of the handles.
//!
//! Answers "when does a wait end?" for every handle: with what its condition decides, when its informer ends, or at its
//! limit. The condition looks at what is shared; that a source was given up, removed or refused is what such a look
//! decides. Invariants:
//! 1. Whichever comes first ends it; a condition that holds counts before an end, and an end before the limit.
//! 2. What wakes it is registered before each look, so no change between the look and the wait is missed.
//! 3. No code of the caller runs under a lock.
//!
//! Read next: `informer/waits.rs` and `lister/waits.rs`, the conditions; `pipeline/published.rs`, what wakes.

use std::future::Future;
use std::time::Duration;

use crate::runtime::within;

/// What one look says.
pub(crate) enum Looked<T, W> {
    /// The wait is over.
    Decided(T),
    /// Look again after this.
    NotYet(W),
}

/// Why a condition decided nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undecided {
    /// The informer has ended.
    Ended,
    /// The limit is over.
    Deadline,
}

/// Looks until a look decides, `end` comes, or the limit is over. `Duration::MAX` means no limit.
pub(crate) async fn wait<T, W: Future<Output = ()>>(
    end: impl Future<Output = ()>,
    limit: Duration,
    mut look: impl FnMut() -> Looked<T, W>,
) -> Result<T, Undecided> {
    let decided = async {
        loop {
            match look() {
                Looked::Decided(outcome) => return Ok(outcome),
                Looked::NotYet(woken) => woken.await,
            }
        }
    };
    let ended = async {
        tokio::select! {
            biased;
            decided = decided => decided,
            () = end => Err(Undecided::Ended),
        }
    };
    within(limit, ended).await.unwrap_or(Err(Undecided::Deadline))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_its_condition_with_the_end_or_at_its_limit_whichever_comes_first() {
        let second = Duration::from_secs(1);
        let never = || Looked::<u32, _>::NotYet(pending());
        assert_eq!(wait(ready(()), Duration::MAX, never).await, Err(Undecided::Ended));
        assert_eq!(wait(pending(), second, never).await, Err(Undecided::Deadline));
        assert_eq!(wait(ready(()), second, || Looked::<_, std::future::Ready<()>>::Decided(7)).await, Ok(7));
        let looks = Cell::new(0);
        let third = || {
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                Looked::Decided(looks.get())
            } else {
                Looked::NotYet(tokio::time::sleep(second))
            }
        };
        assert_eq!(wait(pending(), second * 10, third).await, Ok(3), "it looks again each time it is woken");
        let late = tokio::time::sleep(second);
        assert_eq!(wait(late, second * 10, never).await, Err(Undecided::Ended));
    }
}
