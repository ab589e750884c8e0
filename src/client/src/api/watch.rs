//! A watch as a stream of events that continues by itself.
//!
//! 1. No event is lost or repeated: each connection continues after the last delivered event or bookmark, and
//!    an event at or below that version is left out and counted.
//! 2. Every failure is an item, and the stream continues. It ends only if its version has expired and the
//!    reader names no other, or if the client's thread has ended.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};
use http::Method;
use kube_core::params::WatchParams;
use kube_core::watch::Bookmark;
use kube_core::{Resource, WatchEvent};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::Api;
use super::exchange::{accepting, asked_by, checked, decoded, not_made, unexpected_answer};
use super::machine::resume::{AfterEnd, WatchResume};
use super::retry::{chance, class_of};
use crate::error::{Error, Refused, status};
use crate::scope::check_selectors;
use crate::wire::{Asked, Event, EventType, Form, Frame, INITIAL_EVENTS_END, Splitter, WireKind};
use crate::worker::BodyStream;

/// In bytes.
const EVENT_LIMIT: usize = 16 << 20;
/// In seconds, unless the parameters say otherwise: kube-rs's number.
const TIMEOUT: u32 = 290;
/// A connection may last this much longer than requested.
const GRACE: Duration = Duration::from_secs(30);

/// The events of a watch; made by [`Api::watch`].
///
/// Errors are items, and the stream continues after them. When its version has expired
/// ([`Error::is_expired`]), list again and call [`Self::resume_from`]; otherwise it ends there.
#[must_use = "a watch asks for nothing until it is read"]
pub struct Watch<K> {
    api: Api<K>,
    params: WatchParams,
    asked: Asked,
    resume: WatchResume,
    connection: Connection,
    wire: WireKind,
    splitter: Splitter,
    arrived: VecDeque<Frame>,
    repeated: u64,
}

