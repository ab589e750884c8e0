//! How it ends: by signals, by time, by a reader that closes the pipe, and by one that never reads.
//!
//! Answers "does every end drain, and does none hang?".

use std::io::{BufRead, BufReader};
use std::process::ChildStdout;
use std::sync::mpsc::channel;

use rustix::process::Signal;
use serde_json::json;

use crate::process::{Informerd, PATIENCE, http_get, wait_for_code};
use crate::replay::Replay;

#[test]
fn time_over_ends_with_a_summary() {
    let (status, lines, _) = Informerd::start(&["--for", "10s"]).end();
    assert!(status.success());
    let at = lines.iter().position(|line| line.starts_with("summary after")).expect("a summary");
    assert!(lines[at].ends_with("(time over): everything was delivered"), "{}", lines[at]);
    assert!(lines[at + 1].starts_with("  Pod: "), "{:?}", &lines[at..]);
    assert_eq!(lines.len(), at + 2, "something follows the summary");
    assert!(lines.iter().all(|line| !line.contains('\u{1b}')), "colour in a pipe");
}

#[test]
fn client_informerd_the_time_counts_from_the_start_also_while_the_server_does_not_answer() {
    let server = informer_apiserver::ApiServer::builder().start_blocking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    server.write_kubeconfig(&file).unwrap();
    server.faults().freeze_server(true);
    let arguments = ["--kubeconfig", file.to_str().unwrap(), "--for", "5s", "--output", "json"];
    let (status, lines, stderr) = Informerd::start(&arguments).end();
    assert_eq!(status.code(), Some(1), "nothing was answered, nothing has failed yet: {stderr}");
    let seconds = Replay::of(&lines).summary.unwrap()["seconds"].as_f64().unwrap();
    assert!(
        (5.0..9.0).contains(&seconds),
        "it waits for what the kinds are, and then as long again: {seconds}"
    );
}

#[test]
fn client_informerd_a_signal_ends_it_also_while_the_server_does_not_say_which_kinds_there_are() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (file, config) = (folder.path().join("kubeconfig"), folder.path().join("c.toml"));
    let url = format!("http://{}", server.local_addr().unwrap());
    let kubeconfig = json!({
        "clusters": [{"name": "a", "cluster": {"server": url}}],
        "users": [{"name": "a", "user": {}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    });
    std::fs::write(&file, kubeconfig.to_string()).unwrap();
    std::fs::write(&config, "[[informer]]\nkind = \"widgets\"\n").unwrap();
    let informerd =
        Informerd::start(&["--kubeconfig", file.to_str().unwrap(), "--config", config.to_str().unwrap()]);
    let (accepted, asked) = channel();
    std::thread::spawn(move || accepted.send(server.accept()));
    let _connection = asked.recv_timeout(PATIENCE).expect("it asks the server");
    informerd.signal(Signal::TERM);
    let (status, _, stderr) = informerd.end();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("informerd: stopped while it asked the server which kinds there are"),
        "{stderr}"
    );
}

fn ends_drained_by(signal: Signal, name: &str) {
    let mut informerd = Informerd::start(&["--output", "json", "--list-at-end"]);
    informerd.line(|line| line.contains(r#""cause":"Watch""#));
    informerd.signal(signal);
    let (status, lines, stderr) = informerd.end();
    assert_eq!(status.code(), Some(0), "{stderr}");
    let replay = Replay::of(&lines);
    replay.check_against_summary();
    assert_eq!(replay.summary.unwrap()["ending"], name);
}

#[test]
fn sigterm_drains_and_ends_with_code_zero() {
    ends_drained_by(Signal::TERM, "SIGTERM");
}

#[test]
fn ctrl_c_drains_and_ends_with_code_zero() {
    ends_drained_by(Signal::INT, "SIGINT");
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_a_failure() {
    let (informerd, stdout) = Informerd::start_unread(&[]);
    let first = BufReader::new(stdout).lines().next().unwrap().unwrap();
    assert!(first.contains("Pod"), "{first}");
    // The reader is dropped with its pipe.
    let (status, _, stderr) = informerd.end();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// Much output, and no reader.
fn stuck(drain_seconds: u32) -> (Informerd, ChildStdout, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("busy.toml");
    let text =
        format!("[run]\ndrain_seconds = {drain_seconds}\n[demo]\npods = 2000\nchanges_per_second = 1000\n");
    std::fs::write(&file, text).unwrap();
    let (mut informerd, stdout) =
        Informerd::start_unread(&["--output", "json", "--config", file.to_str().unwrap()]);
    let address = informerd.probes();
    wait_for_code(&address, "/readyz", 200);
    (informerd, stdout, address, folder)
}

#[test]
fn a_reader_that_never_reads_cannot_prevent_the_end() {
    let (informerd, _stdout, _, _folder) = stuck(1);
    informerd.signal(Signal::TERM);
    let (status, _, stderr) = informerd.end();
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("not every change was printed in time"), "{stderr}");
}

#[test]
fn a_second_signal_ends_the_drain_at_once() {
    let (informerd, _stdout, address, _folder) = stuck(600);
    informerd.signal(Signal::INT);
    wait_for_code(&address, "/readyz", 503);
    assert!(http_get(&address, "/readyz?verbose").1.starts_with("draining"));
    informerd.signal(Signal::INT);
    assert_eq!(informerd.end().0.code(), Some(130));
}
