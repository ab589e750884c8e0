//! Subscribers: what an informer delivers to.
//!
//! Each kind is a function that takes a window of notifications and tells the Listener when it was handled; streams
//! fetch their events (`event_stream.rs`). A weakly held actor is held only while a window is sent.

use std::future::Future;
use std::sync::Arc;

use actix::dev::ToEnvelope;
use actix::{Actor, Addr, Context, Handler, Recipient, WeakAddr, WeakRecipient};
use informer_core::listener::Notifications;
use informer_core::listener::machine::WINDOW;

use crate::pipeline::callback_host::{
    BlockingClosure, BlockingHost, Callback, CallbackHost, InBatches, watched,
};
use crate::pipeline::listener::{Delivery, Feed, Listener, Polls, events};
use crate::pipeline::messages::{Body, Notify, Touched};
use crate::pipeline::notifications::Batch;
use crate::pipeline::subscription_state::{EndReason, SubscriptionState};
use crate::runtime::mailbox::Closed;
use crate::runtime::{OnArbiter, PooledValue, Runtime};

/// For a window that does not wait in a mailbox.
const MOST_IN_WINDOW: usize = 1_024;

/// What [`Informer::subscribe`](crate::informer::Informer::subscribe) takes: an actor or a closure. (For a
/// stream see [`Informer::events`](crate::informer::Informer::events).)
///
/// | subscriber | receives | runs |
/// |---|---|---|
/// | an `Addr`, a `Recipient<Notify<S>>` | each event | where the actor does; the subscription keeps it |
/// | a `WeakAddr`, a `WeakRecipient<Notify<S>>` | each event | where the actor does, as long as others keep it |
/// | [`Subscriber::keys`], [`Subscriber::batches`] | keys alone; what waits, at once | where the actor does; it is kept |
/// | [`Subscriber::each`], [`Subscriber::each_batch`] | each event; what waits, at once | on the callbacks' arbiter |
/// | [`Subscriber::blocking`], [`Subscriber::blocking_batch`] | the same | on a thread of the callback pool |
///
/// # Actors
/// An actor is sent every [`Notify`], in order, at most 64 unhandled at a time. The subscription keeps the
/// actor and the informer alive, so an actor without another owner lives until its subscription ends. An
/// actor that keeps its own `Subscription` must not be subscribed by its address: it would keep itself and
/// the informer alive for ever. It can subscribe its **weak** address when it starts. When its last address
/// is dropped, the actor ends, and with it its subscription, which then does not keep the informer either.
/// That the actor is gone is noticed when the next event waits for it.
///
/// **Handlers that return a future.** An event counts as handled when its handler has returned, or, with an
/// `AtomicResponse`, when its future has ended. With a `ResponseFuture` or `ResponseActFuture` actix handles
/// the next message while the future runs: up to 64 run at the same time and end in any order, and `synced`
/// and `shutdown` wait only for the one that began last.
/// [`SubscribeOptions::one_at_a_time`](crate::subscription::SubscribeOptions::one_at_a_time) changes that.
///
/// **Panics.** A panic in the handler ends the actor, as always in actix; other actors on its thread
/// continue. The subscription ends with [`EndReason::SubscriberGone`](crate::subscription::EndReason), and
/// the informer continues. (A panic of a closure costs one event, and its subscription continues.)
///
/// ```
/// # use informer_actors::face as actix_informer;
/// use actix::{Actor, AsyncContext, Context, Handler};
/// use actix_informer::informer::Informer;
/// use actix_informer::subscription::{Notify, Subscription};
///
/// struct Count {
///     texts: Informer<String>,
///     subscription: Option<Subscription<String>>,
///     received: usize,
/// }
///
/// impl Actor for Count {
///     type Context = Context<Self>;
///
///     fn started(&mut self, ctx: &mut Context<Self>) {
///         // With its address this actor would keep itself.
///         self.subscription = self.texts.subscribe(ctx.address().downgrade()).ok();
///     }
/// }
///
/// impl Handler<Notify<String>> for Count {
///     type Result = ();
///
///     fn handle(&mut self, _notify: Notify<String>, _ctx: &mut Context<Self>) {
///         self.received += 1;
///     }
/// }
/// # #[cfg(feature = "testing")]
/// # actix_informer::runtime::Runtime::simulated(1).run(|runtime| async move {
/// # let server = actix_informer::testing::Server::<String>::new();
/// # let texts = Informer::builder(&runtime, "texts").source(move || server.clone()).start()?;
///
/// let count = Count { texts: texts.clone(), subscription: None, received: 0 }.start();
/// texts.synced().await?;
/// drop((count, texts)); // the actor goes, and the informer stops
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).expect("it syncs");
/// ```
#[must_use = "a subscriber receives nothing until it is given to `subscribe`"]
pub struct Subscriber<S: Body> {
    /// The beginning of its generated name.
    pub(crate) kind: &'static str,
    pub(crate) most_in_window: usize,
    pub(crate) is_of_keys: bool,
    pub(crate) deliver: DeliverFn<S>,
}

