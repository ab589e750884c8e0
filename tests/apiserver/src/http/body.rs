//! The body of a write as JSON, whichever language it came in.
//!
//! Answers: what does this body say, or with which words is it refused? What it means is decided in the core.
//! 1. Built-in kinds are read from JSON, YAML and protobuf, custom ones from JSON and YAML; other types are 415.
//! 2. No content type means JSON, as for a real server.
use serde_json::Value;
use serde_json::error::Category;

use super::handle::Ask;
use crate::cluster::field_validation::{self, Validation};
use crate::cluster::status::ApiError;
use crate::protobuf::{self, Expected, Refused};
use crate::yaml;

/// How many bytes of a body that is not understood its refusal quotes.
const QUOTED: usize = 1_024;

impl Ask {
    /// The media type of the request, without parameters.
    pub(crate) fn media_type(&self) -> &str {
        self.content_type.split(';').next().unwrap_or_default().trim()
    }

    /// The body as an object of the kind the path names, and what to warn of.
    ///
    /// # Errors
    /// Those of `json`, and 400 for wrong types and, if the client asks for it, unknown and duplicate fields.
    pub(crate) fn object(&self) -> Result<(Value, Vec<String>), ApiError> {
        let validation = self.validation()?;
        match self.media_type() {
            "" | "application/json" => field_validation::take_text(&self.kind, &self.body, validation)
                .map_err(|error| unrecognized(&self.kind.kind, &json_words(&error), &self.body))?,
            _ => field_validation::take_value(&self.kind, self.json()?, validation),
        }
    }

    /// What the client wants of unknown and duplicate fields.
    ///
    /// # Errors
    /// 422 for an unknown wish.
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
            "" | "application/json" => serde_json::from_slice(&self.body)
                .map_err(|error| unrecognized(kind, &json_words(&error), &self.body)),
            "application/yaml" => {
                yaml::decode(&self.body).map_err(|error| unrecognized(kind, &error, &self.body))
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

fn json_words(error: &serde_json::Error) -> String {
    let words = match error.classify() {
        Category::Eof => "unexpected end of JSON input".to_owned(),
        _ => error.to_string(),
    };
    format!("couldn't get version/kind; json parse error: {words}")
}

fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    let quoted: String = body.iter().take(QUOTED).map(|byte| format!("{byte:02x}")).collect();
    let quoted = if quoted.is_empty() { "<empty>".to_owned() } else { quoted };
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({quoted})"
    ))
}
