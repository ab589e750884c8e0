//! Paths as spans of OpenTelemetry: one trace shows who caused what.
//!
//! 1. A change of an object and a reconcile are spans. The steps between two marks are spans within.
//! 2. The parent of a reconcile is the change that added its key; the parent of a change is the reconcile that wrote this
//!    version. So a trace begins with a change that nobody here has made.
//! 3. Ids follow from key, version and controller alone: spans sent at different times fit together.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Hop, Mark, Path};
use crate::object::{ObjectKey, ResourceVersion};

/// A chain of causes is followed no further.
const MOST_CAUSES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// In an informer.
    Change { key: ObjectKey, version: ResourceVersion },
    /// `taken` in nanoseconds.
    Reconcile { controller: String, key: ObjectKey, taken: u128 },
}

#[derive(Debug, Default)]
struct Group<'a> {
    marks: Vec<&'a Mark>,
    parent: Option<Of>,
}

/// The marks as a request of OTLP over HTTP in JSON (`POST /v1/traces`), for a collector of OpenTelemetry.
/// `service` names the program; `began` is the time of day at the start of the runtime, as time since 1970:
/// [`Runtime::wall_time`](crate::runtime::Runtime::wall_time) less
/// [`Runtime::now`](crate::runtime::Runtime::now).
///
/// ```
/// use actix_informer::path::otlp_request;
/// use actix_informer::prelude::*;
/// use std::time::SystemTime;
///
/// let runtime = Runtime::threads().start()?;
/// let since_1970 = runtime.wall_time().duration_since(SystemTime::UNIX_EPOCH)?;
/// let request = otlp_request(&runtime.paths().all(), "website-operator", since_1970 - runtime.now());
/// assert!(request.starts_with("{\"resourceSpans\""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn otlp_request(path: &Path, service: &str, began: Duration) -> String {
    request(path, service, began, |_, _| true).0
}

/// Only groups that are due by their id and the time of their last mark; also returns the number of spans.
pub(super) fn request(
    path: &Path,
    service: &str,
    began: Duration,
    mut is_due: impl FnMut(u64, Duration) -> bool,
) -> (String, usize) {
    let groups = groups(path);
    let mut spans = Vec::new();
    for (of, group) in &groups {
        if !group.marks.last().is_some_and(|last| is_due(of.id(), last.at)) {
            continue;
        }
        let (trace, own) = (trace_of(of, &groups), of.id());
        let (Some(first), Some(last)) = (group.marks.first(), group.marks.last()) else { continue };
        let parent = group.parent.as_ref().map(Of::id);
        spans.push(span((&trace, own, parent), &of.name(), (began + first.at, began + last.at), first));
        for (number, step) in group.marks.windows(2).enumerate() {
            let id = hash(&[&own.to_be_bytes(), &(number as u64).to_be_bytes()]);
            let name = step[1].hop.name();
            spans.push(span(
                (&trace, id, Some(own)),
                name,
                (began + step[0].at, began + step[1].at),
                step[1],
            ));
        }
    }
    let named = json!([{ "key": "service.name", "value": { "stringValue": service } }]);
    let scope = json!({ "name": "actix-informer", "version": env!("CARGO_PKG_VERSION") });
    let count = spans.len();
    let spans = json!([{ "scope": scope, "spans": spans }]);
    let request = json!({ "resourceSpans": [{ "resource": { "attributes": named }, "scopeSpans": spans }] });
    (request.to_string(), count)
}

