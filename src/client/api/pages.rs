//! Lists read page by page.
//!
//! Answers "how are many objects read without holding them all, or one huge answer?" Invariants:
//! 1. All pages are of one version; a page that has expired ends the stream with an error, never with a clean end.
//! 2. A page is asked for only when the one before was taken.
//! 3. `list_all` gives one consistent list, whatever expires: as client-go's pager it then lists once more, in one
//!    piece.
//!
//! Read next: `verbs.rs`.

use std::fmt;

use futures_util::{Stream, StreamExt, stream};
use kube_core::params::ListParams;
use kube_core::{ObjectList, Resource};
use serde::de::DeserializeOwned;

use super::Api;
use crate::client::error::Error;

/// Objects on a page, unless `limit` says otherwise: client-go's number.
const PAGE: u32 = 500;

impl<K> Api<K>
where
    K: Resource + DeserializeOwned + Clone + fmt::Debug,
{
    /// Lists page by page: `limit` objects at a time, or 500. The next page is asked for when this one was taken.
    ///
    /// The stream ends after the last page or the first error. A server keeps the version of a list for some minutes
    /// only: who reads more slowly gets an error with [`Error::is_expired`], and must begin again.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::ListParams;
    /// use futures_util::TryStreamExt;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use std::pin::pin;
    ///
    /// let pods = client.api::<Pod>();
    /// let mut pages = pin!(pods.pages(&ListParams::default().limit(100)));
    /// while let Some(page) = pages.try_next().await? {
    ///     println!("{} pods, more to come: {}", page.items.len(), page.metadata.continue_.is_some());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn pages(
        &self,
        params: &ListParams,
    ) -> impl Stream<Item = Result<ObjectList<K>, Error>> + use<'_, K> {
        let mut first = params.clone();
        first.limit.get_or_insert(PAGE);
        stream::unfold(Some(first), move |params| async move {
            let params = params?;
            let page = self.list(&params).await;
            let token = page.as_ref().ok().and_then(|page| page.metadata.continue_.clone());
            let next = token.filter(|token| !token.is_empty()).map(|token| params.continue_token(&token));
            Some((page, next))
        })
    }

    /// Lists everything by pages, and gives it as one list of one version. If a page expires on the way, the whole list is
    /// asked for once more without pages, at the newest version.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn list_all(&self, params: &ListParams) -> Result<ObjectList<K>, Error> {
        let mut pages = std::pin::pin!(self.pages(params));
        let mut all: Option<ObjectList<K>> = None;
        while let Some(page) = pages.next().await {
            match (page, &mut all) {
                (Ok(page), None) => all = Some(page),
                (Ok(page), Some(all)) => {
                    all.items.extend(page.items);
                    all.metadata = page.metadata;
                }
                (Err(error), Some(_)) if error.is_expired() => {
                    let (limit, continue_token, resource_version) = (None, None, None);
                    let version_match = None;
                    let whole = ListParams {
                        limit,
                        continue_token,
                        resource_version,
                        version_match,
                        ..params.clone()
                    };
                    return self.list(&whole).await;
                }
                (Err(error), _) => return Err(error),
            }
        }
        all.ok_or(Error::Stopped)
    }
}