type DeliverFn<S> = Box<dyn FnOnce(&SubscriptionState, &Runtime) -> Delivery<S> + Send>;

impl<S: Body> Subscriber<S> {
    /// An actor that wants keys: it is sent a [`Touched`] for each key to which something happened, and looks
    /// up the current object in a [`Lister`](crate::informer::Lister).
    ///
    /// A key waits once, however often it is touched, and is sent again if it is touched after it was sent.
    /// So it is sent at least once after each change, also for an object that was created and deleted at
    /// once, for everything that a first list or a late start finds, and for every difference after a new
    /// list, a rewind or a restart. It may be sent once more than that. Each waiting key costs memory and
    /// keeps no object alive; its object may be gone. Their number has no bound. The key of an object that
    /// was created and deleted inside a gap that a list closed is not sent. Options that choose every event
    /// are refused, because keys coalesce.
    ///
    /// Ownership, handled messages and panics are as for any [actor](Self#actors).
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix::{Actor, Context, Handler};
    /// use actix_informer::informer::{Informer, Lister};
    /// use actix_informer::subscription::{SubscribeError, Subscriber, Subscription, Touched};
    ///
    /// struct Reconciler {
    ///     texts: Lister<String>,
    /// }
    ///
    /// impl Actor for Reconciler {
    ///     type Context = Context<Self>;
    /// }
    ///
    /// impl Handler<Touched> for Reconciler {
    ///     type Result = ();
    ///
    ///     fn handle(&mut self, Touched { key, .. }: Touched, _ctx: &mut Context<Self>) {
    ///         match self.texts.get(&key) {
    ///             Some(text) => println!("{key} is {}", text.body()),
    ///             None => println!("{key} is gone"),
    ///         }
    ///     }
    /// }
    ///
    /// fn look_after(texts: &Informer<String>) -> Result<Subscription<String>, SubscribeError> {
    ///     let reconciler = Reconciler { texts: texts.lister() };
    ///     texts.subscribe(Subscriber::keys(reconciler.start()))
    /// }
    /// ```
    pub fn keys(recipient: impl Into<Recipient<Touched>>) -> Self {
        let (kind, recipient) = (type_of(&recipient), recipient.into());
        let subscriber = Self::sent(kind, WINDOW, move |listener, window, ctx| {
            let Notifications::Keys(keys) = window else {
                return debug_assert!(false, "a subscriber of keys has a policy of its own");
            };
            let keys = keys.into_iter().map(|(key, cause)| Touched { key, cause });
            listener.send(&recipient, keys.collect(), ctx);
        });
        Self { is_of_keys: true, ..subscriber }
    }

    /// An actor that wants batches: it is sent all events that wait, in order, as one [`Batch`], and the next
    /// batch when it has handled that.
    /// [`SubscribeOptions::window`](crate::subscription::SubscribeOptions::window) is the largest size, by
    /// default 64. Everything else is as for any [actor](Self#actors).
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix::{Actor, Context, Handler};
    /// use actix_informer::informer::Informer;
    /// use actix_informer::subscription::{Batch, SubscribeError, SubscribeOptions, Subscriber, Subscription};
    ///
    /// fn write_pages<A>(texts: &Informer<String>, pages: A) -> Result<Subscription<String>, SubscribeError>
    /// where
    ///     A: Actor<Context = Context<A>> + Handler<Batch<String>>,
    /// {
    ///     let options = SubscribeOptions::new().window(500);
    ///     texts.subscribe_with(options, Subscriber::batches(pages.start()))
    /// }
    /// ```
    pub fn batches(recipient: impl Into<Recipient<Batch<S>>>) -> Self {
        let (kind, recipient) = (type_of(&recipient), recipient.into());
        Self::sent(kind, MOST_IN_WINDOW, move |listener, window, ctx| {
            listener.send(&recipient, vec![Batch(events(window))], ctx);
        })
    }

