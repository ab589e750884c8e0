//! Lists read page by page, as with client-go's `tools/pager`.
//!
//! All pages are of one version unless the reader has chosen otherwise: an expired page ends the stream with
//! an error.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt, ready};
use http::Response;
use kube_core::params::ListParams;
use kube_core::{ObjectList, Resource};
use serde::de::DeserializeOwned;

use super::Api;
use super::exchange::Question;
use super::machine::pager::{Page, Pager, WhenExpired};
use crate::error::{Error, Refused};

/// Objects on a page unless `limit` is set: client-go's number.
const PAGE: u32 = 500;

type Answer = Result<(Question, Response<Bytes>), Error>;

/// The pages of a list; made by [`Api::pages`].
///
/// The stream ends after the last page or the first error. Nothing is requested while it is not polled,
/// except for the one request that is under way; dropping the stream ends that one.
#[must_use = "pages are asked for when the stream is read"]
pub struct Pages<K: Clone> {
    api: Api<K>,
    params: ListParams,
    pager: Pager,
    asking: Option<BoxFuture<'static, Answer>>,
    waiting: VecDeque<ObjectList<K>>,
    /// Ends the stream after the pages that wait.
    error: Option<Error>,
}

/// The objects of a list, one by one; made by [`Pages::items`].
#[must_use = "pages are asked for when the stream is read"]
pub struct Items<K: Clone> {
    pages: Pages<K>,
    page: std::vec::IntoIter<K>,
}

impl<K> Api<K>
where
    K: Resource + DeserializeOwned + Clone + fmt::Debug,
{
    /// Lists page by page: `limit` objects at a time, or 500. Sends nothing until the stream is read, and
    /// waits only where the stream is awaited.
    ///
    /// The next page is requested when this one was taken; [`Pages::prefetch`] requests some ahead. A server
    /// keeps the version of a list for some minutes only: a slower reader gets an error with
    /// [`Error::is_expired`], and must begin again, or choose by [`Pages::when_expired`].
    ///
    /// ```
    /// # use actix_informer::prelude::*;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use actix_informer::client::api::ListParams;
    /// use futures_util::TryStreamExt;
    ///
    /// # let server = actix_informer::testing::ApiServer::builder().start().await?;
    /// # let maps = Client::new(Config::new(server.url())?)?.api::<ConfigMap>().namespaced("default");
    /// # for name in ["a", "b", "c"] {
    /// #     let metadata = kube_core::ObjectMeta { name: Some(name.to_owned()), ..Default::default() };
    /// #     maps.create(&PostParams::default(), &ConfigMap { metadata, ..Default::default() }).await?;
    /// # }
    /// let mut pages = maps.pages(&ListParams::default().limit(2)).prefetch(1);
    /// let mut sizes = Vec::new();
    /// while let Some(page) = pages.try_next().await? {
    ///     sizes.push(page.items.len());
    /// }
    /// assert_eq!(sizes, [2, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Items of the stream: as [`Self::list`]. An error is the last item.
    pub fn pages(&self, params: &ListParams) -> Pages<K> {
        let mut params = params.clone();
        params.limit.get_or_insert(PAGE);
        Pages {
            api: self.clone(),
            params,
            pager: Pager::new(0, WhenExpired::default()),
            asking: None,
            waiting: VecDeque::new(),
            error: None,
        }
    }

    /// Lists everything by pages, and returns it as one list of one version. If a page expires on the way,
    /// the whole list is requested once more without pages, as client-go's pager does.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use actix_informer::client::api::ListParams;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = client.api::<Pod>().list_all(&ListParams::default().labels("app=shop")).await?;
    /// println!("{} pods at version {:?}", pods.items.len(), pods.metadata.resource_version);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn list_all(&self, params: &ListParams) -> Result<ObjectList<K>, Error> {
        let mut pages = self.pages(params).when_expired(WhenExpired::ListAgain);
        let mut all: Option<ObjectList<K>> = None;
        while let Some(page) = pages.next().await {
            let page = page?;
            match all.as_mut().filter(|_| !pages.has_begun_again()) {
                None => all = Some(page),
                Some(all) => {
                    all.items.extend(page.items);
                    all.metadata = page.metadata;
                }
            }
        }
        all.ok_or(Error::Stopped)
    }
}

impl<K: Clone> Pages<K> {
    /// Requests this many pages ahead of the one that is read, one after the other. The default is 0;
    /// client-go's number is 5. At most this many pages are held besides the one that is read;
    /// [`Self::items`] may hold one more. They are requested while the stream is polled.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # fn demo(client: Client) {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// let pods = client.api::<Pod>().pages(&ListParams::default()).prefetch(5).items();
    /// # drop(pods); }
    /// ```
    pub fn prefetch(mut self, pages: usize) -> Self {
        self.pager.prefetch = pages;
        self
    }

