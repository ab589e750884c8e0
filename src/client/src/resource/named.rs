//! A source that follows a kind by name, also if the kind is defined later, goes away, or comes back with another version or
//! scope. [`FollowedName`] decides; it is pure.
//!
//! 1. The name is looked up before the first request, and again after each answer that the resource is missing. One call is at
//!    most one look-up and one request. Waits are the reflector's.
//! 2. A failed look-up fails the request with the class of the server's answer; an unknown name is `Gone`.
//! 3. When the name means another resource, a list comes before any watch of changes. Its bodies have another form, so an object
//!    of the same version is read again. Subscribers get only the difference.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{BoxFuture, FutureExt, LocalBoxFuture};
use futures_util::stream::{self, LocalBoxStream, StreamExt, TryStreamExt};
use informer_actors::list_watch::{Connect, KnownObjects, ListStream, ListWatch, SourceSpec, WatchStream};
use informer_actors::runtime::DecodePool;
use informer_core::list_watch_error::{ErrorClass, ListWatchError};
use informer_core::meta::{ClusterName, Object, ObjectKey, SourceId};
use informer_core::request::{ListRequest, WatchRequest};
use kube_core::discovery::ApiResource;

use super::wire_of;
use super::{ResourceSource, several_sources};
use crate::backend::Backend;
use crate::error::Error;
use crate::list_watch::decode::{Decoder, Scopes};
use crate::list_watch::{KubeListWatch, Parts};
use crate::representation::{LateFindings, Prune, Representation};
use crate::scope::{Scope, check_selectors};
use crate::transport::Transport;

/// Looks up what a name means.
pub trait FindResource: Send + Sync {
    /// The name.
    fn name(&self) -> &str;

    /// What it means; with `anew`, after the server was asked again.
    fn find(&self, anew: bool) -> BoxFuture<'static, Result<FoundResource, ListWatchError>>;
}

/// What a name means.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundResource {
    /// Its group, version, kind and plural.
    pub api: ApiResource,
    /// Whether it has no namespaces.
    pub is_cluster_scoped: bool,
}

pub(super) struct Named<R> {
    finder: Arc<dyn FindResource>,
    /// `None` if the representation was given.
    represent: Option<Represent<R>>,
}

/// Makes the representation of a resource.
pub type Represent<R> = Arc<dyn Fn(&ApiResource) -> R + Send + Sync>;

impl<R> Named<R> {
    pub(super) fn finder(&self) -> Arc<dyn FindResource> {
        Arc::clone(&self.finder)
    }

    pub(super) fn kept_otherwise<T>(self) -> Named<T> {
        Named { finder: self.finder, represent: None }
    }
}

informer_core::clone_of!([R] Named<R> { finder, represent });

impl<K, R: Representation> ResourceSource<K, R> {
    /// The same selectors and settings for the resource that a name means, which may be another one later.
    #[doc(hidden)]
    pub fn followed_as(self, finder: Arc<dyn FindResource>, represent: Represent<R>) -> Self {
        Self { named: Some(Named { finder, represent: Some(represent) }), ..self }
    }

    pub(crate) fn by_name(
        backend: Arc<Backend>,
        finder: Arc<dyn FindResource>,
        represent: Represent<R>,
    ) -> Self {
        let unknown = ApiResource {
            group: String::new(),
            version: String::new(),
            api_version: String::new(),
            kind: String::new(),
            plural: finder.name().to_owned(),
        };
        let representation = represent(&unknown);
        let named = Some(Named { finder, represent: Some(represent) });
        Self { named, ..Self::new(backend, Scope::new(unknown), representation) }
    }

    pub(crate) fn looked_up_by(mut self, finder: impl FnOnce(&str) -> Arc<dyn FindResource>) -> Self {
        if let Some(named) = &mut self.named {
            named.finder = finder(named.finder.name());
        }
        self
    }

    pub(super) fn spec_by_name(
        self,
        named: Named<R>,
        pool: DecodePool,
    ) -> Result<SourceSpec<R::Body>, Error> {
        check_selectors(self.scope.labels.as_deref(), self.scope.fields.as_deref())?;
        if self.is_of_several() {
            return Err(several_sources());
        }
        let protobuf = self.protobuf;
        let Self { scope, representation, prune, source, cluster, frame_limit, backend, settings, .. } = self;
        let (id, coverage, in_cluster) = (source.clone(), scope.coverage(), cluster.clone());
        let late = Mutex::new((0, Arc::new(LateFindings::new(cluster.clone()))));
        let template = Template {
            named,
            scope,
            representation,
            prune,
            source,
            cluster,
            frame_limit,
            protobuf,
            pool,
            late,
        };
        let template = Arc::new(template);
        let connect: Connect<R::Body> = Arc::new(move || {
            Box::new(NamedListWatch(Rc::new(Followed {
                template: Arc::clone(&template),
                transport: backend.transport(),
                name: RefCell::new(FollowedName::new()),
                source: RefCell::new(None),
            })))
        });
        let spec = SourceSpec::new(id, connect, settings).covering(coverage);
        Ok(in_cluster.into_iter().fold(spec, SourceSpec::in_cluster))
    }
}

