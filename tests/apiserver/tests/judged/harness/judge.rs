//! Runs one script on both servers and decides.
//!
//! Answers: does our server do what the real one does, except for what DIFFERENCES.md lists?
//! 1. A difference that is not listed fails, with both sides and the line that would list it.
//! 2. A listed difference that is not there any more fails too: its line must be removed.
//! 3. `INFORMER_JUDGE_DUMP=DIR` writes both sides there as `SCRIPT.ours.json` and `SCRIPT.real.json`.
use std::any::type_name;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::compare::{Difference, compare, short};
use super::known;
use super::normal::{Normal, normal};
use super::servers::{self, Subject};
use super::session::Session;
use super::transcript::Step;

/// How many differences a failure shows in full.
const SHOWN: usize = 12;

/// Compares our server with the real one by a script; called from the test with the script's name.
pub(crate) fn judge<S: Fn(&mut Session)>(script: S) {
    judge_on(&servers::ours().subject, servers::real, script);
}

/// The same with a real server only for this script, started with these flags.
pub(crate) fn judge_alone<S: Fn(&mut Session)>(flags: &[&str], script: S) {
    judge_on(&servers::ours().subject, || servers::alone(flags), script);
}

/// The same on servers that were started for this script.
pub(crate) fn judge_on<S: Fn(&mut Session)>(
    ours: &Subject,
    real: impl FnOnce() -> Option<Subject>,
    script: S,
) {
    let name = name_of::<S>();
    let ours = run(ours, &name, &script);
    let Some(real) = real() else { return };
    let real = run(&real, &name, &script);
    dump(&name, &ours, &real);
    decide(&name, &compare(&ours, &real));
}

/// The name of the test that contains the script.
fn name_of<S>() -> String {
    let path = type_name::<S>();
    let path = path.trim_end_matches("::{{closure}}");
    path.rsplit("::").next().unwrap_or(path).to_owned()
}

fn run(subject: &Subject, name: &str, script: &impl Fn(&mut Session)) -> Normal {
    let mut session = Session::begin(subject.clone(), name);
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| script(&mut session))) {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let label = session.transcript.label("PANIC", "");
        session.transcript.push(Step::noted(label, text.into()));
    }
    normal(&session.transcript)
}

fn decide(name: &str, found: &[Difference]) {
    let known = known::list();
    let is_known = |difference: &&Difference| known.iter().any(|line| line.covers(name, difference));
    let new: Vec<&Difference> = found.iter().filter(|difference| !is_known(difference)).collect();
    let gone = known.iter().filter(|line| line.is_proved_by(name));
    let gone: Vec<_> =
        gone.filter(|line| !found.iter().any(|difference| line.covers(name, difference))).collect();
    let mut complaint = String::new();
    if !new.is_empty() {
        complaint.push_str("ours differs from the real kube-apiserver:\n");
    }
    for difference in new.iter().take(SHOWN) {
        let _infallible = writeln!(complaint, "  {difference}");
    }
    if new.len() > SHOWN {
        let _infallible = writeln!(complaint, "  and {} more", new.len() - SHOWN);
    }
    if !new.is_empty() {
        complaint.push_str("to be listed in DIFFERENCES.md, if it has to wait, as:\n");
    }
    for line in suggested(name, &new) {
        let _infallible = writeln!(complaint, "{line}");
    }
    for line in gone {
        let _infallible = writeln!(complaint, "listed in DIFFERENCES.md, but there no more:\n{}", line.line);
    }
    assert!(complaint.is_empty(), "{name}: {complaint}");
}

/// The lines that would list these differences; one for the whole step if not even the code is the same.
fn suggested(name: &str, new: &[&Difference]) -> Vec<String> {
    let told = |side: &Option<Value>| {
        let text = side.as_ref().map_or_else(|| "absent".to_owned(), |side| short(side, 60));
        text.replace('|', "/")
    };
    let another_code = |step: &str| new.iter().any(|other| other.step == step && other.at == "/code");
    let mut lines = Vec::new();
    for difference in new {
        let at = match (difference.at.as_str(), another_code(&difference.step)) {
            ("/code", _) => "/",
            (_, true) => continue,
            (at, false) => at,
        };
        let (ours, real) = (told(&difference.ours), told(&difference.real));
        lines.push(format!("| {name} | {} | {at} | OWNER | ours {ours}, real {real} |", difference.step));
    }
    lines
}

fn dump(name: &str, ours: &Normal, real: &Normal) {
    let Some(directory) = env::var_os("INFORMER_JUDGE_DUMP") else { return };
    for (side, run) in [("ours", ours), ("real", real)] {
        let mut steps: Map<String, Value> = run.steps.iter().cloned().collect();
        steps.insert("order of versions".to_owned(), json!(run.order));
        let text = serde_json::to_string_pretty(&steps).expect("values are JSON");
        fs::write(Path::new(&directory).join(format!("{name}.{side}.json")), text)
            .expect("a file to dump to");
    }
}
