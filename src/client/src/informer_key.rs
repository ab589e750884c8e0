//! What an informer follows, as a comparable value.
//!
//! Requests with equal keys can share one informer: it would hold the same objects with the same bodies.
//! Selectors are compared parsed and sorted; namespaces and pruned fields as sets. A key keeps no client
//! alive.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use informer_core::meta::{ClusterName, SourceId};

use super::backend::Backend;
use crate::representation::{Prune, RequestedContent};

const NAMED: usize = 4;

/// What an informer follows and what it keeps of it. Cloning copies a pointer.
///
/// ```
/// use actix_informer::client::{Client, Config};
/// use k8s_openapi::api::core::v1::Pod;
///
/// let client = Client::new(Config::new("http://127.0.0.1:8080")?)?;
/// let shop = client.resource::<Pod>().namespaces(["web", "db"]).labels("app in (cart, pay),!old").key()?;
/// let same = client.clone().resource::<Pod>().namespaces(["db", "web"]).labels("!old, app in (pay,cart)").key()?;
/// assert_eq!(shop, same);
/// assert_eq!(shop.to_string(), "pods/ns=db+web,labels=!old,app in (cart,pay)");
/// assert_ne!(shop, client.metadata::<Pod>().namespaces(["web", "db"]).labels("app in (cart, pay),!old").key()?);
/// # Ok::<(), actix_informer::client::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct InformerKey(Arc<KeyParts>);

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyParts {
    pub(crate) server: ServerIdentity,
    pub(crate) cluster: Option<ClusterName>,
    /// Or a name that is looked up, then without version and kind.
    pub(crate) resource: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    /// `None`: all.
    pub(crate) namespaces: Option<BTreeSet<String>>,
    /// In their normal form.
    pub(crate) selectors: String,
    /// Given by the user: each object shows it.
    pub(crate) source: Option<SourceId>,
    pub(crate) protobuf: bool,
    pub(crate) content: RequestedContent,
    pub(crate) representation: TypeId,
    /// What tells representations of one type apart.
    pub(crate) kept_as: String,
    pub(crate) prune: BTreeSet<Vec<String>>,
}

/// Equal for a client and its clones: one server, one set of credentials.
#[derive(Clone)]
pub(crate) struct ServerIdentity(Weak<Backend>);

impl InformerKey {
    pub(crate) fn new(parts: KeyParts) -> Self {
        Self(Arc::new(parts))
    }

    /// The resource: `pods`, `deployments.apps`; or the name by which it is looked up.
    pub fn resource(&self) -> &str {
        &self.0.resource
    }

    /// The namespaces, in order; `None` if all are followed.
    pub fn namespaces(&self) -> Option<impl Iterator<Item = &str>> {
        self.0.namespaces.as_ref().map(|namespaces| namespaces.iter().map(String::as_str))
    }
}

/// The default name of an informer.
impl fmt::Display for InformerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = &*self.0;
        let namespaces = parts.namespaces.as_ref().map(several_named);
        let metadata = matches!(parts.content, RequestedContent::Metadata).then(|| "metadata".to_owned());
        let pruned =
            (parts.prune != Prune::default().paths()).then(|| format!("prune={}", paths(&parts.prune)));
        let texts = [
            parts.cluster.as_ref().map(|cluster| format!("cluster={cluster}")),
            namespaces.map(|names| format!("ns={names}")),
            Some(parts.selectors.clone()).filter(|selectors| !selectors.is_empty()),
            metadata,
            Some(&parts.kept_as).filter(|name| !name.is_empty()).map(|name| format!("as={name}")),
            pruned,
        ];
        let texts: Vec<_> = texts.into_iter().flatten().collect();
        f.write_str(self.resource())?;
        if texts.is_empty() { Ok(()) } else { write!(f, "/{}", texts.join(",")) }
    }
}

informer_core::debug_as!(InformerKey, self, of = self.0);

fn several_named(namespaces: &BTreeSet<String>) -> String {
    let named = namespaces.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("+");
    match namespaces.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named}+{more} more"),
    }
}

/// Of a choice, what is chosen.
fn paths(prune: &BTreeSet<Vec<String>>) -> String {
    let chosen = prune.iter().filter_map(|path| path.strip_suffix(&["*kept".to_owned()]));
    let chosen: Vec<_> =
        chosen.filter(|path| !matches!(path, [one] if one == "apiVersion" || one == "kind")).collect();
    if prune.iter().any(|path| path.ends_with(&["*only".to_owned()])) {
        return format!("all-but:{}", chosen.iter().map(|path| path.join(".")).collect::<Vec<_>>().join("+"));
    }
    match prune.len() {
        0 => "nothing".to_owned(),
        _ => prune.iter().map(|path| path.join(".")).collect::<Vec<_>>().join("+"),
    }
}

impl ServerIdentity {
    pub(crate) fn of(backend: &Arc<Backend>) -> Self {
        Self(Arc::downgrade(backend))
    }
}

impl PartialEq for ServerIdentity {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for ServerIdentity {}

impl Hash for ServerIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The weak reference keeps the address from being used again.
        self.0.as_ptr().addr().hash(state);
    }
}

impl fmt::Debug for ServerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.upgrade() {
            Some(backend) => f.write_str(backend.name()),
            None => f.write_str("a client that was dropped"),
        }
    }
}
