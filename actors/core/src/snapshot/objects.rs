//! All objects of a frame, by scope (cluster and namespace) and by name. Invariants:
//! 1. A scope without objects is removed. An object stays as long as a source holds it.
//! 2. An object of the same life keeps its count of rewinds until its source is rewound.

use std::cmp::Ordering;
use std::mem;

use super::holders::{Held, Recent};
use crate::meta::{ClusterName, Object, ObjectKey, SourceId};
use crate::tree::{Item, Sources, Tree};

pub(crate) type NameTree<S> = Tree<Held<S>>;

pub(crate) struct Objects<S> {
    scopes: Tree<ScopeTree<S>>,
    len: usize,
    wire_bytes: usize,
    rewinds: u32,
    recent: Recent,
}

pub(crate) struct ScopeTree<S> {
    /// Any key in this scope.
    key: ObjectKey,
    pub(crate) names: NameTree<S>,
}

impl<S> ScopeTree<S> {
    pub(crate) fn key(&self) -> &ObjectKey {
        &self.key
    }
}

pub(crate) enum Put<S> {
    New,
    Replaced(Object<S>),
    /// This object stays.
    Kept(Object<S>),
}

impl<S> Objects<S> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn wire_bytes(&self) -> usize {
        self.wire_bytes
    }

    pub(crate) fn held(&self, key: &ObjectKey) -> Option<&Held<S>> {
        self.names(key)?.get(key.name())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Object<S>> {
        self.scopes.iter().flat_map(|scope| scope.names.iter()).map(Held::object)
    }

    /// Skips parts of the map that have none of these sources.
    pub(crate) fn after<'a>(
        &'a self,
        key: Option<&ObjectKey>,
        of: Sources,
    ) -> impl Iterator<Item = &'a Held<S>> + use<'a, S> {
        let rest = key.and_then(|key| Some(self.names(key)?.after(Some(key.name()), of)));
        let scopes = self.scopes.after(key.map(ObjectKey::scope), of);
        rest.into_iter().flatten().chain(scopes.flat_map(move |scope| scope.names.after(None, of)))
    }

    pub(crate) fn named(
        &self,
        scope: (Option<&ClusterName>, Option<&str>),
        name: &str,
    ) -> Option<&Object<S>> {
        Some(self.names_in(scope)?.get(name)?.object())
    }

    pub(crate) fn names_in(&self, scope: (Option<&ClusterName>, Option<&str>)) -> Option<&NameTree<S>> {
        Some(&self.scopes.get(scope)?.names)
    }

    pub(crate) fn names(&self, key: &ObjectKey) -> Option<&NameTree<S>> {
        self.names_in(key.scope())
    }

    /// In every cluster.
    pub(crate) fn namespace<'a>(
        &'a self,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        let here = self.scopes.get((None, Some(namespace))).map(|scope| &scope.names);
        let mut found: Vec<&NameTree<S>> = here.into_iter().collect();
        // Scopes in clusters come last; an informer of one cluster has none.
        if self.scopes.last().is_some_and(|scope| scope.key.cluster_name().is_some()) {
            let in_clusters = self.scopes.iter().filter(|scope| scope.key.cluster_name().is_some());
            let of_it = in_clusters.filter(|scope| scope.key.namespace() == Some(namespace));
            found.extend(of_it.map(|scope| &scope.names));
        }
        found.into_iter().flat_map(Tree::iter).map(Held::object)
    }

    pub(crate) fn in_cluster<'a>(
        &'a self,
        cluster: &ClusterName,
    ) -> impl Iterator<Item = &'a Object<S>> + use<'a, S> {
        let (first, cluster) = ((Some(cluster), None), cluster.clone());
        let scopes = self.scopes.get(first).into_iter().chain(self.scopes.after(Some(first), Sources::ALL));
        let of_it = scopes.take_while(move |scope| scope.key.cluster_name() == Some(&cluster));
        of_it.flat_map(|scope| scope.names.iter()).map(Held::object)
    }

    pub(crate) fn scopes(&self) -> &Tree<ScopeTree<S>> {
        &self.scopes
    }

    /// Stores the object if `wins` returns true for the stored one. The source becomes a holder in both cases.
    pub(crate) fn put(
        &mut self,
        source: &SourceId,
        object: &Object<S>,
        wins: impl FnOnce(&Object<S>) -> bool,
    ) -> Put<S> {
        let fresh = self.rewinds;
        self.put_counted(source, object, |held| {
            let rewinds = if held.object().is_same_life_as(object) { held.rewinds() } else { fresh };
            wins(held.object()).then_some(rewinds)
        })
    }

    /// As [`Self::put`]; the object counts as another state in any case.
    pub(crate) fn put_rewound(&mut self, source: &SourceId, object: &Object<S>) -> Put<S> {
        let rewinds = self.rewinds;
        self.put_counted(source, object, |_| Some(rewinds))
    }

    /// Call it before [`Self::put_rewound`].
    pub(crate) fn count_rewind(&mut self) {
        self.rewinds += 1;
    }

    pub(crate) fn rewinds(&self) -> u32 {
        self.rewinds
    }

    fn put_counted(
        &mut self,
        source: &SourceId,
        object: &Object<S>,
        rewinds: impl FnOnce(&Held<S>) -> Option<u32>,
    ) -> Put<S> {
        let key = object.key();
        let names = names_mut(&mut self.scopes, key, Sources::of(source));
        let path = names.find(key.name());
        let Some(held) = names.item(&path) else {
            names.insert_at(&path, Held::new(object.clone(), source, self.rewinds, &mut self.recent));
            self.len += 1;
            self.wire_bytes += object.wire_bytes() as usize;
            return Put::New;
        };
        let is_new_holder = !held.is_held_by(source);
        let (kept, rewinds) = match rewinds(held) {
            Some(rewinds) => (None, rewinds),
            None => (Some(held.object().clone()), held.rewinds()),
        };
        if let (Some(stored), false) = (&kept, is_new_holder) {
            return Put::Kept(stored.clone());
        }
        let state = kept.clone().unwrap_or_else(|| object.clone());
        let next = held.followed_by(state, source, rewinds, &mut self.recent);
        let sources = next.sources();
        let old = names.item_mut(&path, sources).map(|held| mem::replace(held, next).into_object());
        match (kept, old) {
            (Some(stored), _) => Put::Kept(stored),
            (None, Some(old)) => {
                self.wire_bytes += object.wire_bytes() as usize;
                self.wire_bytes -= old.wire_bytes() as usize;
                Put::Replaced(old)
            }
            (None, None) => Put::New,
        }
    }

    /// Returns the object if this source was its last holder.
    pub(crate) fn release(&mut self, key: &ObjectKey, source: &SourceId) -> Option<Object<S>> {
        let mut recent = self.recent.take();
        let held = self.held(key).filter(|held| held.is_held_by(source))?;
        let Some(next) = held.without(source, &mut recent) else {
            return self.remove(key);
        };
        self.recent = recent;
        let sources = next.sources();
        let names = names_mut(&mut self.scopes, key, sources);
        let path = names.find(key.name());
        if let Some(held) = names.item_mut(&path, sources) {
            *held = next;
        }
        None
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Object<S>> {
        let scope = self.scopes.find(key.scope());
        let names = &self.scopes.item(&scope)?.names;
        let path = names.find(key.name());
        names.item(&path)?;
        let old = if names.len() == 1 {
            self.scopes.remove_at(&scope)?.names.remove_at(&path)?
        } else {
            self.scopes.item_mut(&scope, Sources::NONE)?.names.remove_at(&path)?
        };
        let old = old.into_object();
        self.len -= 1;
        self.wire_bytes -= old.wire_bytes() as usize;
        Some(old)
    }
}

