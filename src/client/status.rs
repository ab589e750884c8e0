//! What a server's refusal means.
//!
//! Answers "which [`ListWatchError`] is this answer?" for HTTP answers that are no success and for ERROR frames in a
//! watch, whether or not they carry a `Status`. It decides nothing about what to do next: the error's class does.
//! Invariants:
//! 1. Both forms of one refusal (HTTP status, ERROR frame) give the same error.
//! 2. A body that is no `Status` (a proxy's page, plain text) is typed by its code and quoted, shortened.
//! 3. A token that the server repeats is not told.
//!
//! Read next: `informer_core::list_watch_error`, the classes.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use informer_core::list_watch_error::ListWatchError;
use serde::Deserialize;

use crate::text::shortened;

/// At most this much of a server's words is kept.
const WORDS: usize = 512;
/// What stands where a server has repeated our token.
const HIDDEN: &str = "[the token]";
/// Shorter tokens are those of tests.
const LEAST_SECRET: usize = 8;
/// The longest wait that a server can ask for: more is a mistake of its, and would pass for ever.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The parts of a `meta/v1 Status` that say what went wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    /// `Status`, if it is one.
    pub kind: String,
    /// The HTTP code; 0 when the server left it out.
    pub code: u16,
    /// The machine-readable reason.
    pub reason: String,
    /// The server's words.
    pub message: String,
    details: Option<Details>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<Cause>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Cause {
    reason: String,
}

impl Status {
    /// Reads the body of an answer with HTTP code `code`.
    pub fn from_answer(code: u16, retry_after: Option<&str>, body: &[u8]) -> Self {
        Self::from_answer_to(None, (code, retry_after), body)
    }

    /// The same; `authorization` is the header that was sent, which the server may repeat.
    pub(crate) fn from_answer_to(
        authorization: Option<&HeaderValue>,
        (code, retry_after): (u16, Option<&str>),
        body: &[u8],
    ) -> Self {
        let mut status = serde_json::from_slice::<Self>(body)
            .ok()
            .filter(|status| status.kind == "Status")
            .unwrap_or_else(|| Self { message: plain(body), ..Self::default() });
        status.code = code;
        if let Some(secret) = authorization.and_then(secret_of) {
            status.message = status.message.replace(secret, HIDDEN);
            status.reason = status.reason.replace(secret, HIDDEN);
        }
        status.shorten();
        if let Some(seconds) = retry_after.and_then(|text| text.trim().parse().ok()) {
            status.details.get_or_insert_default().retry_after_seconds = Some(seconds);
        }
        status
    }

    /// Reads the object of an ERROR frame.
    pub fn from_frame(object: &str) -> Self {
        let mut status = serde_json::from_str::<Self>(object).unwrap_or_else(|_| Self::of_words(object));
        status.shorten();
        status
    }

    /// What can be told of an object that is no `Status`: the words that stand where a `Status` has them. Nothing else
    /// is quoted: it may be any object, with all its values.
    fn of_words(object: &str) -> Self {
        let found: serde_json::Value = serde_json::from_str(object).unwrap_or_default();
        let word = |member: &str| found.get(member).and_then(|word| word.as_str()).map(str::to_owned);
        let message = word("message");
        let message =
            message.unwrap_or_else(|| format!("an error event without a Status, of {} bytes", object.len()));
        Self { message, reason: word("reason").unwrap_or_default(), ..Self::default() }
    }

    fn shorten(&mut self) {
        self.message = shortened(&self.message, WORDS);
        self.reason = shortened(&self.reason, WORDS);
    }

    /// How long the server asks to wait, by header or by body; at most a day.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.details.as_ref()?.retry_after_seconds?;
        Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
    }

    fn is_too_large(&self) -> bool {
        let causes = self.details.as_ref().and_then(|details| details.causes.as_deref()).unwrap_or_default();
        causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || (self.code == 504 || self.reason == "Timeout")
                && self.message.contains("Too large resource version")
    }

    /// The typed error; `initial_events` says whether the request was a watch-list, which older servers and proxies
    /// refuse as invalid.
    pub fn into_error(self, initial_events: bool) -> ListWatchError {
        let code = if self.code == 0 { code_of(&self.reason) } else { self.code };
        let retry_after = self.retry_after();
        let too_large = self.is_too_large();
        let message: Arc<str> = if self.message.is_empty() {
            format!("HTTP {code} without a message").into()
        } else {
            self.message.into()
        };
        match (code, self.reason.as_str()) {
            _ if too_large => ListWatchError::TooLargeVersion(message),
            (410, _) | (_, "Expired" | "Gone") => ListWatchError::Expired(message),
            (429, _) | (_, "TooManyRequests") => ListWatchError::Overloaded { message, retry_after },
            (401 | 403, _) | (_, "Unauthorized" | "Forbidden") => ListWatchError::Denied(message),
            (404, _) | (_, "NotFound") => ListWatchError::NotFound(message),
            (400 | 422, _) if initial_events => ListWatchError::WatchListUnsupported(message),
            (code, reason) => ListWatchError::Status { code, reason: reason.into(), message },
        }
    }
}

/// The code that a reason stands for, for frames without one.
fn code_of(reason: &str) -> u16 {
    match reason {
        "BadRequest" => 400,
        "Invalid" => 422,
        "Timeout" | "ServerTimeout" => 504,
        "ServiceUnavailable" => 503,
        _ => 500,
    }
}

fn plain(body: &[u8]) -> String {
    String::from_utf8_lossy(body).trim().to_owned()
}

