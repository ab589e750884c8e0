//! Host names, of which each belongs to one site in the whole cluster: the effect outside of a site's namespace.
//!
//! Answers "who has this host name, and how is it given back?" A claim is a config map of the host's name in the operator's
//! namespace. An owner reference cannot reach it from another namespace, so the garbage collector does not delete it: this
//! is what the finalizer is for. A server creates a name once: two sites never have one host.
//!
//! Read next: `reconcile.rs`.

use actix_informer::client::api::Preconditions;
use actix_informer::client::{Api, Client, Error};
use actix_informer::controller::Request;
use actix_informer::prelude::*;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::{ObjectMeta, Resource};

use super::parts::{MANAGER, labels};
use super::website::Website;

/// The label of a claim whose value is the uid of its site.
const SITE_UID: &str = "example.org/site-uid";

/// The claims of all sites.
pub(crate) struct Hosts {
    api: Api<ConfigMap>,
    maps: Lister<ConfigMap>,
}

/// Whether a site has its host name.
#[derive(Debug, PartialEq)]
pub(crate) enum Claim {
    Granted,
    /// Another site has it.
    Taken(String),
}

impl Hosts {
    /// Claims in this namespace. `maps` follows it.
    pub(crate) fn new(client: &Client, namespace: &str, maps: Lister<ConfigMap>) -> Self {
        Self { api: client.api().namespaced(namespace), maps }
    }

    /// Claims the host of a site, and gives back those that it had before.
    pub(crate) async fn claim(&self, request: &impl OwnWrites, site: &Website) -> Result<Claim, Error> {
        let uid = site.meta().uid.as_deref().unwrap_or_default();
        let host = format!("host-{}", site.spec.host);
        let has_it = self.holder(&host).is_some_and(|claim| uid_of(&claim) == uid);
        // The cache may be behind: before a site is no longer served, the server itself is asked.
        let granted = if has_it { Claim::Granted } else { self.ask(request, &host, site).await? };
        self.release_but(request, uid, &host).await?;
        Ok(granted)
    }

    /// Gives back every host of a site.
    pub(crate) async fn release(&self, request: &impl OwnWrites, site: &Website) -> Result<(), Error> {
        let uid = site.meta().uid.as_deref().unwrap_or_default();
        self.release_but(request, uid, "").await?;
        // The cache may be behind: of the host that the site wants, the server itself is asked.
        match self.api.get_opt(&format!("host-{}", site.spec.host)).await? {
            Some(claim) if uid_of(&claim) == uid => self.delete(request, &claim).await,
            _ => Ok(()),
        }
    }

    /// Gives back what former sites of this name still have: a claim that was under way when its operator was killed may
    /// come after the deletion of its site.
    pub(crate) async fn release_former(
        &self,
        client: &Client,
        request: &Request<Website>,
    ) -> Result<(), Error> {
        let (site, present) = (request.key(), request.object().and_then(|site| site.meta().uid.clone()));
        let claims = self.maps.list_namespace(self.api.namespace().unwrap_or_default());
        let is_former = |claim: &ConfigMap, present: Option<&str>| {
            holder_of(claim).as_ref() == Some(site) && Some(uid_of(claim)) != present
        };
        if !claims.iter().any(|claim| is_former(claim.body(), present.as_deref())) {
            return Ok(());
        }
        // The cache may be behind: there may be a site that it has not seen.
        let sites = client.api::<Website>().namespaced(site.namespace().unwrap_or_default());
        let present = sites.get_opt(site.name()).await?.and_then(|site| site.meta().uid.clone());
        for claim in claims.iter().filter(|claim| is_former(claim.body(), present.as_deref())) {
            self.delete(request, claim.body()).await?;
        }
        Ok(())
    }

    /// Takes the host if nobody has it; says who has it otherwise.
    async fn ask(&self, request: &impl OwnWrites, host: &str, site: &Website) -> Result<Claim, Error> {
        match self.api.create(&PostParams::default(), &claim(host, site)).await {
            Ok(made) => {
                request.written(&made);
                Ok(Claim::Granted)
            }
            Err(error) if error.is_already_exists() => {
                let claim = self.api.get(host).await?;
                let is_mine = site.meta().uid.as_deref() == Some(uid_of(&claim));
                Ok(if is_mine { Claim::Granted } else { Claim::Taken(site_of(&claim)) })
            }
            Err(error) => Err(error),
        }
    }

    fn holder(&self, host: &str) -> Option<Object<ConfigMap>> {
        self.maps.get(&ObjectKey::namespaced(self.api.namespace().unwrap_or_default(), host))
    }

    async fn release_but(&self, request: &impl OwnWrites, uid: &str, kept: &str) -> Result<(), Error> {
        for claim in self.maps.list_namespace(self.api.namespace().unwrap_or_default()) {
            if uid_of(claim.body()) == uid && claim.key().name() != kept {
                self.delete(request, claim.body()).await?;
            }
        }
        Ok(())
    }

    async fn delete(&self, request: &impl OwnWrites, claim: &ConfigMap) -> Result<(), Error> {
        let only_this = Preconditions { uid: claim.meta().uid.clone(), resource_version: None };
        let params = DeleteParams::default().preconditions(only_this);
        match self.api.delete(claim.meta().name.as_deref().unwrap_or_default(), &params).await {
            Ok(_) => {
                request.removed(claim);
                Ok(())
            }
            // It is gone, or another site has the name by now.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The host that this config map claims, if it is a claim.
pub(crate) fn host_of(claim: &ConfigMap) -> Option<&str> {
    claim.meta().name.as_deref().filter(|_| !uid_of(claim).is_empty())?.strip_prefix("host-")
}

/// The site that has this claim, if it is one.
pub(crate) fn holder_of(claim: &ConfigMap) -> Option<ObjectKey> {
    let site = claim.data.as_ref().filter(|_| !uid_of(claim).is_empty())?.get("site")?;
    site.split_once('/').map(|(namespace, name)| ObjectKey::namespaced(namespace, name))
}

fn claim(host: &str, site: &Website) -> ConfigMap {
    let meta = site.meta();
    let uid = meta.uid.clone().unwrap_or_default();
    let name = format!(
        "{}/{}",
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default()
    );
    let labels = labels(MANAGER).into_iter().chain([(SITE_UID.to_owned(), uid)]).collect();
    let metadata = ObjectMeta { name: Some(host.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
    ConfigMap { metadata, data: Some([("site".to_owned(), name)].into()), ..ConfigMap::default() }
}

fn uid_of(claim: &ConfigMap) -> &str {
    let labels = claim.meta().labels.as_ref();
    labels.and_then(|labels| labels.get(SITE_UID)).map(String::as_str).unwrap_or_default()
}

fn site_of(claim: &ConfigMap) -> String {
    claim.data.as_ref().and_then(|data| data.get("site")).cloned().unwrap_or_default()
}
