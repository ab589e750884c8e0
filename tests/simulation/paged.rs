//! A source that cuts the lists of a scripted server into pages.
//!
//! Answers "what does a list in pages bring?": the state of its first page, in pages of the requested size, each with
//! a token for the next. Invariants:
//! 1. All pages of one list are of one state, whatever was written meanwhile.
//! 2. A token is valid once; one that the run has removed is answered as expired.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::{StreamExt, stream};
use informer_actors::list_watch::{KnownObjects, ListStream, ListWatch, WatchStream};
use informer_actors::testing::Server;
use informer_core::delta::ListPart;
use informer_core::list_watch_error::ListWatchError;
use informer_core::meta::{Object, ObjectKey, ResourceVersion};
use informer_core::request::{ListRequest, WatchRequest};

/// The remaining objects of the open lists, by token.
type Rest = BTreeMap<String, (ResourceVersion, Vec<Object<String>>)>;

#[derive(Clone, Debug)]
pub(crate) struct Paged {
    server: Server<String>,
    rest: Arc<Mutex<(usize, Rest)>>,
}

impl Paged {
    pub(crate) fn new(server: Server<String>) -> Self {
        Self { server, rest: Arc::default() }
    }

    /// Makes every token expire.
    pub(crate) fn expire(&self) {
        self.rest().1.clear();
    }

    fn rest(&self) -> MutexGuard<'_, (usize, Rest)> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first `limit` of these objects, and the token under which the others are kept.
    fn page(
        &self,
        mut objects: Vec<Object<String>>,
        limit: u32,
        version: ResourceVersion,
    ) -> Vec<Result<ListPart<String>, ListWatchError>> {
        let others = objects.split_off(objects.len().min(limit as usize));
        let mut rest = self.rest();
        let token = (!others.is_empty()).then(|| {
            rest.0 += 1;
            let token = format!("token-{}", rest.0);
            rest.1.insert(token.clone(), (version.clone(), others));
            token
        });
        vec![Ok(ListPart::Objects(objects)), Ok(ListPart::End { version, token })]
    }

    async fn first_page(
        self,
        mut list: ListStream<String>,
        limit: u32,
    ) -> Vec<Result<ListPart<String>, ListWatchError>> {
        let mut all = Vec::new();
        while let Some(part) = list.next().await {
            match part {
                Ok(ListPart::Objects(objects)) => all.extend(objects),
                Ok(ListPart::End { version, .. }) => return self.page(all, limit, version),
                other => return vec![other],
            }
        }
        Vec::new()
    }

    async fn next_page(self, token: String, limit: u32) -> Vec<Result<ListPart<String>, ListWatchError>> {
        // How long the server takes, in simulated time.
        tokio::time::sleep(Duration::from_millis(5)).await;
        let kept = self.rest().1.remove(&token);
        match kept {
            Some((version, objects)) => self.page(objects, limit, version),
            None => vec![Err(ListWatchError::Expired("the token is too old".into()))],
        }
    }
}

impl ListWatch<String> for Paged {
    fn list(&self, request: ListRequest, known: KnownObjects<String>) -> ListStream<String> {
        let limit = request.limit.unwrap_or(u32::MAX);
        match (request.token.clone(), &request.name, request.limit) {
            (Some(token), ..) => {
                stream::once(self.clone().next_page(token, limit)).flat_map(stream::iter).boxed_local()
            }
            (None, None, Some(_)) => {
                let list = self.server.list(request, known);
                stream::once(self.clone().first_page(list, limit)).flat_map(stream::iter).boxed_local()
            }
            _ => self.server.list(request, known),
        }
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<String>) -> WatchStream<String> {
        self.server.watch(request, known)
    }

    fn get(&self, key: ObjectKey) -> LocalBoxFuture<'static, Result<Option<Object<String>>, ListWatchError>> {
        self.server.get(key)
    }
}
