//! A subscription as a stream.
//!
//! One ask is in flight, made only by a poll when no taken event is left. It takes a window from the Listener, and
//! means that the window before was handled. A mark comes as an answer. Polls are counted: a shutdown waits only for
//! a stream that is polled.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;

use crate::informer::Informer;
use crate::pipeline::listener::Polls;
use crate::pipeline::messages::{Body, Notify, Take, Taken};
use crate::runtime::mailbox::{Asked, Closed, ask_with};
use crate::subscribe_options::SubscribeOptions;
use crate::subscriber::Subscriber;
use crate::subscription::{SubscribeError, Subscription};

/// A subscription as a stream. It ends when the subscription does; dropping it unsubscribes.
///
/// An item counts as handled once the next one is requested. The stream is therefore synced once the item
/// after the last initial one is requested. An informer's shutdown waits for a stream only while it is
/// polled, see [`Informer::events`](crate::informer::Informer::events). Drop a stream that you do not read to
/// its end.
#[must_use = "a stream does nothing until it is polled"]
pub struct Events<S: Body> {
    subscription: Subscription<S>,
    taken: VecDeque<Notify<S>>,
    asking: Option<Asked<Taken<S>>>,
    polls: Polls,
    is_marked: bool,
}

/// A subscription as a stream that marks the end of its initial events; made by [`Events::marked`].
#[must_use = "a stream does nothing until it is polled"]
pub struct MarkedEvents<S: Body>(Events<S>);

/// An item of [`MarkedEvents`].
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "an event, or the mark")]
pub enum Marked<S> {
    /// An event.
    Event(Notify<S>),
    /// Everything that the subscription began with came before: the first list of every source, or what a
    /// newer state made of it. Comes once in a subscription, and at once when there is nothing to begin with.
    /// A later list, a restart of the pipeline or a new source brings differences, and no second mark. The
    /// subscription is then synced.
    InitDone,
}

impl<S: Body> Informer<S> {
    /// Subscribes a stream: events wait, by its policy, until it is polled.
    ///
    /// An item counts as handled when the next one is requested. The informer's shutdown waits, until its
    /// limit, for a stream that has events to take or has not requested the next item, as long as it is
    /// polled: it waits for an event, or was polled within the last second. A stream that was never polled is
    /// given up at once. One that is no longer polled, or works on one item for more than a second, is given
    /// up after that second. Its events are dropped, and the report names it. It still returns what it has
    /// taken already, and then ends. Drop a stream that you do not read to its end, so that no shutdown waits
    /// for it.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn events(&self) -> Result<Events<S>, SubscribeError> {
        self.events_with(SubscribeOptions::new())
    }

    /// As [`Self::events`], with a name, a resync period or another policy.
    ///
    /// # Errors
    /// When the informer has stopped.
    pub fn events_with(&self, options: SubscribeOptions<S>) -> Result<Events<S>, SubscribeError> {
        let polls = Polls::default();
        let counted = polls.clone();
        let subscription = self.start_listener(options, Subscriber::stream(counted))?;
        Ok(Events { subscription, taken: VecDeque::new(), asking: None, polls, is_marked: false })
    }
}

impl<S: Body> Events<S> {
    /// The subscription of this stream.
    pub fn subscription(&self) -> &Subscription<S> {
        &self.subscription
    }

    /// The same stream with a mark, [`Marked::InitDone`], after its last initial event and before every later
    /// one. Must be called before the stream is polled.
    ///
    /// ```
    /// # use informer_actors::face as actix_informer;
    /// use futures_util::StreamExt;
    /// use actix_informer::subscription::Marked;
    /// # #[cfg(feature = "testing")]
    /// # actix_informer::runtime::Runtime::simulated(1).run(|runtime| async move {
    /// # let server = actix_informer::testing::Server::<String>::new();
    /// # server.apply("default/one", "1".to_owned());
    /// # let texts = actix_informer::informer::Informer::builder(&runtime, "texts");
    /// # let texts = texts.source(move || server.clone()).start().expect("the spec is sound");
    ///
    /// let mut events = texts.events()?.marked();
    /// while let Some(Marked::Event(notify)) = events.next().await {
    ///     println!("{} was there before", notify.key());
    /// }
    /// assert!(events.subscription().status().synced);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).expect("it is delivered");
    /// ```
    pub fn marked(mut self) -> MarkedEvents<S> {
        self.is_marked = true;
        MarkedEvents(self)
    }

    fn poll_marked(&mut self, cx: &mut Context<'_>) -> Poll<Option<Marked<S>>> {
        self.polls.count_one();
        loop {
            if let Some(notify) = self.taken.pop_front() {
                return Poll::Ready(Some(Marked::Event(notify)));
            }
            // Frees the memory while it waits.
            self.taken = VecDeque::new();
            let (listener, is_marked) = (self.subscription.listener(), self.is_marked);
            let asking =
                self.asking.get_or_insert_with(|| ask_with(listener, |reply| Take { is_marked, reply }));
            let answer = ready!(Pin::new(asking).poll(cx));
            self.asking = None;
            match answer {
                Ok(Taken::Events(taken)) => self.taken = taken.into(),
                Ok(Taken::InitDone) => return Poll::Ready(Some(Marked::InitDone)),
                Err(Closed) => return Poll::Ready(None),
            }
        }
    }
}

impl<S: Body> MarkedEvents<S> {
    /// The subscription of this stream.
    pub fn subscription(&self) -> &Subscription<S> {
        &self.0.subscription
    }
}

impl<S: Body> Stream for Events<S> {
    type Item = Notify<S>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notify<S>>> {
        loop {
            match ready!(self.poll_marked(cx)) {
                Some(Marked::Event(notify)) => return Poll::Ready(Some(notify)),
                Some(Marked::InitDone) => {}
                None => return Poll::Ready(None),
            }
        }
    }
}

impl<S: Body> Stream for MarkedEvents<S> {
    type Item = Marked<S>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Marked<S>>> {
        self.0.poll_marked(cx)
    }
}

informer_core::debug_as!([S: Body] Events<S>, self, subscription = self.subscription);

informer_core::debug_as!([S: Body] MarkedEvents<S>, self, of = self.0);
