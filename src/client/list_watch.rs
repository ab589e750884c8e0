//! A Kubernetes resource as a source for an informer.
//!
//! Answers "how does one list, watch or get become one HTTP request, and its answer become parts?" It decides nothing
//! about what to ask next and repeats nothing. Invariants:
//! 1. One call is one request, with the source's selectors.
//! 2. Objects leave in the order of the body, decoded on the pool in chunks while the body arrives; what is small is
//!    decoded in place.
//! 3. A list ends with `ListPart::End` only if its document closed; half a line at the end of a watch is nothing.
//! 4. Nothing comes behind an error.
//!
//! Bounds: (width of the pool + 1) chunks; each holds at most 64 objects, and less than 256 KiB before its last one,
//! which may be as long as the frame limit. Besides: what one body chunk completed, and one unfinished frame up to the
//! frame limit. With objects of usual size that is 256 KiB for each chunk; with the largest, the frame limit for each.
//! Read next: `list_watch/list.rs` and `watch.rs`.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, LocalBoxStream};
use futures_util::{FutureExt, Stream, StreamExt, TryStreamExt};
use http::{Method, Request, Response, header};
use informer_actors::list_watch::{Known, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::DecodePool;
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};
use informer_core::request::{ListRequest, WatchRequest};

use super::error::TransportError;
use super::scope::{Form, Scope, accept};
use super::status::Status;
use super::transport::{Body, Lane, SentAuthorization, Transport};
use super::whole::whole;
use crate::representation::{Representation, meta_scan};
use decode::{Decoder, Observed};

pub(crate) mod decode;
mod event;
mod list;
mod watch;

/// Chunks of so many objects or bytes go to the pool.
const CHUNK_OBJECTS: usize = 64;
const CHUNK_BYTES: usize = 256 << 10;
/// Less than this is decoded in place: the way to the pool and back costs more.
const INLINE_BYTES: usize = 64 << 10;
/// How much of a refusal is read.
const REFUSAL_BYTES: usize = 64 << 10;
/// How much longer than it was asked for a watch may last.
const WATCH_GRACE: std::time::Duration = std::time::Duration::from_secs(30);

/// Lists, watches and gets one resource. Made by `ResourceSource`, on the arbiter that uses it.
pub struct KubeListWatch<R: Representation> {
    transport: Rc<dyn Transport>,
    scope: Rc<Scope>,
    decoder: Arc<Decoder<R>>,
    pool: DecodePool,
    frame_limit: usize,
}

/// What a source is made of, besides its transport.
pub(crate) struct Parts<R> {
    pub(crate) scope: Scope,
    pub(crate) decoder: Arc<Decoder<R>>,
    pub(crate) pool: DecodePool,
    pub(crate) frame_limit: usize,
}

impl<R: Representation> KubeListWatch<R> {
    pub(crate) fn new(transport: Rc<dyn Transport>, parts: Parts<R>) -> Self {
        let Parts { scope, decoder, pool, frame_limit } = parts;
        Self { transport, scope: Rc::new(scope), decoder, pool, frame_limit }
    }

    fn request(&self, target: &str, form: Form) -> Result<Request<Bytes>, ListWatchError> {
        Request::builder()
            .method(Method::GET)
            .uri(target)
            .header(header::ACCEPT, accept(self.decoder.representation.asks_for(), form))
            .body(Bytes::new())
            .map_err(|error| TransportError::Request(error.to_string()).into())
    }

    /// Sends a request; resolves with the body of a success, or with what the refusal means.
    fn ask(
        &self,
        target: &str,
        form: Form,
        lane: Lane,
    ) -> LocalBoxFuture<'static, Result<Result<Body, Status>, ListWatchError>> {
        let transport = Rc::clone(&self.transport);
        let request = self.request(target, form);
        Box::pin(async move {
            let answer = transport.send(request?, lane).await?;
            if answer.status().is_success() {
                Ok(Ok(answer.into_body()))
            } else {
                Ok(Err(refusal(answer).await))
            }
        })
    }

    fn list_at(&self, target: &str, known: Known<R::Body>) -> ListStream<R::Body> {
        let asked = self.ask(target, Form::List, Lane::Unary);
        let reading = list::Reading {
            decoder: Arc::clone(&self.decoder),
            pool: self.pool.clone(),
            frame_limit: self.frame_limit,
            known,
        };
        let path = path_of(target);
        let opened = async move {
            let body = asked.await?.map_err(|status| named(status.into_error(false), &path))?;
            Ok::<_, ListWatchError>(reading.parts(body))
        };
        until_error(stream::once(opened).try_flatten())
    }

    /// The object of this key by a list, so that the server judges whether the selectors select it.
    async fn get_selected(
        parts: ListStream<R::Body>,
        key: ObjectKey,
    ) -> Result<Option<Object<R::Body>>, ListWatchError> {
        let parts: Vec<_> = parts.try_collect().await?;
        let mut found = None;
        for part in parts {
            match part {
                ListPart::Objects(objects) => found = objects.into_iter().find(|object| object.key() == &key),
                ListPart::SetAside(aside) if aside.key == key => {
                    return Err(ListWatchError::Protocol(format!("{key}: {}", aside.error).into()));
                }
                _ => {}
            }
            if found.is_some() {
                break;
            }
        }
        Ok(found)
    }
}

