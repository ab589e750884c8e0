//! Asks the server's discovery what the configured kinds are.
//!
//! 1. The start asks once, for at most [`LIMIT`]; without an answer the built-in table serves.
//! 2. An unknown kind is followed as soon as the server serves it: until then its informer is `Gone`. A kind that is gone later
//!    is looked up again: it may have another version then.
//! 3. No resource is followed twice: the second name is refused at the start, or its informer is `Gone`.

use std::sync::Arc;
use std::time::Duration;

use actix_informer::source::ListWatchError;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;

use super::Error;
use super::config::InformerConfig;
use super::describe::{LateKind, Values};
use super::kept::{KeepAs, described};
use super::kinds::WatchedKind;
use informer_client::inner::{FindResource, Found, FoundResource, failure};

use actix_informer::client::discovery::ServerResources;
use actix_informer::client::{Client, DiscoveryError, ResourceSource};

const LIMIT: Duration = Duration::from_secs(5);

/// Also returns notes for the user.
pub(super) async fn discover(
    client: &Client,
    configured: &[InformerConfig],
    limit: Option<Duration>,
) -> Result<(Vec<InformerConfig>, Vec<String>), Error> {
    let limit = limit.map_or(LIMIT, |limit| limit.min(LIMIT));
    let mut informers = configured.to_vec();
    if informers.iter().all(|informer| informer.kind.asked().is_none()) {
        return Ok((informers, Vec::new()));
    }
    let server = match tokio::time::timeout(limit, client.discovery().resources()).await {
        Ok(Ok(server)) => server,
        Ok(Err(error)) => return Ok((informers, vec![without_discovery(&error.to_string())])),
        Err(_) => return Ok((informers, vec![without_discovery(&format!("no answer within {limit:?}"))])),
    };
    let mut notes: Vec<String> = server.complete().err().map(|error| error.to_string()).into_iter().collect();
    for informer in &mut informers {
        let Some(asked) = informer.kind.asked() else { continue };
        match server.find(asked) {
            Ok(Found { resource, also }) => {
                let chosen = resource.name();
                notes.extend(
                    also.iter().map(|also| format!("{asked} is {chosen}; it could also mean {also}")),
                );
                informer.kind = informer.kind.discovered(&resource.api, resource.is_namespaced());
            }
            // It will not mean one kind later either.
            Err(error @ DiscoveryError::Category { .. }) => return Err(Error::Category(error)),
            Err(error) => {
                notes.push(format!("{error}; {} is watched when there is one", informer.kind.name()))
            }
        }
    }
    let is_earlier = |at: usize, informer: &InformerConfig| {
        informers[..at].iter().any(|other| other.kind.same_resource(&informer.kind))
    };
    match informers.iter().enumerate().find(|(at, informer)| is_earlier(*at, informer)) {
        Some((_, informer)) => Err(watched_twice(&informer.kind)),
        None => Ok((informers, notes)),
    }
}

fn watched_twice(kind: &WatchedKind) -> Error {
    Error::WatchedTwice { resource: kind.plural().to_owned() }
}

fn without_discovery(why: &str) -> String {
    format!("the kinds are taken from the built-in table, because the server could not be asked: {why}")
}

pub(super) fn awaited(
    client: &Client,
    (informers, at): (&[InformerConfig], usize),
    late: &Arc<LateKind>,
) -> ResourceSource<DynamicObject, KeepAs> {
    let config = &informers[at];
    // Of two unknown names with one meaning, the first follows it.
    let comes_before = |(other, informer): &(usize, &InformerConfig)| {
        *other < at || (*other > at && informer.kind.resource().is_some())
    };
    let before = informers.iter().enumerate().filter(comes_before);
    let before = before.map(|(_, informer)| informer.kind.clone()).collect();
    let others = informers.iter().enumerate().filter(|(other, _)| *other != at);
    let others = others.map(|(_, informer)| informer.kind.clone()).collect();
    let asked = config.kind.asked().unwrap_or_default();
    let (by_name, late) = (client.finder(asked), Arc::clone(late));
    let (client, config) = (client.clone(), config.clone());
    let finder = Awaited { by_name, client: client.clone(), config: config.clone(), before, others, late };
    let unknown = described(client.named(asked), &config, KeepAs::metadata());
    let represent = move |found: &ApiResource| {
        // What is kept does not depend on namespaces.
        let kind = config.kind.discovered(found, true);
        KeepAs::new(&InformerConfig { kind, ..config.clone() }, found)
    };
    unknown.followed_as(Arc::new(finder), Arc::new(represent))
}

#[derive(Clone)]
struct Awaited {
    by_name: Arc<dyn FindResource>,
    client: Client,
    config: InformerConfig,
    /// It must be none of these.
    before: Arc<[WatchedKind]>,
    /// If one of these has its name, it needs its group.
    others: Arc<[WatchedKind]>,
    late: Arc<LateKind>,
}

impl Awaited {
    async fn check(self, resource: &ApiResource, is_namespaced: bool) -> Result<(), ListWatchError> {
        let kind = self.config.kind.discovered(resource, is_namespaced);
        let server = self.client.discovery().resources().await.map_err(failure)?;
        if self.before.iter().any(|before| is_meant(before, &kind, &server)) {
            return Err(ListWatchError::NotFound(watched_twice(&kind).to_string().into()));
        }
        let is_ambiguous = self.others.iter().any(|other| has_name(other, &resource.kind, &server));
        let name = match is_ambiguous && !resource.group.is_empty() {
            true => format!("{}.{}", resource.kind, resource.group),
            false => resource.kind.clone(),
        };
        self.late.found(name, Values::of(&InformerConfig { kind, ..self.config }));
        Ok(())
    }
}

impl FindResource for Awaited {
    fn name(&self) -> &str {
        self.by_name.name()
    }

    fn find(&self, anew: bool) -> BoxFuture<'static, Result<FoundResource, ListWatchError>> {
        let (found, this) = (self.by_name.find(anew), self.clone());
        async move {
            let found = found.await?;
            this.check(&found.api, !found.is_cluster_scoped).await?;
            Ok(found)
        }
        .boxed()
    }
}

fn is_meant(kind: &WatchedKind, resource: &WatchedKind, server: &ServerResources) -> bool {
    let asked = kind.asked().filter(|_| kind.resource().is_none());
    match asked.map(|asked| server.find(asked)) {
        None => kind.same_resource(resource),
        Some(found) => found.is_ok_and(|Found { resource: found, .. }| {
            kind.discovered(&found.api, found.is_namespaced()).same_resource(resource)
        }),
    }
}

/// Also by the server's name for it.
fn has_name(kind: &WatchedKind, name: &str, server: &ServerResources) -> bool {
    let asked = kind.asked().filter(|_| kind.resource().is_none());
    let found = asked.and_then(|asked| server.find(asked).ok());
    kind.name() == name || found.is_some_and(|Found { resource, .. }| resource.api.kind == name)
}

#[cfg(test)]
mod tests;
