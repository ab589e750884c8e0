//! The verbs of objects and collections.
//!
//! `get_opt` returns `None` only for an absent object: a server that does not serve the kind is an error.

use std::fmt;

use kube_core::params::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams};
use kube_core::response::Status;
use kube_core::{ObjectList, Resource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Api;
use super::exchange::{
    Question, accepting, asked_by, checked, decoded, encoded, not_made, unexpected_answer,
};
use crate::error::Error;
use crate::scope::{check_selectors, encoded_name};
use crate::wire::Form;

/// What a server answers to a deletion.
///
/// The variant says little: objects that wait for finalizers or for their grace period come back as objects,
/// and some kinds send the object that is already gone. [`Api::until`] with
/// [`conditions::deleted`](super::conditions::deleted) waits for the end.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Deleted<T> {
    /// The object or objects as they were, or as they are while their deletion is under way.
    Object(T),
    /// The deletion is done.
    Status(Box<Status>),
}

impl<T> Deleted<T> {
    /// The object, if the server sent it.
    pub fn object(self) -> Option<T> {
        match self {
            Self::Object(object) => Some(object),
            Self::Status(_) => None,
        }
    }
}

/// Tells a `Status` from an object.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    kind: String,
}

impl<K> Api<K>
where
    K: Resource + DeserializeOwned,
{
    /// Gets the object of this name, at the newest version.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let prices = maps.get("prices").await?;
    /// println!("{:?}", prices.data);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] with [`is_not_found`](Error::is_not_found) when it does not exist; otherwise the
    /// cause of the failure.
    pub async fn get(&self, name: &str) -> Result<K, Error> {
        self.get_with(name, &GetParams::default()).await
    }

    /// Gets the object of this name. `GetParams::any()` is cheaper for the server and may be older.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::GetParams;
    ///
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let perhaps_older = maps.get_with("prices", &GetParams::any()).await?;
    /// # drop(perhaps_older);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn get_with(&self, name: &str, params: &GetParams) -> Result<K, Error> {
        let (collection, path) = self.object(name)?;
        let request = collection.get(&path, params).map(|request| accepting::<K>(request, Form::Object));
        self.ask_for_object(request, (self.namespace(), name)).await
    }

    /// Gets the object of this name, `None` if there is none.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// match maps.get_opt("prices").await? {
    ///     Some(prices) => println!("{:?}", prices.data),
    ///     None => println!("there are no prices"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::get`]; also when the server does not serve the kind.
    pub async fn get_opt(&self, name: &str) -> Result<Option<K>, Error> {
        match self.get(name).await {
            Ok(object) => Ok(Some(object)),
            Err(Error::Refused(refused)) if refused.is_object_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists objects, all at once unless `limit` is set. [`Self::pages`](Api::pages) reads page by page.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// for map in maps.list(&ListParams::default().labels("app=shop")).await? {
    ///     println!("{:?}", map.metadata.name);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::is_expired`] when the continue token is too old; [`Error::TooLarge`] above 64 MiB.
    pub async fn list(&self, params: &ListParams) -> Result<ObjectList<K>, Error>
    where
        K: Clone,
    {
        let request = self.list_request(params)?;
        let question = Question::of(&request);
        question.decoded(&self.client.send(request).await?)
    }

    /// Creates an object, and returns it as it was stored. An `Api` of all namespaces uses the object's own
    /// namespace.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let mut prices = ConfigMap::default();
    /// prices.metadata.name = Some("prices".to_owned());
    /// let stored = maps.create(&PostParams::default(), &prices).await?;
    /// println!("at version {:?}", stored.metadata.resource_version);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_already_exists`](Error::is_already_exists), [`is_invalid`](Error::is_invalid),
    /// [`is_forbidden`](Error::is_forbidden).
    pub async fn create(&self, params: &PostParams, object: &K) -> Result<K, Error>
    where
        K: Serialize,
    {
        let request = self.collection_of(object)?.create(params, encoded(object)?);
        let request = request.map(|request| accepting::<K>(request, Form::Object));
        // An empty name counts as none, beside `generateName`.
        match object.meta().name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => self.ask_for_object(request, (self.namespace_of(object), name)).await,
            None => self.ask(request).await,
        }
    }

    /// Replaces an object. With `metadata.resourceVersion` in `object`, this succeeds only if nobody has
    /// changed the object since that version; without it, at any version.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let mut prices = maps.get("prices").await?;
    /// prices.data.get_or_insert_default().insert("apple".to_owned(), "12".to_owned());
    /// maps.replace("prices", &PostParams::default(), &prices).await?; // it carries the version that was read
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_conflict`](Error::is_conflict) when it has been changed: see [`Self::modify`](Api::modify) and
    /// [`Self::entry`].
    pub async fn replace(&self, name: &str, params: &PostParams, object: &K) -> Result<K, Error>
    where
        K: Serialize,
    {
        let (collection, path) = (self.collection_of(object)?, encoded_name(name)?);
        let request = collection.replace(&path, params, encoded(object)?);
        let request = request.map(|request| accepting::<K>(request, Form::Object));
        self.ask_for_object(request, (self.namespace_of(object), name)).await
    }

    /// Changes an object by a JSON patch, a merge patch, a strategic merge patch or an apply. Apply creates
    /// it if it does not exist, and needs `PatchParams::apply("who")`.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use serde_json::json;
    ///
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let apple = Patch::Merge(json!({"data": {"apple": "12"}}));
    /// maps.patch("prices", &PatchParams::default(), &apple).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_conflict`](Error::is_conflict) when another manager has an applied field and `force` is not set;
    /// 415 when the kind does not accept this sort of patch: custom resources accept no strategic merge
    /// patch.
    pub async fn patch<P: Serialize + fmt::Debug>(
        &self,
        name: &str,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<K, Error> {
        let (collection, path) = self.object(name)?;
        let request = collection.patch(&path, params, patch);
        let request = request.map(|request| accepting::<K>(request, Form::Object));
        self.ask_for_object(request, (self.namespace(), name)).await
    }

    /// Deletes an object: at once, or when its finalizers and its grace period allow it.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let answer = maps.delete("prices", &DeleteParams::default()).await?;
    /// println!("it was {:?}", answer.object());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found); [`is_conflict`](Error::is_conflict) when a precondition does
    /// not hold.
    pub async fn delete(&self, name: &str, params: &DeleteParams) -> Result<Deleted<K>, Error> {
        let (collection, path) = self.object(name)?;
        let request = collection.delete(&path, params).map_err(not_made)?;
        let named = Question::of(&request).name();
        let deleted: Deleted<K> = self.ask_deletion(accepting::<K>(request, Form::Object)).await?;
        if let Deleted::Object(object) = &deleted {
            self.is_of_name(named, (self.namespace(), name), object.meta()).await?;
        }
        Ok(deleted)
    }

    /// Deletes every object that the selectors of `list` select; without selectors, all of them.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// let maps = client.api::<ConfigMap>().namespaced("shop");
    /// let old = ListParams::default().labels("season=summer");
    /// maps.delete_collection(&DeleteParams::default(), &old).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::delete`]. What was deleted before an error stays deleted.
    pub async fn delete_collection(
        &self,
        params: &DeleteParams,
        list: &ListParams,
    ) -> Result<Deleted<ObjectList<K>>, Error>
    where
        K: Clone,
    {
        check_selectors(list.label_selector.as_deref(), list.field_selector.as_deref())?;
        self.needs_namespace(self.scope.namespace.as_deref())?;
        let request = self.collection()?.delete_collection(params, list).map_err(not_made)?;
        self.ask_deletion(accepting::<K>(request, Form::List)).await
    }

    fn namespace_of<'a>(&'a self, object: &'a K) -> Option<&'a str> {
        self.namespace().or_else(|| object.meta().namespace.as_deref().filter(|name| !name.is_empty()))
    }

    async fn ask_deletion<T: DeserializeOwned>(
        &self,
        request: super::exchange::Built,
    ) -> Result<Deleted<T>, Error> {
        let named = format!("{} {}", request.method(), request.uri().path());
        let asked = asked_by(&request);
        let (wire, body) = self.ask_for_bytes(request).await?;
        let body = &*body;
        let is_status = decoded::<Kind>(body).is_ok_and(|found| found.kind == "Status");
        let deleted = match is_status {
            true => decoded(body).map(|status| Deleted::Status(Box::new(status))),
            false => {
                checked(asked, wire, body)
                    .map_err(|unexpected| unexpected_answer(named.clone(), unexpected))?;
                decoded(body).map(Deleted::Object)
            }
        };
        deleted.map_err(|source| Error::Answer { request: named, source })
    }
}
