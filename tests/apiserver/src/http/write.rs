//! POST, PUT, DELETE: reads the body, calls the core, and sends its answer; and for which manager a write sets fields.
//!
//! Answers: is this body in a language the server reads, who is its manager, and which code does the answer have? The core
//! decides who owns what then.
//! 1. `body.rs` reads bodies; `patch.rs` has PATCH.
//! 2. DELETE answers the object where the kind does so or where it stays, else a Status of success.
//! 3. The manager is the parameter `fieldManager`, with at most 128 bytes, all printable; 422 otherwise.
//! 4. Without the parameter it is the first part of the User-Agent, cut to that form.

use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::accept::Answer;
use super::ask::Ask;
use super::list_body::{self, ListBytes};
use super::respond;
use crate::access::Authorization;
use crate::access::user::User;
use crate::cluster::call::{Call, Validation};
use crate::cluster::delete::DeleteOptions;
use crate::cluster::encoding::Representation;
use crate::cluster::object::Object;
use crate::cluster::options::{ListOptions, Query, check_dry_run, value};
use crate::cluster::propagation::Propagation;
use crate::cluster::status::{ApiError, Cause, Named};

impl Ask {
    pub(crate) fn call(&self) -> Call<'_> {
        Call {
            kind: &self.kind,
            namespace: self.target.namespace.as_deref().unwrap_or_default(),
            name: self.target.name.as_deref().unwrap_or_default(),
            status: self.target.sub.as_deref() == Some("status"),
            dry_run: value(&self.query, "dryRun") == "All",
            validation: Validation::Ignore,
            now: self.world.now(),
            manager: &self.manager,
            subresource: self.target.sub.as_deref().unwrap_or_default(),
            user: (self.world.access.authorization == Authorization::Rbac).then_some(&self.user),
        }
    }

    /// An object as the answer.
    ///
    /// # Errors
    /// 406 if a list was asked for.
    pub(crate) fn answer(
        &self,
        code: u16,
        representation: Representation,
        object: &Object,
    ) -> Result<HttpResponse, ApiError> {
        self.check_form(representation, Answer::Object)?;
        Ok(respond::body(code, representation.encoding, representation.object(&self.kind, object)))
    }

    /// The call of a deletion, whose body may ask for a dry run.
    fn deletion(&self, options: &DeleteOptions) -> Call<'_> {
        let call = self.call();
        Call { dry_run: call.dry_run || options.dry_run, ..call }
    }

    fn delete_options(&self) -> Result<DeleteOptions, ApiError> {
        check_dry_run(&self.query, "DeleteOptions")?;
        let body = if self.body.is_empty() { Value::Null } else { self.json()? };
        let propagation = Propagation::read(&body, &self.query)?;
        let mut options = DeleteOptions { propagation, ..DeleteOptions::parse(&body) };
        if let Ok(grace) = value(&self.query, "gracePeriodSeconds").parse() {
            options.grace = Some(grace);
        }
        Ok(options)
    }
}

pub(crate) fn create(ask: &Ask) -> Result<HttpResponse, ApiError> {
    if ask.target.name.is_some() || (ask.kind.namespaced && ask.target.namespace.is_none()) {
        return Err(ApiError::method_not_allowed());
    }
    check_manager(ask, "CreateOptions")?;
    check_dry_run(&ask.query, "CreateOptions")?;
    let (representation, (mut body, mut warnings)) = (ask.representation(Answer::Object)?, ask.object()?);
    if ask.kind.resource.is("certificates.k8s.io", "certificatesigningrequests") {
        name_requester(&ask.user, &mut body);
    }
    let written = ask.world.with(|inner| inner.cluster.create_warned(&ask.call(), body));
    let mut written = written.map_err(|error| error.with_warnings(&warnings))?;
    warnings.append(&mut written.warnings);
    Ok(respond::warned(ask.answer(201, representation, &written.object)?, &warnings))
}

/// The server sets the requesting user of a certificate signing request; the body's own value is ignored.
fn name_requester(user: &User, body: &mut Value) {
    let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for name in ["username", "uid", "groups", "extra"] {
        spec.remove(name);
    }
    if let Value::Object(representation) = user.to_value() {
        spec.extend(representation);
    }
}

