//! The continue token: where a list in pages continues.
//!
//! Answers: what does a token contain, and with which text is an invalid one refused? The members `v`, `rv` and
//! `start` are a real server's; `left` and `epoch` are ours.
//! 1. A token is opaque to clients, but not secret: one made by hand is read like any other.
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{DecodeError, Engine as _, alphabet};
use serde_json::{Map, Value, json};

use super::go_json;
use super::status::ApiError;

const FORMAT: &str = "meta.k8s.io/v1";
/// Go's `RawURLEncoding`, which ignores left-over bits.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));
/// What a real server writes for "the latest version".
const LATEST: i64 = -1;

/// Where a list continues.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// The version of the list; none means "whatever is latest".
    pub(crate) revision: Option<u64>,
    /// The key after which it continues.
    pub(crate) start: String,
    /// How many objects lie after `start`, if that is known.
    pub(crate) left: Option<u64>,
    /// Tokens of an epoch that is over are expired.
    pub(crate) epoch: u64,
}

impl Token {
    pub(crate) fn write(&self) -> String {
        let Self { revision, start, left, epoch } = self;
        let revision = revision.map_or(Value::from(LATEST), Value::from);
        let token = json!({"v": FORMAT, "rv": revision, "start": start, "left": left, "epoch": epoch});
        BASE64.encode(token.to_string())
    }

    /// # Errors 400 for a text that is not a token, with the text of a real server.
    pub(crate) fn read(text: &str) -> Result<Self, ApiError> {
        let refused = |why| format!("invalid continue token: continue key is not valid: {why}");
        parse(text).map_err(|why| ApiError::bad_request(refused(why)))
    }
}

fn parse(text: &str) -> Result<Token, String> {
    let bytes = BASE64.decode(text).map_err(|error| corrupt(text, &error))?;
    let members = match serde_json::from_slice(&bytes).map_err(|error| go_json::syntax(&bytes, &error))? {
        Value::Object(members) => members,
        Value::Null => Map::new(),
        other => {
            let what = go_json::type_of(&other);
            return Err(format!("json: cannot unmarshal {what} into Go value of type storage.continueToken"));
        }
    };
    let format = string(&members, "v")?;
    let (revision, start) = (integer(&members, "rv")?, string(&members, "start")?);
    if format != FORMAT {
        return Err(format!("server does not recognize this encoded version {format}"));
    }
    if revision == 0 {
        return Err(format!("incorrect encoded start resourceVersion (version {FORMAT})"));
    }
    if start.is_empty() {
        return Err(format!("encoded start key empty (version {FORMAT})"));
    }
    let left = members.get("left").and_then(Value::as_u64);
    let epoch = members.get("epoch").and_then(Value::as_u64).unwrap_or_default();
    Ok(Token { revision: u64::try_from(revision).ok(), start: start.to_owned(), left, epoch })
}

fn mistyped(value: &Value, member: &str, into: &str) -> String {
    let what = go_json::type_of(value);
    format!("json: cannot unmarshal {what} into Go struct field continueToken.{member} of type {into}")
}

fn string<'a>(members: &'a Map<String, Value>, member: &str) -> Result<&'a str, String> {
    match members.get(member) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(mistyped(other, member, "string")),
    }
}

fn integer(members: &Map<String, Value>, member: &str) -> Result<i64, String> {
    match members.get(member) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => value.as_i64().ok_or_else(|| mistyped(value, member, "int64")),
    }
}

/// A fault of the base64, at the first byte that Go rejects.
fn corrupt(text: &str, error: &DecodeError) -> String {
    let at = match error {
        DecodeError::InvalidByte(at, _) => *at,
        _ => text.len().saturating_sub(1),
    };
    format!("illegal base64 data at input byte {at}")
}

#[cfg(test)]
mod tests {
    use super::Token;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        for revision in [None, Some(7)] {
            let token = Token { revision, start: "default/a".to_owned(), left: Some(2), epoch: 1 };
            assert_eq!(Token::read(&token.write()).ok(), Some(token));
        }
    }
}