enum Connection {
    Waiting(BoxFuture<'static, Result<(), Error>>),
    Opening(BoxFuture<'static, Result<(BodyStream, WireKind), Error>>),
    Open { body: BodyStream, since: Instant },
    Ended,
}

impl<K> Api<K>
where
    K: Resource + DeserializeOwned,
{
    /// Follows changes after a version, usually that of a list. Sends nothing until the stream is read.
    ///
    /// Connections are renewed without a gap. With `WatchParams::initial_events()` the version may be empty:
    /// the server first sends every object, then a bookmark that says so. If the connection breaks before
    /// that bookmark, the watch begins again with the first object.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::{ListParams, WatchEvent, WatchParams};
    /// use futures_util::StreamExt;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let newest = |list: &actix_informer::client::api::ObjectList<Pod>| list.metadata.resource_version.clone();
    /// let version = newest(&pods.list(&ListParams::default()).await?).unwrap_or_default();
    /// let mut watch = pods.watch(&WatchParams::default(), &version)?;
    /// while let Some(event) = watch.next().await {
    ///     match event {
    ///         Ok(WatchEvent::Deleted(pod)) => println!("{:?} is gone", pod.metadata.name),
    ///         Ok(_) => {}
    ///         Err(error) if error.is_expired() => {
    ///             let list = pods.list(&ListParams::default()).await?; // what was deleted meanwhile is not in it
    ///             watch.resume_from(newest(&list).unwrap_or_default())?;
    ///         }
    ///         Err(error) => eprintln!("{error}; the watch goes on"),
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A selector that no server understands; a version of 0 or none without initial events, because no watch
    /// could continue from there.
    pub fn watch(&self, params: &WatchParams, version: &str) -> Result<Watch<K>, Error> {
        check_selectors(params.label_selector.as_deref(), params.field_selector.as_deref())?;
        self.scope.check()?;
        if !params.send_initial_events {
            check_start(version)?;
        }
        let mut watch = Watch {
            api: self.clone(),
            params: params.clone(),
            asked: Asked::OBJECT,
            resume: WatchResume::new(version, params.send_initial_events),
            connection: Connection::Ended,
            wire: WireKind::Json,
            splitter: Splitter::watch(WireKind::Json, EVENT_LIMIT),
            arrived: VecDeque::new(),
            repeated: 0,
        };
        watch.open()?;
        Ok(watch)
    }
}

impl<K> Watch<K> {
    /// The version up to which everything was delivered.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let watch = pods.watch(&WatchParams::default(), "41")?;
    /// assert_eq!(watch.version(), "41");
    /// # Ok(()) }
    /// ```
    pub fn version(&self) -> &str {
        self.resume.version()
    }

    /// How many events were left out because the server sent them at or below the version that was already
    /// delivered. 0 with every server that follows the protocol.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # fn demo(watch: actix_informer::client::api::Watch<k8s_openapi::api::core::v1::Pod>) {
    /// println!("followed up to {}, {} repeated events", watch.version(), watch.repeated());
    /// # }
    /// ```
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Continues after this version from now on; usually after [`Error::is_expired`], with the version of a
    /// new list.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let pods = client.api::<Pod>().namespaced("shop");
    /// let mut watch = pods.watch(&WatchParams::default(), "41")?;
    /// let list = pods.list(&ListParams::default()).await?;
    /// watch.resume_from(list.metadata.resource_version.unwrap_or_default())?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Api::watch`] for a version of 0 or none: the server would first send every object, not in the
    /// order of versions, and most of them would be taken for repeated. The watch is then unchanged.
    pub fn resume_from(&mut self, version: impl Into<String>) -> Result<(), Error> {
        let version = version.into();
        check_start(&version)?;
        self.resume = WatchResume::new(version, false);
        self.arrived.clear();
        self.wait(Duration::ZERO);
        Ok(())
    }

    fn wait(&mut self, time: Duration) {
        let client = self.api.client.clone();
        self.connection = Connection::Waiting(match time.is_zero() {
            true => std::future::ready(Ok(())).boxed(),
            false => async move { client.sleep(time).await }.boxed(),
        });
    }

    fn follow(&mut self, next: AfterEnd) {
        match next {
            AfterEnd::OpenAfter(wait) => self.wait(wait),
            _ => self.connection = Connection::Ended,
        }
    }

    /// Also decides how the watch continues.
    fn failed(&mut self, error: Error) -> Error {
        tracing::debug!(target: "actix_informer::client", resource = %self.api.scope.name(), version = self.version(), %error, "a watch failed");
        if matches!(error, Error::Stopped) {
            self.connection = Connection::Ended;
        } else {
            let next = self.resume.handle_failure(class_of(&error), chance(&self.api.client));
            self.follow(next);
        }
        error
    }

    fn path(&self) -> String {
        self.api.scope.collection(self.api.namespace())
    }
}

impl<K: Resource + DeserializeOwned> Watch<K> {
    fn open(&mut self) -> Result<(), Error> {
        let seconds = self.params.timeout.unwrap_or(TIMEOUT);
        let params = WatchParams {
            timeout: Some(seconds),
            send_initial_events: self.resume.wants_initial(),
            ..self.params.clone()
        };
        let request = self.api.collection()?.watch(&params, self.resume.version()).map_err(not_made)?;
        let request = self.api.finished(accepting::<K>(request, Form::Object))?;
        let (client, limit) = (self.api.client.clone(), Duration::from_secs(seconds.into()) + GRACE);
        let (named, asked) = (format!("GET {}", self.path()), asked_by(&request));
        self.asked = asked;
        let opened = async move {
            let answer = client.watch(request, limit).await?;
            let wire = asked.wire(answer.headers());
            let wire = wire.map_err(|unexpected| unexpected_answer(named, unexpected))?;
            Ok((answer.into_body(), wire))
        };
        self.connection = Connection::Opening(opened.boxed());
        Ok(())
    }

    /// `None` if the event was delivered before.
    fn read(&mut self, frame: &Frame) -> Result<Option<WatchEvent<K>>, Error> {
        let Frame::Whole(bytes) = frame else { return Err(Error::TooLarge(EVENT_LIMIT)) };
        let unreadable = |source| Error::Answer { request: format!("GET {}", self.path()), source };
        let Event { event_type, object, .. } = self.wire.parsed_event(bytes).map_err(unreadable)?;
        if matches!(event_type, EventType::Added | EventType::Modified | EventType::Deleted) {
            let named = || format!("GET {}", self.path());
            checked(self.asked, self.wire, object).map_err(|found| unexpected_answer(named(), found))?;
        }
        let event = match event_type {
            EventType::Added => WatchEvent::Added(decoded::<K>(object).map_err(unreadable)?),
            EventType::Modified => WatchEvent::Modified(decoded::<K>(object).map_err(unreadable)?),
            EventType::Deleted => WatchEvent::Deleted(decoded::<K>(object).map_err(unreadable)?),
            EventType::Bookmark => WatchEvent::Bookmark(decoded(object).map_err(unreadable)?),
            EventType::Error | EventType::Other(_) => {
                let status = status::of_frame(&String::from_utf8_lossy(object));
                let refused = Refused::new(Method::GET, &self.path(), status);
                return Err(self.failed(Error::Refused(Box::new(refused))));
            }
        };
        match &event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                let version = object.meta().resource_version.as_deref().unwrap_or_default();
                if !self.resume.is_new(version) {
                    self.repeated += 1;
                    let (resource, last) = (self.api.scope.name(), self.version());
                    tracing::debug!(target: "actix_informer::client", resource, version, last, "a watch brought an event that is not new");
                    return Ok(None);
                }
                self.resume.handle_version(version);
            }
            WatchEvent::Bookmark(Bookmark { metadata, .. }) => {
                match metadata.annotations.get(INITIAL_EVENTS_END).is_some_and(|said| said == "true") {
                    true => self.resume.handle_initial_end(&metadata.resource_version),
                    false => self.resume.handle_version(&metadata.resource_version),
                }
            }
            WatchEvent::Error(_) => {}
        }
        Ok(Some(event))
    }
}

