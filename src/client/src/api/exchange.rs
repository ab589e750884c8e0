//! One request of a verb and its answer.
//!
//! 1. A kind with namespaces needs one for a request of one object. Without it, a server does not know the
//!    path, which looks like an absent object.
//! 2. An object of another name or namespace than requested is an error. Its connection may return the
//!    answers of other requests, so the connections of single requests close.
//! 3. Errors name the request and the field, and quote no value.

use bytes::Bytes;
use http::{HeaderValue, Method, Response, Uri, header};
use informer_core::words::shortened;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource;
use kube_core::params::ListParams;
use kube_core::request::{Error as RequestError, Request};
use memchr::memmem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Api;
use crate::error::Error;
use crate::scope::{check_selectors, encoded_name, segment};
use crate::wire::{Asked, Form, JsonError, RequestedContent, Unexpected, WireKind, from_text};

const QUOTED_NAME_CHARS: usize = 500;

pub(super) type Built = http::Request<Vec<u8>>;

impl<K> Api<K> {
    pub(super) fn collection(&self) -> Result<Request, Error> {
        self.scope.check()?;
        Ok(Request::new(self.scope.collection(self.scope.namespace.as_deref())))
    }

    /// Also returns the name as a part of a path.
    pub(super) fn object(&self, name: &str) -> Result<(Request, String), Error> {
        self.needs_namespace(self.scope.namespace.as_deref())?;
        Ok((self.collection()?, encoded_name(name)?))
    }

    /// That of the object's own namespace, unless the `Api` has one.
    pub(super) fn collection_of(&self, object: &K) -> Result<Request, Error>
    where
        K: Resource,
    {
        if self.scope.namespace.is_some() || self.is_namespaced == Some(false) {
            return self.collection();
        }
        let namespace = object.meta().namespace.as_deref();
        self.needs_namespace(namespace)?;
        self.scope.check()?;
        namespace.map_or(Ok(()), |namespace| segment("namespace", namespace))?;
        Ok(Request::new(self.scope.collection(namespace)))
    }

    pub(super) fn needs_namespace(&self, namespace: Option<&str>) -> Result<(), Error> {
        if self.is_namespaced == Some(true) && namespace.is_none() {
            let resource = self.scope.name();
            let why = format!("{resource} are in namespaces, and none is named: use Api::namespaced");
            return Err(Error::Request(why));
        }
        Ok(())
    }

    pub(super) fn list_request(&self, params: &ListParams) -> Result<Built, Error>
    where
        K: Resource,
    {
        check_selectors(params.label_selector.as_deref(), params.field_selector.as_deref())?;
        let request = self.collection()?.list(params).map_err(not_made)?;
        self.finished(accepting::<K>(request, Form::List))
    }

    pub(super) async fn ask<T: DeserializeOwned>(
        &self,
        request: Result<Built, RequestError>,
    ) -> Result<T, Error> {
        let request = self.finished(request.map_err(not_made)?)?;
        let question = Question::of(&request);
        question.decoded(&self.client.send(request).await?)
    }

    /// `asked`: namespace and name of the answer.
    pub(super) async fn ask_for_object<T: Resource + DeserializeOwned>(
        &self,
        request: Result<Built, RequestError>,
        asked: (Option<&str>, &str),
    ) -> Result<T, Error> {
        let request = self.finished(request.map_err(not_made)?)?;
        let question = Question::of(&request);
        let object: T = question.decoded(&self.client.send(request).await?)?;
        self.is_of_name(question.name(), asked, object.meta()).await?;
        Ok(object)
    }

    /// Refuses another object, and closes the connections.
    pub(super) async fn is_of_name(
        &self,
        request: String,
        (namespace, name): (Option<&str>, &str),
        found: &ObjectMeta,
    ) -> Result<(), Error> {
        let differs = |asked: Option<&str>, found: &Option<String>| {
            asked.zip(found.as_deref()).is_some_and(|(asked, found)| asked != found)
        };
        // For "~", a server returns the object of the caller.
        let asks_for_own = name == "~";
        if asks_for_own || !(differs(Some(name), &found.name) || differs(namespace, &found.namespace)) {
            return Ok(());
        }
        self.client.worker().distrust().await?;
        let named = |namespace: Option<&str>, name: Option<&str>| match namespace {
            Some(namespace) => format!("{namespace}/{}", name.unwrap_or_default()),
            None => name.unwrap_or_default().to_owned(),
        };
        let asked = named(namespace, Some(name));
        let received = named(namespace.and(found.namespace.as_deref()), found.name.as_deref());
        let received = shortened(&received, QUOTED_NAME_CHARS);
        Err(Error::AnotherObject { request, asked, received })
    }

    pub(super) async fn ask_for_bytes(&self, request: Built) -> Result<(WireKind, Bytes), Error> {
        let request = self.finished(request)?;
        let question = Question::of(&request);
        let answer = self.client.send(request).await?;
        Ok((question.wire(&answer)?, answer.into_body()))
    }

