//! The length of a time for people: `45s`, `3m20s`, `5d`.
//!
//! Answers: how is a number of seconds written so that it stays short? Two units at most, the coarser the longer it is.
//! 1. Up to two minutes seconds, up to ten minutes both, then minutes; the same again with hours, days and years.
//! 2. A time a little ahead is `0s`, one further ahead is `<invalid>`.
const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Writes a duration given in seconds.
pub(crate) fn human(seconds: i64) -> String {
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds, (MINUTE, "m"), (1, "s")),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds, (HOUR, "h"), (MINUTE, "m")),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds, (DAY, "d"), (HOUR, "h")),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds, (YEAR, "y"), (DAY, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, (big, big_name): (i64, &str), (small, small_name): (i64, &str)) -> String {
    let rest = seconds % big / small;
    let head = format!("{}{big_name}", seconds / big);
    if rest == 0 { head } else { format!("{head}{rest}{small_name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_37_a_duration_gets_coarser_as_it_gets_longer() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (5 * HOUR + 90, "5h1m"),
            (8 * HOUR, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (3 * DAY + 5 * HOUR, "3d5h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (2 * YEAR + 3 * DAY, "2y3d"),
            (9 * YEAR, "9y"),
        ] {
            assert_eq!(human(seconds), text, "{seconds}");
        }
    }
}
