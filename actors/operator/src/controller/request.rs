//! One reconcile, as its function sees it: what the cache had when the key was handed out. The key is not
//! handed out again before the caches show the writes that were reported here.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::controller::machine::{Awaited, Causes, Ended, Outcome, Writes};
use actix::dev::RecipientRequest;
use actix::{Message, Recipient};
use informer_core::meta::{Meta, Object, ObjectKey};
use informer_core::path::{Hop, Mark};
use tokio_util::sync::CancellationToken;

use super::Task;
use super::watched::{Watched, number_in};
use informer_actors::informer::{Body, Informer};
use informer_actors::inner::{Guarded, Selected};
use informer_actors::runtime::{Paths, Runtime};

pub(super) type Answer = Result<Outcome, ReconcileError>;

/// Why a reconcile failed. `?` makes one of any error.
///
/// The rate limiter delays the next attempt, unless the error says otherwise: [`Self::terminal`],
/// [`Self::until_changed`].
///
/// ```
/// use actix_informer::controller::ReconcileError;
/// fn port(text: &str) -> Result<u16, ReconcileError> {
///     let port = text.parse().map_err(ReconcileError::until_changed)?; // a typing error stays until it is corrected
///     if port == 0 { Err("port 0 is taken")? }
///     Ok(port)
/// }
/// assert!(port("x").unwrap_err().is_terminal());
/// assert_eq!(port("0").unwrap_err().to_string(), "port 0 is taken");
/// ```
pub struct ReconcileError {
    source: Box<dyn std::error::Error + Send + Sync>,
    ended: Ended,
}

