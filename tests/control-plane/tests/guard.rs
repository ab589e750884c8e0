//! A test process that is killed leaves no control plane behind, neither processes nor files.
//!
//! Question: what if nothing is dropped? The test runs itself as a second process, which starts a control plane,
//! prints the ids of its processes, and is then killed.
//! 1. The wait ends with the processes; it has no limit of its own.
//!
//! Read next: `src/process.rs`.
#![cfg(target_os = "linux")]

use std::{
    env, fs,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, abort},
    thread,
};

use informer_control_plane::{Binaries, ControlPlane};
use rustix::process::{Signal, kill_current_process_group};

const DOOMED: &str = "INFORMER_TEST_DOOMED";

#[test]
fn an_aborted_test_leaves_no_process_behind() {
    leaves_nothing_behind("an_aborted_test_leaves_no_process_behind", |_| abort());
}

#[test]
fn a_test_that_is_interrupted_with_all_its_children_leaves_no_process_behind() {
    leaves_nothing_behind(
        "a_test_that_is_interrupted_with_all_its_children_leaves_no_process_behind",
        |plane| {
            // It would not end by the signal that the others get.
            plane.freeze_apiserver().unwrap();
            kill_current_process_group(Signal::TERM).unwrap();
            loop {
                thread::park();
            }
        },
    );
}

/// Runs the test of this name a second time, where `doom` ends it.
fn leaves_nothing_behind(name: &str, doom: fn(&ControlPlane)) {
    let Some(binaries) = Binaries::find_or_skip() else { return };
    if let Some(report) = env::var_os(DOOMED) {
        let plane = ControlPlane::builder(binaries).start().expect("it starts");
        let ids = [plane.apiserver_id(), plane.etcd_id()].map(|id| id.expect("both run"));
        fs::write(report, ids.map(|id| id.to_string()).join(" ")).expect("a writable directory");
        return doom(&plane);
    }
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("ids");
    let doomed = Command::new(env::current_exe().expect("this program has a path"))
        .args(["--exact", name, "--nocapture"])
        .env(DOOMED, &report)
        .env("TMPDIR", directory.path())
        .process_group(0)
        .status();
    assert!(!doomed.expect("it can be run").success());
    let ids = fs::read_to_string(&report).expect("the doomed process started a control plane");
    for id in ids.split(' ') {
        while runs_a_program(id) {
            thread::yield_now();
        }
    }
    while fs::read_dir(directory.path()).expect("it is there still").count() > 1 {
        thread::yield_now();
    }
}

/// False for a process that is gone, and for one that ended and that its new parent has not waited for yet.
fn runs_a_program(id: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(id).join("status"));
    status.is_ok_and(|status| !status.lines().any(|line| line.starts_with("State:\tZ")))
}