/// The token of an Authorization header; `None` for one so short that it stands in ordinary words.
fn secret_of(authorization: &HeaderValue) -> Option<&str> {
    let text = authorization.to_str().ok()?;
    let secret = text.split_once(' ').map_or(text, |(_, secret)| secret).trim();
    (secret.len() >= LEAST_SECRET).then_some(secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use informer_core::list_watch_error::ErrorClass;

    fn status(code: u16, reason: &str, more: &str) -> String {
        format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"words",
                "reason":"{reason}","code":{code}{more}}}"#
        )
    }

    /// The class by HTTP answer and, for a Status, by ERROR frame: they must agree.
    fn class(code: u16, body: &str) -> ErrorClass {
        let by_answer = Status::from_answer(code, None, body.as_bytes()).into_error(false).class();
        if body.starts_with('{') {
            assert_eq!(Status::from_frame(body).into_error(false).class(), by_answer, "{body}");
        }
        by_answer
    }

    #[test]
    fn each_refusal_has_its_class_with_and_without_a_status() {
        let too_large =
            r#","details":{"causes":[{"reason":"ResourceVersionTooLarge"}],"retryAfterSeconds":1}"#;
        for (code, reason, more, expected) in [
            (410, "Expired", "", ErrorClass::Relist),
            (410, "Gone", r#","details":null"#, ErrorClass::Relist),
            (504, "Timeout", too_large, ErrorClass::Relist),
            (504, "Timeout", "", ErrorClass::Retry),
            (
                429,
                "TooManyRequests",
                r#","details":{"retryAfterSeconds":7}"#,
                ErrorClass::RetryAfter(Duration::from_secs(7)),
            ),
            (429, "TooManyRequests", "", ErrorClass::Retry),
            (401, "Unauthorized", "", ErrorClass::Denied),
            (403, "Forbidden", "", ErrorClass::Denied),
            (404, "NotFound", "", ErrorClass::Gone),
            (400, "BadRequest", "", ErrorClass::Retry),
            (500, "InternalError", "", ErrorClass::Retry),
        ] {
            assert_eq!(class(code, &status(code, reason, more)), expected, "{code} {reason}");
        }
        for (code, expected) in [
            (410, ErrorClass::Relist),
            (429, ErrorClass::Retry),
            (403, ErrorClass::Denied),
            (404, ErrorClass::Gone),
            (502, ErrorClass::Retry),
            (301, ErrorClass::Retry),
        ] {
            assert_eq!(class(code, "<html>no status</html>"), expected, "{code}");
        }
    }

    #[test]
    fn a_frame_without_a_code_is_typed_by_its_reason() {
        for (reason, expected) in [("Expired", ErrorClass::Relist), ("TooManyRequests", ErrorClass::Retry)] {
            let frame = format!(r#"{{"kind":"Status","reason":"{reason}"}}"#);
            assert_eq!(Status::from_frame(&frame).into_error(false).class(), expected);
        }
    }

    #[test]
    fn the_retry_after_header_counts_with_a_plain_text_body_and_wins_over_the_body() {
        let plain = Status::from_answer(429, Some("7"), b"Too many requests, please try again later.\n");
        assert_eq!(plain.retry_after(), Some(Duration::from_secs(7)));
        assert_eq!(
            plain.into_error(false).to_string(),
            "overloaded: Too many requests, please try again later."
        );
        let body = status(429, "TooManyRequests", r#","details":{"retryAfterSeconds":3}"#);
        assert_eq!(
            Status::from_answer(429, Some("9"), body.as_bytes()).retry_after(),
            Some(Duration::from_secs(9))
        );
        let dated = Status::from_answer(429, Some("Fri, 31 Dec 1999 23:59:59 GMT"), body.as_bytes());
        assert_eq!(dated.retry_after(), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_wait_beyond_a_day_is_taken_as_a_day() {
        for seconds in ["86401", "18446744073709551615"] {
            let answer = Status::from_answer(429, Some(seconds), b"Too many requests");
            assert_eq!(answer.retry_after(), Some(LONGEST_WAIT));
        }
        let absurd = Status::from_answer(429, Some("18446744073709551616"), b"Too many requests");
        assert_eq!(absurd.retry_after(), None);
    }

    #[test]
    fn only_a_watch_list_turns_an_invalid_request_into_unsupported() {
        for code in [400, 422] {
            let answer = Status::from_answer(code, None, status(code, "Invalid", "").as_bytes());
            assert_eq!(answer.clone().into_error(true).class(), ErrorClass::Unsupported);
            assert_eq!(answer.into_error(false).class(), ErrorClass::Retry);
        }
        let expired = Status::from_answer(410, None, b"").into_error(true);
        assert_eq!(expired.class(), ErrorClass::Relist);
    }

    #[test]
    fn too_large_is_known_by_the_words_of_servers_that_send_no_cause() {
        let body =
            status(504, "Timeout", "").replace("words", "Timeout: Too large resource version: 9, current: 7");
        assert!(matches!(
            Status::from_answer(504, None, body.as_bytes()).into_error(false),
            ListWatchError::TooLargeVersion(_)
        ));
    }

    #[test]
    fn long_words_are_shortened_between_characters() {
        let error = Status::from_answer(500, None, "é".repeat(5000).as_bytes()).into_error(false);
        assert!(error.to_string().chars().count() < 600);
        let frame = format!(r#"{{"kind":"Status","reason":"{}"}}"#, "x".repeat(5000));
        assert!(Status::from_frame(&frame).into_error(false).to_string().len() < 600);
    }
}