    /// Adds what kube-core leaves out, and removes empty parameters.
    pub(super) fn finished(&self, mut request: Built) -> Result<Built, Error> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let writes = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
        let is_said = || query.split('&').any(|pair| pair.starts_with("fieldValidation="));
        let directive = self.field_validation.as_ref().filter(|_| writes && !is_said());
        // kube-core ends a path without parameters with "?" or "?&".
        let has_empty_pair = request.uri().query().is_some() && query.split('&').any(str::is_empty);
        if has_empty_pair || directive.is_some() {
            let said = directive.map(|directive| format!("fieldValidation={}", directive.as_str()));
            let pairs = query.split('&').filter(|pair| !pair.is_empty()).chain(said.as_deref());
            let query = pairs.collect::<Vec<_>>().join("&");
            let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
            *request.uri_mut() = target.parse::<Uri>().map_err(|error| Error::Request(error.to_string()))?;
        }
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().entry(header::ACCEPT).or_insert(json);
        Ok(request)
    }
}

pub(super) fn accepting<K: Resource>(mut request: Built, form: Form) -> Built {
    let content = if K::metadata_api() { RequestedContent::Metadata } else { RequestedContent::Objects };
    let asked = Asked::json(content, form);
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(asked.accept()));
    request.extensions_mut().insert(asked);
    request
}

pub(super) fn asked_by(request: &Built) -> Asked {
    request.extensions().get().copied().unwrap_or(Asked::OBJECT)
}

pub(super) struct Question {
    method: Method,
    uri: Uri,
    asked: Asked,
}

impl Question {
    pub(super) fn of(request: &Built) -> Self {
        Self { method: request.method().clone(), uri: request.uri().clone(), asked: asked_by(request) }
    }

    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.uri.path())
    }

    fn wire(&self, answer: &Response<Bytes>) -> Result<WireKind, Error> {
        let wire = self.asked.wire(answer.headers());
        wire.map_err(|unexpected| unexpected_answer(self.name(), unexpected))
    }

    pub(super) fn decoded<T: DeserializeOwned>(&self, answer: &Response<Bytes>) -> Result<T, Error> {
        let wire = self.wire(answer)?;
        let unexpected = |unexpected| unexpected_answer(self.name(), unexpected);
        checked(self.asked, wire, answer.body()).map_err(unexpected)?;
        decoded(answer.body()).map_err(|source| Error::Answer { request: self.name(), source })
    }
}

/// Refuses whole objects where metadata was requested, and tables.
pub(super) fn checked(asked: Asked, wire: WireKind, body: &[u8]) -> Result<(), Unexpected> {
    // A Table names its group: without that text, no scan is needed.
    if asked.content == RequestedContent::Objects && memmem::find(body, b"meta.k8s.io/").is_none() {
        return Ok(());
    }
    let scan = wire.identify(body);
    if scan.kind.is_some() && scan.api_version.is_some() {
        return asked.check_kind(scan.api_version.as_deref(), scan.kind.as_deref());
    }
    // Only a parser finds fields after the metadata. The decoder reports what is not JSON.
    let Ok(found) = serde_json::from_slice::<Kind>(body) else { return Ok(()) };
    asked.check_kind(found.api_version.as_deref(), found.kind.as_deref())
}

pub(super) fn unexpected_answer(request: String, unexpected: Unexpected) -> Error {
    Error::UnexpectedAnswer { request, asked: unexpected.asked, received: unexpected.received }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kind {
    kind: Option<String>,
    api_version: Option<String>,
}

pub(super) fn not_made(error: RequestError) -> Error {
    match error {
        RequestError::SerializeBody(error) => {
            Error::Request(format!("its body: {}", JsonError::from(&error)))
        }
        RequestError::Validation(why) => Error::Request(why),
        RequestError::BuildRequest(error) => Error::Request(error.to_string()),
    }
}

pub(super) fn encoded<T: Serialize>(body: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(body).map_err(|error| not_made(RequestError::SerializeBody(error)))
}

pub(super) fn decoded<T: DeserializeOwned>(body: &[u8]) -> Result<T, JsonError> {
    // A third less time than from bytes: no string is checked on its own.
    let text = std::str::from_utf8(body).map_err(|_| JsonError::not_text())?;
    from_text(text).map_err(|error| match error.is_data() {
        true => JsonError::in_text(text, &error),
        false => JsonError::from(&error),
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    fn refused(body: &[u8]) -> String {
        decoded::<Deployment>(body).expect_err("it does not decode").to_string()
    }

    #[test]
    fn an_answer_that_does_not_decode_is_refused_with_the_field_and_without_a_value() {
        for (body, why) in [
            (
                &br#"{"spec": {"replicas": "hunter2"}}"#[..],
                "spec.replicas: invalid type: string, expected i32",
            ),
            (b"{\"metadata\": {\"name\": \"\xff\"}}", "it is not UTF-8"),
            (b"{\"unknown\": \"\xff\"}", "it is not UTF-8"),
            (br#"{"spec": "#, "EOF while parsing a value"),
        ] {
            let said = refused(body);
            assert!(said.starts_with(why), "{said}");
        }
    }
}
