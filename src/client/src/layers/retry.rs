//! Sends a request again, as client-go's `rest/with_retry.go` does.
//!
//! 1. After 429 or 5xx with Retry-After: any verb, because the server has not handled the request. Never
//!    without that header.
//! 2. After a connection that broke before the head of the answer: GET and HEAD only, at once, then after 100
//!    ms, doubled up to 1 s. Not an upgrade: its GET may run a command. Never after a failed connect or a
//!    deadline.
//! 3. All waits together are at most [`retry_after::LONGEST`] and end before the request does. Otherwise the
//!    refusal is the answer.
//! 4. Requests of informers have no retries: the reflector retries, and both together would multiply.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use tokio::time::{Instant, sleep};

use super::super::body::{collect, length_of};
use super::super::error::TransportError;
use super::super::request::RequestKind;
use super::super::retry_after;
use super::super::transport::Body;

/// In bytes. A shorter refusal is read, so that its connection can be used again.
const READ_OUT: usize = 16 << 10;
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT_AFTER_BREAK: Duration = Duration::from_secs(1);

type Answer = Result<Response<Body>, TransportError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attempts(pub(super) u32);

pub(super) async fn send(
    mut request: Request<Bytes>,
    kind: RequestKind,
    retries: u32,
    ends: Option<Instant>,
    send: impl AsyncFn(Request<Bytes>) -> Answer,
) -> Answer {
    let (mut previous, mut waited, mut attempt) = (None, Duration::ZERO, 0);
    loop {
        let copy = (attempt < retries).then(|| request.clone());
        let is_read = kind != RequestKind::Upgrade && matches!(*request.method(), Method::GET | Method::HEAD);
        let answer = send(request).await;
        let wait = wait_before_next(is_read, &answer, attempt)
            .filter(|wait| waited + *wait <= retry_after::LONGEST)
            .filter(|wait| ends.is_none_or(|ends| Instant::now() + *wait < ends));
        let (Some(next), Some(wait)) = (copy, wait) else { return with_attempts(answer, attempt, previous) };
        let why = refusal(answer).await;
        tracing::debug!(
            target: "actix_informer::client",
            path = next.uri().path(),
            attempt = attempt + 1,
            ?wait,
            why,
            "sending a request again"
        );
        sleep(wait).await;
        (request, previous, waited, attempt) = (next, Some(why), waited + wait, attempt + 1);
    }
}

fn wait_before_next(is_read: bool, answer: &Answer, attempt: u32) -> Option<Duration> {
    match answer {
        Ok(answer) if answer.status().as_u16() == 429 || answer.status().is_server_error() => {
            retry_after::of(answer.headers())
        }
        Err(TransportError::Broken { .. }) if is_read => {
            let doubled = |times: u32| FIRST_WAIT * 2_u32.saturating_pow(times).min(1024);
            Some(attempt.checked_sub(1).map_or(Duration::ZERO, doubled).min(LONGEST_WAIT_AFTER_BREAK))
        }
        _ => None,
    }
}

async fn refusal(answer: Answer) -> String {
    match answer {
        Err(error) => error.to_string(),
        Ok(answer) => {
            let (head, body) = answer.into_parts();
            let _ = collect(body, length_of(&head.headers), READ_OUT).await;
            format!("the server answered {}", head.status.as_u16())
        }
    }
}

