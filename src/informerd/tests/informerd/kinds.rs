//! The kinds of the configuration, by the names that the server knows.
//!
//! Answers "what may stand behind `kind`, and what if the server cannot say what it means, or does not have it yet?"

use informer_apiserver::ApiServer;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process::Informerd;

struct Stage {
    server: ApiServer,
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let server = ApiServer::builder().token("t").start_blocking().unwrap();
        let folder = tempfile::tempdir().unwrap();
        server.write_kubeconfig(folder.path().join("kubeconfig")).unwrap();
        Self { server, folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// informerd with one informer for each of these kinds.
    fn informerd(&self, kinds: &[&str]) -> Informerd {
        self.informerd_with(kinds, &[])
    }

    fn informerd_with(&self, kinds: &[&str], arguments: &[&str]) -> Informerd {
        let informers: String = kinds.iter().map(|kind| format!("[[informer]]\nkind = {kind:?}\n")).collect();
        let config = self.path("c.toml");
        std::fs::write(&config, informers).unwrap();
        let kubeconfig = self.path("kubeconfig");
        let mut all = vec!["--config", &config, "--kubeconfig", &kubeconfig];
        all.extend(arguments);
        Informerd::start(&all)
    }
}

fn definition(kind: &str, plural: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind}}})
}

fn object(kind: &str, value: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "one"}, "spec": {"value": value}})
}

#[test]
fn a_kind_may_have_any_name_that_kubectl_takes() {
    let stage = Stage::new();
    stage.server.create(definition("Widget", "widgets")).unwrap();
    stage.server.create(object("Widget", "a")).unwrap();
    let mut informerd = stage.informerd(&["deploy", "widgets.example.com", "no"]);
    for expected in ["watching deployments in all", "watching widgets in all", "watching nodes\n"] {
        informerd.written_on_stderr(expected.trim_end());
    }
    informerd.lines_with(&[
        &["Widget", "Added", "default/one"],
        &["Deployment", "Streaming"],
        &["Node", "Streaming"],
    ]);
}

#[test]
fn dyn_18_a_kind_that_the_server_does_not_have_yet_is_watched_as_soon_as_it_has_it() {
    let stage = Stage::new();
    let mut informerd = stage.informerd(&["Widget", "Pod"]);
    informerd.written_on_stderr("the server has no resource named \"Widget\"");
    informerd.lines_with(&[&["Widget", "Gone", "the server has no resource named"], &["Pod", "Streaming"]]);
    stage.server.create(definition("Widget", "widgets")).unwrap();
    stage.server.create(object("Widget", "a")).unwrap();
    informerd.lines_with(&[&["Widget", "Added", "default/one"]]);
    let patch = json!({"spec": {"value": "b"}});
    stage.server.merge_patch("widgets", "default", "one", &patch).unwrap();
    let line = informerd.line(|line| line.contains("Updated"));
    assert!(line.contains("spec.value"), "{line}");
    informerd.signal(Signal::TERM);
    assert_eq!(informerd.end().0.code(), Some(0));
}

#[test]
fn a_kind_that_is_defined_anew_in_another_version_is_watched_in_that_one() {
    let stage = Stage::new();
    let mut informerd = stage.informerd(&["Widget"]);
    informerd.lines_with(&[&["Widget", "Gone", "the server has no resource named"]]);
    for version in ["v1alpha1", "v1"] {
        let mut definition = definition("Widget", "widgets");
        definition["spec"]["versions"][0]["name"] = json!(version);
        stage.server.create(definition).unwrap();
        let mut widget = object("Widget", version);
        widget["apiVersion"] = json!(format!("example.com/{version}"));
        stage.server.create(widget).unwrap();
        informerd.lines_with(&[&["Widget", "Added", "default/one"]]);
        stage.server.delete("customresourcedefinitions", "", "widgets.example.com").unwrap();
        informerd.lines_with(&[&["Widget", "Deleted", "default/one"], &["Widget", "Gone"]]);
    }
}

#[test]
fn a_kind_that_is_found_at_the_start_and_served_in_another_version_later_is_watched_in_that_one() {
    let stage = Stage::new();
    let mut definition = definition("Widget", "widgets");
    let mut versions = vec![definition["spec"]["versions"][0].clone(); 2];
    (versions[1]["name"], versions[1]["served"], versions[1]["storage"]) =
        ("v2".into(), false.into(), false.into());
    definition["spec"]["versions"] = json!(versions);
    stage.server.create(definition).unwrap();
    stage.server.create(object("Widget", "a")).unwrap();
    let mut informerd = stage.informerd(&["Widget"]);
    informerd.lines_with(&[&["Widget", "Added", "default/one"], &["Widget", "Streaming"]]);

    (versions[0]["served"], versions[1]["served"]) = (false.into(), true.into());
    let migrated = json!({"spec": {"versions": versions}});
    stage.server.merge_patch("customresourcedefinitions", "", "widgets.example.com", &migrated).unwrap();
    stage.server.faults().end_watches();
    informerd.lines_with(&[&["Widget", "Updated", "default/one"]]);
    let patch = json!({"spec": {"value": "b"}});
    stage.server.merge_patch("widgets", "default", "one", &patch).unwrap();
    informerd.line(|line| line.contains("Updated") && line.contains("spec.value"));
    informerd.signal(Signal::TERM);
    assert_eq!(informerd.end().0.code(), Some(0));
}

