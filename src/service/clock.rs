//! The time of day at the beginning of each line for people.
//!
//! Answers "what time is it here?". It is the only reader of the wall clock, and no decision depends on it. Invariant:
//! 1. Local time if the system knows its time zone, else UTC.

/// Hours, minutes and seconds.
pub(super) fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}
