//! The time of day at the beginning of each line for people, and the time in each line for scripts.
//!
//! Answers "what time is it here?". It is the only reader of the wall clock, and no decision depends on it. Invariant:
//! 1. For people, local time if the system knows its time zone, else UTC; for scripts, UTC.

/// Hours, minutes and seconds.
pub(super) fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}

/// The time of day with its date, for scripts: RFC 3339, UTC.
pub(super) fn time() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}
