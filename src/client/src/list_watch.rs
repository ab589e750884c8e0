//! Makes a Kubernetes resource a source for an informer: one list, watch or get is one HTTP request with the
//! source's selectors. The reflector decides what to request next and when to retry.
//!
//! 1. Objects are delivered in the order of the body. They are decoded in chunks while the body arrives.
//! 2. An error is the last item of a stream. The parts before it are delivered.
//!
//! Memory bound: (width of the pool + 1) chunks, the frames that one body chunk completed, and one unfinished
//! frame. A frame is at most as long as the frame limit.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{self, LocalBoxFuture};
use futures_util::stream::{self, LocalBoxStream, Stream};
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use http::{Method, Request, Response, header};
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::runtime::DecodePool;
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey};
use informer_core::request::{ListRequest, WatchRequest};

use super::body::collect;
use super::error::{TransportError, status};
use super::request::{RequestKind, RequestOptions, SentCredentials, audit_id};
use super::scope::Scope;
use super::transport::{Body, Transport};
use crate::representation::{Encoded, Representation};
#[cfg(feature = "persist")]
use crate::saved::{AskCluster, Saved, Seen};
use crate::wire::{Asked, Form, WireKind};
use batches::with_late;
use decode::{Decoder, Observed};
use place::DecodePlace;
use refusal::{Refusal, Requested};
#[cfg(feature = "persist")]
use upkeep::beside;
use upkeep::keeping_up;

mod batches;
mod chunks;
pub(crate) mod decode;
mod event;
mod list;
mod place;
mod refusal;
mod upkeep;

/// A chunk has at most this many objects, and ends at the object that reaches this many bytes.
const CHUNK_OBJECTS: usize = 64;
const CHUNK_BYTES: usize = 256 << 10;
/// Of an error answer.
const ERROR_BODY_BYTES: usize = 64 << 10;
/// A watch may last this much longer than requested.
const WATCH_GRACE: std::time::Duration = std::time::Duration::from_secs(30);

/// Lists, watches and gets one resource. `ResourceSource` makes it on the arbiter that uses it.
pub struct KubeListWatch<R: Representation> {
    transport: Rc<dyn Transport>,
    scope: Rc<Scope>,
    decoder: Arc<Decoder<R>>,
    place: DecodePlace,
    frame_limit: usize,
    /// What is preferred.
    wire: WireKind,
    #[cfg(feature = "persist")]
    saved: Option<Arc<Saved<R::Body>>>,
}

type Answer = Result<(WireKind, Body), Refusal>;

struct Reader<R: Representation> {
    decoder: Arc<Decoder<R>>,
    place: DecodePlace,
    frame_limit: usize,
    known: KnownObjects<R::Body>,
}

pub(crate) struct Parts<R: Representation> {
    pub(crate) scope: Scope,
    pub(crate) decoder: Arc<Decoder<R>>,
    pub(crate) pool: DecodePool,
    pub(crate) frame_limit: usize,
    pub(crate) wire: WireKind,
    #[cfg(feature = "persist")]
    pub(crate) saved: Option<Arc<Saved<R::Body>>>,
}

impl<R: Representation> KubeListWatch<R> {
    pub(crate) fn new(transport: Rc<dyn Transport>, parts: Parts<R>) -> Self {
        Self {
            transport,
            scope: Rc::new(parts.scope),
            decoder: parts.decoder,
            place: DecodePlace::new(parts.pool),
            frame_limit: parts.frame_limit,
            wire: parts.wire,
            #[cfg(feature = "persist")]
            saved: parts.saved,
        }
    }

    fn request(&self, target: &str, asked: Asked) -> Result<Request<Bytes>, ListWatchError> {
        Request::builder()
            .method(Method::GET)
            .uri(target)
            .header(header::ACCEPT, asked.accept())
            // The reflector retries.
            .extension(RequestOptions::new().max_retries(0))
            .body(Bytes::new())
            .map_err(|error| TransportError::Request(error.to_string()).into())
    }