    /// An async closure: called for each event, one at a time, on the callbacks' arbiter. It must not block
    /// the thread. If it reads the object, it must name the type of its event. A panic skips that event, and
    /// is counted and logged. [`Informer::for_each`](crate::informer::Informer::for_each) subscribes such a
    /// closure without options.
    ///
    /// After the subscription's end no further call begins. A running call may continue for
    /// [`CALL_GRACE`](crate::subscription::CALL_GRACE), or until the limit of a shutdown; then its future is
    /// dropped.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::informer::Informer;
    /// use actix_informer::subscription::{Notify, SubscribeError, SubscribeOptions, Subscriber, Subscription};
    ///
    /// fn print(texts: &Informer<String>) -> Result<Subscription<String>, SubscribeError> {
    ///     let printing = SubscribeOptions::new().name("printing");
    ///     texts.subscribe_with(printing, Subscriber::each(|notify: Notify<String>| async move {
    ///         println!("{} has {} bytes", notify.key(), notify.subject().len());
    ///     }))
    /// }
    /// ```
    pub fn each<F, Fut>(closure: F) -> Self
    where
        F: FnMut(Notify<S>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        Self::called("closure", closure)
    }

    /// An async closure for batches: called with all events that wait, in order, at most 64, as one vector
    /// that is never empty. [`SubscribeOptions::window`](crate::subscription::SubscribeOptions::window) sets
    /// another size. While a call runs, new events wait as the policy says; so a slower closure gets larger
    /// batches. A panic skips its whole batch, and is logged with the key of the first event. Everything else
    /// is as for [`Self::each`].
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// # use actix_informer::subscription::Subscriber;
    /// # #[cfg(feature = "testing")]
    /// # actix_informer::runtime::Runtime::simulated(1).run(|runtime| async move {
    /// # let server = actix_informer::testing::Server::<String>::new();
    /// # server.apply("default/one", "1".to_owned());
    /// # let texts = actix_informer::informer::Informer::builder(&runtime, "texts");
    /// # let texts = texts.source(move || server.clone()).start().expect("the spec is sound");
    /// let subscription = texts.subscribe(Subscriber::each_batch(|events| async move {
    ///     println!("{} events in one transaction", events.len());
    /// }))?;
    /// subscription.synced().await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).expect("it is delivered");
    /// ```
    pub fn each_batch<F, Fut>(closure: F) -> Self
    where
        F: FnMut(Vec<Notify<S>>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        Self::called("batches", InBatches(closure))
    }

    /// A closure that may block its thread: it may sleep, wait for a lock or do file IO. It is called for
    /// each event, in order, one at a time, on a thread of the callback pool. A closure that never returns
    /// keeps one thread and delays no other closure. A panic skips that event, and is counted and logged. A
    /// call cannot be cancelled: a shutdown reports at its limit that it is still running.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::informer::Informer;
    /// use actix_informer::subscription::{Notify, SubscribeError, Subscriber, Subscription};
    ///
    /// fn keep(texts: &Informer<String>) -> Result<Subscription<String>, SubscribeError> {
    ///     texts.subscribe(Subscriber::blocking(|notify: Notify<String>| {
    ///         std::fs::write("last", &**notify.subject()).expect("the disk is not full");
    ///     }))
    /// }
    /// ```
    pub fn blocking(closure: impl FnMut(Notify<S>) + Send + 'static) -> Self {
        Self::pooled("blocking", BlockingClosure::Each(Box::new(closure)))
    }

    /// A closure that may block its thread, for batches, as [`Self::each_batch`] gets them. Everything else
    /// is as for [`Self::blocking`].
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix_informer::informer::Informer;
    /// use actix_informer::subscription::{SubscribeError, Subscriber, Subscription};
    ///
    /// fn keep(texts: &Informer<String>) -> Result<Subscription<String>, SubscribeError> {
    ///     texts.subscribe(Subscriber::blocking_batch(|events| {
    ///         println!("{} events in one transaction of a database", events.len());
    ///     }))
    /// }
    /// ```
    pub fn blocking_batch(closure: impl FnMut(Vec<Notify<S>>) + Send + 'static) -> Self {
        Self::pooled("blocking-batches", BlockingClosure::Batches(Box::new(closure)))
    }

    pub(crate) fn stream(polls: Polls) -> Self {
        Self::new("stream", MOST_IN_WINDOW, |_, _| Delivery::Pull(polls))
    }

