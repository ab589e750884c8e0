//! Requests everything that a server serves: `/api` and `/apis` in the aggregated form, with the ETags of the
//! last answers. If the server knows only the old form, also the resources of each version of each group.
//!
//! 404 for `/api` means no core group; a failure of `/apis` is an error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, future, stream};
use http::{Request, Response, header};

use super::documents::{self, DocumentError, legacy};
use super::error::DiscoveryError;
use super::memory::{Begun, Memory, Tagged, TaggedRoots};
use super::model::{DiscoveredGroup, FailedGroupVersion, ServerResources, group_version};
use crate::client::Client;
use crate::error::Error;
use crate::request::RequestOptions;
use crate::scope::segment;

/// The accepted forms, the best first: v2 since Kubernetes 1.30, v2beta1 since 1.26. It must be exactly
/// client-go's header: kubectl's cache on disk keeps answers by it.
pub(super) const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                      application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
/// For a server that refuses the header above.
const ACCEPT_LEGACY: &str = "application/json";
/// For one request; client-go's number.
const LIMIT: Duration = Duration::from_secs(32);
const AT_ONCE: usize = 8;
const MOST_VERSIONS: usize = 2_000;

pub(super) const ROOTS: [&str; 2] = ["/api", "/apis"];

pub(super) struct Fetched {
    pub(super) resources: ServerResources,
    pub(super) roots: TaggedRoots,
    /// Aggregated, with ETags, for a cache on disk. `None` if nothing has changed.
    pub(super) bodies: [Option<Response<Bytes>>; 2],
    pub(super) is_aggregated: bool,
}

enum Answer {
    Unchanged(Tagged),
    Changed(Response<Bytes>),
    Absent,
}

pub(super) async fn fetch(
    client: &Client,
    memory: &Memory,
    begun: &Begun,
) -> Result<Fetched, DiscoveryError> {
    let [core, named] = &begun.roots;
    let roots = future::join(root(client, memory, 0, core.as_ref()), root(client, memory, 1, named.as_ref()));
    let (core, named) = roots.await;
    let mut fetched = Fetched {
        resources: ServerResources::default(),
        roots: [None, None],
        bodies: [None, None],
        is_aggregated: true,
    };
    for (at, answer) in [core?, named?].into_iter().enumerate() {
        match answer {
            Answer::Absent => {}
            Answer::Unchanged(tagged) => fetched.take(at, tagged),
            Answer::Changed(answer) => read(&mut fetched, (client, memory), at, answer).await?,
        }
    }
    Ok(fetched)
}

impl Fetched {
    fn take(&mut self, at: usize, tagged: Tagged) {
        self.add(tagged.groups.clone(), tagged.failed.clone());
        self.roots[at] = Some(tagged);
    }

    fn add(&mut self, groups: Vec<DiscoveredGroup>, failed: Vec<FailedGroupVersion>) {
        self.resources.groups.extend(groups);
        self.resources.failed.extend(failed);
    }
}

async fn read(
    fetched: &mut Fetched,
    (client, memory): (&Client, &Memory),
    at: usize,
    answer: Response<Bytes>,
) -> Result<(), DiscoveryError> {
    let root = documents::root(answer.body()).map_err(|error| no_document(ROOTS[at], &error))?;
    match root {
        documents::Root::Aggregated(groups, failed) => {
            let etag = answer.headers().get(header::ETAG).and_then(|value| value.to_str().ok());
            match etag.map(str::to_owned) {
                Some(etag) => {
                    fetched.take(at, Tagged { etag, groups, failed });
                    fetched.bodies[at] = Some(answer);
                }
                None => fetched.add(groups, failed),
            }
        }
        documents::Root::Legacy(groups) => {
            fetched.is_aggregated = false;
            let (groups, failed) = each_version(client, memory, groups).await;
            fetched.add(groups, failed);
        }
    }
    Ok(())
}

fn no_document(path: &str, error: &DocumentError) -> DiscoveryError {
    DiscoveryError::Document { path: path.to_owned(), reason: error.to_string() }
}