    fn send(
        &self,
        target: &str,
        form: Form,
        kind: RequestKind,
    ) -> LocalBoxFuture<'static, Result<Answer, ListWatchError>> {
        let transport = Rc::clone(&self.transport);
        let content = self.decoder.representation.requested_content();
        let asked = Asked { content, form, wire: self.wire };
        let request = self.request(target, asked);
        Box::pin(async move {
            let request = request?;
            let path = request.uri().path().to_owned();
            let answer = transport.send(request, kind).await?;
            if answer.status().is_success() {
                let wire = asked.wire(answer.headers()).map_err(|unexpected| {
                    let advice = "a page of a proxy or of a login may stand before the API server";
                    ListWatchError::Protocol(format!("{unexpected}, requested at {path}; {advice}").into())
                })?;
                Ok(Ok((wire, answer.into_body())))
            } else {
                Ok(Err(refusal_of(answer).await))
            }
        })
    }

    fn requested(&self, target: &str) -> Requested {
        Requested {
            scope: Rc::clone(&self.scope),
            content: self.decoder.representation.requested_content(),
            path: target.split('?').next().unwrap_or(target).to_owned(),
            initial_events: false,
            has_selectors_alone: self.scope.is_selective(),
            audit_id: None,
        }
    }

    fn reader(&self, known: KnownObjects<R::Body>) -> Reader<R> {
        let (decoder, place) = (Arc::clone(&self.decoder), self.place.clone());
        Reader { decoder, place, frame_limit: self.frame_limit, known }
    }

    fn upkeep<T: 'static>(
        &self,
        known: &KnownObjects<R::Body>,
    ) -> impl FnOnce(LocalBoxStream<'static, T>) -> LocalBoxStream<'static, T> + use<T, R> {
        let (upkeep, pool, known) = (self.decoder.representation.upkeep(), self.place.pool(), known.clone());
        move |stream| keeping_up(upkeep, (pool, known), stream)
    }

    fn list_at(&self, target: &str, is_page: bool, known: KnownObjects<R::Body>) -> ListStream<R::Body> {
        let answer = self.send(target, Form::List, RequestKind::Unary);
        let (upkeep, reader) = (self.upkeep(&known), self.reader(known));
        let mut requested = self.requested(target);
        requested.has_selectors_alone &= !is_page;
        let opened = async move {
            let (wire, body) = answer.await?.map_err(|refusal| requested.refused(refusal))?;
            Ok::<_, ListWatchError>(reader.parts(wire, body))
        };
        upkeep(until_error(stream::once(opened).try_flatten()))
    }

    /// A list, so that the server applies the selectors.
    async fn get_selected(
        parts: ListStream<R::Body>,
        key: ObjectKey,
    ) -> Result<Option<Object<R::Body>>, ListWatchError> {
        let parts: Vec<_> = parts.try_collect().await?;
        let mut found = None;
        for part in parts {
            match part {
                ListPart::Objects(objects) => found = objects.into_iter().find(|object| object.key() == &key),
                ListPart::Undecodable(undecodable) if undecodable.key == key => {
                    return Err(ListWatchError::Protocol(format!("{key}: {}", undecodable.error).into()));
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
    fn explain_nothing(&self) -> LocalBoxFuture<'static, Option<Arc<str>>> {
        self.missing_namespace()
    }

    fn list(&self, request: ListRequest, known: KnownObjects<R::Body>) -> ListStream<R::Body> {
        let is_page = request.token.is_some();
        #[cfg(feature = "persist")]
        let from_file = self.saved.as_ref().filter(|_| !is_page && request.name.is_none());
        #[cfg(feature = "persist")]
        if let Some(saved) = from_file {
            let from_server = self.list_at(&self.scope.list(&request), is_page, known.clone());
            let of_source = (self.decoder.source.clone(), Arc::clone(&self.decoder.late));
            let question = self.scope.list(&saved.question());
            let question = self.list_at(&question, false, KnownObjects::nothing());
            return saved.first_list(self.ask_cluster(), (of_source, known), (question, from_server));
        }
        self.list_at(&self.scope.list(&request), is_page, known)
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<R::Body>) -> WatchStream<R::Body> {
        let kind = RequestKind::Watch { total: request.timeout.saturating_add(WATCH_GRACE) };
        let target = self.scope.watch(&request);
        let answer = self.send(&target, Form::Object, kind);
        let mut requested = self.requested(&target);
        requested.initial_events = request.initial_events;
        let upkeep = self.upkeep(&known);
        #[cfg(feature = "persist")]
        let seen = Rc::<Seen>::default();
        #[cfg(feature = "persist")]
        let saving = self.saved.clone().map(|saved| {
            let source = (known.clone(), self.decoder.source.clone());
            saved.keep(source, self.ask_cluster(), Rc::clone(&seen))
        });
        let (reader, late) = (self.reader(known), Arc::clone(&self.decoder.late));
        let is_live = !request.initial_events;
        let opened = async move {
            let (wire, body) = answer.await?.map_err(|refusal| requested.refused(refusal))?;
            let batches = with_late(reader.batches(wire, body), late, is_live);
            let batches = batches.map_err(move |error| requested.failed(error));
            // The watch is open.
            Ok::<_, ListWatchError>(stream::once(async { Ok(Vec::new()) }).chain(batches))
        };
        #[cfg_attr(not(feature = "persist"), expect(unused_mut, reason = "what is saved looks at it"))]
        let mut stream = upkeep(until_error(stream::once(opened).try_flatten()));
        #[cfg(feature = "persist")]
        if let Some(saving) = saving {
            let noted = stream::poll_fn(move |cx| {
                let look = stream.poll_next_unpin(cx);
                seen.note(&look);
                look
            });
            return beside(saving.boxed_local(), noted.boxed_local());
        }
        stream
    }

    fn get(
        &self,
        key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<R::Body>>, ListWatchError>> {
        let is_in_other_namespace =
            self.scope.namespace.as_deref().is_some_and(|namespace| key.namespace() != Some(namespace));
        if is_in_other_namespace {
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
            let parts = self.list_at(&target, false, KnownObjects::nothing());
            return Self::get_selected(parts, key).boxed_local();
        }
        let answer = self.send(&target, Form::Object, RequestKind::Unary);
        let requested = self.requested(&target);
        let (decoder, place, limit) = (Arc::clone(&self.decoder), self.place.clone(), self.frame_limit);
        Box::pin(async move {
            let (wire, body) = match answer.await? {
                Ok(answered) => answered,
                Err(refusal) if refusal.status.code == 404 => return Ok(None),
                Err(refusal) => return Err(requested.refused(refusal)),
            };
            let Some(bytes) = collect(body, None, limit).await? else {
                return Err(ListWatchError::Protocol(format!("{key} is larger than {limit} bytes").into()));
            };
            let size = bytes.len();
            let job = move || {
                let (known, object) = (KnownObjects::nothing(), Encoded::new(wire, &bytes));
                decoder.decoding(wire, &known).observe(&object.telling(&decoder.late))
            };
            match place.run((size, 1), job).await? {
                Observed::Object(object) => Ok(Some(object)),
                Observed::Passed(_) => Ok(None),
                Observed::Undecodable(undecodable) => {
                    Err(ListWatchError::Protocol(format!("{key}: {}", undecodable.error).into()))
                }
                Observed::Unreadable(why) | Observed::NotADocument(why) => Err(ListWatchError::Protocol(why)),
            }
        })
    }
}

impl<R: Representation> KubeListWatch<R> {
    #[cfg(feature = "persist")]
    fn ask_cluster(&self) -> AskCluster {
        const PATH: &str = "/api/v1/namespaces/kube-system";
        let source = Self {
            transport: Rc::clone(&self.transport),
            scope: Rc::clone(&self.scope),
            decoder: Arc::clone(&self.decoder),
            place: self.place.clone(),
            frame_limit: self.frame_limit,
            wire: WireKind::Json,
            saved: None,
        };
        Box::new(move || {
            let (answer, requested) =
                (source.send(PATH, Form::Object, RequestKind::Unary), source.requested(PATH));
            let limit = source.frame_limit;
            async move {
                let (wire, body) = match answer.await? {
                    Ok(answered) => answered,
                    Err(refusal) if matches!(refusal.status.code, 403 | 404) => return Ok(None),
                    Err(refusal) => return Err(requested.refused(refusal)),
                };
                let bytes = collect(body, None, limit).await?.unwrap_or_default();
                Ok(wire.identify(&bytes).uid_text().map(|uid| uid.to_owned()))
            }
            .boxed_local()
        })
    }

    /// Without the right to read the namespace, nothing is known.
    fn missing_namespace(&self) -> LocalBoxFuture<'static, Option<Arc<str>>> {
        let Some(namespace) = self.scope.namespace.clone().filter(|_| !self.scope.is_cluster_scoped) else {
            return future::ready(None).boxed_local();
        };
        let answer = self.send(&format!("/api/v1/namespaces/{namespace}"), Form::Object, RequestKind::Unary);
        async move {
            let Ok(Err(refusal)) = answer.await else { return None };
            let status = refusal.status;
            let names_it = status.details.as_ref().is_some_and(|details| details.name == namespace);
            let is_missing = status.code == 404 && names_it;
            is_missing.then(|| format!("namespace {namespace:?} does not exist").into())
        }
        .boxed_local()
    }
}

informer_core::debug_as!([R: Representation] KubeListWatch<R>, self, scope = self.scope);

/// If the body breaks off, the part that arrived is used.
async fn refusal_of(answer: Response<Body>) -> Refusal {
    let (head, mut body) = answer.into_parts();
    let mut text = Vec::new();
    while let Some(Ok(chunk)) = body.next().await {
        text.extend_from_slice(&chunk[..chunk.len().min(ERROR_BODY_BYTES - text.len())]);
        if text.len() == ERROR_BODY_BYTES {
            break;
        }
    }
    let status = status::of_parts(&head, &text);
    let credentials = head.extensions.get::<SentCredentials>().map(|sent| Arc::clone(&sent.0));
    let audit_id = audit_id(&head.headers).map(str::to_owned);
    Refusal { status, credentials, audit_id }
}

fn until_error<T: 'static>(
    stream: impl Stream<Item = Result<T, ListWatchError>> + 'static,
) -> LocalBoxStream<'static, Result<T, ListWatchError>> {
    let pass = |failed: &mut bool, item: Result<T, ListWatchError>| {
        let is_behind_error = std::mem::replace(failed, item.is_err());
        future::ready((!is_behind_error).then_some(item))
    };
    stream.scan(false, pass).boxed_local()
}
