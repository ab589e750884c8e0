//! One open watch of the scripted server. No event is sent twice. If events were dropped before they were sent, the
//! watch ends as expired.

use futures_util::{StreamExt, stream};
use informer_core::delta::WatchPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::Object;
use informer_core::request::{AskedVersion, WatchRequest};

use super::{Server, State, version};
use crate::list_watch::WatchStream;
use crate::pipeline::messages::Body;

impl<S: Body> Server<S> {
    /// The parts before its live part are decided now.
    pub(super) fn open_watch(&self, request: &WatchRequest) -> WatchStream<S> {
        self.0.state.with(|state| self.opened(state, request))
    }

    fn opened(&self, state: &mut State<S>, request: &WatchRequest) -> WatchStream<S> {
        let kind = if request.initial_events { "WATCH-LIST" } else { "WATCH" };
        if let Err(error) = state.admit(format!("{kind} version={:?}", request.version.to_string())) {
            return stream::iter([Err(error)]).boxed_local();
        }
        if request.initial_events && !state.watch_list {
            let refusal = ListWatchError::WatchListUnsupported("this server does not know it".into());
            return stream::iter([Err(refusal)]).boxed_local();
        }
        let from = revision_of(&request.version);
        if !request.initial_events && from < state.compacted {
            let text = format!("too old resource version: {from} ({})", state.compacted);
            return stream::iter([Ok(Vec::new()), Err(ListWatchError::Expired(text.into()))]).boxed_local();
        }
        let mut head = vec![Ok(Vec::new())];
        let old = state.history.iter().take_while(|(revision, _)| *revision <= from).count();
        let mut position = state.dropped + old;
        let mut marker = Vec::new();
        if request.initial_events {
            position = state.dropped + state.history.len();
            let objects: Vec<_> = state.objects.values().collect();
            let part = |objects: &[&Object<S>]| objects.iter().map(|object| state.initial(object)).collect();
            head.extend(objects.chunks(state.page).map(|objects| Ok(part(objects))));
            let end = WatchPart::Bookmark { version: version(state.revision), initial_events_end: true };
            marker.push(Ok(vec![end]));
        }
        let held = self.clone();
        let marker = stream::once(async move {
            if !marker.is_empty() {
                held.until_released().await;
            }
            stream::iter(marker)
        });
        let live = Live { server: self.clone(), position, from, generation: state.generation };
        stream::iter(head).chain(marker.flatten()).chain(live.stream()).boxed_local()
    }
}

struct Live<S> {
    server: Server<S>,
    position: usize,
    /// No event up to this revision is sent, also when the revision is issued a second time.
    from: u64,
    generation: u64,
}

impl<S: Body> Live<S> {
    fn stream(self) -> WatchStream<S> {
        stream::unfold((self, false), |(mut live, ended)| async move {
            if ended {
                return None;
            }
            loop {
                let seen = live.server.0.changes.count();
                match live.next() {
                    Next::Parts(parts) => return Some((Ok(parts), (live, false))),
                    Next::End(Some(error)) => return Some((Err(error), (live, true))),
                    Next::End(None) => return None,
                    Next::Wait => live.server.0.changes.since(seen).await,
                }
            }
        })
        .boxed_local()
    }

    fn next(&mut self) -> Next<S> {
        self.server.0.state.with(|state| {
            if state.generation != self.generation {
                return Next::End(state.end_with.clone());
            }
            let end = state.dropped + state.history.len();
            if state.frozen || self.position == end {
                return Next::Wait;
            }
            let Some(unsent) = self.position.checked_sub(state.dropped) else {
                return Next::End(Some(ListWatchError::Expired("the watch was compacted away".into())));
            };
            let events = state.history[unsent..].iter().filter(|(revision, _)| *revision > self.from);
            let parts: Vec<_> = events.map(|(revision, event)| state.part(*revision, event)).collect();
            self.position = end;
            if parts.is_empty() { Next::Wait } else { Next::Parts(parts) }
        })
    }
}

enum Next<S> {
    Parts(Vec<WatchPart<S>>),
    End(Option<ListWatchError>),
    Wait,
}

fn revision_of(asked: &AskedVersion) -> u64 {
    asked.version().and_then(|version| version.to_string().parse().ok()).unwrap_or(0)
}
