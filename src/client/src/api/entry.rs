//! Reads an object that may not exist yet, makes or changes it, and writes it. Types and rules are those of
//! kube-rs's `Api::entry`.
//!
//! A commit overwrites no other writer: a changed object carries the version that was read, and a new one is
//! created.

use std::fmt;

use kube_core::Resource;
use kube_core::params::PostParams;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Api;
use crate::error::Error;

/// What exists under a name; made by [`Api::entry`].
#[derive(Debug)]
#[must_use = "nothing is written before commit"]
#[expect(
    clippy::exhaustive_enums,
    reason = "an object is there or it is not: who matches both has matched all"
)]
pub enum Entry<'a, K> {
    /// The object exists.
    Occupied(OccupiedEntry<'a, K>),
    /// The object does not exist.
    Vacant(VacantEntry<'a, K>),
}

/// An object that can be changed and committed.
#[derive(Debug)]
#[must_use = "nothing is written before commit"]
pub struct OccupiedEntry<'a, K> {
    api: &'a Api<K>,
    name: &'a str,
    object: K,
    pending: Pending,
}

/// A name without an object.
#[derive(Debug)]
pub struct VacantEntry<'a, K> {
    api: &'a Api<K>,
    name: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    Nothing,
    Change,
    New,
}

/// Why a commit failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The object has another name than the entry, or asks the server for a name.
    #[error("the object of the entry {entry:?} is named {object:?}")]
    Name {
        /// The name that was asked for.
        entry: String,
        /// The name in the object, or the beginning of the name that the server would generate.
        object: String,
    },
    /// The object is of another namespace than the entry.
    #[error("the object of an entry in the namespace {entry:?} is in {object:?}")]
    Namespace {
        /// The namespace of the `Api`.
        entry: Option<String>,
        /// The namespace in the object.
        object: String,
    },
    /// The server refused it. [`Error::is_conflict`] and [`Error::is_already_exists`]: another writer was
    /// faster.
    #[error(transparent)]
    Save(#[from] Error),
}

impl<K> Api<K>
where
    K: Resource + DeserializeOwned,
{
    /// Gets the object of this name as an entry, to change it or to create it.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use actix_informer::client::api::PostParams;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let mut prices = maps.entry("prices").await?.or_insert(ConfigMap::default).and_modify(|map| {
    ///     map.data.get_or_insert_default().insert("apple".to_owned(), "12".to_owned());
    /// });
    /// prices.commit(&PostParams::default()).await?;
    /// println!("version {:?}", prices.get().metadata.resource_version);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::get`]; an absent object is a [`Entry::Vacant`].
    pub async fn entry<'a>(&'a self, name: &'a str) -> Result<Entry<'a, K>, Error> {
        Ok(match self.get_opt(name).await? {
            Some(object) => {
                Entry::Occupied(OccupiedEntry { api: self, name, object, pending: Pending::Nothing })
            }
            None => Entry::Vacant(VacantEntry { api: self, name }),
        })
    }
}

impl<'a, K> Entry<'a, K> {
    /// The object, if there is one.
    pub fn get(&self) -> Option<&K> {
        match self {
            Self::Occupied(entry) => Some(entry.get()),
            Self::Vacant(_) => None,
        }
    }

    /// The object to change, if there is one; a commit will write it.
    pub fn get_mut(&mut self) -> Option<&mut K> {
        match self {
            Self::Occupied(entry) => Some(entry.get_mut()),
            Self::Vacant(_) => None,
        }
    }

    /// Changes the object if there is one.
    pub fn and_modify(self, change: impl FnOnce(&mut K)) -> Self {
        match self {
            Self::Occupied(entry) => Self::Occupied(entry.and_modify(change)),
            vacant @ Self::Vacant(_) => vacant,
        }
    }

    /// The object, or else this one, which a commit will create.
    pub fn or_insert(self, object: impl FnOnce() -> K) -> OccupiedEntry<'a, K> {
        match self {
            Self::Occupied(entry) => entry,
            Self::Vacant(entry) => entry.insert(object()),
        }
    }
}

impl<'a, K> VacantEntry<'a, K> {
    /// Takes this object; a commit will create it. Name and namespace are filled in if it has none.
    pub fn insert(self, object: K) -> OccupiedEntry<'a, K> {
        OccupiedEntry { api: self.api, name: self.name, object, pending: Pending::New }
    }
}

impl<K> OccupiedEntry<'_, K> {
    /// The object as it was read, changed or written.
    pub fn get(&self) -> &K {
        &self.object
    }

    /// The object to change; a commit will write it.
    pub fn get_mut(&mut self) -> &mut K {
        if self.pending == Pending::Nothing {
            self.pending = Pending::Change;
        }
        &mut self.object
    }

    /// Changes the object.
    pub fn and_modify(mut self, change: impl FnOnce(&mut K)) -> Self {
        change(self.get_mut());
        self
    }

    /// The object without its entry; what was not committed is not written.
    pub fn into_object(self) -> K {
        self.object
    }

    /// Creates a new object, replaces a changed one, and does nothing for an unchanged one. The entry then
    /// holds the object as the server stored it, and can be changed and committed again; after a dry run it
    /// must still be written.
    ///
    /// # Errors
    /// [`CommitError`]. After a conflict, take a new entry.
    pub async fn commit(&mut self, params: &PostParams) -> Result<(), CommitError>
    where
        K: Resource + DeserializeOwned + Serialize + fmt::Debug,
    {
        self.complete()?;
        self.object = match self.pending {
            Pending::Nothing => return Ok(()),
            Pending::New => self.api.create(params, &self.object).await?,
            Pending::Change => self.api.replace(self.name, params, &self.object).await?,
        };
        if !params.dry_run {
            self.pending = Pending::Nothing;
        }
        Ok(())
    }

    fn complete(&mut self) -> Result<(), CommitError>
    where
        K: Resource,
    {
        let (name, namespace) = (self.name, self.api.namespace());
        let meta = self.object.meta_mut();
        if let Some(generated) = meta.generate_name.as_ref().filter(|_| meta.name.is_none()) {
            return Err(CommitError::Name { entry: name.to_owned(), object: generated.clone() });
        }
        let found = meta.name.get_or_insert_with(|| name.to_owned());
        if *found != name {
            return Err(CommitError::Name { entry: name.to_owned(), object: found.clone() });
        }
        match (&meta.namespace, namespace) {
            (None, namespace) => meta.namespace = namespace.map(str::to_owned),
            (Some(object), entry) if Some(&**object) != entry => {
                let (entry, object) = (entry.map(str::to_owned), object.clone());
                return Err(CommitError::Namespace { entry, object });
            }
            _ => {}
        }
        Ok(())
    }
}
