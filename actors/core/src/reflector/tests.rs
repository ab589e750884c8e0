//! The machine under scripts of happenings; each test is named after the line of the contract it proves.
//!
//! A script is text: what happens, and under it, behind `>`, everything that the machine then wants done.
//! `script.rs` is the one place that knows the API, and describes the words. `random.rs` makes up scripts.

mod budget;
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
