//! Subscribed actors: the actors to which an informer sends its notifications.
//!
//! Answers "does a subscription keep its actor alive, and when has a handler done its work?". Invariants:
//! 1. A subscription made with `subscribe` keeps its actor; one made with `subscribe_weak` does not. Each keeps its
//!    informer.
//! 2. An actor that is gone ends its subscription with `SubscriberGone`, once the next event waits for it.
//!
//! Read next: `listener/delivery.rs`, which sends; `callback.rs`, closures instead of actors.

use actix::{Context, Handler, Recipient, WeakRecipient};

use crate::informer::Informer;
use crate::pipeline::listener::Delivery;
use crate::pipeline::messages::{Body, Notify, Touched};
use crate::pipeline::notifications::Batch;
use crate::subscription::{SubscribeError, SubscribeOptions, Subscription};
use crate::supervision::runner::{Run, Runner};

impl<S: Body> Informer<S> {
    /// Subscribes an actor: it is sent every [`Notify`], in order, at most 64 unhandled at a time. Returns at once.
    ///
    /// **Ownership.** The subscription keeps the actor and the informer. So an actor that has no other owner lives
    /// until its subscription ends. An actor that keeps its own [`Subscription`] must not be subscribed like this: it
    /// would keep itself and the informer for ever. Use [`Self::subscribe_weak`] for it.
    ///
    /// **Handlers that answer with a future.** An event counts as handled when its handler has returned, or, with an
    /// `AtomicResponse`, when its future has ended. With a `ResponseFuture` or `ResponseActFuture` actix handles the
    /// next message while the future runs: up to 64 run at the same time and end in any order, and `synced` and
    /// `shutdown` wait only for the one that began last. [`SubscribeOptions::one_at_a_time`] changes that.
    ///
    /// **An object that is created and deleted at once** is delivered, but not one for which both happened inside a
    /// gap that a list closed: see [`Self::for_each`].
    ///
    /// **Panics.** A panic in the handler ends the actor, as always in actix; other actors on its thread go on. The
    /// subscription ends with [`EndReason::SubscriberGone`](crate::pipeline::subscription_state::EndReason), and
    /// the informer goes on. (A closure's panic costs one event, and its subscription goes on.)
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix::{Actor, Context, Handler};
    /// use actix_informer::subscription::Notify;
    ///
    /// struct Print;
    ///
    /// impl Actor for Print {
    ///     type Context = Context<Self>;
    /// }
    ///
    /// impl Handler<Notify<String>> for Print {
    ///     type Result = ();
    ///
    ///     fn handle(&mut self, notify: Notify<String>, _ctx: &mut Context<Self>) {
    ///         println!("{} ({})", notify.key(), notify.cause());
    ///     }
    /// }
    /// # #[cfg(feature = "testing")]
    /// # actix_informer::runtime::Runtime::simulated(1).run(|runtime| async move {
    /// # let server = actix_informer::testing::Server::<String>::new();
    /// # server.apply("default/one", "1".to_owned());
    /// # let texts = actix_informer::informer::Informer::builder(&runtime, "texts");
    /// # let texts = texts.source(move || server.clone()).start().expect("the spec is sound");
    ///
    /// let subscription = texts.subscribe(Print.start())?; // nothing else keeps this actor
    /// subscription.synced().await?; // it has handled the first list
    /// drop(subscription); // now the actor ends
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).expect("it is delivered");
    /// ```
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn subscribe(
        &self,
        recipient: impl Into<Recipient<Notify<S>>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.subscribe_with(SubscribeOptions::new(), recipient)
    }

    /// As [`Self::subscribe`], with a name, a resync period, another policy, or one event at a time.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn subscribe_with(
        &self,
        options: SubscribeOptions<S>,
        recipient: impl Into<Recipient<Notify<S>>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let kind = type_of(&recipient);
        let recipient = recipient.into();
        self.start_listener(options, kind, move |_| Delivery::Push(recipient))
    }

    /// Subscribes an actor to batches: it is sent all events that wait, in order, as one [`Batch`], and the next one when
    /// it has handled that. [`SubscribeOptions::window`] is the size of the largest, by default 64. All else is as for
    /// [`Self::subscribe`].
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn subscribe_batches(
        &self,
        options: SubscribeOptions<S>,
        recipient: impl Into<Recipient<Batch<S>>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let kind = type_of(&recipient);
        let recipient = recipient.into();
        self.start_listener(options, kind, move |_| Delivery::Batches(recipient))
    }

    /// As [`Self::subscribe`], but the subscription does not keep the actor. So an actor can subscribe itself when it
    /// starts and keep its [`Subscription`]: when its last address is dropped, the actor ends, and with it its
    /// subscription, which then does not keep the informer either.
    ///
    /// That the actor is gone is noticed when the next event waits for it: then the subscription ends with
    /// [`EndReason::SubscriberGone`](crate::pipeline::subscription_state::EndReason). Takes a `WeakAddr`, a
    /// `WeakRecipient`, or an address, of which it keeps a weak one.
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
    ///         // With `subscribe` this actor would keep itself.
    ///         self.subscription = self.texts.subscribe_weak(ctx.address().downgrade()).ok();
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
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn subscribe_weak(
        &self,
        recipient: impl Into<WeakRecipient<Notify<S>>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.subscribe_weak_with(SubscribeOptions::new(), recipient)
    }

    /// As [`Self::subscribe_weak`], with a name, a resync period, another policy, or one event at a time.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn subscribe_weak_with(
        &self,
        options: SubscribeOptions<S>,
        recipient: impl Into<WeakRecipient<Notify<S>>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let kind = type_of(&recipient);
        let recipient = recipient.into();
        self.start_listener(options, kind, move |_| Delivery::PushWeak(recipient))
    }
}

