//! The Retry-After header of an answer (RFC 9110, section 10.2.3).
//!
//! A date is compared with the answer's own Date header, so a different clock does not matter. Without one, this machine's clock
//! counts.

use std::sync::LazyLock;
use std::time::Duration;

use http::{HeaderMap, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::warning::OnceInAWhile;

/// Long enough for a server that restarts while all its clients come back. A proxy's page may ask for a day.
pub(crate) const LONGEST: Duration = Duration::from_secs(5 * 60);

static TOLD: LazyLock<OnceInAWhile> = LazyLock::new(OnceInAWhile::default);

pub(crate) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    parsed(text(header::RETRY_AFTER)?, text(header::DATE))
}

/// `date` is the Date header.
pub(crate) fn parsed(text: &str, date: Option<&str>) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are more than the longest wait.
        return Some(capped(text.parse().map_or(Duration::MAX, Duration::from_secs)));
    }
    let until = time(text)?;
    let now = date.and_then(time).unwrap_or_else(wall_time);
    Some(capped(Duration::try_from(until.duration_since(now)).unwrap_or_default()))
}

/// Logs a cut, at most once in ten minutes.
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