fn with_attempts(answer: Answer, retries: u32, previous: Option<String>) -> Answer {
    match (answer, previous) {
        (Ok(mut answer), _) => {
            answer.extensions_mut().insert(Attempts(retries + 1));
            Ok(answer)
        }
        (Err(error), Some(previous)) => {
            Err(TransportError::Retried { attempts: retries + 1, previous, source: Box::new(error) })
        }
        (Err(error), None) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures_util::StreamExt;

    use super::*;

    /// What each attempt is answered with.
    #[derive(Clone, Copy)]
    enum Given {
        Code(u16),
        /// A code with a Retry-After header.
        Later(u16, &'static str),
        Broken,
        Refused,
        Late,
    }
    use Given::{Broken, Code, Late, Later, Refused};

    fn answer(given: Given) -> Answer {
        let io = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let answer = |code, wait: Option<&str>| {
            let mut answer = Response::builder().status(code);
            if let Some(wait) = wait {
                answer = answer.header("retry-after", wait);
            }
            Ok(answer.body(futures_util::stream::empty().boxed_local()).expect("an answer"))
        };
        match given {
            Code(code) => answer(code, None),
            Later(code, wait) => answer(code, Some(wait)),
            Broken => Err(TransportError::Broken { during: "before the head of the answer", source: io() }),
            Refused => Err(TransportError::Connect { endpoint: "a".to_owned(), source: io() }),
            Late => Err(TransportError::Timeout { what: "the head of the answer", after: Duration::ZERO }),
        }
    }

    /// The last answer, the bodies that were sent, and how long it took.
    async fn sent(
        method: &str,
        retries: u32,
        ends: Option<Duration>,
        script: &[Given],
    ) -> (Answer, Vec<Bytes>, Duration) {
        let (left, bodies) = (RefCell::new(script.iter()), RefCell::new(Vec::new()));
        let request = Request::builder()
            .method(method)
            .uri("/a")
            .body(Bytes::from(vec![b'x'; 4000]))
            .expect("a request");
        let began = Instant::now();
        let ends = ends.map(|after| began + after);
        let answer = send(request, RequestKind::Unary, retries, ends, async |request| {
            bodies.borrow_mut().push(request.into_body());
            answer(*left.borrow_mut().next().expect("another attempt was not expected"))
        })
        .await;
        (answer, bodies.into_inner(), began.elapsed())
    }

    fn code(answer: &Answer) -> u16 {
        answer.as_ref().map_or(0, |answer| answer.status().as_u16())
    }

    #[tokio::test(start_paused = true)]
    async fn rest_01_429_and_5xx_with_retry_after_are_sent_again_with_the_whole_body() {
        let script = [Later(429, "0"), Later(500, "0"), Later(501, "0"), Later(504, "0"), Code(200)];
        let (answer, bodies, _) = sent("POST", 10, None, &script).await;
        assert_eq!((code(&answer), bodies.len()), (200, 5));
        assert!(bodies.iter().all(|body| body.len() == 4000));
        assert_eq!(answer.expect("a success").extensions().get(), Some(&Attempts(5)));
    }

    // REST-02: given 429 or 5xx without Retry-After, when requested with any verb, then no retry.
    #[tokio::test(start_paused = true)]
    async fn rest_02_an_answer_without_retry_after_is_not_sent_again_whatever_the_verb() {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            for refused in [429, 500, 503, 504, 599] {
                let (answer, bodies, _) = sent(method, 10, None, &[Code(refused)]).await;
                assert_eq!((code(&answer), bodies.len()), (refused, 1), "{method}");
            }
        }
        for given in [Later(404, "1"), Later(409, "1"), Later(301, "1"), Later(503, "soon")] {
            assert_eq!(sent("GET", 10, None, &[given]).await.1.len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rest_04_a_connection_that_cannot_be_made_and_a_deadline_are_not_tried_again() {
        for given in [Refused, Late] {
            assert_eq!(sent("GET", 10, None, &[given]).await.1.len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn rest_05_no_retry_fails_and_one_or_five_succeed_after_one_429() {
        for (retries, expected) in [(0, 429), (1, 200), (5, 200)] {
            let (answer, ..) = sent("GET", retries, None, &[Later(429, "1"), Code(200)]).await;
            assert_eq!(code(&answer), expected, "{retries}");
        }
    }

    // REST-06: given all retries used, when finished, then the error names what was wrong with the attempt
    // before; a refusal is the answer itself.
    // - a the error names the attempt before
    // - b a refusal is the answer
    #[tokio::test(start_paused = true)]
    async fn rest_06_the_error_of_the_last_attempt_names_what_was_wrong_with_the_one_before() {
        let (answer, ..) = sent("POST", 2, None, &[Later(429, "1"), Later(503, "1"), Broken]).await;
        let error = answer.err().expect("it broke");
        assert!(matches!(error, TransportError::Retried { attempts: 3, .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("connection broke") && text.contains("the server answered 503"), "{text}");
        let (answer, ..) = sent("POST", 1, None, &[Later(429, "1"), Later(429, "1")]).await;
        assert_eq!(code(&answer), 429, "a refusal is the answer");
    }

    // REST-07: given a GET (also one that opens a watch) whose connection always ends before an answer, with
    // 2 retries, when sent, then 3 attempts and a typed error (client-go gives a closed watch without error;
    // here nothing that failed looks like an end); an informer's list or watch is one attempt, and its
    // reflector waits.
    // - a 3 attempts and an error; other verbs once
    // - b an informer's request is one attempt:
    //   `the_reflector_alone_decides_when_a_refused_list_is_asked_again`
    #[tokio::test(start_paused = true)]
    async fn rest_07_a_get_whose_connections_break_is_sent_as_often_as_allowed_and_other_verbs_once() {
        for (method, attempts) in [("GET", 3), ("HEAD", 3), ("POST", 1), ("PUT", 1), ("DELETE", 1)] {
            let (answer, bodies, took) = sent(method, 2, None, &[Broken; 3]).await;
            assert!(answer.is_err());
            assert_eq!(bodies.len(), attempts, "{method}");
            assert!(took < Duration::from_millis(110), "at once, and then after 100 ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_the_one_that_the_server_names_and_all_together_at_most_five_minutes() {
        let (answer, bodies, took) = sent("GET", 10, None, &[Later(429, "7"), Code(200)]).await;
        assert_eq!((code(&answer), bodies.len()), (200, 2));
        assert!((7..8).contains(&took.as_secs()), "{took:?}");
        let (answer, bodies, took) = sent("GET", 10, None, &[Later(429, "86400"), Later(429, "1")]).await;
        assert_eq!((code(&answer), bodies.len()), (429, 2));
        assert!((300..301).contains(&took.as_secs()), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_end_of_the_request_is_not_begun() {
        let end = Some(Duration::from_secs(5));
        let (answer, bodies, took) = sent("GET", 10, end, &[Later(503, "2"), Later(503, "7")]).await;
        assert_eq!((code(&answer), bodies.len()), (503, 2));
        assert!((2..3).contains(&took.as_secs()), "{took:?}");
    }
}