/// The short name of the actor behind an address: `actix::address::Addr<audit::Audit>` gives `Audit`.
pub(crate) fn type_of<R>(_recipient: &R) -> &'static str {
    let full = std::any::type_name::<R>();
    let inner = full.split_once('<').map_or(full, |(_, inner)| inner);
    let path = inner.split(['<', '>']).next().unwrap_or(inner);
    path.rsplit("::").next().unwrap_or(path)
}

// Subscribers of keys: whoever wants to know which objects to look at, and looks them up itself.
//
// What waits for such a subscriber is keys, each once, and keeps no object alive.

impl<S: Body> Informer<S> {
    /// Subscribes an actor to keys: it is sent a [`Touched`] for each key to which something happened, and looks up in
    /// a [`Lister`](crate::informer::Lister) what there is now. Returns at once.
    ///
    /// A key waits once, however often it is touched, and is sent again when it is touched after it was sent. So it is
    /// sent at least once after each change, also for an object that was created and deleted at once, for everything
    /// that a first list or a late start finds, and for what differs after a new list, a rewind or a restart. It may be
    /// sent once more than that. Each key that waits costs memory, keeps no object alive, and may be a key whose object
    /// is gone; there is no bound of their number. A key whose object was created and deleted inside a gap that a list
    /// closed is not sent.
    ///
    /// Ownership, when a message counts as handled, and what a panic costs are as for [`Self::subscribe`].
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use actix::{Actor, Context, Handler};
    /// use actix_informer::informer::Lister;
    /// use actix_informer::subscription::Touched;
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
    /// # #[cfg(feature = "testing")]
    /// # actix_informer::runtime::Runtime::simulated(1).run(|runtime| async move {
    /// # let server = actix_informer::testing::Server::<String>::new();
    /// # server.apply("default/one", "1".to_owned());
    /// # let texts = actix_informer::informer::Informer::builder(&runtime, "texts");
    /// # let texts = texts.source(move || server.clone()).start().expect("the spec is sound");
    ///
    /// let reconciler = Reconciler { texts: texts.lister() };
    /// let subscription = texts.subscribe_keys(reconciler.start())?;
    /// subscription.synced().await?; // it has looked at everything that the first list has brought
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).expect("it is delivered");
    /// ```
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn subscribe_keys(
        &self,
        recipient: impl Into<Recipient<Touched>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        self.subscribe_keys_with(SubscribeOptions::new(), recipient)
    }

    /// As [`Self::subscribe_keys`], with a name, a resync period, or one key at a time.
    ///
    /// # Errors
    /// When the informer has stopped, or the options ask for every event: keys coalesce.
    pub fn subscribe_keys_with(
        &self,
        options: SubscribeOptions<S>,
        recipient: impl Into<Recipient<Touched>>,
    ) -> Result<Subscription<S>, SubscribeError> {
        let kind = type_of(&recipient);
        self.start_key_listener(options, kind, recipient.into())
    }
}

/// What takes the keys of an informer by the actor that runs it.
pub trait Fed: Run {
    /// Something has happened to an object. The actor looks after that.
    fn feed(&self, touched: Touched);
}

impl<R: Fed> Handler<Touched> for Runner<R> {
    type Result = ();

    fn handle(&mut self, touched: Touched, ctx: &mut Context<Self>) {
        self.run.feed(touched);
        self.look(ctx);
    }
}
