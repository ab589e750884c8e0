//! What may never be printed: the values of Secrets, and copies of whole objects in annotations.
//!
//! Answers "does a reader of the logs of informerd find the values of a Secret?" by searching everything that the real binary
//! writes, in both formats, in every representation, with its cache printed and its own targets logged.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use informer_apiserver::ApiServer;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::{Informerd, command};

/// This text stands in every value that must stay hidden.
const MARK: &str = "hunter2";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn encoded(text: &str) -> String {
    STANDARD.encode(text)
}

fn password(number: usize) -> String {
    format!("{MARK}-password-{number}")
}

/// What kubectl records of an object that it applies.
fn applied(kind: &str, number: usize) -> String {
    json!({"apiVersion": "v1", "kind": kind, "data": {"password": encoded(&password(number))},
        "stringData": {"plain": password(number)}})
    .to_string()
}

fn secret(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "s1", "annotations": {LAST_APPLIED: applied("Secret", number)}},
        "data": {"password": encoded(&password(number))}})
}

fn of_another_kind(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "m1", "annotations": {LAST_APPLIED: applied("ConfigMap", number)}},
        "data": {"count": number.to_string()}})
}

fn pod(number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p1", "annotations": {LAST_APPLIED: applied("Pod", number)}},
        "spec": {"containers": [{"name": "main", "image": "x:1"}]}})
}

/// Everything that informerd writes while these objects are made, changed and deleted.
fn reported_of(representation: &str, format: &str) -> String {
    let server = ApiServer::builder().token("t").start_blocking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    server.write_kubeconfig(&kubeconfig).unwrap();
    let config = folder.path().join("c.toml");
    let representation = format!("representation = \"{representation}\"\n");
    let text = format!(
        "[[informer]]\nkind = \"Secret\"\n{representation}[[informer]]\nkind = \"ConfigMap\"\n{representation}\
         [[informer]]\nkind = \"Pod\"\n{representation}"
    );
    std::fs::write(&config, text).unwrap();
    for object in [secret(0), of_another_kind(0), pod(0)] {
        server.create(object).unwrap();
    }
    let config = config.to_str().unwrap();
    let kubeconfig = kubeconfig.to_str().unwrap();
    let mut process =
        command(&["--kubeconfig", kubeconfig, "--config", config, "--output", format, "--list-at-end"]);
    process.env("RUST_LOG", "actix_informer=trace");
    let mut informerd = Informerd::run(process);
    informerd.lines_with(&[&["Added", "s1"], &["Added", "m1"], &["Added", "p1"]]);
    for (resource, name, changed) in
        [("secrets", "s1", secret(1)), ("configmaps", "m1", of_another_kind(1)), ("pods", "p1", pod(1))]
    {
        server.merge_patch(resource, "default", name, &changed).unwrap();
        informerd.line(|line| line.contains("Updated") && line.contains(name));
    }
    // One key more, one key less: both are reported by name only.
    let keys = json!({"data": {"password": null, "another": encoded(&password(2))}});
    server.merge_patch("secrets", "default", "s1", &keys).unwrap();
    informerd.line(|line| line.contains("Updated") && line.contains("s1"));
    server.delete("secrets", "default", "s1").unwrap();
    informerd.line(|line| line.contains("Deleted") && line.contains("s1"));
    server.create(secret(3)).unwrap();
    informerd.line(|line| line.contains("Added") && line.contains("s1"));
    informerd.signal(Signal::TERM);
    let (status, lines, stderr) = informerd.end();
    assert!(status.success(), "{stderr}");
    format!("{}\n{stderr}", lines.join("\n"))
}

fn is_hidden_in(written: &str, how: &str) {
    for number in 0..4 {
        let encoded = encoded(&password(number));
        for hidden in [MARK, &encoded[..12], &encoded[..]] {
            let line = written.lines().find(|line| line.contains(hidden));
            assert_eq!(line, None, "{hidden} is printed ({how})");
        }
    }
}

// REST-39: given `informerd` on Secrets, in text and JSON, in every representation, when they are added,
// changed and deleted, then none of their values is printed, nor the last-applied annotation of any kind;
// keys that changed are named; unless the file says otherwise only their metadata is asked for.
// - a no value is printed, nor the annotation
// - b keys that changed are named: `the_keys_of_a_secret_that_changed_are_named_where_they_are_kept`
// - c only the metadata is asked for unless the file says otherwise:
//   `of_a_secret_only_the_metadata_is_asked_for_unless_the_file_says_otherwise`
#[test]
fn rest_39_no_value_of_a_secret_is_printed_in_any_representation_nor_any_copy_in_an_annotation() {
    for representation in ["auto", "dynamic", "metadata"] {
        for format in ["text", "json"] {
            is_hidden_in(&reported_of(representation, format), &format!("{representation}, {format}"));
        }
    }
}

#[test]
fn the_keys_of_a_secret_that_changed_are_named_where_they_are_kept() {
    let written = reported_of("dynamic", "text");
    assert!(written.contains("data.password changed"), "{written}");
    assert!(written.contains("data.another added") && written.contains("data.password removed"), "{written}");
    assert!(written.contains("data.count 0 -> 1"), "other kinds are shown with their values: {written}");
    assert!(written.contains(&format!("annotation {LAST_APPLIED} changed")), "{written}");
}

#[test]
fn of_a_secret_only_the_metadata_is_asked_for_unless_the_file_says_otherwise() {
    let written = reported_of("auto", "text");
    assert!(written.contains("fields outside the metadata changed"), "{written}");
}