struct Template<R> {
    named: Named<R>,
    scope: Scope,
    representation: Arc<R>,
    prune: Prune,
    source: SourceId,
    cluster: Option<ClusterName>,
    frame_limit: usize,
    protobuf: bool,
    pool: DecodePool,
    late: Mutex<(u32, Arc<LateFindings>)>,
}

impl<R: Representation> Template<R> {
    /// What was found of another form says nothing about this one.
    fn late_of(&self, form: u32) -> Arc<LateFindings> {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if late.0 != form {
            *late = (form, Arc::new(LateFindings::new(self.cluster.clone())));
        }
        Arc::clone(&late.1)
    }

    fn list_watch(
        &self,
        found: &FoundResource,
        transport: Rc<dyn Transport>,
    ) -> Result<KubeListWatch<R>, ListWatchError> {
        let resource = found.api.clone();
        let scope = Scope { resource, is_cluster_scoped: found.is_cluster_scoped, ..self.scope.clone() };
        scope.check().map_err(|error| ListWatchError::NotFound(error.to_string().into()))?;
        let representation = match &self.named.represent {
            Some(represent) => Arc::new(represent(&found.api)),
            None => Arc::clone(&self.representation),
        };
        let wire = wire_of(self.protobuf, &*representation, &found.api);
        let decoder = Decoder {
            representation,
            prune: self.prune.clone(),
            source: self.source.clone(),
            form: form_of(&found.api),
            cluster: self.cluster.clone(),
            scopes: Scopes::default(),
            late: self.late_of(form_of(&found.api)),
        };
        let (decoder, pool) = (Arc::new(decoder), self.pool.clone());
        let parts = Parts {
            scope,
            decoder,
            pool,
            frame_limit: self.frame_limit,
            wire,
            #[cfg(feature = "persist")]
            saved: None,
        };
        Ok(KubeListWatch::new(transport, parts))
    }
}

struct NamedListWatch<R: Representation>(Rc<Followed<R>>);

struct Followed<R: Representation> {
    template: Arc<Template<R>>,
    transport: Rc<dyn Transport>,
    name: RefCell<FollowedName<FoundResource>>,
    source: RefCell<Option<Rc<KubeListWatch<R>>>>,
}

impl<R: Representation> Followed<R> {
    async fn source(&self) -> Result<Rc<KubeListWatch<R>>, ListWatchError> {
        let look_up = self.name.borrow().look_up();
        let known = self.source.borrow().clone();
        match known.filter(|_| look_up == LookUp::No) {
            Some(source) => Ok(source),
            None => self.look_up(look_up == LookUp::Anew).await.inspect_err(|error| self.note(error.class())),
        }
    }

    async fn look_up(&self, anew: bool) -> Result<Rc<KubeListWatch<R>>, ListWatchError> {
        let finder = &self.template.named.finder;
        let found = finder.find(anew).await?;
        let source = Rc::new(self.template.list_watch(&found, Rc::clone(&self.transport))?);
        let (name, api_version) = (finder.name(), found.api.api_version.clone());
        if self.name.borrow_mut().handle_found(found) {
            let source = &self.template.source;
            tracing::info!(target: "actix_informer::client", name, %source, "{name} is another resource than before: it is of {api_version}; a list follows");
        }
        *self.source.borrow_mut() = Some(Rc::clone(&source));
        Ok(source)
    }

    fn note(&self, class: ErrorClass) {
        self.name.borrow_mut().handle_failed(class);
    }

    fn answer<T: 'static>(
        self: &Rc<Self>,
        asking: Asking,
        ask: impl FnOnce(&KubeListWatch<R>) -> LocalBoxStream<'static, Result<T, ListWatchError>> + 'static,
    ) -> LocalBoxStream<'static, Result<T, ListWatchError>> {
        let (this, noting) = (Rc::clone(self), Rc::clone(self));
        let opened = async move {
            let source = this.source().await?;
            if this.name.borrow_mut().must_list_before(asking) {
                let name = this.template.named.finder.name();
                let why = format!("{name} is another resource than the one that was listed");
                return Err(ListWatchError::Expired(why.into()));
            }
            Ok(ask(&source))
        };
        stream::once(opened).try_flatten().inspect_err(move |error| noting.note(error.class())).boxed_local()
    }
}