async fn root(
    client: &Client,
    memory: &Memory,
    at: usize,
    known: Option<&Tagged>,
) -> Result<Answer, DiscoveryError> {
    let etag = known.map(|known| known.etag.as_str());
    let mut answer = get(client, memory, (ROOTS[at], ACCEPT), etag).await;
    if refusal(&answer).is_some_and(|code| code == 406 || code == 415) {
        answer = get(client, memory, (ROOTS[at], ACCEPT_LEGACY), None).await;
    }
    match (refusal(&answer), known) {
        (Some(304), Some(known)) => {
            memory.count(|status| status.unchanged += 1);
            Ok(Answer::Unchanged(known.clone()))
        }
        // Servers behind an aggregator have no core group.
        (Some(404), _) if at == 0 => Ok(Answer::Absent),
        _ => answer.map(Answer::Changed).map_err(|error| DiscoveryError::Request(Arc::new(error))),
    }
}

fn refusal(answer: &Result<Response<Bytes>, Error>) -> Option<u16> {
    answer.as_ref().err().and_then(Error::refused).map(|refused| refused.code)
}

async fn get(
    client: &Client,
    memory: &Memory,
    (path, accept): (&str, &str),
    etag: Option<&str>,
) -> Result<Response<Bytes>, Error> {
    memory.count(|status| status.requests += 1);
    let mut request = Request::get(path).header(header::ACCEPT, accept);
    if let Some(etag) = etag {
        request = request.header(header::IF_NONE_MATCH, etag);
    }
    let mut request = request.body(Vec::new()).map_err(|error| Error::Request(error.to_string()))?;
    request.extensions_mut().insert(RequestOptions::new().timeout(LIMIT));
    client.send(request).await
}

async fn each_version(
    client: &Client,
    memory: &Memory,
    groups: Vec<DiscoveredGroup>,
) -> (Vec<DiscoveredGroup>, Vec<FailedGroupVersion>) {
    let names: Vec<(String, String)> = groups
        .iter()
        .flat_map(|group| group.versions.iter().map(|version| (group.name.clone(), version.name.clone())))
        .collect();
    let asked = names.into_iter().take(MOST_VERSIONS).map(|name| resources(client, memory, name));
    let mut answers = stream::iter(asked).buffered(AT_ONCE);
    let mut failed = Vec::new();
    let mut found = Vec::with_capacity(groups.len());
    for mut group in groups {
        let mut versions = Vec::with_capacity(group.versions.len());
        for mut version in std::mem::take(&mut group.versions) {
            let answer = answers.next().await;
            match answer
                .unwrap_or_else(|| Err(format!("only the first {MOST_VERSIONS} versions are asked for")))
            {
                Ok(resources) => {
                    version.resources = resources;
                    versions.push(version);
                }
                Err(reason) => {
                    let (group, version) = (group.name.clone(), version.name);
                    failed.push(FailedGroupVersion { group, version, reason });
                }
            }
        }
        group.versions = versions;
        found.push(group);
    }
    (found, failed)
}

type Resources = Vec<Arc<super::model::DiscoveredResource>>;

async fn resources(
    client: &Client,
    memory: &Memory,
    (group, version): (String, String),
) -> Result<Resources, String> {
    let (group, version) = (group.as_str(), version.as_str());
    // A name in a document must not lead to another path.
    let names = [("group", group), ("version", version)];
    for (what, text) in names.into_iter().filter(|(_, text)| !text.is_empty()) {
        segment(what, text).map_err(|error| error.to_string())?;
    }
    let root = if group.is_empty() { ROOTS[0] } else { ROOTS[1] };
    let path = format!("{root}/{}", group_version(group, version));
    match get(client, memory, (&path, ACCEPT_LEGACY), None).await {
        Ok(answer) => legacy::resources(answer.body(), (group, version)).map_err(|error| error.to_string()),
        // A core group without resources, as for client-go.
        Err(error) if group.is_empty() && error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}