impl<R: Representation> ListWatch<R::Body> for KubeListWatch<R> {
    fn list(&self, request: ListRequest, known: Known<R::Body>) -> ListStream<R::Body> {
        self.list_at(&self.scope.list(&request), known)
    }

    fn watch(&self, request: WatchRequest, known: Known<R::Body>) -> WatchStream<R::Body> {
        let lane = Lane::Watch { total: request.timeout.saturating_add(WATCH_GRACE) };
        let target = self.scope.watch(&request);
        let asked = self.ask(&target, Form::Object, lane);
        let path = path_of(&target);
        let reading = watch::Reading {
            decoder: Arc::clone(&self.decoder),
            pool: self.pool.clone(),
            frame_limit: self.frame_limit,
            known,
        };
        let opened = async move {
            let refused = |status: Status| named(status.into_error(request.initial_events), &path);
            let body = asked.await?.map_err(refused)?;
            Ok::<_, ListWatchError>(stream::once(async { Ok(Vec::new()) }).chain(reading.batches(body)))
        };
        until_error(stream::once(opened).try_flatten())
    }

    fn get(
        &self,
        key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<R::Body>>, ListWatchError>> {
        let elsewhere =
            self.scope.namespace.as_deref().is_some_and(|namespace| key.namespace() != Some(namespace));
        if elsewhere {
            return async { Ok(None) }.boxed_local();
        }
        let target = match self.scope.is_selective() {
            true => self.scope.list_one(key.namespace(), key.name()),
            false => self.scope.object(key.namespace(), key.name()),
        };
        let target = match target {
            Ok(target) => target,
            Err(error) => return async move { Err(ListWatchError::source(error.to_string())) }.boxed_local(),
        };
        if self.scope.is_selective() {
            let parts = self.list_at(&target, Known::nothing());
            return Self::get_selected(parts, key).boxed_local();
        }
        let asked = self.ask(&target, Form::Object, Lane::Unary);
        let (decoder, pool, limit) = (Arc::clone(&self.decoder), self.pool.clone(), self.frame_limit);
        Box::pin(async move {
            let body = match asked.await? {
                Ok(body) => body,
                Err(status) if status.code == 404 => return Ok(None),
                Err(status) => return Err(status.into_error(false)),
            };
            let Some(bytes) = whole(body, None, limit).await? else {
                return Err(ListWatchError::Protocol(format!("{key} is larger than {limit} bytes").into()));
            };
            let size = bytes.len();
            let one = move || decoder.observe(&bytes, &meta_scan(&bytes), &Known::nothing());
            match on_pool(&pool, size, one).await? {
                Observed::Object(object) => Ok(Some(object)),
                Observed::SetAside(aside) => {
                    Err(ListWatchError::Protocol(format!("{key}: {}", aside.error).into()))
                }
                Observed::Unreadable(why) | Observed::NotJson(why) => Err(ListWatchError::Protocol(why)),
            }
        })
    }
}

impl<R: Representation> fmt::Debug for KubeListWatch<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeListWatch").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// The path of a request, without what it selects.
fn path_of(target: &str) -> String {
    target.split('?').next().unwrap_or(target).to_owned()
}

/// A refusal of a resource, or the answer that it does not exist, with its path: servers say "Unauthorized" or "404 page
/// not found", and no more.
fn named(refusal: ListWatchError, path: &str) -> ListWatchError {
    let with_path = |words: &str| format!("{words}, asked at {path}").into();
    match refusal {
        ListWatchError::Denied(words) => ListWatchError::Denied(with_path(&words)),
        ListWatchError::NotFound(words) => ListWatchError::NotFound(with_path(&words)),
        other => other,
    }
}

/// Runs a job over so many bytes: on the pool, or in place if they are few.
async fn on_pool<T: Send + 'static>(
    pool: &DecodePool,
    bytes: usize,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ListWatchError> {
    if bytes < INLINE_BYTES {
        return Ok(job());
    }
    pool.run(job).await.map_err(|error| ListWatchError::source(error.to_string()))
}

/// What an answer that is no success says; a body that breaks off is judged by what came.
async fn refusal(answer: Response<Body>) -> Status {
    let (head, mut body) = answer.into_parts();
    let mut text = Vec::new();
    while let Some(Ok(chunk)) = body.next().await {
        text.extend_from_slice(&chunk[..chunk.len().min(REFUSAL_BYTES - text.len())]);
        if text.len() == REFUSAL_BYTES {
            break;
        }
    }
    let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let authorization = head.extensions.get::<SentAuthorization>().map(|sent| &sent.0);
    Status::from_answer_to(authorization, (head.status.as_u16(), retry_after), &text)
}

/// Ends a stream behind its first error.
fn until_error<T: 'static>(
    stream: impl Stream<Item = Result<T, ListWatchError>> + 'static,
) -> LocalBoxStream<'static, Result<T, ListWatchError>> {
    let ended = |ended: &mut bool, item: Result<T, ListWatchError>| {
        let behind = std::mem::replace(ended, item.is_err());
        futures_util::future::ready((!behind).then_some(item))
    };
    stream.scan(false, ended).boxed_local()
}