impl ReconcileError {
    /// An error that another attempt would not fix, as `TerminalError` of controller-runtime: it is not tried
    /// again by itself. Whatever else leads to the key reconciles it: a change of its object, of one that it
    /// owns or of one that is mapped to it, a timer, a resync, a trigger.
    pub fn terminal(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: error.into(), ended: Ended::Terminal }
    }

    /// A terminal error that only another input would fix. The key is reconciled again when its object or a
    /// mapped object changes, or when it is triggered; a timer, a resync and a change of an object that it owns
    /// do not lead to it.
    pub fn until_changed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { source: error.into(), ended: Ended::UntilChanged }
    }

    /// Whether it is not tried again by itself.
    pub const fn is_terminal(&self) -> bool {
        matches!(self.ended, Ended::Terminal | Ended::UntilChanged)
    }

    pub(super) const fn ended(&self) -> Ended {
        self.ended
    }

    /// The error itself.
    pub fn source(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.source
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for ReconcileError {
    fn from(error: E) -> Self {
        Self { source: error.into(), ended: Ended::Failed }
    }
}

impl fmt::Display for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

informer_core::debug_as!(ReconcileError, self, error = self.source, ended = self.ended);

/// A request to reconcile one key.
///
/// No other reconcile of the key runs before this one has ended, and before the caches have seen what
/// [`Self::written_as`] and [`Self::removed_as`] reported. Its controller has not ended while the request
/// exists.
pub struct Request<S: Body> {
    pub(super) controller: Arc<str>,
    pub(super) key: ObjectKey,
    pub(super) object: Option<Object<S>>,
    pub(super) deleted: Option<Object<S>>,
    pub(super) left: Option<Object<S>>,
    pub(super) causes: Causes,
    pub(super) attempt: u32,
    pub(super) fence: Option<u64>,
    pub(super) id: u64,
    pub(super) serial: u64,
    pub(super) stopping: CancellationToken,
    /// It may outlive its reconcile.
    pub(super) writes: Arc<Guarded<Writes>>,
    pub(super) watched: Arc<[Box<dyn Watched>]>,
    pub(super) paths: Paths,
    pub(super) change: Option<Arc<tracing::Span>>,
    pub(super) task: Task,
}

impl<S: Body> Request<S> {
    /// Drops a last state without such a body.
    #[cfg(feature = "kubernetes")]
    pub(super) fn with_bodies<T: Body, E>(
        self,
        body: impl Fn(&Object<S>) -> Result<Object<T>, E>,
    ) -> Result<Request<T>, E> {
        let object = self.object.as_ref().map(&body).transpose()?;
        let last = |object: &Option<Object<S>>| object.as_ref().and_then(|object| body(object).ok());
        let (deleted, left) = (last(&self.deleted), last(&self.left));
        let Self { controller, key, causes, attempt, fence, id, serial, stopping, .. } = self;
        let Self { writes, watched, paths, change, task, .. } = self;
        Ok(Request {
            controller,
            key,
            object,
            deleted,
            left,
            causes,
            attempt,
            fence,
            id,
            serial,
            stopping,
            writes,
            watched,
            paths,
            change,
            task,
        })
    }

    /// The name of its controller.
    pub fn controller(&self) -> &str {
        &self.controller
    }

    /// Which key.
    pub const fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// What the cache has under this key.
    pub const fn object(&self) -> Option<&Object<S>> {
        self.object.as_ref()
    }

    /// The last known state of a deleted object of this key, until a reconcile that was given it is done.
    /// Another object may have the key by now. Also `None` if the controller has not seen the object, as
    /// before its start, or if more than [`MOST_DELETED`](crate::controller::machine::MOST_DELETED) such
    /// states were waiting.
    ///
    /// An object that may live on is not returned here: see [`Self::left`].
    pub const fn deleted(&self) -> Option<&Object<S>> {
        self.deleted.as_ref()
    }

    /// The last known state of an object that the informer does not follow any more and that may live on,
    /// until a reconcile that was given it is done: its labels or fields do not match the selectors of the
    /// informer any more, or its namespace is not followed any more.
    ///
    /// It may also have been deleted. A server reports both to a watch with selectors by the same event,
    /// `DELETED` with the state before, and a list shows neither object. So if an informer has selectors that
    /// an object can leave, each object that it has lost is returned here, and [`Self::deleted`] is `None`.
    /// To find out, read the object from the server, as `finalizer` of the front door does. `None` if the
    /// object is back, if another one has its name (then it is returned as deleted), and where
    /// [`Self::deleted`] has no state.
    ///
    /// ```
    /// use actix_informer::controller::Request;
    ///
    /// fn state(request: &Request<String>) -> &'static str {
    ///     match (request.object(), request.deleted(), request.left()) {
    ///         (Some(_), ..) => "it is there",
    ///         (None, Some(_), _) => "it was deleted",
    ///         (None, None, Some(_)) => "it has left the selectors, or was deleted",
    ///         (None, None, None) => "it was never seen here, or its end is reconciled",
    ///     }
    /// }
    /// ```
    pub const fn left(&self) -> Option<&Object<S>> {
        self.left.as_ref()
    }

    /// Whether the informer follows the object of this key, given the labels that the server has now. It
    /// shows whether an object that [has left](Self::left) is back. Sends no request.
    pub fn selected(&self, labels: &BTreeMap<String, String>) -> Selected {
        self.watched.first().map_or(Selected::NotFollowed, |primary| primary.selected(&self.key, labels))
    }

    /// The events that led here, as far as they are kept.
    pub const fn causes(&self) -> &Causes {
        &self.causes
    }

    /// How often in a row this key has failed, as the rate limiter counts. Zero with a limiter that does not
    /// count by key, such as a [`Bucket`](crate::queue::Bucket) alone.
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The number that [`fenced_by`](super::ControllerBuilder::fenced_by) returned for this request.
    pub const fn fence(&self) -> Option<u64> {
        self.fence
    }

    /// The number of this reconcile within its controller; the span of its logs has it.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// A number that no other reconcile of this process has, in any controller. A later reconcile has a
    /// greater one.
    pub const fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether the object may be an old state, because a source that may bring it is not followed now: its
    /// watch is broken, or a list is in progress. False does not mean that the state is the newest one.
    pub fn may_be_behind(&self) -> bool {
        self.watched.first().is_some_and(|primary| primary.may_be_behind(&self.key))
    }

    /// Ready when the controller is being stopped: what still runs after its grace is cancelled. For an actor
    /// also ready when the time limit of this request has passed.
    pub fn stopping(&self) -> impl Future<Output = ()> + Send + 'static {
        self.stopping.clone().cancelled_owned()
    }

    /// Whether it is being stopped.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Reports that an object was written, with the server's answer: the key waits until each informer of
    /// this controller that has bodies of this type and follows the object has seen it. Returns the number of
    /// these informers. The front door's `written` needs no type.
    pub fn written_as<T: 'static>(&self, meta: &Meta) -> usize {
        self.wait_for_write(TypeId::of::<T>(), meta, None, false)
    }

    /// Reports that an object was removed, with what is known of it: as [`Self::written_as`], until the
    /// informers do not show this uid any more. A deletion does not remove an object that has finalizers:
    /// report a write.
    pub fn removed_as<T: 'static>(&self, meta: &Meta) -> usize {
        self.wait_for_write(TypeId::of::<T>(), meta, None, true)
    }

    /// As [`Self::written_as`], for one informer, if several have bodies of one type, such as dynamic
    /// objects. False if the controller does not watch it, or it does not follow the object.
    pub fn written_to<T: Body>(&self, informer: &Informer<T>, meta: &Meta) -> bool {
        self.wait_in(informer, &meta.key, Awaited::written(meta))
    }

    /// As [`Self::removed_as`], for one informer.
    pub fn removed_from<T: Body>(&self, informer: &Informer<T>, meta: &Meta) -> bool {
        self.wait_in(informer, &meta.key, Awaited::removed(meta))
    }

    /// As [`Self::written_as`] and [`Self::removed_as`], for a body type that is known only at run time. With
    /// the written labels, an informer whose selectors do not match is not awaited.
    pub fn wait_for_write(
        &self,
        body: TypeId,
        meta: &Meta,
        labels: Option<&BTreeMap<String, String>>,
        is_removed: bool,
    ) -> usize {
        let awaited = if is_removed { Awaited::removed(meta) } else { Awaited::written(meta) };
        let (key, mut found) = (&meta.key, 0);
        for (number, watched) in self.watched.iter().enumerate() {
            let is_left_out = || labels.is_some_and(|labels| watched.leaves_out(key, labels));
            if watched.body() == body && watched.follows(key) && !is_left_out() {
                self.writes.with(|writes| writes.handle_write(number, key, awaited.clone()));
                found += 1;
            }
        }
        self.mark_written(key, &awaited);
        found
    }

    fn mark_written(&self, key: &ObjectKey, awaited: &Awaited) {
        if self.paths.is_on() && self.paths.chooses_work(&self.controller, &self.key) {
            let mark = Mark::new(Hop::Written, Arc::clone(&self.controller), key.clone());
            self.paths.note(mark.version(Some(awaited.version.clone())).other(self.key.clone()));
            if let Some(change) = &self.change {
                self.paths.spans().note_written(key, &awaited.version, change);
            }
        }
    }

    fn wait_in<T: Body>(&self, informer: &Informer<T>, key: &ObjectKey, awaited: Awaited) -> bool {
        let number = number_in(informer, &self.watched);
        let Some(number) = number.filter(|number| self.watched[*number].follows(key)) else { return false };
        self.mark_written(key, &awaited);
        self.writes.with(|writes| writes.handle_write(number, key, awaited));
        true
    }
}

