//! The body of a write as JSON, whichever language it came in.
//!
//! Answers: what does this body contain, or with which text is it refused? The core decides what it means.
//! 1. Built-in kinds are read from JSON, YAML and protobuf, custom ones from JSON and YAML; other types are 415.
//! 2. No content type means JSON, as for a real server.
use serde_json::{Map, Value};

use super::ask::Ask;
use crate::cluster::call::Validation;
use crate::cluster::encoding::read_yaml;
use crate::cluster::status::ApiError;
use crate::cluster::{field_validation, go_json};
use crate::protobuf::{self, Expected, Refused};

/// The Go type into which a real server reads a body's type; its refusals name it.
const TYPE_OF_A_BODY: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
/// How many bytes of a body that is not understood its refusal quotes.
const QUOTED: usize = 1_024;

impl Ask {
    /// The media type of the request, without parameters.
    pub(crate) fn media_type(&self) -> &str {
        self.content_type.split(';').next().unwrap_or_default().trim()
    }

    /// The body as an object of the kind that the path names, and the warnings.
    ///
    /// # Errors
    /// Those of `json`, and 400 for wrong types and, if the client asks for it, unknown and duplicate fields.
    pub(crate) fn object(&self) -> Result<(Value, Vec<String>), ApiError> {
        let validation = self.validation()?;
        if let (true, Some(error)) = (self.kind.custom, self.untyped()) {
            return Err(error);
        }
        match self.media_type() {
            "" | "application/json" if is_object(&self.body) => {
                field_validation::take_text(&self.kind, &self.body, validation).map_err(|error| {
                    unrecognized(&self.kind.kind, &json_words(&self.body, &error), &self.body)
                })?
            }
            _ => field_validation::take_value(&self.kind, self.json()?, validation),
        }
    }

    /// The refusal of an object without kind or apiVersion; a body that is not an object is refused
    /// elsewhere.
    fn untyped(&self) -> Option<ApiError> {
        let body = self.json().ok()?;
        let says = |name: &str| body.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        let missing = match (says("kind"), says("apiVersion")) {
            (false, _) => "Kind",
            (true, false) => "apiVersion",
            (true, true) => return None,
        };
        let json = if is_object(&self.body) { self.body.clone() } else { body.to_string().into() };
        let why = format!("Object '{missing}' is missing in '{}'", String::from_utf8_lossy(&json));
        Some(unrecognized(&self.kind.kind, &why, &self.body))
    }

    /// How the client wants unknown and duplicate fields to be handled.
    ///
    /// # Errors 422 for an unknown value.
    pub(crate) fn validation(&self) -> Result<Validation, ApiError> {
        let options = match self.verb {
            "create" => "CreateOptions",
            "patch" => "PatchOptions",
            _ => "UpdateOptions",
        };
        Validation::parse(&self.query, options)
    }

    /// # Errors
    /// 415 for a language that is not read for this kind, 400 for a body that is not in its language.
    pub(crate) fn json(&self) -> Result<Value, ApiError> {
        let kind = self.kind.kind.as_str();
        match self.media_type() {
            "" | "application/json" => json(&self.body).map_err(|why| unrecognized(kind, &why, &self.body)),
            "application/yaml" => {
                let read = read_yaml(&self.body).map_err(|error| format!("yaml: {error}"));
                read.and_then(object_of).map_err(|why| unrecognized(kind, &why, &self.body))
            }
            "application/vnd.kubernetes.protobuf" if !self.kind.custom => {
                let expected = Expected { api_version: &self.kind.api_version(), kind };
                protobuf::decode(&self.body, expected)
                    .map_err(|refused| unreadable(kind, refused, &self.body))
            }
            _ => Err(unknown()),
        }
    }
}

fn unreadable(kind: &str, refused: Refused, body: &[u8]) -> ApiError {
    match refused {
        Refused::Envelope(error) => unrecognized(kind, &error.to_string(), body),
        Refused::Message { kind: given, api_version, error } => ApiError::bad_request(format!(
            "{given} in version {:?} cannot be handled as a {kind}: {error}",
            version(&api_version)
        )),
    }
}

fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// 415; the media types are those of the API as a whole, protobuf too where the kind does not take it.
fn unknown() -> ApiError {
    let accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    ApiError::unsupported_media(format!(
        "the body of the request was in an unknown format - accepted media types include: {accepted}"
    ))
}

/// Whether a JSON text can only be an object.
fn is_object(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'{')
}

fn json_words(body: &[u8], error: &serde_json::Error) -> String {
    format!("couldn't get version/kind; json parse error: {}", go_json::syntax(body, error))
}

fn json(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| json_words(body, &error)).and_then(object_of)
}

/// A JSON object, or the error text of the decoder that looks for its type.
fn object_of(value: Value) -> Result<Value, String> {
    let what = match value {
        Value::Null => return Ok(Value::Object(Map::new())),
        value @ Value::Object(_) => return Ok(value),
        other => go_json::type_of(&other),
    };
    let words = format!("json: cannot unmarshal {what} into Go value of type {TYPE_OF_A_BODY}");
    Err(format!("couldn't get version/kind; json parse error: {words}"))
}

fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    let start = &body[..body.len().min(QUOTED)];
    let more = if body.len() > QUOTED { " ..." } else { "" };
    let quoted = match start.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({quoted}{more})"
    ))
}
