//! PATCH: which language the patch is in, and for which manager it sets fields.
//!
//! Answers: does the kind accept this patch, and for which manager? The core applies it.
//! 1. The content type alone names the language; custom kinds have no strategic merge.
//! 2. An apply must name its manager, and only an apply may be forced.
use actix_web::HttpResponse;
use serde_json::{Value, json};

use super::accept::Answer;
use super::ask::Ask;
use super::{respond, write};
use crate::cluster::call::{Call, PatchKind};
use crate::cluster::encoding::read_yaml;
use crate::cluster::go_json;
use crate::cluster::options::{self, check_dry_run, value};
use crate::cluster::status::{ApiError, Cause};

const APPLY: &str = "application/apply-patch+yaml";
const OPTIONS: &str = "PatchOptions";

pub(crate) fn patch(ask: &Ask) -> Result<HttpResponse, ApiError> {
    if ask.target.name.is_none() {
        return Err(ApiError::method_not_allowed());
    }
    if is_apply(ask) {
        return apply(ask);
    }
    let kind = patch_kind(ask)?;
    let representation = ask.representation(Answer::Object)?;
    let call = Call { validation: ask.validation()?, ..ask.call() };
    let written = ask.world.with(|inner| inner.cluster.patch(&call, kind, &ask.body))?;
    Ok(respond::warned(ask.answer(200, representation, &written.object)?, &written.warnings))
}

fn apply(ask: &Ask) -> Result<HttpResponse, ApiError> {
    let (representation, (force, config)) = (ask.representation(Answer::Object)?, applied(ask)?);
    let written = ask.world.with(|inner| inner.cluster.apply(&ask.call(), config, force))?;
    let code = if written.created { 201 } else { 200 };
    Ok(respond::warned(ask.answer(code, representation, &written.object)?, &written.warnings))
}

/// Whether the patch is an apply, which has another body than the other patches.
pub(crate) fn is_apply(ask: &Ask) -> bool {
    ask.media_type() == APPLY
}

/// Whether an apply is forced, and its body.
///
/// # Errors
/// 422 if no manager is named, 400 if the body cannot be read.
pub(crate) fn applied(ask: &Ask) -> Result<(bool, Value), ApiError> {
    Ok((check_apply(ask)?, config(ask)?))
}

/// Checks the options of an apply; returns whether it is forced.
///
/// # Errors
/// 422 if no manager is named.
fn check_apply(ask: &Ask) -> Result<bool, ApiError> {
    if value(&ask.query, "fieldManager").is_empty() {
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(write::refuse_options(OPTIONS, cause));
    }
    write::check_manager(ask, OPTIONS)?;
    check_dry_run(&ask.query, OPTIONS)?;
    Ok(options::flag(&ask.query, "force"))
}

/// The body of an apply: YAML, and so also JSON.
///
/// # Errors
/// 400 if it is neither.
fn config(ask: &Ask) -> Result<Value, ApiError> {
    let refuse = |why: &str| ApiError::bad_request(format!("error decoding YAML: {why}"));
    let config = match serde_json::from_slice(&ask.body) {
        Ok(config) => config,
        Err(_) => read_yaml(&ask.body)
            .map_err(|error| refuse(&format!("error converting YAML to JSON: yaml: {error}")))?,
    };
    match config {
        Value::Null => Ok(json!({})),
        Value::Object(_) => Ok(config),
        other => Err(refuse(&format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            go_json::type_of(&other)
        ))),
    }
}

/// The language that the Content-Type names; checks the options for it.
///
/// # Errors
/// 415 for a language this kind is not patched in.
pub(crate) fn patch_kind(ask: &Ask) -> Result<PatchKind, ApiError> {
    let kind = match ask.media_type() {
        "application/json-patch+json" => PatchKind::Json,
        "application/merge-patch+json" => PatchKind::Merge,
        "application/strategic-merge-patch+json" if !ask.kind.custom => PatchKind::Strategic,
        _ if ask.kind.custom => {
            let accepted =
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            return Err(ApiError::unsupported_media(format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            )));
        }
        _ => return Err(ApiError::unknown_patch()),
    };
    write::check_manager(ask, OPTIONS)?;
    check_dry_run(&ask.query, OPTIONS)?;
    if !value(&ask.query, "force").is_empty() {
        let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
        return Err(write::refuse_options(OPTIONS, cause));
    }
    Ok(kind)
}