/// In order.
fn groups(path: &Path) -> BTreeMap<Of, Group<'_>> {
    let mut groups: BTreeMap<Of, Group<'_>> = BTreeMap::new();
    let mut added: BTreeMap<(&str, &ObjectKey), Of> = BTreeMap::new();
    let mut running: BTreeMap<(&str, &ObjectKey), Of> = BTreeMap::new();
    let mut written: BTreeMap<(&ObjectKey, &ResourceVersion), Of> = BTreeMap::new();
    for mark in &path.marks {
        let place = (&*mark.place, &mark.key);
        match mark.hop {
            Hop::KeyAdded => {
                if let (Some(key), Some(version)) = (&mark.other, &mark.version) {
                    let change = Of::Change { key: key.clone(), version: version.clone() };
                    groups.entry(change.clone()).or_default().marks.push(mark);
                    added.insert(place, change);
                }
            }
            Hop::KeyTaken => {
                let taken = mark.at.as_nanos();
                let of = Of::Reconcile { controller: mark.place.to_string(), key: mark.key.clone(), taken };
                let group = groups.entry(of.clone()).or_default();
                group.parent = added.remove(&place);
                group.marks.push(mark);
                running.insert(place, of);
            }
            Hop::Reconciled | Hop::Seen => {
                if let Some(of) = running.get(&place) {
                    groups.entry(of.clone()).or_default().marks.push(mark);
                }
            }
            Hop::Written => {
                let by = mark.other.as_ref().and_then(|key| running.get(&(&*mark.place, key)));
                if let (Some(of), Some(version)) = (by, &mark.version) {
                    groups.entry(of.clone()).or_default().marks.push(mark);
                    written.insert((&mark.key, version), of.clone());
                }
            }
            _ => {
                if let Some(version) = &mark.version {
                    let of = Of::Change { key: mark.key.clone(), version: version.clone() };
                    let group = groups.entry(of).or_default();
                    group.parent =
                        group.parent.take().or_else(|| written.get(&(&mark.key, version)).cloned());
                    group.marks.push(mark);
                }
            }
        }
    }
    groups
}

/// The id of the first known cause.
fn trace_of(of: &Of, groups: &BTreeMap<Of, Group<'_>>) -> String {
    let mut first = of;
    for _ in 0..MOST_CAUSES {
        match groups.get(first).and_then(|group| group.parent.as_ref()) {
            Some(parent) => first = parent,
            None => break,
        }
    }
    let id = first.id();
    format!("{:016x}{id:016x}", hash(&[b"trace", &id.to_be_bytes()]))
}

impl Of {
    fn id(&self) -> u64 {
        match self {
            Self::Change { key, version } => {
                hash(&[b"change", key.to_string().as_bytes(), version.to_string().as_bytes()])
            }
            Self::Reconcile { controller, key, taken } => {
                hash(&[b"reconcile", controller.as_bytes(), key.to_string().as_bytes(), &taken.to_be_bytes()])
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Change { key, .. } => format!("change of {key}"),
            Self::Reconcile { controller, key, .. } => format!("{controller}: reconcile of {key}"),
        }
    }
}

/// FNV-1a over separated parts; not zero, which is no id.
fn hash(parts: &[&[u8]]) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let part = |hash: u64, part: &&[u8]| mix(part.iter().copied().fold(hash, mix), 0xff);
    let hash = parts.iter().fold(0xcbf2_9ce4_8422_2325, part);
    // The last bytes of a text change only the lowest bits much.
    ((hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (hash >> 32)).max(1)
}

fn span(
    (trace, id, parent): (&str, u64, Option<u64>),
    name: &str,
    (from, to): (Duration, Duration),
    mark: &Mark,
) -> Value {
    let text = |key: &str, value: String| json!({ "key": key, "value": { "stringValue": value } });
    let mut attributes = vec![text("place", mark.place.to_string()), text("key", mark.key.to_string())];
    attributes.extend(mark.version.as_ref().map(|version| text("version", version.to_string())));
    attributes.extend(mark.by.as_ref().map(|by| text("by", by.to_string())));
    attributes.extend(mark.other.as_ref().map(|other| text("other", other.to_string())));
    json!({
        "traceId": trace,
        "spanId": format!("{id:016x}"),
        "parentSpanId": parent.map(|parent| format!("{parent:016x}")).unwrap_or_default(),
        "name": name,
        "kind": 1,
        "startTimeUnixNano": from.as_nanos().to_string(),
        "endTimeUnixNano": to.as_nanos().to_string(),
        "attributes": attributes,
    })
}
