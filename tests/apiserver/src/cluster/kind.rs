//! What the server knows about one kind in one version: names, scope, subresources and the rules of its writes.
//!
//! Answers: what are the names of this kind, and which rules apply to it? It holds no objects.
//! 1. A `Kind` is data; no code asks for a kind by name except the few built-in behaviours (`Rules`).
//! 2. Two versions of a custom kind share one `storage`: (group, plural).
//!
//! Next: `builtin.rs` reads the table of the kinds every server has, `crd/` makes a `Kind` from a definition.

use std::sync::Arc;

use super::ResourceId;
use super::definition::{Definition, ScalePaths};
use super::names::NameRule;
use super::schema::{Schema, load};
use super::status::Named;

/// When `metadata.generation` goes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GenerationRule {
    /// The kind has no generation; one in a body is kept as it is.
    Absent,
    /// On a change of `spec`.
    Spec,
    /// On a change of `spec`; a new object has none.
    SpecOnceChanged,
    /// On a change of `spec` or of the annotations.
    SpecAndAnnotations,
    /// On a change of anything but `metadata` and, if there is a status subresource, `status`.
    AllButMetadata,
}

/// The rules of writes that differ between kinds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) name: NameRule,
    pub(crate) generation: GenerationRule,
    /// Whether an update without a resourceVersion is accepted.
    pub(crate) unconditional_update: bool,
    /// Whether DELETE returns the object (else a Status of success).
    pub(crate) delete_answers_object: bool,
    /// Whether a PUT on a name that does not exist creates it.
    pub(crate) put_creates: bool,
    /// Which metadata members the status subresource writes too.
    pub(crate) status_metadata: &'static [&'static str],
    /// Whether a status in the body of a creation is kept.
    pub(crate) status_on_create: bool,
    /// Whether the selector label `metadata.namespace` is known.
    pub(crate) namespace_field: bool,
}

/// An endpoint below an object, as in discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subresource {
    pub(crate) name: String,
    /// Group and version of what is sent and answered, where they are not the object's own.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) verbs: Vec<String>,
}

/// The description of a column of names in a Table.
pub(crate) const NAME_COLUMN: &str = "Name must be unique within a namespace. Is required when creating resources, although \
some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended \
for creation idempotence and configuration definition. Cannot be updated. More info: \
https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
/// The description of a column of ages or times of creation in a Table.
pub(crate) const CREATED_COLUMN: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. \
It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// One column of a kind's Table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) value_type: String,
    pub(crate) format: String,
    /// 0 is always shown, 1 only when asked for the wide form.
    pub(crate) priority: i64,
    pub(crate) description: String,
    /// The path of the value in a custom kind, from its definition; empty for built-ins.
    pub(crate) path: String,
}

/// One kind in one served version.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    /// The names of the resource.
    pub(crate) resource: ResourceId,
    /// Where its objects are stored; shared by all its versions, and by the two groups of events.
    pub(crate) storage: ResourceId,
    pub(crate) version: String,
    /// The version in which its objects are stored; discovery contains a hash of it.
    pub(crate) stored_version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    pub(crate) status: bool,
    pub(crate) subresources: Vec<Subresource>,
    /// The paths of its scale's numbers, if it has a scale.
    pub(crate) scale: Option<ScalePaths>,
    pub(crate) custom: bool,
    pub(crate) rules: Rules,
    /// Field labels a selector may use, with the JSON pointer of each, beyond name and namespace.
    pub(crate) fields: Vec<(String, String)>,
    /// Whether the selector label `metadata.namespace` is known.
    pub(crate) namespace_field: bool,
    /// The members after `metadata` in a bookmark of this kind, as JSON text without braces.
    pub(crate) zero: String,
    /// The columns of its Table.
    pub(crate) columns: Vec<Column>,
    /// The warning for every client of this kind.
    pub(crate) deprecation: Option<String>,
    /// Whether its definition is being deleted: nothing may be created.
    pub(crate) terminating: bool,
    /// The schema of this version in the definition of a custom kind, if it has one.
    pub(crate) definition: Option<Arc<Definition>>,
    /// The schema of the stored version, if it differs from that of this version.
    pub(crate) stored_as: Option<Arc<Definition>>,
}

impl Kind {
    /// The schema of this kind's objects; none for a custom kind without a schema.
    pub(crate) fn schema(&self) -> Option<Schema> {
        if self.custom {
            return self.definition.as_ref().map(|definition| definition.schema.clone());
        }
        load::builtin(&self.resource.group, &self.version, &self.kind)
    }

    /// Whether this name means the kind, or the table it is stored in.
    pub(crate) fn is(&self, resource: &ResourceId) -> bool {
        self.resource == *resource || self.storage == *resource
    }

    /// The Go package of a built-in kind, as in refusals.
    pub(crate) fn go_package(&self) -> &str {
        let package = self.resource.group.split('.').next();
        package.filter(|package| !package.is_empty()).unwrap_or("core")
    }

    /// Whether this is the kind of definitions.
    pub(crate) fn is_definition(&self) -> bool {
        self.resource.is("apiextensions.k8s.io", "customresourcedefinitions")
    }

    /// Whether a real server reads it from a cache: events it does not.
    pub(crate) fn is_cached(&self) -> bool {
        !self.storage.is("", "events")
    }

    pub(crate) fn api_version(&self) -> String {
        if self.resource.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.resource.group, self.version)
        }
    }

    /// The subresource of this name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }

    /// The plural resource with a name, for refusals; they name the group things are stored in, as a real server's.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> Named<'a> {
        Named { group: &self.storage.group, kind: &self.resource.plural, name }
    }

    /// The Kind with a name, for 422.
    pub(crate) fn named_kind<'a>(&'a self, name: &'a str) -> Named<'a> {
        Named { group: &self.storage.group, kind: &self.kind, name }
    }

    /// The store's key: its byte order is the order of lists.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }
}
