//! Makes an arena of types from the text of schemas: of custom ones, and of the built-in API, the schemas of
//! kube-apiserver 1.36.2, which are included in this crate.
//!
//! Answers: which types do these texts describe, and what is the schema of this built-in kind? References between named schemas become ids.
//! 1. A `$ref`, bare or alone in an `allOf`, is the named type; its other keywords belong to the slot.
//! 2. A reference to an unknown name is `Shape::Any`.
//! 3. A list without a list type has the one of its patch strategy, else it is atomic.
//! 4. A built-in object without fields and values is free-form (`FieldsV1`); a custom one has no fields.
//! 5. The built-in data is constant, so two servers in one process share nothing that could change. It is unpacked once per
//!    process, at the first question.
//!
//! Next: `data/fetch.sh` shows where the data comes from.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, LazyLock};

use flate2::read::GzDecoder;

use super::source::{Others, Source};
use super::{
    Format, List, ListMerge, Object, PatchStrategy, Scalar, Schema, Shape, Slot, Type, TypeId, Types,
};

const PREFIX: &str = "#/components/schemas/";
/// The type name of every `metadata`, and the prefix of the names of the types within it.
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Loads the schemas of a document, by name.
pub(crate) fn named(schemas: &BTreeMap<Box<str>, Source>) -> Types {
    let mut loader = Loader { types: Types::default(), free_form: true };
    loader.load(schemas);
    loader.types
}

/// The same; its root, and what is embedded in it, has this `metadata`.
fn custom_of(source: &Source, metadata: &BTreeMap<Box<str>, Source>) -> Schema {
    let mut loader = Loader { types: Types::default(), free_form: true };
    loader.load(metadata);
    loader.free_form = false;
    let root = loader.slot(source).id;
    loader.embed(root);
    Schema::new(Arc::new(loader.types), root)
}

struct Loader {
    types: Types,
    free_form: bool,
}

impl Loader {
    fn load(&mut self, schemas: &BTreeMap<Box<str>, Source>) {
        for name in schemas.keys() {
            let id = self.push(Type::default());
            self.types.labels.insert(id, name.clone());
            self.types.names.insert(name.clone(), id);
        }
        for (name, source) in schemas {
            let id = self.types.names[name];
            let mut made = self.make(source);
            match &**name {
                QUANTITY => made.shape = Shape::Scalar(Scalar::Quantity),
                MICRO_TIME => made.shape = Shape::Scalar(Scalar::Text(Format::MicroTime)),
                RAW => {
                    if let Shape::Object(object) = &mut made.shape {
                        object.atomic = true;
                    }
                }
                _ => {}
            }
            self.types.types[id.0 as usize] = made;
            for kind in &source.kinds {
                self.types.kinds.insert(kind.clone(), id);
            }
        }
    }

    /// Gives an object type the members every Kubernetes object has.
    fn embed(&mut self, id: TypeId) {
        let text = self.push(Type { shape: Shape::Scalar(Scalar::Text(Format::None)), ..Type::default() });
        let metadata = self.types.names.get(OBJECT_META).copied();
        if let Shape::Object(object) = &mut self.types.types[id.0 as usize].shape {
            let members = [("apiVersion", Some(text)), ("kind", Some(text)), ("metadata", metadata)];
            for (name, id) in members {
                object.fields.extend(id.map(|id| (name.into(), Slot::of(id))));
            }
        }
    }

    fn push(&mut self, made: Type) -> TypeId {
        let id = TypeId(u32::try_from(self.types.types.len()).expect("schemas are smaller than 4 GiB"));
        self.types.types.push(made);
        id
    }

    fn slot(&mut self, source: &Source) -> Slot {
        let id = match reference(source) {
            Some(name) => self.types.names.get(name).copied(),
            None => None,
        };
        let id = id.unwrap_or_else(|| {
            let made = self.make(source);
            let id = self.push(made);
            if source.embedded {
                self.embed(id);
            }
            id
        });
        Slot {
            id,
            default: source.default.clone(),
            patch_strategy: strategy(&source.patch_strategy),
            patch_merge_key: source.patch_merge_key.clone(),
            atomic: source.map_type.as_ref().map(|text| text == "atomic"),
        }
    }

