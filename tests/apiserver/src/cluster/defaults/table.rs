//! The table of defaults that are always the same.
//!
//! Answers: which paths of which kind get which default? `table.txt` has the rows.
//! 1. Rows of a pod's spec are relative to it, and apply to pods and to every template of them.
use std::collections::HashMap;
use std::sync::LazyLock;

type Rows = Vec<(&'static str, &'static str)>;

static TABLE: LazyLock<HashMap<&'static str, Rows>> = LazyLock::new(|| {
    let mut table = HashMap::<_, Rows>::new();
    let mut names = "";
    for line in include_str!("table.txt").lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(' ').filter(|_| line.starts_with('/')) {
            Some(row) => names.split(' ').for_each(|name| table.entry(name).or_default().push(row)),
            None => names = line,
        }
    }
    table
});

/// The rows of a kind (plural and group), except those of pods inside it, or of a part of an object.
pub(super) fn rows(name: &str) -> &'static [(&'static str, &'static str)] {
    TABLE.get(name).map_or(&[], Vec::as_slice)
}

/// The path of a kind's pod spec.
pub(super) fn pod_spec(group: &str, plural: &str) -> Option<&'static str> {
    match (group, plural) {
        ("", "pods") => Some("/spec"),
        ("apps", "deployments" | "replicasets" | "statefulsets" | "daemonsets")
        | ("", "replicationcontrollers")
        | ("batch", "jobs") => Some("/spec/template/spec"),
        ("batch", "cronjobs") => Some("/spec/jobTemplate/spec/template/spec"),
        ("", "podtemplates") => Some("/template/spec"),
        _ => None,
    }
}
