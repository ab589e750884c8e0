//! The schema of one version of a definition, prepared for use: types, checks, patterns.
//!
//! Answers: what does this schema add to an object, and what is wrong with the result?
//! 1. It is created once per version of a definition, and shared by all requests.
//! 2. Absent fields get their defaults. A null of a field that is not nullable becomes the field's default, or is dropped
//!    where there is none. Nothing is refused by that.
//! 3. Defaults are completed too: a default of `{}` gets the defaults below it. `metadata` has no defaults.
//!
//! Next: `validate.rs` and `lists.rs` check.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::rules::{Place, Rules};
use super::validate::{Check, Patterns};
use super::{lists, rules};
use crate::cluster::schema::{self, Object, Schema, Shape, Slot, TypeId, decode, pattern, source::Source};
use crate::cluster::status::Cause;

/// Where an object has its numbers, as JSON pointers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) spec: String,
    pub(crate) status: String,
    /// Where a custom kind has its selector as text; built-ins have theirs in `spec.selector`.
    pub(crate) selector: Option<String>,
}

impl ScalePaths {
    /// Those of every built-in kind.
    pub(crate) fn builtin() -> Self {
        Self { spec: "/spec/replicas".into(), status: "/status/replicas".into(), selector: None }
    }

    /// Those of a version of a definition.
    pub(crate) fn of(version: &Value) -> Option<Self> {
        let scale = version.pointer("/subresources/scale")?;
        let pointer = |name: &str| scale.get(name).and_then(Value::as_str).map(|path| path.replace('.', "/"));
        Some(Self {
            spec: pointer("specReplicasPath").unwrap_or_default(),
            status: pointer("statusReplicasPath").unwrap_or_default(),
            selector: Some(pointer("labelSelectorPath").unwrap_or_else(|| "/none".to_owned())),
        })
    }
}

/// The schema of one version.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The schema's types.
    pub(crate) schema: Schema,
    /// The schema with all its checks.
    source: Source,
    /// The schema as it was written.
    pub(crate) written: Value,
    patterns: Patterns,
    rules: Option<Rules>,
    scale: Option<ScalePaths>,
}

impl Definition {
    /// Reads the schema of one of a definition's versions; none if it has none.
    pub(in crate::cluster) fn of_version(version: &Value) -> Option<Self> {
        let of_schema = Self::new(version.pointer("/schema/openAPIV3Schema")?)?;
        Some(Self { scale: ScalePaths::of(version), ..of_schema })
    }

    /// None if the text is not a schema.
    pub(in crate::cluster) fn new(written: &Value) -> Option<Self> {
        let source: Source = Source::deserialize(written).ok()?;
        let mut patterns = Patterns::new();
        source.each(&mut |source| {
            if let Some((text, Ok(regex))) = source.pattern.as_ref().map(|text| (text, pattern::read(text))) {
                patterns.insert(text.clone(), regex);
            }
        });
        let schema = schema::custom(&source);
        let rules = Rules::compile(&source);
        Some(Self { schema, source, written: written.clone(), patterns, rules, scale: None })
    }

    /// Fills in the defaults. Nulls without a default are dropped, unless they are kept to be judged.
    pub(crate) fn complete(&self, value: &mut Value, keep: bool) {
        Fill { schema: &self.schema, keep }.fill(self.schema.root(), value);
    }

    /// A stored value as this version reads it: without fields it does not know, and with its defaults.
    pub(in crate::cluster) fn read(&self, value: Value) -> Value {
        let mut value = self.pruned(value);
        self.complete(&mut value, false);
        value
    }

    /// A value without the fields that this version does not know.
    pub(in crate::cluster) fn pruned(&self, value: Value) -> Value {
        decode::value(&self.schema, false, value).value
    }

