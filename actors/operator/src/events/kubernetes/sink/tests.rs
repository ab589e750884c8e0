//! What each answer of a server means for an event.

use http::Method;
use kube_core::response::Status;

use super::*;
use informer_client::TransportError;

fn refused(code: u16, reason: &str) -> Result<(), Error> {
    let status = Status { code, reason: reason.to_owned(), ..Status::default() };
    Err(Error::Refused(Box::new(informer_client::Refused::new(Method::POST, "/events", status))))
}

fn meaning(verb: Verb, sent: Result<(), Error>) -> String {
    match answer(verb, sent) {
        Answer::Later { .. } => "later".to_owned(),
        Answer::Refused { word, .. } => word,
        other => format!("{other:?}"),
    }
}

#[test]
fn rec_07_what_may_be_otherwise_later_is_tried_again_and_other_refusals_are_the_end() {
    let late = || TransportError::Timeout { what: "it", after: Duration::ZERO };
    for (verb, sent, expected) in [
        (Verb::Create, Ok(()), "Done"),
        (Verb::Patch, refused(404, "NotFound"), "NotFound"),
        (Verb::Create, refused(409, "AlreadyExists"), "Exists"),
        (Verb::Create, refused(401, "Unauthorized"), "later"),
        (Verb::Patch, refused(409, "Conflict"), "later"),
        (Verb::Create, refused(429, "TooManyRequests"), "later"),
        (Verb::Create, refused(500, "InternalError"), "later"),
        (Verb::Create, refused(503, "ServiceUnavailable"), "later"),
        (Verb::Create, Err(late().into()), "later"),
        (Verb::Create, refused(403, "Forbidden"), "Forbidden"),
        (Verb::Create, refused(422, "Invalid"), "Invalid"),
        (Verb::Create, Err(Error::Stopped), "NotSent"),
    ] {
        let case = format!("{verb:?} {sent:?}");
        assert_eq!(meaning(verb, sent), expected, "{case}");
    }
    let created = answer(Verb::Create, refused(404, "NotFound"));
    assert!(matches!(created, Answer::Refused { word, .. } if word == "NotFound"), "the namespace is gone");
}