#[test]
fn of_two_names_of_a_kind_that_the_server_has_later_only_the_first_is_watched() {
    let stage = Stage::new();
    let mut informerd = stage.informerd(&["widgets", "wdg", "Pod"]);
    informerd.lines_with(&[&["widgets", "Gone"], &["wdg", "Gone"], &["Pod", "Streaming"]]);
    let mut definition = definition("Widget", "widgets");
    definition["spec"]["names"]["shortNames"] = json!(["wdg"]);
    stage.server.create(definition).unwrap();
    stage.server.create(object("Widget", "a")).unwrap();
    informerd
        .lines_with(&[&["Widget", "Added", "default/one"], &["wdg", "Gone", "widgets are watched twice"]]);
    informerd.signal(Signal::TERM);
    let (_, lines, _) = informerd.end();
    assert_eq!(lines.iter().filter(|line| line.contains("Added")).count(), 1, "{lines:?}");
}

#[test]
fn values_of_a_kind_that_turns_out_to_be_one_of_secrets_are_not_printed() {
    let stage = Stage::new();
    let mut informerd = stage.informerd(&["vaulted"]);
    informerd.lines_with(&[&["vaulted", "Gone"]]);
    let mut definition = definition("Secret", "vaults");
    definition["spec"]["names"]["shortNames"] = json!(["vaulted"]);
    stage.server.create(definition).unwrap();
    stage.server.create(object("Secret", "hunter2")).unwrap();
    informerd.lines_with(&[&["Secret", "Added", "default/one"]]);
    let patch = json!({"spec": {"value": "hunter3"}});
    stage.server.merge_patch("vaults", "default", "one", &patch).unwrap();
    informerd.lines_with(&[&["Updated"]]);
    let (_, lines, stderr) = {
        informerd.signal(Signal::TERM);
        informerd.end()
    };
    assert!(!format!("{lines:?}{stderr}").contains("hunter"), "{lines:?}");
}

#[test]
fn while_the_server_cannot_be_asked_the_built_in_table_says_what_a_kind_is() {
    let mut stage = Stage::new();
    stage.server.stop();
    let mut informerd = stage.informerd(&["Deployment", "po"]);
    informerd.written_on_stderr("the kinds are taken from the built-in table");
    informerd.lines_with(&[&["Deployment", "Backoff"], &["po", "Backoff"]]);
    stage.server.start_again().unwrap();
    informerd.lines_with(&[&["Deployment", "Streaming"], &["Pod", "Streaming"]]);
}

#[test]
fn two_names_of_one_resource_are_refused() {
    let stage = Stage::new();
    let (status, _, stderr) = stage.informerd(&["Pod", "po"]).end();
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("pods are watched twice"), "{stderr}");
}

#[test]
fn client_informerd_a_kind_has_the_same_name_in_json_whether_it_is_defined_before_the_start_or_later() {
    let names = |is_there: bool| -> Vec<String> {
        let stage = Stage::new();
        let define = || {
            stage.server.create(definition("Widget", "widgets")).unwrap();
            stage.server.create(object("Widget", "a")).unwrap();
        };
        if is_there {
            define();
        }
        let mut informerd = stage.informerd_with(&["widgets.example.com"], &["--output", "json"]);
        if !is_there {
            let gone = informerd.line(|line| line.contains(r#""state":"Gone""#));
            assert!(gone.contains(r#""kind":"widgets.example.com""#), "nobody knows the kind yet: {gone}");
            define();
        }
        let added = informerd.line(|line| line.contains(r#""event":"Added""#));
        let status = informerd.line(|line| line.contains(r#""state":"Streaming""#));
        informerd.signal(Signal::TERM);
        let (_, lines, _) = informerd.end();
        let summary = lines.last().expect("a summary").clone();
        let kind = |line: &str| {
            line.split(r#""kind":""#).nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned()
        };
        [added, status, summary].iter().map(|line| kind(line)).collect()
    };
    for is_there in [true, false] {
        assert_eq!(names(is_there), ["Widget"; 3], "defined before: {is_there}");
    }
}
