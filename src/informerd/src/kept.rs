//! The body of informerd's caches: what is shown of a pod, a JSON tree, or only the metadata. One type, because the actors are
//! compiled for each type of body; it costs a pointer for each object.

use std::sync::Arc;

use kube_core::discovery::{ApiResource, Scope};
use kube_core::metadata::PartialObjectMeta;
use kube_core::{DynamicObject, TypeMeta};

use super::config::{InformerConfig, Kept};
use super::describe::{Describe, ShownPod, Values};
use actix_informer::client::{Client, ResourceSource};
use actix_informer::representation::{
    DecodeError, Dynamic, Encoded, MetadataOnly, Prune, Representation, RequestedContent, Typed,
};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

#[derive(Debug, Clone)]
pub(super) struct KeepAs {
    form: Form,
    prune: Prune,
}

#[derive(Debug, Clone)]
enum Form {
    Pod(Typed<ShownPod>),
    Dynamic(Dynamic),
    Metadata(MetadataOnly<DynamicObject>),
}

#[derive(Debug)]
pub(super) enum KeptBody {
    Pod(Box<ShownPod>),
    Dynamic(Box<DynamicObject>),
    Metadata(Box<PartialObjectMeta<DynamicObject>>),
}

impl KeepAs {
    pub(super) fn new(config: &InformerConfig, resource: &ApiResource) -> Self {
        let form = match config.kept() {
            Kept::Typed => Form::Pod(Typed::new()),
            Kept::Metadata => Form::Metadata(MetadataOnly::new()),
            Kept::Dynamic | Kept::Auto => Form::Dynamic(Dynamic::new(resource)),
        };
        let prune = match Values::of(config) {
            Values::Shown => Prune::default(),
            // This annotation repeats the values.
            Values::Hidden => Prune::default().cut(["metadata", "annotations", LAST_APPLIED]),
        };
        Self { form, prune }
    }

    /// Of a kind that is not known yet.
    pub(super) fn metadata() -> Self {
        Self { form: Form::Metadata(MetadataOnly::new()), prune: Prune::default() }
    }
}

/// In all namespaces.
pub(super) fn described(
    source: ResourceSource<DynamicObject, Dynamic>,
    config: &InformerConfig,
    keep: KeepAs,
) -> ResourceSource<DynamicObject, KeepAs> {
    let source = source.keep_as(keep).labels(&*config.labels).fields(&*config.fields);
    source.settings(|settings| config.early.apply(settings))
}

/// A kind found by name is looked up again when it is gone: the server may serve another version. A Rust type has one version.
pub(super) fn followed(
    client: &Client,
    config: &InformerConfig,
    resource: &ApiResource,
) -> ResourceSource<DynamicObject, KeepAs> {
    let mut source = client.dynamic(resource);
    if config.kind.is_cluster_scoped() {
        source = source.discovered(&Scope::Cluster);
    }
    let source = described(source, config, KeepAs::new(config, resource));
    match config.kind.found_by().filter(|_| !config.kind.has_type()) {
        Some(name) => {
            let config = config.clone();
            source.followed_as(client.finder(name), Arc::new(move |found| KeepAs::new(&config, found)))
        }
        None => source,
    }
}

impl Representation for KeepAs {
    type Body = KeptBody;

    fn keep(&self, object: &Encoded<'_>, _prune: &Prune) -> Result<KeptBody, DecodeError> {
        match &self.form {
            Form::Pod(form) => form.keep(object, &self.prune).map(Box::new).map(KeptBody::Pod),
            Form::Dynamic(form) => form.keep(object, &self.prune).map(Box::new).map(KeptBody::Dynamic),
            Form::Metadata(form) => form.keep(object, &self.prune).map(Box::new).map(KeptBody::Metadata),
        }
    }

    fn requested_content(&self) -> RequestedContent {
        match &self.form {
            Form::Metadata(form) => form.requested_content(),
            Form::Pod(_) | Form::Dynamic(_) => RequestedContent::Objects,
        }
    }

    fn expected(&self) -> Option<&TypeMeta> {
        match &self.form {
            Form::Pod(form) => form.expected(),
            Form::Dynamic(form) => form.expected(),
            Form::Metadata(form) => form.expected(),
        }
    }
}

impl Describe for KeptBody {
    fn outline(&self) -> String {
        match self {
            Self::Pod(pod) => pod.outline(),
            Self::Dynamic(object) => object.outline(),
            Self::Metadata(object) => object.outline(),
        }
    }

    fn changes(&self, old: &Self, values: Values) -> Vec<String> {
        match (self, old) {
            (Self::Pod(new), Self::Pod(old)) => new.changes(old, values),
            (Self::Dynamic(new), Self::Dynamic(old)) => new.changes(old, values),
            (Self::Metadata(new), Self::Metadata(old)) => new.changes(old, values),
            _ => vec!["the representation has changed".to_owned()],
        }
    }
}