    pub(crate) fn feed(feed: Arc<Feed<S>>) -> Self {
        Self::new("controller", MOST_IN_WINDOW, |_, _| Delivery::Feed(feed))
    }

    fn called(kind: &'static str, callback: impl Callback<S> + 'static) -> Self {
        Self::new(kind, MOST_IN_WINDOW, |state, runtime| {
            let closure = OnArbiter::new(runtime.callback_arbiter(), CallbackHost::new(callback, state));
            Delivery::Send(Box::new(move |listener, window, ctx| {
                let (window, here) = (events(window), listener.spec().shared.runtime.callback_arbiter());
                let called = closure.run(move |host| host.handle(window, here));
                listener.await_handled(called, |Closed| EndReason::SubscriberGone, ctx);
            }))
        })
    }

    fn pooled(kind: &'static str, closure: BlockingClosure<S>) -> Self {
        Self::new(kind, MOST_IN_WINDOW, |state, runtime| {
            let (pool, clock) = (runtime.0.blocking.clone(), runtime.0.clock.clone());
            let host = BlockingHost::new(closure, state.clone(), clock);
            let closure = PooledValue::new(pool, host, state.enter());
            Delivery::Send(Box::new(move |listener, window, ctx| {
                let window = events(window);
                let called = closure.run(move |host| host.handle(window));
                let (state, runtime) =
                    (listener.spec().state.clone(), listener.spec().shared.runtime.clone());
                let called = watched(called, state, runtime);
                // The runtime has ended, and with it the informer.
                listener.await_handled(called, |Closed| EndReason::InformerStopped, ctx);
            }))
        })
    }

    fn sent(
        kind: &'static str,
        most_in_window: usize,
        send: impl Fn(&Listener<S>, Notifications<S>, &mut Context<Listener<S>>) + Send + Sync + 'static,
    ) -> Self {
        Self::new(kind, most_in_window, |_, _| Delivery::Send(Box::new(send)))
    }

    fn new(
        kind: &'static str,
        most_in_window: usize,
        deliver: impl FnOnce(&SubscriptionState, &Runtime) -> Delivery<S> + Send + 'static,
    ) -> Self {
        Self { kind, most_in_window, is_of_keys: false, deliver: Box::new(deliver) }
    }
}

impl<S: Body> From<Recipient<Notify<S>>> for Subscriber<S> {
    fn from(recipient: Recipient<Notify<S>>) -> Self {
        Self::kept(type_of(&recipient), recipient)
    }
}

impl<S, A> From<Addr<A>> for Subscriber<S>
where
    S: Body,
    A: Actor<Context: ToEnvelope<A, Notify<S>>> + Handler<Notify<S>>,
{
    fn from(address: Addr<A>) -> Self {
        Self::kept(type_of(&address), address.into())
    }
}

impl<S: Body> From<WeakRecipient<Notify<S>>> for Subscriber<S> {
    fn from(recipient: WeakRecipient<Notify<S>>) -> Self {
        Self::not_kept(type_of(&recipient), recipient)
    }
}

impl<S, A> From<WeakAddr<A>> for Subscriber<S>
where
    S: Body,
    A: Actor<Context: ToEnvelope<A, Notify<S>>> + Handler<Notify<S>>,
{
    fn from(address: WeakAddr<A>) -> Self {
        Self::not_kept(type_of(&address), address.into())
    }
}

impl<S: Body> Subscriber<S> {
    fn kept(kind: &'static str, recipient: Recipient<Notify<S>>) -> Self {
        Self::sent(kind, WINDOW, move |listener, window, ctx| {
            listener.send(&recipient, events(window), ctx);
        })
    }

    fn not_kept(kind: &'static str, recipient: WeakRecipient<Notify<S>>) -> Self {
        Self::sent(kind, WINDOW, move |listener, window, ctx| match recipient.upgrade() {
            Some(recipient) => listener.send(&recipient, events(window), ctx),
            None => listener.end(EndReason::SubscriberGone, ctx),
        })
    }
}

informer_core::debug_as!([S: Body] Subscriber<S>, self, kind = self.kind);

fn type_of<R>(_recipient: &R) -> &'static str {
    let full = std::any::type_name::<R>();
    let inner = full.split_once('<').map_or(full, |(_, inner)| inner);
    let path = inner.split(['<', '>']).next().unwrap_or(inner);
    path.rsplit("::").next().unwrap_or(path)
}
