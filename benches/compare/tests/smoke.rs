//! Runs every part of the binary with small numbers.
//!
//! Answers "would a complete run end with a table?" It does not check the speed.

use std::process::{Command, Output};

fn compare(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_informer-compare")).args(arguments).output().expect("the binary starts")
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "memory is read from /proc")]
fn every_client_ends_with_the_servers_state_and_a_row_in_the_table() {
    let output = compare(&["--pods", "200", "--events", "500", "--rounds", "1", "--settle-ms", "0"]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    for row in [
        "actix-informer, typed, list",
        "actix-informer, lazy, protobuf, watch-list",
        "bare, typed, watch-list",
        "bare, packed, watch-list",
        "client-go, protobuf, list",
        "actix-informer, packed, watch-list",
        "kube-rs, watch-list",
        "kube-rs, managedFields cleared, list",
    ] {
        assert!(table.lines().any(|line| line.starts_with(row)), "no row {row:?} in\n{table}");
    }
    assert!(!table.contains("NaN"), "{table}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "memory is read from /proc")]
fn a_start_with_a_file_has_a_row_beside_the_start_with_a_list() {
    let output = compare(&["warm", "--pods", "2000", "--restarts", "1"]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    for row in ["with a list", "with the file"] {
        assert!(table.lines().any(|line| line.starts_with(row)), "no row {row:?} in\n{table}");
    }
}

#[test]
fn the_ticks_of_both_ways_of_listing_are_counted() {
    let output = compare(&["tick", "--pods", "200", "--objects", "2000"]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(table.matches("while 200 pods come by").count(), 2, "{table}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "memory is read from /proc")]
fn nine_subscribers_receive_everything_beside_one_that_is_stalled_for_ever() {
    let output = compare(&["stalled", "--pods", "200", "--events", "500"]);
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    for row in ["none stalled", "one stalled for ever"] {
        assert!(table.lines().any(|line| line.starts_with(row)), "no row {row:?} in\n{table}");
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "memory is read from /proc")]
fn many_informers_of_each_client_receive_every_object() {
    let numbers = ["--kinds", "2", "--objects", "4", "--rounds", "1", "--idle-seconds", "1"];
    let output = compare(&[&["factory"][..], &numbers].concat());
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    for row in ["informer", "kube", "go"] {
        assert!(table.lines().any(|line| line.starts_with(row)), "no row {row:?} in\n{table}");
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "memory is read from /proc")]
fn each_controller_is_measured_through_each_disturbance() {
    let numbers = ["--objects", "20", "--changes-per-second", "50", "--seconds", "1", "--idle-seconds", "1"];
    let short = [
        "--rounds",
        "1",
        "--workers",
        "4",
        "--quiet-ms",
        "300",
        "--limit-seconds",
        "5",
        "--clients",
        "informer,informer-tuned,informer-children,kube,kube-tuned",
    ];
    let output = compare(&[&["controller"][..], &numbers, &short].concat());
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
    for row in ["first convergence", "changes", "deleted children", "410 of all watches", "server restart"] {
        assert!(table.lines().any(|line| line.starts_with(row)), "no row {row:?} in\n{table}");
    }
    assert!(!table.contains("NaN"), "{table}");
}

#[test]
fn idle_controllers_are_measured_when_each_object_was_reconciled_once() {
    let output = compare(&["idle", "--controllers", "3", "--objects", "4", "--idle-seconds", "1"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("3 controllers, idle for 1 s: "), "{text}");
}

#[test]
fn a_client_without_a_server_fails_and_says_so() {
    let nowhere = ["--server", "http://127.0.0.1:1", "--events", "1", "--lone", "1", "--changed", "1"];
    let output = compare(&[&["client", "--client", "kube", "--by", "list"], &nowhere[..]].concat());
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("informer-compare: "));
}
