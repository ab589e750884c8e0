//! Go's own clients: client-go's informers, recorders and elections, controller-runtime's client and manager.
//!
//! They answer: do operators written in Go work against our server, unchanged? What a scenario does and prints is in
//! `tests/control-plane/clients/`.
//! 1. Each scenario runs with JSON and with protobuf, in bodies and in answers, except where only one is supported.
use crate::harness::judge;

#[test]
fn go_informers_see_objects_added_changed_and_deleted() {
    judge(|s| s.go("informers", "json"));
}

#[test]
fn go_informers_see_them_in_protobuf_too() {
    judge(|s| s.go("informers", "protobuf"));
}

#[test]
fn e18_go_http2_carries_the_answers() {
    judge(|s| s.go("http2", "json"));
}

#[test]
fn go_http2_carries_protobuf_too() {
    judge(|s| s.go("http2", "protobuf"));
}

#[test]
fn go_events_are_recorded_in_both_ways() {
    judge(|s| {
        s.go("events", "json");
    });
}

#[test]
fn go_events_are_recorded_in_protobuf_too() {
    judge(|s| s.go("events", "protobuf"));
}

#[test]
fn go_leaders_are_elected() {
    judge(|s| s.go("election", "protobuf"));
}

#[test]
fn go_controller_runtime_clients_write_and_patch() {
    judge(|s| s.go("client", "json"));
}

#[test]
fn go_controller_runtime_clients_write_and_patch_in_protobuf_too() {
    judge(|s| s.go("client", "protobuf"));
}

#[test]
fn go_controller_runtime_clients_apply() {
    judge(|s| s.go("apply", "json"));
}

#[test]
fn go_controller_runtime_clients_do_without_types() {
    judge(|s| s.go("unstructured", "json"));
}

#[test]
fn go_definitions_are_usable_at_once() {
    judge(|s| s.go("definitions", "json"));
}

#[test]
fn go_managers_reconcile() {
    judge(|s| s.go("manager", "json"));
}

#[test]
fn go_managers_reconcile_in_protobuf_too() {
    judge(|s| s.go("manager", "protobuf"));
}

#[test]
fn go_controllers_apply_the_children_of_a_custom_kind() {
    judge(|s| s.go("websites", "json"));
}
