//! The text of one kubeconfig file, read as kubectl reads it: YAML to JSON to Go values
//! (`tools/clientcmd/api/v1`, apimachinery's serializer).
//!
//! 1. The first document counts, and the last value of a repeated key. Unknown fields are ignored, null means
//!    absent, and a number is not a text.
//! 2. Entries that no context uses are checked, too.
//! 3. An error gives the field's path, line and column, but quotes nothing: the file may hold tokens.

use std::collections::BTreeMap;

use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use informer_core::words::quoted;
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Unexpected};
use serde_json::Value;

use crate::identity::exec::PluginConfig;
use crate::wire::JsonError;

/// Like Go's `base64.StdEncoding`, ignores the trailing bits.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

#[derive(Clone, Default)]
pub(super) struct File {
    pub(super) clusters: BTreeMap<String, Cluster>,
    pub(super) contexts: BTreeMap<String, Context>,
    pub(super) users: BTreeMap<String, User>,
    pub(super) current_context: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
struct Written {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    clusters: Vec<NamedCluster>,
    contexts: Vec<NamedContext>,
    users: Vec<NamedUser>,
    current_context: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Cluster {
    pub(super) server: String,
    pub(super) tls_server_name: String,
    pub(super) insecure_skip_tls_verify: bool,
    pub(super) certificate_authority: String,
    pub(super) certificate_authority_data: Data,
    pub(super) proxy_url: String,
    pub(super) extensions: Vec<Extension>,
    pub(super) disable_compression: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Extension {
    pub(super) name: String,
    pub(super) extension: Value,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Context {
    pub(super) cluster: String,
    pub(super) user: String,
    pub(super) namespace: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct User {
    pub(super) client_certificate: String,
    pub(super) client_certificate_data: Data,
    pub(super) client_key: String,
    pub(super) client_key_data: Data,
    #[serde(deserialize_with = "secret")]
    pub(super) token: Option<SecretString>,
    #[serde(rename = "tokenFile")]
    pub(super) token_file: String,
    pub(super) username: String,
    #[serde(deserialize_with = "secret")]
    pub(super) password: Option<SecretString>,
    pub(super) r#as: String,
    pub(super) as_uid: String,
    pub(super) as_groups: Vec<String>,
    pub(super) as_user_extra: BTreeMap<String, Vec<String>>,
    pub(super) auth_provider: Option<AuthProvider>,
    pub(super) exec: Option<PluginConfig>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct AuthProvider {
    pub(super) name: String,
    pub(super) config: std::collections::HashMap<String, String>,
}

/// Bytes in base64; `None` if empty.
#[derive(Clone, Default)]
pub(super) struct Data(pub(super) Option<SecretSlice<u8>>);

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = String::deserialize(deserializer)?;
        // Go's decoder skips only line ends.
        text.retain(|character| !matches!(character, '\r' | '\n'));
        let bytes = BASE64
            .decode(SecretString::from(text).expose_secret())
            .map_err(|_| D::Error::invalid_value(Unexpected::Other("string"), &"base64"))?;
        Ok(Self((!bytes.is_empty()).then(|| bytes.into())))
    }
}

fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Ok((!text.is_empty()).then(|| text.into()))
}

impl File {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = decoded(bytes)?;
        let value: Option<Value> = first_document(&text, false)
            .map_err(|error| format!("{}it is not valid YAML", location(&error).unwrap_or_default()))?;
        let Some(mut value) = value.filter(|value| !value.is_null()) else { return Ok(Self::default()) };
        let had_nulls = without_nulls(&mut value);
        let written: Written = serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            // Only the text's parser knows the place, but it reports a null as a mistake.
            let place = (!had_nulls).then(|| first_document::<Written>(&text, true).err());
            let place = place.flatten().as_ref().and_then(location);
            format!("{}{}", place.unwrap_or_default(), JsonError::at(&path, error.inner()))
        })?;
        if !matches!(&*written.kind, "" | "Config") || !matches!(&*written.api_version, "" | "v1") {
            return Err("its kind is not Config, or its apiVersion is not v1".to_owned());
        }
        Ok(Self {
            clusters: by_name(
                "cluster",
                written.clusters.into_iter().map(|entry| (entry.name, entry.cluster)),
            )?,
            contexts: by_name(
                "context",
                written.contexts.into_iter().map(|entry| (entry.name, entry.context)),
            )?,
            users: by_name("user", written.users.into_iter().map(|entry| (entry.name, entry.user)))?,
            current_context: written.current_context,
        })
    }
}

fn by_name<T>(what: &str, entries: impl Iterator<Item = (String, T)>) -> Result<BTreeMap<String, T>, String> {
    let mut all = BTreeMap::new();
    for (name, entry) in entries {
        if all.contains_key(&name) {
            return Err(format!("it has two entries for the {what} {}", quoted(&name)));
        }
        all.insert(name, entry);
    }
    Ok(all)
}

/// By the byte order mark; without one, UTF-8.
fn decoded(bytes: &[u8]) -> Result<String, String> {
    let utf_16 = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let (units, rest) = bytes.as_chunks();
        let units: Vec<_> = units.iter().map(|unit| read(*unit)).collect();
        rest.is_empty().then(|| String::from_utf16(&units).ok()).flatten()
    };
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8(rest.to_vec()).ok(),
        _ => String::from_utf8(bytes.to_vec()).ok(),
    };
    text.ok_or_else(|| "it is neither UTF-8 nor UTF-16".to_owned())
}

fn first_document<T: DeserializeOwned>(
    text: &str,
    plain_numbers_are_no_texts: bool,
) -> Result<Option<T>, serde_saphyr::Error> {
    let mut options = serde_saphyr::Options::default();
    options.duplicate_keys = serde_saphyr::DuplicateKeyPolicy::LastWins;
    options.legacy_octal_numbers = true;
    options.no_schema = plain_numbers_are_no_texts;
    options.with_snippet = false;
    let mut bytes = text.as_bytes();
    let mut documents = serde_saphyr::read_with_options(&mut bytes, options);
    documents.next().transpose()
}

fn location(error: &serde_saphyr::Error) -> Option<String> {
    error.location().map(|at| format!("line {}, column {}: ", at.line(), at.column()))
}

/// Except in extensions, which belong to other programs. Returns whether there were any.
fn without_nulls(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) => {
            let before = fields.len();
            fields.retain(|_, value| !value.is_null());
            let had = fields.len() < before;
            let inner = fields.iter_mut().filter(|(name, _)| *name != "extension");
            inner.fold(had, |had, (_, value)| without_nulls(value) || had)
        }
        Value::Array(items) => items.iter_mut().map(without_nulls).max().unwrap_or_default(),
        _ => false,
    }
}
