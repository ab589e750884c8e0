//! Create and update: the order of checks of the API, ending in a commit.
//!
//! Answers: may this object be written, and what is stored then? Patches end here too, after `patch.rs` has made a
//! body.
//! 1. A refused write changes nothing, not even the revision.
//! 2. An update that changes nothing is answered with the old version and sends no event.
//! 3. The namespace is checked before the existence of the name: a terminating one answers 403, not 409.
//!
//! Next: `delete.rs` for the other end of an object's life.
use std::sync::Arc;

use serde_json::{Value, json};

use super::apply::Managed;
use super::call::Call;
use super::kind::Kind;
use super::metadata::{drop_type, has_finalizers, member, metadata_mut, set_version};
use super::object::Object;
use super::owners::Owners;
use super::status::{ApiError, Cause};
use super::store::Cluster;
use super::{crd, prepare, warnings};

/// How often a generated name is drawn before the server gives up.
const NAME_DRAWS: usize = 8;
/// How much of `generateName` is kept, so that name and suffix fit in 63 characters.
const GENERATED_PREFIX: usize = 58;
const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// The answer to a write.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) object: Arc<Object>,
    pub(crate) created: bool,
    /// The warnings for the client.
    pub(crate) warnings: Vec<String>,
}

impl Written {
    /// The same answer with other warnings before its own.
    pub(super) fn after(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.splice(0..0, warnings);
        self
    }
}

impl Cluster {
    /// Stores a new object.
    ///
    /// # Errors
    /// 400, 403, 404 (namespace), 409, 422 and 500 as the API gives them.
    pub(crate) fn create(&mut self, call: &Call<'_>, body: Value) -> Result<Arc<Object>, ApiError> {
        self.create_warned(call, body).map(|written| written.object)
    }

    /// The same, with the warnings for the client.
    ///
    /// # Errors
    /// Those of `create`.
    pub(crate) fn create_warned(&mut self, call: &Call<'_>, mut body: Value) -> Result<Written, ApiError> {
        let repeated = warnings::take_repeated_owners(&mut body, false);
        self.create_owned(call, body, None).map(|written| written.after(repeated))
    }

    /// The common end of a create and of an apply that creates; an apply has computed the owners.
    pub(super) fn create_owned(
        &mut self,
        call: &Call<'_>,
        mut body: Value,
        owners: Option<Owners>,
    ) -> Result<Written, ApiError> {
        let kind = call.kind;
        match self.registry.stored(&kind.storage) {
            // The definition was deleted while this request was under way.
            None => return Err(ApiError::no_such_path()),
            Some(current) if current.terminating => {
                let why = "create not allowed while custom resource definition is terminating";
                return Err(ApiError::forbidden(kind.named(member(&body, "name")), why));
            }
            Some(_) => {}
        }
        prepare::check_shape(kind, &mut body)?;
        prepare::check_namespace(call, &mut body)?;
        self.check_grants(call, &body, None)?;
        // A value that is not a number is not checked. An apply that creates leaves the version out, as an update that creates.
        let is_applied = owners.is_some();
        if !is_applied && member(&body, "resourceVersion").parse::<u64>().is_ok_and(|version| version > 0) {
            return Err(ApiError::untyped("resourceVersion should not be set on objects to be created"));
        }
        self.check_namespace_open(call, member(&body, "name"))?;
        self.generate_name(call, &mut body);
        let name = member(&body, "name").to_owned();
        let mut causes = prepare::prefix_causes(kind, member(&body, "generateName"));
        causes.extend(prepare::name_causes(kind, &name));
        let unlabelled = body.pointer("/metadata/labels").is_none_or(|labels| *labels == json!({}));
        // Set by the server, but the client owns the label and the defaults.
        self.complete(kind, &mut body);
        prepare::name_namespace(kind, &mut body);
        crd::complete(kind, &mut body, is_applied);
        let owners = owners.unwrap_or_else(|| self.owners_of_new(call, &mut body));
        let uid = self.rng.uid();
        prepare::complete_new(call, &mut body, uid);
        self.admit(call, &mut body, None);
        if unlabelled {
            self.label(kind, &mut body);
        }
        causes.extend(self.faults_of(kind, &body, None));
        causes.extend(crd::judge(kind, &mut body, None, false));
        if !causes.is_empty() {
            return Err(ApiError::invalid(kind.named_kind(&name), &causes));
        }
        crd::settle(kind, &mut body);
        let key = kind.key(call.namespace, &name);
        if self.find(&kind.storage, &key).is_some() {
            return Err(ApiError::already_exists(kind.named(&name)));
        }
        let warnings = warnings::of(kind, &body, None);
        owners.write(&mut body);
        if call.dry_run {
            let object = Arc::new(Object::encode(kind, body, 0));
            return Ok(Written { object, created: true, warnings });
        }
        let event = self.commit(kind, &key, Some(body));
        if kind.is_definition() {
            self.establish(call, &key);
        }
        let object = Arc::clone(event.new.as_ref().expect("a creation has a state after it"));
        Ok(Written { object, created: true, warnings })
    }

