//! A test process that is killed leaves no control plane behind, neither processes nor files.
//!
//! Question: what if nothing is dropped? The test runs itself as a second process, which starts a control
//! plane, says which processes those are, and aborts.
//! 1. The wait ends with the processes; it has no limit of its own.
//!
//! Read next: `src/process.rs`.
#![cfg(target_os = "linux")]

use std::{
    env, fs,
    path::Path,
    process::{Command, abort},
    thread,
};

use informer_control_plane::{Binaries, ControlPlane};

const NAME: &str = "an_aborted_test_leaves_no_process_behind";
const DOOMED: &str = "INFORMER_TEST_DOOMED";

#[test]
fn an_aborted_test_leaves_no_process_behind() {
    let Some(binaries) = Binaries::find_or_skip() else { return };
    if let Some(report) = env::var_os(DOOMED) {
        let plane = ControlPlane::builder(binaries).start().unwrap();
        let ids = [plane.apiserver_id().unwrap(), plane.etcd_id().unwrap()];
        fs::write(report, ids.map(|id| id.to_string()).join(" ")).unwrap();
        abort();
    }
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("ids");
    let doomed = Command::new(env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(DOOMED, &report)
        .env("TMPDIR", directory.path())
        .status();
    assert!(!doomed.unwrap().success());
    let ids = fs::read_to_string(&report).expect("the doomed process started a control plane");
    for id in ids.split(' ') {
        while runs_a_program(id) {
            thread::yield_now();
        }
    }
    while fs::read_dir(directory.path()).unwrap().count() > 1 {
        thread::yield_now();
    }
}

/// False for a process that is gone, and for one that ended and is not yet waited for by whoever inherited
/// it.
fn runs_a_program(id: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(id).join("status"));
    status.is_ok_and(|status| !status.lines().any(|line| line.starts_with("State:\tZ")))
}
