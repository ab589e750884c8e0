//! Tests of the machine with scripts of events; each test is named after the line of the contract it proves.
//!
//! A script is text: an event, and on the lines below it, after `>`, every effect that the machine asks for.
//! `script.rs` is the only file that calls the machine; it describes the words. `random.rs` generates scripts.

mod budget;
mod early_retries;
mod freeing;
mod gathering;
mod lists;
mod logs;
mod random;
mod relists;
mod renewals;
mod retries;
mod rewinds;
mod script;
mod watch_lists;
mod watches;