pub(crate) fn update(ask: &Ask) -> Result<HttpResponse, ApiError> {
    if ask.target.name.is_none() {
        return Err(ApiError::method_not_allowed());
    }
    check_manager(ask, "UpdateOptions")?;
    check_dry_run(&ask.query, "UpdateOptions")?;
    let (representation, (body, mut warnings)) = (ask.representation(Answer::Object)?, ask.object()?);
    let written = ask.world.with(|inner| inner.cluster.update(&ask.call(), body));
    let mut written = written.map_err(|error| error.with_warnings(&warnings))?;
    warnings.append(&mut written.warnings);
    let code = if written.created { 201 } else { 200 };
    Ok(respond::warned(ask.answer(code, representation, &written.object)?, &warnings))
}

pub(crate) fn delete(ask: &Ask) -> Result<HttpResponse, ApiError> {
    if ask.target.sub.is_some() {
        return Err(ApiError::method_not_allowed());
    }
    let (representation, options) = (ask.representation(Answer::Object)?, ask.delete_options()?);
    let call = ask.deletion(&options);
    let deleted = ask.world.with(|inner| inner.cluster.delete(&call, &options))?;
    if !deleted.removed || ask.kind.rules.delete_answers_object {
        return ask.answer(200, representation, &deleted.object);
    }
    let mut details =
        json!({"name": call.name, "kind": &*ask.kind.resource.plural, "uid": &*deleted.object.uid});
    if !ask.kind.storage.group.is_empty() {
        details["group"] = json!(&*ask.kind.storage.group);
    }
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    Ok(respond::value(200, representation.encoding, &status))
}

pub(crate) fn delete_collection(ask: &Ask) -> Result<HttpResponse, ApiError> {
    if *ask.kind.resource.plural == *"namespaces" {
        return Err(ApiError::method_not_allowed());
    }
    let representation = ask.representation(Answer::List)?;
    let options = ask.delete_options()?;
    let selector = ListOptions::parse(&ask.query, &ask.kind)?.selector;
    let page = ask
        .world
        .with(|inner| inner.cluster.delete_collection(&ask.deletion(&options), &selector, &options))?;
    ask.check_form(representation, Answer::List)?;
    list_body::answer(&ask.world, ListBytes::new(&ask.kind, representation, page), ask.gzip)
}

const LONGEST: usize = 128;

/// The manager of a request; empty if it does not name one.
pub(crate) fn manager_of(query: &Query, user_agent: Option<&str>) -> String {
    let named = value(query, "fieldManager");
    if !named.is_empty() {
        return named.to_owned();
    }
    let mut manager = String::new();
    let program = user_agent.unwrap_or_default().split('/').next().unwrap_or_default();
    for letter in program.chars().filter(|letter| !letter.is_control()) {
        if manager.len() + letter.len_utf8() > LONGEST {
            break;
        }
        manager.push(letter);
    }
    manager
}

/// Checks the manager a request names; `options` is the kind of its options.
///
/// # Errors
/// 422 if it is too long or not printable.
pub(crate) fn check_manager(ask: &Ask, options: &'static str) -> Result<(), ApiError> {
    let manager = value(&ask.query, "fieldManager");
    if manager.len() > LONGEST {
        let message = format!("Too long: may not be more than {LONGEST} bytes");
        let cause = Cause { reason: "FieldValueTooLong", message, field: "fieldManager".into() };
        return Err(refuse_options(options, cause));
    }
    match manager.char_indices().find(|(_, letter)| letter.is_control()) {
        None => Ok(()),
        Some((at, letter)) => {
            let why = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
            let message = format!("Invalid value: {}: {why}", go_quoted(manager));
            let cause = Cause { reason: "FieldValueInvalid", message, field: "fieldManager".into() };
            Err(refuse_options(options, cause))
        }
    }
}

/// A text in quotes as Go prints it.
fn go_quoted(text: &str) -> String {
    let letter = |letter: char| match letter {
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\n' | '\r' | '\t' | '"' | '\\' => letter.escape_default().to_string(),
        letter if letter.is_ascii_control() => format!("\\x{:02x}", u32::from(letter)),
        letter => letter.to_string(),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

/// 422 about the options of a request.
pub(crate) fn refuse_options(options: &'static str, cause: Cause) -> ApiError {
    ApiError::invalid(Named { group: "meta.k8s.io", kind: options, name: "" }, &[cause])
}