    fn make(&mut self, source: &Source) -> Type {
        let shape = match source.kind.as_str() {
            _ if source.int_or_string || source.format == "int-or-string" => {
                Shape::Scalar(Scalar::IntegerOrText)
            }
            "object" => Shape::Object(self.object(source)),
            "array" => self.list(source),
            "string" => Shape::Scalar(Scalar::Text(format(&source.format))),
            "integer" => Shape::Scalar(Scalar::Integer(format(&source.format))),
            "number" => Shape::Scalar(Scalar::Number(format(&source.format))),
            "boolean" => Shape::Scalar(Scalar::Boolean),
            _ if !source.properties.is_empty() => Shape::Object(self.object(source)),
            _ => Shape::Any,
        };
        Type { shape, nullable: source.nullable }
    }

    fn object(&mut self, source: &Source) -> Object {
        let fields: BTreeMap<_, _> =
            source.properties.iter().map(|(name, field)| (name.clone(), self.slot(field))).collect();
        let others = match &source.additional_properties {
            Some(Others::Typed(source)) => Some(self.slot(source)),
            Some(Others::Allowed(true)) => Some(Slot::of(self.push(Type::default()))),
            Some(Others::Allowed(false)) | None => None,
        };
        let bare = fields.is_empty() && others.is_none();
        Object {
            fields,
            others,
            required: source.required.clone(),
            atomic: source.map_type.as_deref() == Some("atomic"),
            open: source.open || (bare && self.free_form),
            embedded: source.embedded,
        }
    }

    fn list(&mut self, source: &Source) -> Shape {
        let items = match &source.items {
            // A list that keeps unknown fields keeps those of its items.
            Some(items) if source.open => self.slot(&Source { open: true, ..(**items).clone() }),
            Some(items) => self.slot(items),
            None => Slot::of(self.push(Type::default())),
        };
        let merge = match (source.list_type.as_deref(), &source.patch_merge_key) {
            (Some("map"), _) => ListMerge::Map(source.list_map_keys.clone()),
            (Some("set"), _) => ListMerge::Set,
            (Some(_), _) => ListMerge::Atomic,
            (None, _) if !strategy(&source.patch_strategy).merge => ListMerge::Atomic,
            (None, Some(key)) => ListMerge::Map(vec![key.clone()]),
            (None, None) => ListMerge::Set,
        };
        Shape::List(List { items, merge })
    }
}

fn reference(source: &Source) -> Option<&str> {
    let text = match (&source.reference, source.all_of.as_slice()) {
        (Some(text), _) => Some(text),
        (None, [only]) => only.reference.as_ref(),
        (None, _) => None,
    };
    text.and_then(|text| text.strip_prefix(PREFIX))
}

fn strategy(text: &str) -> PatchStrategy {
    let has = |name: &str| text.split(',').any(|part| part == name);
    PatchStrategy { merge: has("merge"), retain_keys: has("retainKeys") }
}

fn format(text: &str) -> Format {
    match text {
        "int32" => Format::Int32,
        "int64" => Format::Int64,
        "double" | "float" => Format::Double,
        "byte" => Format::Byte,
        "date-time" => Format::DateTime,
        _ => Format::None,
    }
}

const PACKED: &[u8] = include_bytes!("../../../data/schemas.json.gz");

const WITHIN_META: [&str; 4] = ["FieldsV1", "ManagedFieldsEntry", "OwnerReference", "Time"];

static SOURCES: LazyLock<BTreeMap<Box<str>, Source>> =
    LazyLock::new(|| serde_json::from_slice(&builtin_text()).expect("the carried schemas are JSON schemas"));

static TYPES: LazyLock<Arc<Types>> = LazyLock::new(|| Arc::new(named(&SOURCES)));

/// The schemas of `metadata` and what is in it, by name: every custom kind has them too.
fn object_meta() -> BTreeMap<Box<str>, Source> {
    let package = OBJECT_META.trim_end_matches("ObjectMeta");
    let within = WITHIN_META.map(|name| format!("{package}{name}"));
    let names = within.iter().map(String::as_str).chain([OBJECT_META]);
    names.map(|name| (name.into(), SOURCES[name].clone())).collect()
}

/// Loads the schema of one version of a custom kind.
pub(crate) fn custom(source: &Source) -> Schema {
    custom_of(source, &object_meta())
}

/// The schema of a built-in kind; none if the kind has none. The first call takes some milliseconds.
pub(crate) fn builtin(group: &str, version: &str, kind: &str) -> Option<Schema> {
    let root = TYPES.kind(group, version, kind)?;
    Some(Schema::new(Arc::clone(&TYPES), root))
}

/// The schemas as they were written, as JSON text.
pub(crate) fn builtin_text() -> Vec<u8> {
    unpacked(PACKED)
}

pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut text).expect("the carried data is gzip");
    text
}