    /// What is wrong with an object; what did not change since `old` is not checked. Without a name no rule is.
    pub(crate) fn judge(&self, value: &Value, old: Option<&Value>, named: bool) -> Vec<Cause> {
        let mut check = Check::new(&self.patterns);
        check.value(&self.source, value, old);
        let mut causes = check.causes;
        causes.extend(self.scale.iter().flat_map(|scale| scale.judge(value, false)));
        causes.extend(lists::embedded(&self.source, value));
        self.judge_items(value, old, &mut causes);
        self.judge_rules(value, old, named, &mut causes);
        causes
    }

    /// What is wrong with an object whose status was written: of the rest only items and rules are checked.
    pub(crate) fn judge_status(&self, value: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut check = Check::new(&self.patterns);
        if let (Some(of), Some(status)) = (self.source.properties.get("status"), value.get("status")) {
            check.value(of, status, old.and_then(|old| old.get("status")));
        }
        let mut causes = check.causes;
        for cause in &mut causes {
            let below = if cause.field == "<nil>" { "" } else { &cause.field };
            cause.field = format!("status.{below}").trim_end_matches('.').to_owned();
        }
        causes.extend(self.scale.iter().flat_map(|scale| scale.judge(value, true)));
        self.judge_items(value, old, &mut causes);
        self.judge_rules(value, old, true, &mut causes);
        causes
    }

    /// An object that had an item twice may have others, too.
    fn judge_items(&self, value: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
        let repeated = lists::duplicates(&self.source, value);
        if !repeated.is_empty() && old.is_none_or(|old| lists::duplicates(&self.source, old).is_empty()) {
            causes.extend(repeated);
        }
    }

    /// What is wrong with a default; whether its items are unique is not checked.
    pub(in crate::cluster) fn judge_default(&self, value: &Value) -> Vec<Cause> {
        let mut check = Check::new(&self.patterns);
        check.value(&self.source, value, None);
        let mut causes = check.causes;
        causes.extend(lists::embedded(&self.source, value));
        self.judge_rules(value, None, true, &mut causes);
        causes
    }

    fn judge_rules(&self, value: &Value, old: Option<&Value>, named: bool, causes: &mut Vec<Cause>) {
        let Some(rules) = &self.rules else { return };
        match rules::unchecked(causes, named) {
            Some(cause) => causes.push(cause),
            None => {
                let place = Place { path: "", value, old, unchanged: false };
                causes.extend(rules::judge(&self.source, rules, place));
            }
        }
    }
}

/// Fills the defaults of a schema into a value.
#[derive(Clone, Copy)]
struct Fill<'a> {
    schema: &'a Schema,
    /// Whether a null stays that has no default.
    keep: bool,
}

impl Fill<'_> {
    fn fill(self, id: TypeId, value: &mut Value) {
        match (&self.schema.get(id).shape, value) {
            (Shape::Object(object), Value::Object(members)) => self.object(object, members),
            (Shape::List(list), Value::Array(items)) => {
                for item in items {
                    if item.is_null() && self.is_missing(&list.items) {
                        item.clone_from(list.items.default.as_ref().unwrap_or(&Value::Null));
                    }
                    self.fill(list.items.id, item);
                }
            }
            _ => {}
        }
    }

    /// Whether a null under this slot means that there is no value.
    fn is_missing(self, slot: &Slot) -> bool {
        !self.schema.get(slot.id).nullable
    }

    fn object(self, object: &Object, members: &mut Map<String, Value>) {
        members.retain(|name, value| {
            let drops = |slot| self.is_missing(slot) && (!self.keep || slot.default.is_some());
            !(value.is_null() && object.field(name).is_some_and(drops))
        });
        for (name, slot) in &object.fields {
            if let (Some(default), false) = (&slot.default, members.contains_key(&**name)) {
                members.insert(name.to_string(), default.clone());
            }
        }
        for (name, value) in members {
            // Types with names are those of `metadata`.
            let slot = object.field(name).filter(|slot| self.schema.name(slot.id).is_none());
            if let Some(slot) = slot {
                self.fill(slot.id, value);
            }
        }
    }
}