informer_core::debug_as!([S: Body] Request<S>, self,
    id = self.id,
    key = format_args!("{}", self.key),
    attempt = self.attempt,
    causes = format_args!("{}", self.causes)
);

/// The message to an actor that reconciles: the request. Its answer is the outcome.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the request, and nothing else")]
pub struct Reconcile<S: Body>(pub Request<S>);

impl<S: Body> Message for Reconcile<S> {
    type Result = Result<Outcome, ReconcileError>;
}

// An actor's work on a request ends with its answer. If this wait is dropped, the runtime awaits the answer,
// and until then the controller has not ended.

type Waiting<S> = Pin<Box<RecipientRequest<Reconcile<S>>>>;

pub(super) struct Asked<S: Body> {
    /// `None` after the answer.
    waits: Option<(Waiting<S>, Task)>,
    runtime: Runtime,
}

impl<S: Body> Asked<S> {
    pub(super) fn new(actor: &Recipient<Reconcile<S>>, request: Request<S>, runtime: &Runtime) -> Self {
        let task = request.task.clone();
        let answer = Box::pin(actor.send(Reconcile(request)));
        Self { waits: Some((answer, task)), runtime: runtime.clone() }
    }
}

impl<S: Body> Future for Asked<S> {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let gone = || ReconcileError::from("the actor that reconciles has stopped, or has panicked");
        let Some((answer, _)) = &mut self.waits else { return Poll::Ready(Err(gone())) };
        let answer = ready!(answer.as_mut().poll(cx));
        self.waits = None;
        Poll::Ready(answer.unwrap_or_else(|_| Err(gone())))
    }
}

impl<S: Body> Drop for Asked<S> {
    fn drop(&mut self) {
        if let Some((answer, task)) = self.waits.take() {
            self.runtime.spawn_local(move || async move {
                drop(answer.await);
                drop(task);
            });
        }
    }
}
