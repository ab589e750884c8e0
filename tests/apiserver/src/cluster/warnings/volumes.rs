//! Volumes of a pod: kinds that are not supported any more, and files that hide each other.
//!
//! Answers: what are the warnings for these volumes? A pod with them is still stored.
//! 1. Within one volume a path may not be the beginning of another; both are named.
use serde_json::Value;

use super::kinds;
use super::{items, text};

/// The kinds of volumes that are not supported any more, in the order of warnings.
const GONE: [(&str, &str); 7] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
];
const GONE_LATER: [&str; 2] = ["cephfs", "rbd"];

/// One file of a volume: its path, and what of the volume it is from.
type File = (String, String);

pub(super) fn check(spec: &str, pod: &Value, warnings: &mut Vec<String>) {
    for (at, volume) in items(pod, "volumes") {
        let place = format!("{spec}.volumes[{at}]");
        for (name, why) in GONE {
            if volume.get(name).is_some() {
                // The field is shown with its name in Go.
                let name = if name == "storageos" { "storageOS" } else { name };
                warnings.push(format!("{place}.{name}: {why}"));
            }
        }
        if let Some(claim) = volume.pointer("/ephemeral/volumeClaimTemplate/spec") {
            kinds::claim(&format!("{place}.ephemeral.volumeClaimTemplate.spec"), claim, warnings);
        }
        for name in GONE_LATER {
            if volume.get(name).is_some() {
                warnings.push(format!("{place}.{name}: deprecated in v1.28, non-functional in v1.31+"));
            }
        }
    }
    items(pod, "volumes").for_each(|(_, volume)| overlaps(volume, warnings));
}

fn overlaps(volume: &Value, warnings: &mut Vec<String>) {
    let name = text(volume, "name");
    let mut tell = |what: &str, found: Vec<String>| {
        warnings.extend(
            found.into_iter().map(|pair| format!("volume {name:?} ({what}): overlapping paths: {pair}")),
        );
    };
    let alone = |source: &Value| collisions(&files(source, ""), &mut Vec::new());
    if let Some(map) = volume.get("configMap") {
        tell(&format!("ConfigMap {:?}", text(map, "name")), alone(map));
    }
    if let Some(secret) = volume.get("secret") {
        tell(&format!("Secret {:?}", text(secret, "secretName")), alone(secret));
    }
    if let Some(downward) = volume.get("downwardAPI") {
        tell("DownwardAPI", alone(downward));
    }
    let mut all = Vec::new();
    for (_, source) in items(&volume["projected"], "sources") {
        if source.as_object().is_some_and(serde_json::Map::is_empty) {
            warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
            continue;
        }
        let pairs = collisions(&projected(source), &mut all);
        warnings.extend(
            pairs.into_iter().map(|pair| format!("volume {name:?} (Projected): overlapping paths: {pair}")),
        );
    }
}

fn files(source: &Value, from: &str) -> Vec<File> {
    items(source, "items").map(|(_, item)| (text(item, "path").to_owned(), from.to_owned())).collect()
}

fn projected(source: &Value) -> Vec<File> {
    if let Some(map) = source.get("configMap").filter(|map| map.get("items").is_some()) {
        return files(map, &format!("ConfigMap {:?}", text(map, "name")));
    }
    if let Some(secret) = source.get("secret").filter(|secret| secret.get("items").is_some()) {
        return files(secret, &format!("Secret {:?}", text(secret, "name")));
    }
    if let Some(downward) = source.get("downwardAPI").filter(|downward| downward.get("items").is_some()) {
        return files(downward, "DownwardAPI");
    }
    if let Some(token) = source.get("serviceAccountToken") {
        return vec![(text(token, "path").to_owned(), "ServiceAccountToken".to_owned())];
    }
    if let Some(bundle) = source.get("clusterTrustBundle") {
        let name = ["name", "signerName"].into_iter().find_map(|name| bundle[name].as_str());
        let from = format!("ClusterTrustBundle {:?}", name.unwrap_or_default());
        return vec![(text(bundle, "path").to_owned(), from)];
    }
    let parts = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    let certificate = &source["podCertificate"];
    let told = parts.into_iter().filter(|(name, _)| !text(certificate, name).is_empty());
    told.map(|(name, from)| (text(certificate, name).to_owned(), from.to_owned())).collect()
}

/// Each of `new` that hides or is hidden by one before it; they are added to those.
fn collisions(new: &[File], before: &mut Vec<File>) -> Vec<String> {
    let told = |(path, from): &File| match from.as_str() {
        "" => format!("{path:?}"),
        from => format!("{path:?} ({from})"),
    };
    let within = |one: &str, other: &str| format!("{one}/").starts_with(&format!("{other}/"));
    let mut found = Vec::new();
    for (path, from) in new {
        let file = (path.trim_end_matches('/').to_owned(), from.clone());
        let hidden = before.iter().filter(|known| {
            !known.0.is_empty()
                && !file.0.is_empty()
                && (within(&known.0, &file.0) || within(&file.0, &known.0))
        });
        found.extend(hidden.map(|known| format!("{} with {}", told(&file), told(known))));
        before.push(file);
    }
    found
}
