//! Text of the cluster that would forge lines or control the terminal.
//!
//! Answers "can a user with the right to create objects write to the terminal on which informerd runs?" They choose the
//! names of RBAC objects, field names and reasons; these texts must arrive escaped, on their own line.

use informer_apiserver::ApiServer;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::Informerd;

/// A line end with a forged line, escape sequences of both kinds, a carriage return, bidi controls and a separator.
const HOSTILE: &str = "a\n12:00:00 Pod  Deleted  default forged \u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\r\u{202e}\u{2066}\u{2028}\u{85}z";

fn widgets() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn widget(number: usize) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w1", "annotations": {"a": format!("{HOSTILE}{number}")}},
        "spec": {HOSTILE: number, "size": format!("{number}{HOSTILE}")}, "status": {"phase": HOSTILE}})
}

fn role() -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": HOSTILE}, "rules": []})
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p1"},
        "spec": {"containers": [{"name": "main", "image": "x:1"}]}})
}

fn waiting_for(reason: &str) -> Value {
    let state = json!({"waiting": {"reason": reason}});
    json!({"status": {"phase": reason, "reason": reason, "containerStatuses": [
        {"name": "main", "ready": false, "restartCount": 1, "image": "x:1", "imageID": "", "state": state}]}})
}

/// Whether a terminal or a log reader would do something else with it than show it.
fn commands(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn written_in(format: &str) -> (Vec<String>, String) {
    let server = ApiServer::builder().token("t").start_blocking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    server.write_kubeconfig(&kubeconfig).unwrap();
    let config = folder.path().join("c.toml");
    let text = "[[informer]]\nkind = \"ClusterRole\"\n[[informer]]\nkind = \"Pod\"\n\
        [[informer]]\nkind = \"Widget\"\ngroup = \"example.com\"\nversion = \"v1\"\nplural = \"widgets\"\n";
    std::fs::write(&config, text).unwrap();
    for object in [widgets(), role(), pod()] {
        server.create(object).unwrap();
    }
    server.create(widget(0)).unwrap();
    let mut informerd = Informerd::start(&[
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
        "--output",
        format,
        "--list-at-end",
    ]);
    informerd.lines_with(&[&["Added", "p1"], &["Added", "w1"], &["Added", "ClusterRole", "12:00:00"]]);
    server.merge_patch("pods/status", "default", "p1", &waiting_for(HOSTILE)).unwrap();
    informerd.line(|line| line.contains("Updated") && line.contains("p1"));
    server.merge_patch("widgets.example.com", "default", "w1", &widget(1)).unwrap();
    informerd.line(|line| line.contains("Updated") && line.contains("w1"));
    informerd.signal(Signal::TERM);
    let (status, lines, stderr) = informerd.end();
    assert!(status.success(), "{stderr}");
    (lines, stderr)
}

// REST-40: given names, field names, values and reasons with line ends, escape sequences and bidi controls,
// when `informerd` prints them, then each stays on its line and does not control the terminal, on stdout and
// on stderr, and a JSON line still holds the exact text.
// - a each stays on its line and does not control the terminal
// - b errors on stderr too: `an_error_that_quotes_a_hostile_name_is_escaped_too`
// - c a JSON line holds the exact text: `json_lines_still_hold_the_exact_name`
#[test]
fn rest_40_names_fields_values_and_reasons_with_control_characters_stay_on_their_line_and_do_not_control_the_terminal()
 {
    for format in ["text", "json"] {
        let (lines, stderr) = written_in(format);
        for line in &lines {
            assert!(!line.starts_with("12:00:00"), "a forged line: {line:?}");
            assert!(!line.chars().any(commands), "{line:?}");
        }
        assert!(!stderr.chars().any(|letter| letter != '\n' && commands(letter)), "{stderr:?}");
        let escaped = lines.iter().filter(|line| line.contains("forged") && line.contains("\\n")).count();
        assert!(escaped >= 2, "the names are still shown, escaped: {lines:?}");
    }
}

#[test]
fn json_lines_still_hold_the_exact_name() {
    let (lines, _) = written_in("json");
    let names = lines.iter().filter_map(|line| {
        let document: Value = serde_json::from_str(line).unwrap();
        document["name"].as_str().map(str::to_owned)
    });
    assert!(names.into_iter().any(|name| name == HOSTILE));
}

#[test]
fn an_error_that_quotes_a_hostile_name_is_escaped_too() {
    let context = HOSTILE.replace('\u{85}', "");
    let (status, lines, stderr) = Informerd::start(&["--context", &context]).end();
    assert_eq!((status.code(), lines.len()), (Some(2), 0));
    assert!(!stderr.chars().any(|letter| letter != '\n' && commands(letter)), "{stderr:?}");
    assert!(!stderr.lines().any(|line| line.starts_with("12:00:00")), "{stderr:?}");
}