fn names_mut<'a, S>(
    scopes: &'a mut Tree<ScopeTree<S>>,
    key: &ObjectKey,
    sources: Sources,
) -> &'a mut NameTree<S> {
    let path = match scopes.find(key.scope()) {
        path if path.is_found() => path,
        path => {
            scopes.insert_at(&path, ScopeTree { key: key.clone(), names: Tree::default() });
            scopes.find(key.scope())
        }
    };
    let scope = scopes.item_mut(&path, sources).expect("a scope that was just inserted is found");
    &mut scope.names
}

impl<S> Item for ScopeTree<S> {
    type Name = ObjectKey;
    type Query<'q> = (Option<&'q ClusterName>, Option<&'q str>);

    fn name(&self) -> &ObjectKey {
        &self.key
    }

    fn order(name: &ObjectKey, query: Self::Query<'_>) -> Ordering {
        name.scope().cmp(&query)
    }

    fn compare(one: &Self, other: &Self) -> Ordering {
        one.key.scope().cmp(&other.key.scope())
    }

    fn sources(&self) -> Sources {
        self.names.sources()
    }
}

crate::clone_of!([S] ScopeTree<S> { key, names });

crate::clone_of!([S] Objects<S> { scopes, len, wire_bytes, rewinds, recent });

impl<S> Default for Objects<S> {
    fn default() -> Self {
        Self { scopes: Tree::default(), len: 0, wire_bytes: 0, rewinds: 0, recent: None }
    }
}

#[cfg(test)]
mod whole {
    use super::{Held, Objects};
    use crate::tree::Sources;

    impl<S> Objects<S> {
        pub(crate) fn is_consistent(&self) -> bool {
            let all = || self.after(None, Sources::ALL);
            let is_found = |held: &Held<S>| {
                held.holders().iter().all(|holder| {
                    let mut found = self.names(held.object().key()).into_iter();
                    found.any(|names| names.sources().meet(Sources::of(holder)))
                })
            };
            self.scopes.iter().all(|scope| !scope.names.is_empty())
                && all().count() == self.len
                && all().map(|held| held.object().wire_bytes() as usize).sum::<usize>() == self.wire_bytes
                && all().all(is_found)
        }
    }
}
