//! Lists: which version a list shows, its pages, and the continue token that connects them.
//!
//! Answers: which objects does this list hold, and how does the client ask for the rest?
//! 1. All pages of one list show one version, as long as the history reaches back to it.
//! 2. A too old token is refused with a fresh one that continues at the latest version.
//! 3. Under the store's lock only a snapshot is taken (one pointer, and undoing what came after an old version);
//!    filtering and copying happen on the snapshot, outside.
//!
//! Next: `http/list_body.rs` writes a page as bytes.
use std::sync::Arc;

use super::kind::Kind;
use super::object::Object;
use super::options::{ListOptions, Version};
use super::selector::Selector;
use super::status::ApiError;
use super::store::Cluster;
use super::table::{Objects, Scope};
use super::token::Token;

const INCONSISTENT: &str = "The provided continue parameter is too old to display a consistent list result. \
You can start a new list without the continue parameter, or use the continue token in this response to retrieve the \
remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
const TOO_OLD: &str = "The resourceVersion for the provided list is too old.";

/// An unchanging view of the objects of a request.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    objects: Objects,
    scope: Scope,
    selector: Selector,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Object>>,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<u64>,
}

/// A list that is prepared but not yet built: the snapshot and where to start in it.
#[derive(Debug)]
pub(crate) struct Listing {
    snapshot: Snapshot,
    start: Option<String>,
    limit: Option<usize>,
    left: Option<u64>,
    epoch: u64,
}

impl Snapshot {
    pub(crate) fn new(revision: u64, objects: Objects, scope: Scope, selector: Selector) -> Self {
        Self { revision, objects, scope, selector }
    }

    /// The matching objects after `start` in key order, with their keys.
    pub(crate) fn after(&self, start: Option<&str>) -> impl Iterator<Item = (&Arc<str>, &Arc<Object>)> {
        let sound = start.is_none_or(|start| self.scope.holds_after(start));
        let range = sound.then(|| self.objects.range(self.scope.range(start)));
        range
            .into_iter()
            .flatten()
            .filter(|(_, object)| self.selector.is_empty() || self.selector.matches(object))
    }

    fn count(&self, start: Option<&str>) -> u64 {
        match (&self.scope, start) {
            (Scope::All, None) => self.objects.len() as u64,
            _ => self.after(start).count() as u64,
        }
    }
}

impl Listing {
    /// Cuts the page. Linear in the objects it visits; needs no lock.
    pub(crate) fn page(self) -> Page {
        let Some(limit) = self.limit else {
            let objects = self.snapshot.after(self.start.as_deref()).map(|(_, object)| Arc::clone(object));
            let objects = objects.collect();
            return Page { revision: self.snapshot.revision, objects, continue_token: None, remaining: None };
        };
        let mut found = self.snapshot.after(self.start.as_deref());
        let mut last = None;
        let mut objects = Vec::with_capacity(limit.min(1024));
        for (key, object) in found.by_ref().take(limit) {
            last = Some(key);
            objects.push(Arc::clone(object));
        }
        let more = found.next().is_some();
        // A fresh token in place of an expired one does not contain the remaining count: it is counted once.
        let count = || self.snapshot.count(self.start.as_deref());
        let left = self.left.or_else(|| (more && self.snapshot.selector.is_empty()).then(count));
        let remaining = left.map(|left| left.saturating_sub(objects.len() as u64)).filter(|_| more);
        let continue_token = last.filter(|_| more).map(|key| {
            let revision = Some(self.snapshot.revision);
            Token { revision, start: key.to_string(), left: remaining, epoch: self.epoch }.write()
        });
        Page { revision: self.snapshot.revision, objects, continue_token, remaining }
    }
}

/// The part of the resource that a list or watch of this namespace and selector can touch.
pub(crate) fn scope_of(kind: &Kind, namespace: Option<&str>, selector: &Selector) -> Scope {
    match (namespace, selector.name()) {
        (Some(namespace), Some(name)) if kind.namespaced => Scope::Key(kind.key(namespace, name)),
        (None, Some(name)) if !kind.namespaced => Scope::Key(name.to_owned()),
        (Some(namespace), None) if kind.namespaced => Scope::Namespace(namespace.to_owned()),
        _ => Scope::All,
    }
}

impl Cluster {
    /// The version for which a list must wait, if the store has not reached it yet.
    pub(crate) fn awaited(&self, version: Version) -> Option<u64> {
        match version {
            Version::At(version) if version > self.revision() => Some(version),
            _ => None,
        }
    }

    /// Takes the snapshot a list is cut from.
    ///
    /// # Errors
    /// 410 for a version or token too old, 504 for one not reached yet, 400 for a broken token.
    pub(crate) fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Listing, ApiError> {
        let token = match options.continue_token.as_str() {
            "" => None,
            text => Some(Token::read(text)?),
        };
        if token.is_some() && matches!(options.version, Version::At(_)) {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        if let Some(version) = self.awaited(options.version) {
            return Err(ApiError::too_large_version(version, self.revision(), kind.is_cached()));
        }
        let revision = match (&token, options.version, options.exact) {
            (Some(token), _, _) => token.revision.unwrap_or_else(|| self.revision()),
            (None, Version::At(version), true) => version,
            _ => self.revision(),
        };
        let scope = scope_of(kind, namespace, &options.selector);
        let objects = self.objects_at(kind, revision, token.as_ref())?;
        let limit = if options.version == Version::Any && token.is_none() { None } else { options.limit };
        let (start, left) = token.map_or((None, None), |token| (Some(token.start), token.left));
        let snapshot = Snapshot::new(revision, objects, scope, options.selector.clone());
        Ok(Listing { snapshot, start, limit, left, epoch: self.token_epoch })
    }

    fn objects_at(&self, kind: &Kind, revision: u64, token: Option<&Token>) -> Result<Objects, ApiError> {
        let table = self.table(&kind.storage);
        let floor = self.floor(&kind.storage);
        let stale = token.is_some_and(|token| token.revision.is_some() && token.epoch < self.token_epoch);
        if revision > self.revision() {
            return Err(ApiError::too_large_version(revision, self.revision(), kind.is_cached()));
        }
        if stale || (revision < floor && revision != self.revision()) {
            let refusal = ApiError::expired(if token.is_some() { INCONSISTENT } else { TOO_OLD });
            return Err(match token {
                Some(token) => {
                    let (start, epoch) = (token.start.clone(), self.token_epoch);
                    refusal.with_continue(Token { revision: None, start, left: None, epoch }.write())
                }
                None => refusal,
            });
        }
        Ok(table.map(|table| table.at(revision)).unwrap_or_default())
    }
}