    fn generate_name(&mut self, call: &Call<'_>, body: &mut Value) {
        let prefix = member(body, "generateName").to_owned();
        if prefix.is_empty() || !member(body, "name").is_empty() {
            return;
        }
        let prefix: String = prefix.chars().take(GENERATED_PREFIX).collect();
        let mut name = String::new();
        for _ in 0..NAME_DRAWS {
            name = format!("{prefix}{}", self.rng.suffix());
            if self.find(&call.kind.storage, &call.kind.key(call.namespace, &name)).is_none() {
                break;
            }
        }
        metadata_mut(body).insert("name".into(), json!(name));
    }

    fn check_namespace_open(&self, call: &Call<'_>, name: &str) -> Result<(), ApiError> {
        if !call.kind.namespaced {
            return Ok(());
        }
        let namespaces = self.registry.find("", "v1", "namespaces").expect("the table has namespaces");
        let namespace = self.get(namespaces, "", call.namespace)?;
        if namespace.fields.first().is_some_and(|phase| &**phase == "Terminating") {
            return Err(ApiError::namespace_terminating(call.kind.named(name), call.namespace));
        }
        Ok(())
    }

    /// Replaces an object, or its status.
    ///
    /// # Errors
    /// 400, 404, 409 and 422 as the API gives them.
    pub(crate) fn update(&mut self, call: &Call<'_>, mut body: Value) -> Result<Written, ApiError> {
        let kind = call.kind;
        prepare::check_shape(kind, &mut body)?;
        if member(&body, "name") != call.name {
            return Err(misnamed(member(&body, "name"), call.name));
        }
        prepare::check_namespace(call, &mut body)?;
        let key = kind.key(call.namespace, call.name);
        let Some(old) = self.find(&kind.storage, &key).cloned() else {
            if kind.rules.put_creates && !call.status {
                let uid = member(&body, "uid");
                if !uid.is_empty() {
                    return Err(another_life(call, uid, ""));
                }
                // A version that was sent with a new object is not looked at here.
                metadata_mut(&mut body).remove("resourceVersion");
                return self.create_warned(call, body);
            }
            return Err(ApiError::not_found(kind.named(call.name)));
        };
        check_precedence(call, &old, &body)?;
        let repeated = warnings::take_repeated_owners(&mut body, false);
        self.store_update(call, &old, body, None).map(|written| written.after(repeated))
    }

