//! Jobs and cron jobs: counts, selectors of their own, pods that end.
//!
//! Answers: can the pods of this job run and be selected, and when does it run? `schedule.rs` reads times.
//! 1. A job's pods do not restart for ever.
//! 2. The template of a cron job has no selector yet; a job has one, generated or set by the client.
//! 3. Time zones are those of the data base that is compiled in. The machine's own files are not read, so that the same
//!    request is answered alike everywhere.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde_json::{Value, json};

use super::causes::{Causes, list, text};
use super::schedule;
use super::selectors::{self, written};

const RESTARTS: &str = "valid values: \"OnFailure\", \"Never\"";
/// How long the name of a cron job may be, so that its jobs' names are labels.
const MOST_NAME: usize = 52;

pub(super) fn check(plural: &str, body: &Value, causes: &mut Causes) {
    let spec = &body["spec"];
    match plural {
        "jobs" => {
            generated(text(&body["metadata"], "uid"), spec, causes);
            work("spec", spec, causes);
            selector(spec, causes);
        }
        "cronjobs" => cron(spec, causes),
        _ => {}
    }
}

/// The check of a new cron job's name, after all other checks.
pub(super) fn new_name(body: &Value, causes: &mut Causes) {
    let name = text(&body["metadata"], "name");
    if name.len() > MOST_NAME {
        causes.invalid("metadata.name", &json!(name), "must be no more than 52 characters");
    }
}

fn work(at: &str, spec: &Value, causes: &mut Causes) {
    let names = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    causes.counts(at, spec, &names);
    causes.one_of(&format!("{at}.completionMode"), spec.get("completionMode"), &["NonIndexed", "Indexed"]);
    if text(spec, "completionMode") == "Indexed" && spec.get("completions").is_none() {
        causes.required(&format!("{at}.completions"), "when completion mode is Indexed");
    }
    failure_policy(&format!("{at}.podFailurePolicy"), &spec["podFailurePolicy"], causes);
    selectors::check_template(&format!("{at}.template"), &spec["template"], causes);
    let (field, policy) =
        (format!("{at}.template.spec.restartPolicy"), &spec["template"]["spec"]["restartPolicy"]);
    match policy.as_str().unwrap_or_default() {
        "" | "Always" => causes.required(&field, RESTARTS),
        "OnFailure" if spec.get("podFailurePolicy").is_some() => {
            causes.invalid(&field, policy, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" | "Never" => {}
        _ => causes.unsupported(&field, policy, &["OnFailure", "Never"]),
    }
}

fn failure_policy(field: &str, policy: &Value, causes: &mut Causes) {
    for (at, rule) in list(policy, "rules").iter().enumerate() {
        let field = format!("{field}.rules[{at}]");
        if text(rule, "action").is_empty() {
            let known = "valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"]";
            causes.required(&format!("{field}.action"), known);
        }
        let conditions = list(rule, "onPodConditions");
        if rule.get("onExitCodes").is_none() && conditions.is_empty() {
            causes.invalid_whole(&field, "specifying one of OnExitCodes and OnPodConditions is required");
        }
    }
}

/// The selector a job has when it is stored: generated, unless the client sets it.
fn selector(spec: &Value, causes: &mut Causes) {
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    if selector.is_none() {
        causes.required("spec.selector", "");
    }
    if selectors::check("spec.selector", selector, causes) {
        selectors::fits(spec, causes);
    }
}

/// Whether a job that leaves its selector to the server has the one that is made of its uid, and no other part.
fn generated(uid: &str, spec: &Value, causes: &mut Causes) {
    let own = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    if spec["manualSelector"] != true && spec.get("selector").is_some_and(|selector| *selector != own) {
        causes.invalid_text("spec.selector", &written(&spec["selector"]), "`selector` not auto-generated");
    }
}

fn time_zone(zone: &str, causes: &mut Causes) {
    let mut refuse = |why: &str| causes.invalid("spec.timeZone", &json!(zone), why);
    if zone.is_empty() {
        refuse("timeZone must be nil or non-empty string");
        return;
    }
    if zone.eq_ignore_ascii_case("local") {
        refuse("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    }
    if let Err(why) = zone_named(zone) {
        refuse(&why);
    }
}

fn cron(spec: &Value, causes: &mut Causes) {
    let zone = spec.get("timeZone").and_then(Value::as_str);
    schedule::check("spec.schedule", text(spec, "schedule"), causes);
    causes.counts("spec", spec, &["startingDeadlineSeconds"]);
    if let Some(zone) = zone {
        time_zone(zone, causes);
    }
    let policy = spec.get("concurrencyPolicy");
    causes.one_of("spec.concurrencyPolicy", policy, &["Allow", "Forbid", "Replace"]);
    let job = &spec["jobTemplate"]["spec"];
    work("spec.jobTemplate.spec", job, causes);
    if job["manualSelector"] == true {
        let field = "spec.jobTemplate.spec.manualSelector";
        causes.unsupported(field, json!(true), &["nil", "false"]);
    }
    causes.counts("spec", spec, &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"]);
}

static BUNDLED: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone of this name.
///
/// # Errors
/// Go's text for an unknown name.
pub(crate) fn zone_named(name: &str) -> Result<TimeZone, String> {
    match name {
        "" | "UTC" => Ok(TimeZone::UTC),
        _ => BUNDLED.get(name).map_err(|_| format!("unknown time zone {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::zone_named;

    #[test]
    fn a_zone_is_found_by_its_name() {
        assert!(zone_named("Europe/Berlin").is_ok());
        assert_eq!(zone_named("Mars/Olympus"), Err("unknown time zone Mars/Olympus".to_owned()));
    }
}
