//! Subscribers of keys: whoever wants to know which objects to look at, and looks them up itself.
//!
//! Answers "how is a work queue fed?". What waits for such a subscriber is keys, each once, and keeps no object alive.
//! Read next: `actor_subscriber.rs`, whose rules of keeping and handling hold here as well; `listener/keys.rs` of the
//! core.

use actix::Recipient;

use crate::actor_subscriber::type_of;
use crate::informer::Informer;
use crate::pipeline::messages::{Body, Touched};
use crate::subscription::{SubscribeError, SubscribeOptions, Subscription};

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
