//! Reads a server's error: an HTTP answer that is not a success, or an ERROR event of a watch.
//!
//! 1. An answer and an event with the same error have the same result.
//! 2. A body that is not a `Status` is typed by its HTTP code and quoted, shortened. If its Content-Type is
//!    neither JSON nor text, only that type is quoted.
//! 3. If the server repeats the client's token, it is replaced everywhere.

use std::sync::Arc;
use std::time::Duration;

use http::response::Parts;
use http::{HeaderValue, header};
use informer_core::list_watch_error::ListWatchError;
use informer_core::words::shortened;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube_core::response::{Status, StatusCause, StatusDetails, StatusSummary, reason};
use serde::Deserialize;

use crate::request::SentAuthorization;
use crate::{retry_after, wire};

/// For each text of a server.
const MAX_MESSAGE_CHARS: usize = 512;
/// A real server sends one for each wrong field.
const MAX_CAUSES: usize = 64;
const MAX_TYPE_CHARS: usize = 100;
/// A longer continue token is dropped, not cut: a real one has some hundred bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;
const TOKEN_PLACEHOLDER: &str = "[the token]";
/// Shorter tokens are not replaced: they occur in ordinary words.
const MIN_TOKEN_BYTES: usize = 8;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Received {
    kind: Option<String>,
    status: Option<String>,
    code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<ReceivedDetails>,
    metadata: Option<ListMeta>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ReceivedDetails {
    name: Option<String>,
    group: Option<String>,
    kind: Option<String>,
    uid: Option<String>,
    causes: Option<Vec<ReceivedCause>>,
    retry_after_seconds: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReceivedCause {
    reason: Option<String>,
    message: Option<String>,
    field: Option<String>,
}

pub(crate) fn of_parts(head: &Parts, body: &[u8]) -> Status {
    let authorization = head.extensions.get::<SentAuthorization>().map(|sent| &sent.0);
    #[cfg(feature = "protobuf")]
    if let Some(text) = wire::status_as_json(&head.headers, body) {
        let code = (head.status.as_u16(), retry_after::of(&head.headers));
        return of_answer(authorization, code, text.as_bytes());
    }
    if !wire::is_readable(&head.headers) {
        let text =
            head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (text, length) = (shortened(text, MAX_TYPE_CHARS), body.len());
        let words = format!("an answer of {length} bytes of {text}, which is neither JSON nor text");
        return of_answer(
            authorization,
            (head.status.as_u16(), retry_after::of(&head.headers)),
            words.as_bytes(),
        );
    }
    of_answer(authorization, (head.status.as_u16(), retry_after::of(&head.headers)), body)
}

/// `authorization`: of the request; the server may have repeated it.
fn of_answer(
    authorization: Option<&HeaderValue>,
    (code, retry_after): (u16, Option<Duration>),
    body: &[u8],
) -> Status {
    let token = authorization.and_then(token_of);
    let received = serde_json::from_slice::<Received>(body)
        .ok()
        .filter(|received| received.kind.as_deref() == Some("Status"))
        .unwrap_or_else(|| Received { message: Some(plain(body)), ..Received::default() });
    let mut status = received.kept(token);
    status.code = code;
    if let Some(wait) = retry_after {
        // Rounded up: a wait below a second is not zero.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        status.details.get_or_insert_with(no_details).retry_after_seconds = bounded(seconds);
    }
    status
}

#[cfg(feature = "unstable")]
pub(crate) fn of_texts(code: u16, retry_after: Option<&str>, body: &[u8]) -> Status {
    let wait = retry_after.and_then(|text| retry_after::parsed(text, None));
    of_answer(None, (code, wait), body)
}

pub(crate) fn of_frame(object: &str) -> Status {
    serde_json::from_str::<Received>(object).unwrap_or_else(|_| Received::from_other(object)).kept(None)
}

impl Received {
    /// Nothing but `message` and `reason` is quoted: any object may come, with secret values.
    fn from_other(object: &str) -> Self {
        let found: serde_json::Value = serde_json::from_str(object).unwrap_or_default();
        let text = |field: &str| found.get(field).and_then(|value| value.as_str()).map(str::to_owned);
        let unreadable = || format!("an error event without a Status, of {} bytes", object.len());
        Self {
            message: Some(text("message").unwrap_or_else(unreadable)),
            reason: text("reason"),
            ..Self::default()
        }
    }

    fn kept(self, token: Option<&str>) -> Status {
        let kept = |text: Option<String>| {
            let text = text.unwrap_or_default();
            match token {
                Some(token) => shortened(&text.replace(token, TOKEN_PLACEHOLDER), MAX_MESSAGE_CHARS),
                None => shortened(&text, MAX_MESSAGE_CHARS),
            }
        };
        let cause = |cause: ReceivedCause| StatusCause {
            reason: kept(cause.reason),
            message: kept(cause.message),
            field: kept(cause.field),
        };
        let details = self.details.map(|details| StatusDetails {
            name: kept(details.name),
            group: kept(details.group),
            kind: kept(details.kind),
            uid: kept(details.uid),
            causes: details.causes.into_iter().flatten().take(MAX_CAUSES).map(cause).collect(),
            retry_after_seconds: bounded(details.retry_after_seconds.unwrap_or_default()),
        });
        let status = match self.status.as_deref() {
            Some("Success") => Some(StatusSummary::Success),
            Some("Failure") => Some(StatusSummary::Failure),
            _ => None,
        };
        let (reason, message) = (kept(self.reason), kept(self.message));
        let token = self.metadata.and_then(|metadata| metadata.continue_);
        let token = token.filter(|token| !token.is_empty() && token.len() <= MAX_TOKEN_BYTES);
        let metadata = token.map(|token| ListMeta { continue_: Some(token), ..ListMeta::default() });
        Status { status, code: self.code.unwrap_or_default(), message, metadata, reason, details }
    }
}

fn no_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

fn bounded(seconds: u64) -> u32 {
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

pub(crate) fn wait_of(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| retry_after::capped(Duration::from_secs(seconds.into())))
}

fn is_too_large(status: &Status) -> bool {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
        || (status.code == 504 || status.reason == reason::TIMEOUT)
            && status.message.contains("Too large resource version")
}

/// `initial_events`: the request was a watch-list, which older servers and proxies refuse as invalid.
pub(crate) fn into_error(status: Status, initial_events: bool) -> ListWatchError {
    let code = if status.code == 0 { code_of(&status.reason) } else { status.code };
    let (retry_after, too_large) = (wait_of(&status), is_too_large(&status));
    let message: Arc<str> = if status.message.is_empty() {
        format!("HTTP {code} without a message").into()
    } else {
        status.message.into()
    };
    match (code, status.reason.as_str()) {
        _ if too_large => ListWatchError::TooLargeVersion(message),
        (410, _) | (_, reason::EXPIRED | reason::GONE) => ListWatchError::Expired(message),
        (429, _) | (_, reason::TOO_MANY_REQUESTS) => ListWatchError::Overloaded { message, retry_after },
        (500..=599, _) if retry_after.is_some() => ListWatchError::Overloaded { message, retry_after },
        (401, _) | (_, reason::UNAUTHORIZED) => ListWatchError::Unauthorized(message),
        (403, _) | (_, reason::FORBIDDEN) => ListWatchError::Denied(message),
        (404, _) | (_, reason::NOT_FOUND) => ListWatchError::NotFound(message),
        (400 | 422, _) if initial_events => ListWatchError::WatchListUnsupported(message),
        (code, reason) => ListWatchError::Status { code, reason: reason.into(), message },
    }
}

/// For ERROR events without a code.
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

fn token_of(authorization: &HeaderValue) -> Option<&str> {
    let text = authorization.to_str().ok()?;
    let token = text.split_once(' ').map_or(text, |(_, token)| token).trim();
    (token.len() >= MIN_TOKEN_BYTES).then_some(token)
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

    fn answer_bytes(code: u16, retry_after: Option<&str>, body: &[u8]) -> Status {
        let wait = retry_after.and_then(|text| retry_after::parsed(text, None));
        of_answer(None, (code, wait), body)
    }

    fn answer(code: u16, retry_after: Option<&str>, body: &str) -> Status {
        answer_bytes(code, retry_after, body.as_bytes())
    }

    /// The class as an HTTP answer and, for a `Status`, as an ERROR event: both must be the same.
    fn class(code: u16, body: &str) -> ErrorClass {
        let by_answer = into_error(answer(code, None, body), false).class();
        if body.starts_with('{') {
            assert_eq!(into_error(of_frame(body), false).class(), by_answer, "{body}");
        }
        by_answer
    }

    #[test]
    fn each_error_answer_has_its_class_with_and_without_a_status() {
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
            (401, "Unauthorized", "", ErrorClass::Unauthorized),
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
            assert_eq!(into_error(of_frame(&frame), false).class(), expected);
        }
    }

    #[test]
    fn the_retry_after_header_counts_with_a_plain_text_body_and_wins_over_the_body() {
        let plain = answer_bytes(429, Some("7"), b"Too many requests, please try again later.\n");
        assert_eq!(wait_of(&plain), Some(Duration::from_secs(7)));
        assert_eq!(
            into_error(plain, false).to_string(),
            "overloaded: Too many requests, please try again later."
        );
        let body = status(429, "TooManyRequests", r#","details":{"retryAfterSeconds":3}"#);
        assert_eq!(wait_of(&answer_bytes(429, Some("9"), body.as_bytes())), Some(Duration::from_secs(9)));
        let dated = answer(429, Some("Fri, 31 Dec 1999 23:59:59 GMT"), &body);
        assert_eq!(wait_of(&dated), None, "it has passed");
        assert_eq!(wait_of(&answer(429, Some("soon"), &body)), Some(Duration::from_secs(3)));
    }

    #[test]
    fn a_requested_wait_counts_with_429_and_5xx_and_is_at_most_five_minutes() {
        for code in [429, 500, 503, 504] {
            for (text, wait) in [("7", 7), ("301", 300), ("18446744073709551615", 300)] {
                let error = into_error(answer(code, Some(text), "busy"), false);
                assert_eq!(error.class(), ErrorClass::RetryAfter(Duration::from_secs(wait)), "{code} {text}");
            }
        }
        assert_eq!(into_error(answer(404, Some("7"), ""), false).class(), ErrorClass::Gone);
        let body = r#"{"kind":"Status","code":429,"details":{"retryAfterSeconds":86400}}"#;
        assert_eq!(wait_of(&of_frame(body)), Some(Duration::from_secs(300)));
    }

    #[test]
    fn only_a_watch_list_turns_an_invalid_request_into_unsupported() {
        for code in [400, 422] {
            let answer = answer_bytes(code, None, status(code, "Invalid", "").as_bytes());
            assert_eq!(into_error(answer.clone(), true).class(), ErrorClass::Unsupported);
            assert_eq!(into_error(answer, false).class(), ErrorClass::Retry);
        }
        let expired = into_error(answer_bytes(410, None, b""), true);
        assert_eq!(expired.class(), ErrorClass::Relist);
    }

    #[test]
    fn too_large_version_is_recognized_by_the_message_of_servers_that_send_no_cause() {
        let body =
            status(504, "Timeout", "").replace("words", "Timeout: Too large resource version: 9, current: 7");
        assert!(matches!(
            into_error(answer_bytes(504, None, body.as_bytes()), false),
            ListWatchError::TooLargeVersion(_)
        ));
    }

    #[test]
    fn a_long_message_is_shortened_between_characters() {
        let error = into_error(answer_bytes(500, None, "é".repeat(5000).as_bytes()), false);
        assert!(error.to_string().chars().count() < 600);
        let frame = format!(r#"{{"kind":"Status","reason":"{}"}}"#, "x".repeat(5000));
        assert!(into_error(of_frame(&frame), false).to_string().len() < 600);
    }

    #[test]
    fn causes_and_details_are_readable_bounded_and_without_the_token() {
        let long = "x".repeat(5000);
        let causes: Vec<_> = (0..100)
            .map(|n| serde_json::json!({"reason": "R", "field": format!("f{n}"), "message": long}))
            .collect();
        let body = serde_json::json!({
            "kind": "Status", "message": "no", "reason": "Invalid",
            "details": {"name": "web", "kind": "pods", "uid": "u", "causes": causes, "group": "of s3cret-token"},
        });
        let token = HeaderValue::from_static("Bearer s3cret-token");
        let status = of_answer(Some(&token), (422, None), body.to_string().as_bytes());
        let details = status.details.as_ref().unwrap();
        assert_eq!((&*details.name, &*details.kind, &*details.uid), ("web", "pods", "u"));
        assert_eq!(details.group, format!("of {TOKEN_PLACEHOLDER}"));
        assert_eq!((details.causes.len(), &*details.causes[3].field), (MAX_CAUSES, "f3"));
        assert!(details.causes.iter().all(|cause| cause.message.chars().count() < 600));
        assert!(status.is_invalid());
    }
}
