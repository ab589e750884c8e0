//! How long a server asks its clients to wait.
//!
//! Answers "when may the next request come?" from the Retry-After header of an answer (RFC 9110, section 10.2.3).
//! Invariants:
//! 1. A wait is at most [`LONGEST`]: a page of a proxy that asks for a day would stop an informer for a day. What is cut
//!    is logged, at most once in ten minutes.
//! 2. A date is compared with the answer's own Date header, so that clocks that differ change nothing; with the clock of
//!    this machine only if there is none.
//!
//! Read next: `layers/retry.rs`, `status.rs`.

use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::warning::OnceInAWhile;

/// The longest wait that is kept: long enough for a server that restarts with all its clients coming back, and short
/// enough that a mistake is survived.
pub(crate) const LONGEST: Duration = Duration::from_secs(5 * 60);

/// Whether a long wait was told of lately.
static TOLD: LazyLock<OnceInAWhile> = LazyLock::new(OnceInAWhile::default);

/// How long the server of this answer asks to wait.
pub(crate) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    parsed(text(header::RETRY_AFTER)?, text(header::DATE))
}

/// The wait that a Retry-After header asks for; `date` is the Date header beside it.
pub(crate) fn parsed(text: &str, date: Option<&str>) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are more than the longest wait.
        return Some(capped(text.parse().map_or(Duration::MAX, Duration::from_secs)));
    }
    let until = time(text)?;
    let now = date.and_then(time).unwrap_or_else(wall_time);
    // A date that has passed asks for no wait.
    Some(capped(Duration::try_from(until.duration_since(now)).unwrap_or_default()))
}

/// At most [`LONGEST`].
pub(crate) fn capped(wait: Duration) -> Duration {
    if wait > LONGEST && TOLD.is_new("") {
        tracing::warn!(target: "actix_informer::client", asked = ?wait, kept = ?LONGEST, "the server asks for a long wait; the next request comes sooner");
    }
    wait.min(LONGEST)
}

fn time(text: &str) -> Option<Timestamp> {
    // A wrong day of the week changes nothing.
    DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()
}

/// The time of day of this machine, with which dates that a server or a plugin writes are compared.
#[expect(clippy::disallowed_methods, reason = "what others write as a date is a time of day")]
pub(super) fn wall_time() -> Timestamp {
    Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_understood_and_capped_at_five_minutes() {
        const DATE: Option<&str> = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (text, date, expected) in [
            ("7", None, seconds(7)),
            (" 0 ", None, seconds(0)),
            ("301", None, seconds(300)),
            ("86400", None, seconds(300)),
            ("18446744073709551616", None, seconds(300)),
            ("Sun, 06 Nov 1994 08:49:57 GMT", DATE, seconds(20)),
            ("Sun, 06 Nov 1994 08:49:17 GMT", DATE, seconds(0)),
            ("Mon, 07 Nov 1994 08:49:37 GMT", DATE, seconds(300)),
            // Without a Date header the clock of this machine counts.
            ("Sun, 06 Nov 1994 08:49:37 GMT", None, seconds(0)),
            ("Fri, 31 Dec 2999 23:59:59 GMT", None, seconds(300)),
            ("-1", None, None),
            ("1.5", None, None),
            ("soon", None, None),
            ("", None, None),
        ] {
            assert_eq!(parsed(text, date), expected, "{text:?}");
        }
    }
}
