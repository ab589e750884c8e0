//! kubectl and our client with the same kubeconfig files on the same server.
//!
//! Answers "does every file of the table give the same user to both, or is it refused by both?" The server is the judge
//! of the user's identity: both ask for it by a SelfSubjectReview. Invariants:
//! 1. kubectl decides what is right: a row that states another outcome than kubectl's fails.
//! 2. Each program has its own copy of a row's files, since kubectl writes renewed tokens into them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_informer::client::{Client, Config, Error};
use http::Method;
use serde_json::{Value, json};

use crate::rows::{Outcome, Row, rows};
use crate::stage::Stage;

/// How many rows are judged at once: kubectl mostly starts.
const AT_ONCE: usize = 4;

/// The user as the server sees it, or why that is not known.
type Who = Result<Value, String>;

#[test]
fn a_kubeconfig_works_as_for_kubectl_or_is_refused_as_by_kubectl() {
    let Some(stage) = Stage::start() else { return };
    let rows = rows();
    assert!(rows.len() >= 60, "{} rows", rows.len());
    let next = AtomicUsize::new(0);
    let judge = || {
        let mut wrong = Vec::new();
        while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
            wrong.extend(judged(&stage, row).err());
        }
        wrong
    };
    let wrong: Vec<_> = std::thread::scope(|scope| {
        let judges: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(judge)).collect();
        judges.into_iter().flat_map(|judge| judge.join().expect("a judge")).collect()
    });
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

fn judged(stage: &Stage, row: &Row) -> Result<(), String> {
    let kubectl = by_kubectl(stage, row);
    let found = outcome(&kubectl);
    if found != expected(&row.outcome) {
        return Err(format!("{}: kubectl gives {found:?}, not {:?}: {kubectl:?}", row.name, row.outcome));
    }
    let ours = by_us(stage, row);
    if let Some((outcome_of_ours, reason)) = &row.ours {
        let is_so = outcome(&ours) == expected(outcome_of_ours);
        return is_so.then_some(()).ok_or_else(|| format!("{}: {ours:?}, although {reason}", row.name));
    }
    match (kubectl, ours) {
        (Ok(kubectl), Ok(ours)) if kubectl == ours => Ok(()),
        (Err(_), Err(_)) => Ok(()),
        (kubectl, ours) => Err(format!("{}: kubectl: {kubectl:?}\n    ours: {ours:?}", row.name)),
    }
}

fn expected(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::User(name) => Some((*name).to_owned()),
        Outcome::Refused => None,
    }
}

fn outcome(who: &Who) -> Option<String> {
    who.as_ref().ok().map(|user| user["username"].as_str().unwrap_or_default().to_owned())
}

/// The files of a row in a folder of their own, two below the files that they name. One that is named `-` is missing.
fn written(stage: &Stage, row: &Row, program: &str) -> Vec<PathBuf> {
    let folder = stage.folder().join(row.name.replace([' ', ':', ',', '#'], "-")).join(program);
    std::fs::create_dir_all(&folder).expect("a folder");
    let write = |(name, text): &(&str, String)| {
        let path = folder.join(name);
        let is_there = *name != "-" && !(row.name.ends_with("only missing files"));
        if is_there {
            std::fs::write(&path, stage.filled(text)).expect("written");
        }
        path
    };
    row.files.iter().map(write).collect()
}

fn by_kubectl(stage: &Stage, row: &Row) -> Who {
    let paths = written(stage, row, "kubectl");
    let mut command = Command::new(&stage.kubectl);
    match &*paths {
        [path] => command.arg("--kubeconfig").arg(path),
        paths => command.env("KUBECONFIG", std::env::join_paths(paths).expect("no colons")),
    };
    if let Some(context) = row.context {
        command.args(["--context", context]);
    }
    let home: &Path = stage.folder();
    command.env("HOME", home).env("KUBECACHEDIR", home.join("cache")).stdin(Stdio::null());
    let output = command.args(["auth", "whoami", "--output=json"]).output().expect("kubectl runs");
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let review: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    Ok(review["status"]["userInfo"].clone())
}

fn by_us(stage: &Stage, row: &Row) -> Who {
    let paths = written(stage, row, "ours");
    let config = match &*paths {
        [path] => Config::from_kubeconfig_file(path, row.context),
        paths => Config::from_kubeconfig_files(paths, row.context),
    };
    // A plugin that hangs is given up sooner than kubectl's, which waits for it.
    let client = config.and_then(|config| Client::new(config.plugin_limit(Duration::from_secs(3))));
    client.and_then(|client| who_am_i(&client)).map_err(|error| error.to_string())
}

/// Asks the server who this client is.
pub(crate) fn who_am_i(client: &Client) -> Result<Value, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" }).to_string();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = Some(("application/json", review.into_bytes()));
    let answer = runtime.block_on(client.request(Method::POST, path, body))?;
    let review: Value = serde_json::from_slice(answer.body()).expect("the server writes JSON");
    Ok(review["status"]["userInfo"].clone())
}
