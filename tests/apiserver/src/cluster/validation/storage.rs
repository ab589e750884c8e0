//! Config maps, secrets, claims, volumes and their classes.
//!
//! Answers: does the data match the type, and what of it may still change?
//! 1. Data marked as immutable may not change, nor may the mark.
use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use super::selectors;
use crate::cluster::names::NameRule;
use crate::cluster::schema::quantity;

const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const FROZEN: &str = "field is immutable when `immutable` is set";
const CLAIM_FIXED: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
/// How many bytes the data of one config map or secret may have.
const MOST_DATA: usize = 1024 * 1024;
const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    match plural {
        "configmaps" => {
            for name in body["data"].as_object().into_iter().flat_map(|data| data.keys()) {
                key("data", name, causes);
                if body["binaryData"].get(name).is_some() {
                    let why = "duplicate of key present in binaryData";
                    causes.invalid(&format!("data[{name}]"), &json!(name), why);
                }
            }
            keys("binaryData", &body["binaryData"], causes);
            if texts_size(&body["data"]) + decoded_size(&body["binaryData"]) > MOST_DATA {
                // The limit has no field name: a real server writes it so.
                causes.too_long("[]", MOST_DATA);
            }
        }
        "secrets" => secret(body, causes),
        "persistentvolumeclaims" => claim(&body["spec"], causes),
        "persistentvolumes" => volume(&body["spec"], causes),
        "storageclasses" if text(body, "provisioner").is_empty() => causes.required("provisioner", ""),
        _ => {}
    }
}

fn keys(field: &str, data: &Value, causes: &mut Causes) {
    for name in data.as_object().into_iter().flat_map(|data| data.keys()) {
        key(field, name, causes);
    }
}

fn key(field: &str, name: &str, causes: &mut Causes) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || !name.bytes().all(plain) {
        causes.invalid(&format!("{field}[{name}]"), &json!(name), KEY);
    }
}

fn texts_size(data: &Value) -> usize {
    values(data).map(str::len).sum()
}

/// The size of what is written as base64.
fn decoded_size(data: &Value) -> usize {
    values(data).map(|text| text.trim_end_matches('=').len() * 3 / 4).sum()
}

fn values(data: &Value) -> impl Iterator<Item = &str> {
    data.as_object().into_iter().flat_map(|data| data.values()).filter_map(Value::as_str)
}

fn secret(body: &Value, causes: &mut Causes) {
    keys("data", &body["data"], causes);
    if decoded_size(&body["data"]) > MOST_DATA {
        causes.too_long("data", MOST_DATA);
    }
    let has = |name: &str| body["data"].get(name).is_some();
    match text(body, "type") {
        "kubernetes.io/tls" => {
            for name in ["tls.crt", "tls.key"].into_iter().filter(|name| !has(name)) {
                causes.required(&format!("data[{name}]"), "");
            }
        }
        "kubernetes.io/dockerconfigjson" if !has(".dockerconfigjson") => {
            causes.required("data[.dockerconfigjson]", "")
        }
        "kubernetes.io/dockercfg" if !has(".dockercfg") => causes.required("data[.dockercfg]", ""),
        "kubernetes.io/ssh-auth" if !has("ssh-privatekey") => causes.required("data[ssh-privatekey]", ""),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            causes.required("data[username]", "");
            causes.required("data[password]", "");
        }
        _ => {}
    }
}

fn access_modes(spec: &Value, why: &str, causes: &mut Causes) {
    if list(spec, "accessModes").is_empty() {
        causes.required("spec.accessModes", why);
    }
    for mode in list(spec, "accessModes") {
        causes.one_of("spec.accessModes", Some(mode), &MODES);
    }
}

fn claim(spec: &Value, causes: &mut Causes) {
    selectors::check("spec.selector", spec.get("selector"), causes);
    access_modes(spec, "at least 1 access mode is required", causes);
    let modes = list(spec, "accessModes");
    if modes.len() > 1 && modes.contains(&json!("ReadWriteOncePod")) {
        let why = "may not use ReadWriteOncePod with other access modes";
        causes.forbidden("spec.accessModes", why);
    }
    match spec.pointer("/resources/requests/storage") {
        None => causes.required("spec.resources[storage]", ""),
        Some(size) => {
            if size.as_str().and_then(quantity::nanos).is_some_and(|size| size <= 0) {
                causes.invalid("spec.resources[storage]", size, "must be greater than zero");
            }
        }
    }
    causes.name("spec.storageClassName", text(spec, "storageClassName"), NameRule::Subdomain);
    causes.one_of("spec.volumeMode", spec.get("volumeMode"), &["Block", "Filesystem"]);
}

fn volume(spec: &Value, causes: &mut Causes) {
    access_modes(spec, "", causes);
    let capacity = spec.get("capacity").and_then(Value::as_object);
    if capacity.is_none_or(serde_json::Map::is_empty) {
        causes.required("spec.capacity", "");
    }
    if capacity.is_none_or(|capacity| !capacity.contains_key("storage")) {
        causes.unsupported("spec.capacity", spec.get("capacity").unwrap_or(&Value::Null), &["storage"]);
    }
    let plain = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
    ];
    let others = ["storageClassName", "volumeAttributesClassName", "volumeMode"];
    let source = |name: &String| !plain.contains(&name.as_str()) && !others.contains(&name.as_str());
    if !spec.as_object().is_some_and(|spec| spec.keys().any(source)) {
        causes.required("spec", "must specify a volume type");
    }
}

pub(super) fn change(plural: &str, old: &Value, new: &Value, causes: &mut Causes) {
    match plural {
        "configmaps" | "secrets" => {
            if plural == "secrets" {
                causes.unchanged("type", old.get("type"), new.get("type"));
            }
            if old["immutable"] == true {
                for name in ["immutable", "data", "binaryData"] {
                    if old.get(name) != new.get(name) {
                        causes.forbidden(name, FROZEN);
                    }
                }
            }
        }
        "persistentvolumeclaims" => {
            let fixed = |claim: &Value| {
                let mut spec = claim["spec"].as_object().cloned().unwrap_or_default();
                let free = ["resources", "volumeAttributesClassName"];
                spec.retain(|name, _| !free.contains(&name.as_str()));
                spec
            };
            let binds = old["spec"].get("volumeName").is_none() && new["spec"].get("volumeName").is_some();
            if !binds && fixed(old) != fixed(new) {
                causes.forbidden("spec", CLAIM_FIXED);
            }
            causes.unchanged("volumeMode", old["spec"].get("volumeMode"), new["spec"].get("volumeMode"));
        }
        _ => {}
    }
}
