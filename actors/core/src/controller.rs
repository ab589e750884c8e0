//! The decisions of a controller: what is known of a key between two of its reconciles.
//!
//! Answers "is this key to be reconciled, why, and what follows from the result?". It runs no code of a user, knows no
//! queue and reads no clock. Parts:
//! - `causes.rs`: why a key is reconciled; a bounded number is kept, in the queue's slot of the key.
//! - `ledger.rs`: what else is kept of a key: the last state of its object if that is gone, and whether it rests after a
//!   terminal error.
//! - `failing.rs`: which failures are warnings, and which are repeats.
//! - `outcome.rs`: what becomes of a key after each result.
//! - `writes.rs`: what the cache has to show before the key may be reconciled again.
//!
//! Read next: `ledger.rs`. The actors and tasks are in `controller.rs` of the crate above.

pub use causes::{Causes, EventKind, MOST_CAUSES, Reason, Why};
pub use failing::{Failing, MOST_FAILING, Repeated, Telling, WARN_EVERY};
pub use ledger::{
    Arrival, Arrived, Begun, Concluded, Ledger, LedgerFigures, MOST_ANSWERED, MOST_DELETED, MOST_RESTING,
    MOST_WITH_CAUSES,
};
pub use outcome::{Ended, Next, Outcome};
pub use writes::{Awaited, MOST_WRITES, Writes};

mod answered;
mod causes;
mod deleted;
mod failing;
mod ledger;
mod outcome;
#[cfg(test)]
mod tests;
mod writes;