    /// What follows when the server no longer has the version of the earlier pages: an error, unless set. A
    /// first page that expires is always an error.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # fn demo(client: Client) {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// use actix_informer::client::api::WhenExpired;
    ///
    /// // Each object about once: enough to count them, not to know which are gone.
    /// let pods = client.api::<Pod>().pages(&ListParams::default()).when_expired(WhenExpired::Continue);
    /// # drop(pods); }
    /// ```
    pub fn when_expired(mut self, when_expired: WhenExpired) -> Self {
        self.pager.when_expired = when_expired;
        self
    }

    /// Whether a page had expired, and the whole list was requested again ([`WhenExpired::ListAgain`]): the
    /// newest page then holds every object, also those of the earlier pages.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// # use k8s_openapi::api::core::v1::Pod;
    /// use actix_informer::client::api::WhenExpired;
    /// use futures_util::TryStreamExt;
    ///
    /// let mut pages = client.api::<Pod>().pages(&ListParams::default()).when_expired(WhenExpired::ListAgain);
    /// let mut names = Vec::new();
    /// while let Some(page) = pages.try_next().await? {
    ///     if pages.has_begun_again() {
    ///         names.clear();
    ///     }
    ///     names.extend(page.items.into_iter().filter_map(|pod| pod.metadata.name));
    /// }
    /// # Ok(()) }
    /// ```
    pub fn has_begun_again(&self) -> bool {
        self.pager.has_begun_again()
    }

    /// The objects one by one, as client-go's `EachListItem`: a reader that stops, by an error of its own or
    /// by dropping the stream, requests nothing more.
    ///
    /// ```no_run
    /// # use actix_informer::prelude::*;
    /// # async fn demo(client: Client) -> Result<(), actix_informer::Error> {
    /// use futures_util::TryStreamExt;
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let pods = client.api::<Pod>().pages(&ListParams::default()).prefetch(5).items();
    /// pods.try_for_each(|pod| async move {
    ///     println!("{:?}", pod.metadata.name);
    ///     Ok(())
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    pub fn items(self) -> Items<K> {
        Items { pages: self, page: Vec::new().into_iter() }
    }
}

impl<K> Pages<K>
where
    K: Resource + DeserializeOwned + Clone,
{
    fn advance(&mut self, context: &mut Context<'_>) {
        loop {
            if self.asking.is_none() && self.error.is_none() {
                let Some(page) = self.pager.next_page() else { return };
                self.asking = Some(self.ask(page));
            }
            let Some(asking) = &mut self.asking else { return };
            let Poll::Ready(answer) = asking.poll_unpin(context) else { return };
            self.asking = None;
            let page = answer.and_then(|(question, answer)| question.decoded::<ObjectList<K>>(&answer));
            match page {
                Ok(page) => {
                    self.pager.handle_page(page.metadata.continue_.as_deref().unwrap_or_default());
                    self.waiting.push_back(page);
                }
                Err(error) => {
                    let fresh = error.refused().and_then(Refused::continue_token);
                    if self.pager.handle_failure(error.is_expired(), fresh) {
                        self.error = Some(error);
                    } else {
                        tracing::debug!(target: "actix_informer::client", resource = %self.api.resource_name(), %error, "a page has expired");
                    }
                }
            }
        }
    }

    fn ask(&self, page: Page) -> BoxFuture<'static, Answer> {
        let params = match page {
            Page::After(token) => self.params.clone().continue_token(&token),
            Page::Whole => ListParams { limit: None, continue_token: None, ..self.params.clone() },
            _ => self.params.clone(),
        };
        let (client, request) = (self.api.client.clone(), self.api.list_request(&params));
        let asking = async move {
            let request = request?;
            let question = Question::of(&request);
            Ok((question, client.send(request).await?))
        };
        asking.boxed()
    }
}

impl<K> Stream for Pages<K>
where
    K: Resource + DeserializeOwned + Clone,
{
    type Item = Result<ObjectList<K>, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        this.advance(context);
        if let Some(page) = this.waiting.pop_front() {
            this.pager.handle_taken();
            return Poll::Ready(Some(Ok(page)));
        }
        match this.error.take() {
            Some(error) => Poll::Ready(Some(Err(error))),
            None if this.pager.is_over() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl<K> Stream for Items<K>
where
    K: Resource + DeserializeOwned + Clone,
{
    type Item = Result<K, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if let Some(item) = this.page.next() {
                // Pages that are requested ahead arrive while this page is read.
                if this.pages.asking.is_some() {
                    this.pages.advance(context);
                }
                return Poll::Ready(Some(Ok(item)));
            }
            match ready!(this.pages.poll_next_unpin(context)) {
                Some(Ok(page)) => this.page = page.items.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

/// Nothing is pinned: the request is in a box.
impl<K: Clone> Unpin for Pages<K> {}
impl<K: Clone> Unpin for Items<K> {}

informer_core::debug_as!([K: Clone] Pages<K>, self, api = self.api, waiting = self.waiting.len());

informer_core::debug_as!([K: Clone] Items<K>, self, pages = self.pages);
