//! One open watch of the scripted server.
//!
//! Answers "what does this watch bring next?": what happened after its version, an error that a test asked for, or
//! nothing for as long as nothing happens. Invariants:
//! 1. What was told is never told again; what was forgotten before it was told ends the watch as expired.

use futures_util::{StreamExt, stream};
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;

use super::Server;
use crate::list_watch::WatchStream;
use crate::messages::Body;

/// One open watch.
pub(super) struct Live<S> {
    pub(super) server: Server<S>,
    pub(super) position: usize,
    /// Nothing up to this revision is told, also when it is issued a second time.
    pub(super) from: u64,
    pub(super) generation: u64,
}

impl<S: Body> Live<S> {
    pub(super) fn stream(self) -> WatchStream<S> {
        let news = self.server.0.news.subscribe();
        stream::unfold((self, news, false), |(mut live, mut news, ended)| async move {
            if ended {
                return None;
            }
            loop {
                news.mark_unchanged();
                match live.next() {
                    Next::Parts(parts) => return Some((Ok(parts), (live, news, false))),
                    Next::End(Some(error)) => return Some((Err(error), (live, news, true))),
                    Next::End(None) => return None,
                    Next::Wait => news.changed().await.ok()?,
                }
            }
        })
        .boxed_local()
    }

    fn next(&mut self) -> Next<S> {
        let state = self.server.state();
        if state.generation != self.generation {
            return Next::End(state.end_with.clone());
        }
        let end = state.forgotten + state.history.len();
        if state.frozen || self.position == end {
            return Next::Wait;
        }
        let Some(untold) = self.position.checked_sub(state.forgotten) else {
            return Next::End(Some(ListWatchError::Expired("the watch was compacted away".into())));
        };
        let news = state.history[untold..].iter().filter(|(revision, _)| *revision > self.from);
        let parts: Vec<_> = news.map(|(revision, happened)| state.part(*revision, happened)).collect();
        self.position = end;
        if parts.is_empty() { Next::Wait } else { Next::Parts(parts) }
    }
}

enum Next<S> {
    Parts(Vec<WatchPart<S>>),
    End(Option<ListWatchError>),
    Wait,
}