/// Equal for equal resources, also after a restart; almost never for others.
fn form_of(resource: &ApiResource) -> u32 {
    let texts = [&resource.api_version, "/", &resource.kind, "/", &resource.plural];
    let bytes = texts.iter().flat_map(|text| text.bytes());
    // FNV-1a.
    bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

impl<R: Representation> ListWatch<R::Body> for NamedListWatch<R> {
    fn list(&self, request: ListRequest, known: KnownObjects<R::Body>) -> ListStream<R::Body> {
        self.0.answer(Asking::Objects, |source| source.list(request, known))
    }

    fn watch(&self, request: WatchRequest, known: KnownObjects<R::Body>) -> WatchStream<R::Body> {
        let asking = if request.initial_events { Asking::Objects } else { Asking::Changes };
        self.0.answer(asking, |source| source.watch(request, known))
    }

    fn get(
        &self,
        key: ObjectKey,
    ) -> LocalBoxFuture<'static, Result<Option<Object<R::Body>>, ListWatchError>> {
        let this = Rc::clone(&self.0);
        async move { this.source().await?.get(key).await }.boxed_local()
    }

    fn explain_nothing(&self) -> LocalBoxFuture<'static, Option<Arc<str>>> {
        let source = self.0.source.borrow().clone();
        source.map_or_else(|| std::future::ready(None).boxed_local(), |source| source.explain_nothing())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookUp {
    No,
    /// From what discovery knows.
    Known,
    /// From the server: the known resource is missing.
    Anew,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// Also a page, or a watch that begins with all objects.
    Objects,
    Changes,
}

#[derive(Debug)]
struct FollowedName<T> {
    found: Option<T>,
    look_up: LookUp,
    /// The newest list is of another resource.
    is_unlisted: bool,
}

impl<T: PartialEq> FollowedName<T> {
    fn new() -> Self {
        Self { found: None, look_up: LookUp::Known, is_unlisted: false }
    }

    fn look_up(&self) -> LookUp {
        self.look_up
    }

    /// True if the name meant something else before.
    fn handle_found(&mut self, found: T) -> bool {
        let is_other = self.found.as_ref().is_some_and(|before| *before != found);
        (self.found, self.look_up) = (Some(found), LookUp::No);
        self.is_unlisted |= is_other;
        is_other
    }

    /// The reflector watches changes only after a whole list.
    fn must_list_before(&mut self, asking: Asking) -> bool {
        self.is_unlisted &= asking == Asking::Changes;
        self.is_unlisted
    }

    fn handle_failed(&mut self, class: ErrorClass) {
        if class == ErrorClass::Gone {
            self.look_up = LookUp::Anew;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fac_13_a_name_is_looked_up_first_and_after_each_answer_that_its_resource_is_missing() {
        let mut name = FollowedName::new();
        assert_eq!(name.look_up(), LookUp::Known);
        name.handle_failed(ErrorClass::Retry);
        assert_eq!(name.look_up(), LookUp::Known, "the look-up failed");
        assert!(!name.handle_found("v1"));
        for class in [ErrorClass::Retry, ErrorClass::Relist, ErrorClass::Denied, ErrorClass::Unsupported] {
            name.handle_failed(class);
            assert_eq!(name.look_up(), LookUp::No, "{class:?}");
        }
        name.handle_failed(ErrorClass::Gone);
        assert_eq!(name.look_up(), LookUp::Anew);
        assert!(!name.handle_found("v1"), "the same again");
        assert!(name.look_up() == LookUp::No && !name.must_list_before(Asking::Changes));
    }

    #[test]
    fn fac_13_after_another_resource_was_found_a_list_comes_before_the_next_watch() {
        let mut name = FollowedName::new();
        name.handle_found("v1");
        for asking in [Asking::Objects, Asking::Changes, Asking::Objects] {
            assert!(!name.must_list_before(asking));
        }
        for other in ["v2", "v1"] {
            name.handle_failed(ErrorClass::Gone);
            assert!(name.handle_found(other));
            assert!(name.must_list_before(Asking::Changes) && name.must_list_before(Asking::Changes));
            for asking in
                [Asking::Objects, Asking::Objects, Asking::Changes, Asking::Changes, Asking::Objects]
            {
                assert!(!name.must_list_before(asking), "{asking:?}");
            }
        }
    }
}
