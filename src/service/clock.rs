//! The time of day, as it stands before each line for people.
//!
//! Answers "what time is it here?" and nothing else; no decision depends on it. The one reader of the wall clock.
//! 1. Local time where the system knows its zone, UTC elsewhere.

/// Hours, minutes and seconds.
pub(super) fn time_of_day() -> String {
    jiff::Zoned::now().strftime("%H:%M:%S").to_string()
}