    /// The common end of update, patch and apply, once it is known that the body is meant for the current
    /// state. `told` are the owners that an apply has computed.
    pub(super) fn store_update(
        &mut self,
        call: &Call<'_>,
        old: &Arc<Object>,
        mut body: Value,
        told: Option<Managed>,
    ) -> Result<Written, ApiError> {
        let kind = call.kind;
        let mut before = old.decode_in(kind);
        self.complete(kind, &mut body);
        prepare::name_namespace(kind, &mut body);
        crd::complete(kind, &mut body, told.is_some());
        let owners = self.owners_after(call, &mut before, &mut body, told);
        if call.status {
            body = prepare::status_update(kind, &before, &body);
        }
        self.check_grants(call, &body, Some(&before))?;
        self.admit(call, &mut body, Some(&before));
        let status = call.status.then(|| body.get("status").cloned()).flatten();
        prepare::complete_update(call, &before, &mut body)?;
        if let (true, Some(root)) = (call.status, body.as_object_mut()) {
            match status {
                Some(status) => root.insert("status".into(), status),
                None => root.remove("status"),
            };
        }
        let mut causes = if call.status { Vec::new() } else { self.faults_of(kind, &body, Some(&before)) };
        causes.extend(crd::judge(kind, &mut body, Some(&before), call.status));
        if !causes.is_empty() {
            return Err(ApiError::invalid(kind.named_kind(call.name), &causes));
        }
        crd::settle(kind, &mut body);
        let warnings = if call.status { Vec::new() } else { warnings::of(kind, &body, Some(&before)) };
        set_version(&mut body, old.revision);
        drop_type(&mut body);
        let unchanged = before == body && owners.are_as_before() && !old.reread;
        owners.write(&mut body);
        let gone = before.pointer("/metadata/deletionTimestamp").is_some()
            && !has_finalizers(&body)
            && body.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0) == 0;
        if call.dry_run || (unchanged && !gone) {
            let object =
                if unchanged { Arc::clone(old) } else { Arc::new(Object::encode(kind, body, old.revision)) };
            return Ok(Written { object, created: false, warnings });
        }
        let key = kind.key(&old.namespace, &old.name);
        if gone {
            self.remove(call, &key);
            return Ok(Written {
                // The answer is the update that was not stored: it has the version from which it was made.
                object: Arc::new(Object::encode(kind, body, old.revision)),
                created: false,
                warnings,
            });
        }
        let event = self.commit(kind, &key, Some(body));
        if kind.is_definition() && !call.status {
            self.establish(call, &key);
        }
        Ok(Written {
            object: Arc::clone(event.new.as_ref().expect("an update has a state after it")),
            created: false,
            warnings,
        })
    }
}

pub(super) fn misnamed(given: &str, path: &str) -> ApiError {
    ApiError::bad_request(if given.is_empty() {
        format!("the name of the object ({path} based on URL) was undeterminable: name must be provided")
    } else {
        format!("the name of the object ({given}) does not match the name on the URL ({path})")
    })
}

/// Where a real server would store the object, as in one of its refusals.
fn storage_key(kind: &Kind, key: &str) -> String {
    let group = if kind.custom { format!("{}/", kind.resource.group) } else { String::new() };
    format!("/registry/{group}{}/{key}", kind.resource.plural)
}

/// The refusal of a body whose uid is not the one that is stored, or none.
fn another_life(call: &Call<'_>, given: &str, stored: &str) -> ApiError {
    let kind = call.kind;
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {given}, UID in object meta: {stored}",
        storage_key(kind, &kind.key(call.namespace, call.name)),
    );
    ApiError::conflict(kind.named(call.name), &why)
}

/// Checks the uid and the version a body names against the stored object.
pub(super) fn check_precedence(call: &Call<'_>, old: &Object, body: &Value) -> Result<(), ApiError> {
    let kind = call.kind;
    let uid = member(body, "uid");
    if !uid.is_empty() && *uid != *old.uid {
        return Err(another_life(call, uid, &old.uid));
    }
    let unconditional = kind.rules.unconditional_update;
    match member(body, "resourceVersion") {
        "" | "0" if unconditional => Ok(()),
        "" | "0" => {
            let message = "Invalid value: 0: must be specified for an update".to_owned();
            let field = "metadata.resourceVersion".to_owned();
            let cause = Cause { reason: "FieldValueInvalid", message, field };
            Err(ApiError::invalid(kind.named(call.name), &[cause]))
        }
        text => match text.parse::<u64>() {
            Ok(version) if version == old.revision => Ok(()),
            Ok(_) => Err(ApiError::conflict(kind.named(call.name), MODIFIED)),
            Err(_) => Err(ApiError::untyped(format!("strconv.ParseUint: parsing {text:?}: invalid syntax"))),
        },
    }
}