impl<K: Resource + DeserializeOwned> Stream for Watch<K> {
    type Item = Result<WatchEvent<K>, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(frame) = this.arrived.pop_front() {
                let event = this.read(&frame);
                if matches!(event, Err(Error::Refused(_))) {
                    this.arrived.clear();
                }
                match event.transpose() {
                    Some(event) => return Poll::Ready(Some(event)),
                    None => continue,
                }
            }
            match &mut this.connection {
                Connection::Waiting(wait) => {
                    let waited = ready!(wait.poll_unpin(context)).and_then(|()| this.open());
                    if let Err(error) = waited {
                        this.connection = Connection::Ended;
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Connection::Opening(opening) => match ready!(opening.poll_unpin(context)) {
                    Ok((body, wire)) => {
                        (this.wire, this.splitter) = (wire, Splitter::watch(wire, EVENT_LIMIT));
                        this.connection = Connection::Open { body, since: Instant::now() };
                    }
                    Err(error) => return Poll::Ready(Some(Err(this.failed(error)))),
                },
                Connection::Open { body, since } => match ready!(body.poll_next_unpin(context)) {
                    Some(Ok(chunk)) => {
                        let mut frames = Vec::new();
                        // A watch is never invalid as a whole, only its events are.
                        let _ = this.splitter.push(&chunk, &mut frames);
                        this.arrived.extend(frames);
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(this.failed(error.into())))),
                    None => {
                        let asked = Duration::from_secs(this.params.timeout.unwrap_or(TIMEOUT).into());
                        let drawn = chance(&this.api.client);
                        let next = this.resume.handle_end(since.elapsed(), asked, drawn);
                        this.follow(next);
                    }
                },
                Connection::Ended => return Poll::Ready(None),
            }
        }
    }
}

fn check_start(version: &str) -> Result<(), Error> {
    if matches!(version, "" | "0") {
        let why = "a watch begins at the version of a list, or with WatchParams::initial_events";
        return Err(Error::Request(why.to_owned()));
    }
    Ok(())
}

informer_core::debug_as!([K] Watch<K>, self, api = self.api, version = self.version());
