//! Events as requests to an API server: `events.k8s.io/v1`, or `v1` of the core group. A create carries no
//! resourceVersion; a patch only what the server lets change. Answers that may change are retried: no
//! connection, 401, 409, 429, 5xx.

use std::sync::Arc;
use std::time::Duration;

use crate::events::machine::{EventRequest, Reference, Repeats, Verb};
use crate::events::{Answer, EventSink};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event as CoreEvent, EventSource, ObjectReference};
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube_core::ObjectMeta;
use serde_json::{Value, json};

use informer_client::api::{Patch, PatchParams, PostParams};
use informer_client::{Client, Error};

#[derive(Clone)]
pub(super) struct Sink(Arc<Inner>);

struct Inner {
    client: Client,
    controller: String,
    instance: String,
    repeats: Repeats,
}

impl Sink {
    pub(super) fn new(client: Client, (controller, instance): (&str, &str), repeats: Repeats) -> Self {
        let (controller, instance) = (controller.to_owned(), instance.to_owned());
        Self(Arc::new(Inner { client, controller, instance, repeats }))
    }
}

impl EventSink for Sink {
    fn send(&self, request: EventRequest) -> LocalBoxFuture<'static, Answer> {
        let sink = Arc::clone(&self.0);
        async move { answer(request.verb, sink.sent(&request).await) }.boxed_local()
    }
}

impl Inner {
    async fn sent(&self, request: &EventRequest) -> Result<(), Error> {
        let namespace = request.event.namespace();
        let (params, is_core) = (PostParams::default(), self.repeats == Repeats::Count);
        match (is_core, request.verb) {
            (false, Verb::Create) => {
                let events = self.client.api::<Event>().namespaced(namespace);
                events.create(&params, &self.event(request)).await.map(drop)
            }
            (true, Verb::Create) => {
                let events = self.client.api::<CoreEvent>().namespaced(namespace);
                events.create(&params, &self.core_event(request)).await.map(drop)
            }
            (false, _) => {
                let events = self.client.api::<Event>().namespaced(namespace);
                events.patch(&request.name, &PatchParams::default(), &repeated(request)).await.map(drop)
            }
            (true, _) => {
                let events = self.client.api::<CoreEvent>().namespaced(namespace);
                events.patch(&request.name, &PatchParams::default(), &counted(request)).await.map(drop)
            }
        }
    }

    fn event(&self, request: &EventRequest) -> Event {
        let event = &request.event;
        let series = EventSeries { count: count(request), last_observed_time: MicroTime(time(request.last)) };
        Event {
            metadata: metadata(request),
            event_time: Some(MicroTime(time(request.first))),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            action: Some(event.action.clone()),
            reason: Some(event.reason.clone()),
            regarding: Some(reference(&event.regarding)),
            related: event.related.as_ref().map(reference),
            note: Some(request.note.clone()),
            type_: Some(event.event_type.as_str().to_owned()),
            series: (request.count > 1).then_some(series),
            ..Event::default()
        }
    }

    fn core_event(&self, request: &EventRequest) -> CoreEvent {
        let event = &request.event;
        CoreEvent {
            metadata: metadata(request),
            involved_object: reference(&event.regarding),
            related: event.related.as_ref().map(reference),
            reason: Some(event.reason.clone()),
            action: Some(event.action.clone()),
            message: Some(request.note.clone()),
            type_: Some(event.event_type.as_str().to_owned()),
            source: Some(EventSource { component: Some(self.controller.clone()), host: None }),
            reporting_component: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            first_timestamp: Some(Time(time(request.first))),
            last_timestamp: Some(Time(time(request.last))),
            count: Some(count(request)),
            ..CoreEvent::default()
        }
    }
}

/// In `events.k8s.io`.
fn repeated(request: &EventRequest) -> Patch<Value> {
    let last = MicroTime(time(request.last));
    Patch::Merge(json!({"series": {"count": count(request), "lastObservedTime": last}}))
}

/// In the core group.
fn counted(request: &EventRequest) -> Patch<Value> {
    let last = Time(time(request.last));
    Patch::Merge(json!({"count": count(request), "lastTimestamp": last, "message": request.note}))
}

fn metadata(request: &EventRequest) -> ObjectMeta {
    let namespace = request.event.namespace().to_owned();
    ObjectMeta { name: Some(request.name.clone()), namespace: Some(namespace), ..ObjectMeta::default() }
}

fn count(request: &EventRequest) -> i32 {
    i32::try_from(request.count).unwrap_or(i32::MAX)
}

fn time(since_1970: Duration) -> Timestamp {
    let since = SignedDuration::try_from(since_1970).unwrap_or(SignedDuration::MAX);
    Timestamp::from_duration(since).unwrap_or(Timestamp::MAX)
}

fn reference(of: &Reference) -> ObjectReference {
    let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    ObjectReference {
        api_version: known(&of.api_version),
        kind: known(&of.kind),
        namespace: known(&of.namespace),
        name: known(&of.name),
        uid: known(&of.uid),
        resource_version: known(&of.resource_version),
        field_path: known(&of.field_path),
    }
}

fn answer(verb: Verb, sent: Result<(), Error>) -> Answer {
    let error = match sent {
        // Only the answer is unreadable.
        Ok(()) | Err(Error::Answer { .. }) => return Answer::Done,
        Err(error) => error,
    };
    let why = error.to_string();
    let refused = match &error {
        Error::Refused(refused) => refused,
        Error::Transport(_) | Error::UnexpectedAnswer { .. } => return Answer::Later { after: None, why },
        _ => return Answer::Refused { word: "NotSent".to_owned(), why },
    };
    let after = refused.retry_after();
    match refused.code {
        404 if verb == Verb::Patch => Answer::NotFound,
        _ if verb == Verb::Create && refused.is_already_exists() => Answer::Exists,
        401 | 429 | 500.. => Answer::Later { after, why },
        409 => Answer::Later { after, why },
        _ => Answer::Refused { word: refused.reason.clone(), why },
    }
}

#[cfg(test)]
mod tests;
