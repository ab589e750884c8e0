//! Pods, and templates of pods: old labels and annotations, duplicate names and ports, amounts that are not whole
//! bytes.
//!
//! Answers: what are the warnings for this pod? `place` is empty for a pod itself, else the path of its template.
//! 1. Containers are checked in the order of init containers, containers, ephemeral containers.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{items, kinds, node_terms, of_address, renamed_label, text, volumes};

const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    ("security.alpha.kubernetes.io/sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
];
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";
/// What is counted in whole bytes.
const BYTES: [&str; 2] = ["memory", "ephemeral-storage"];

/// The pod that is checked.
struct Pod<'v> {
    /// Its path, with a dot at the end unless it is the whole object.
    place: String,
    spec: &'v Value,
    annotations: &'v Value,
}

pub(super) fn check(place: &str, pod: &Value, warnings: &mut Vec<String>) {
    let place = if place.is_empty() { String::new() } else { format!("{place}.") };
    let pod = Pod { place, spec: &pod["spec"], annotations: &pod["metadata"]["annotations"] };
    pod.nodes(warnings);
    for (name, why) in OLD_ANNOTATIONS {
        pod.annotated(name, why, warnings);
    }
    volumes::check(&pod.at(""), pod.spec, warnings);
    pod.repeated("hostAliases", "ip", warnings);
    pod.repeated("imagePullSecrets", "name", warnings);
    for (at, secret) in items(pod.spec, "imagePullSecrets") {
        if text(secret, "name").is_empty() {
            warnings.push(format!("{}[{at}].name: invalid empty name \"\"", pod.at(".imagePullSecrets")));
        }
    }
    kinds::bytes(&pod.at(".overhead"), &pod.spec["overhead"], &BYTES, warnings);
    if pod.spec["securityContext"].get("seccompProfile").is_none() {
        let why = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;
        pod.annotated(SECCOMP_POD, why, warnings);
    }
    for (place, container) in pod.containers() {
        pod.container(&place, container, warnings);
    }
    pod.ports(warnings);
    pod.port_names(warnings);
    if pod.spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            pod.at(".terminationGracePeriodSeconds")
        ));
    }
    pod.affinities(warnings);
    for (at, server) in items(&pod.spec["dnsConfig"], "nameservers") {
        let place = format!("{}[{at}]", pod.at(".dnsConfig.nameservers"));
        warnings.extend(of_address(&place, server.as_str().unwrap_or_default()));
    }
    for (at, alias) in items(pod.spec, "hostAliases") {
        let place = format!("{}[{at}].ip", pod.at(".hostAliases"));
        warnings.extend(of_address(&place, text(alias, "ip")));
    }
}

impl<'v> Pod<'v> {
    fn at(&self, below: &str) -> String {
        format!("{}spec{below}", self.place)
    }

    fn annotated(&self, name: &str, why: &str, warnings: &mut Vec<String>) {
        if self.annotations.get(name).is_some() {
            warnings.push(format!("{}metadata.annotations[{name}]: {why}", self.place));
        }
    }

    fn nodes(&self, warnings: &mut Vec<String>) {
        for key in self.spec["nodeSelector"].as_object().into_iter().flat_map(serde_json::Map::keys) {
            if let Some(why) = renamed_label(key) {
                warnings.push(format!("{}[{key}]: {why}", self.at(".nodeSelector")));
            }
        }
        let affinity = &self.spec["affinity"]["nodeAffinity"];
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for (at, term) in items(&affinity[required], "nodeSelectorTerms") {
            let place = self.at(&format!(".affinity.nodeAffinity.{required}.nodeSelectorTerms[{at}]"));
            node_terms(&place, term, false, warnings);
        }
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for (at, term) in items(affinity, preferred) {
            let place = self.at(&format!(".affinity.nodeAffinity.{preferred}[{at}].preference"));
            node_terms(&place, &term["preference"], true, warnings);
        }
        for (at, constraint) in items(self.spec, "topologySpreadConstraints") {
            let place = self.at(&format!(".topologySpreadConstraints[{at}]"));
            let key = text(constraint, "topologyKey");
            if let Some(why) = renamed_label(key) {
                warnings.push(format!("{place}.topologyKey: {key} is {why}"));
            }
            if constraint.get("labelSelector").is_none() {
                warnings.push(format!("{place}.labelSelector: {NULL_SELECTOR}"));
            }
        }
    }

    /// Items of a list that have the same name.
    fn repeated(&self, list: &str, name: &str, warnings: &mut Vec<String>) {
        let mut known = BTreeSet::new();
        for (at, item) in items(self.spec, list) {
            let told = text(item, name);
            if !known.insert(told) {
                warnings.push(format!("{}.{list}[{at}].{name}: duplicate {name} {told:?}", self.at("")));
            }
        }
    }

    fn containers(&self) -> Vec<(String, &'v Value)> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let of =
            |list: &'static str| items(self.spec, list).map(move |(at, container)| (list, at, container));
        let place = |(list, at, container)| (self.at(&format!(".{list}[{at}]")), container);
        lists.into_iter().flat_map(of).map(place).collect()
    }

    fn container(&self, place: &str, container: &Value, warnings: &mut Vec<String>) {
        let (name, context) = (text(container, "name"), &container["securityContext"]);
        if context.get("seccompProfile").is_none() {
            let why = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;
            self.annotated(&format!("{SECCOMP_CONTAINER}{name}"), why, warnings);
        }
        let armored = context.get("appArmorProfile").is_some()
            || self.spec["securityContext"].get("appArmorProfile").is_some();
        if !self.place.is_empty() && !armored {
            let why = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;
            self.annotated(&format!("{APP_ARMOR}{name}"), why, warnings);
        }
        for bytes in BYTES {
            for list in ["limits", "requests"] {
                let place = format!("{place}.resources.{list}");
                kinds::bytes(&place, &container["resources"][list], &[bytes], warnings);
            }
        }
        let mut known = BTreeSet::new();
        for (at, variable) in items(container, "env") {
            let (name, value) = (text(variable, "name"), text(variable, "value"));
            let reference = format!("$({name})");
            let hides =
                variable.get("valueFrom").is_some() || value == reference || !value.contains(&reference);
            if !known.insert(name) && hides {
                warnings.push(format!(
                    "{place}.env[{at}]: hides previous definition of {name:?}, which may be dropped when using apply"
                ));
            }
        }
    }

    fn ports(&self, warnings: &mut Vec<String>) {
        let mut known: BTreeMap<(i64, &str), Vec<(String, &Value)>> = BTreeMap::new();
        let number = |port: &Value, name: &str| port[name].as_i64().unwrap_or(0);
        for (place, container) in self.containers() {
            for (at, port) in items(container, "ports") {
                let place = format!("{place}.ports[{at}]");
                let (host, inner) = (number(port, "hostPort"), number(port, "containerPort"));
                let (ip, protocol) = (text(port, "hostIP"), text(port, "protocol"));
                if !ip.is_empty() && host == 0 {
                    let name = text(port, "name");
                    warnings.push(format!(
                        "{place}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{inner} Protocol:{protocol} HostIP:{ip}}}"
                    ));
                }
                let others = known.entry((inner, protocol)).or_default();
                for (other_place, other) in others.iter() {
                    let (other_host, other_ip) = (number(other, "hostPort"), text(other, "hostIP"));
                    let how = if ip == other_ip && host == other_host {
                        "duplicate port definition"
                    } else if host == 0 || other_host == 0 {
                        "overlapping port definition"
                    } else if host == other_host && ip.is_empty() != other_ip.is_empty() {
                        "dangerously ambiguous port definition"
                    } else {
                        continue;
                    };
                    warnings.push(format!("{place}: {how} with {other_place}"));
                }
                others.push((place, port));
            }
        }
    }

    fn port_names(&self, warnings: &mut Vec<String>) {
        let mut known: BTreeMap<&str, String> = BTreeMap::new();
        for (place, container) in self.containers() {
            for (at, port) in items(container, "ports") {
                let (place, name) = (format!("{place}.ports[{at}]"), text(port, "name"));
                match known.get(name).filter(|_| !name.is_empty()) {
                    Some(other) => warnings.push(format!(
                        "{place}: duplicate port name {name:?} with {other}, services and probes that select ports by name will use {other}"
                    )),
                    None => {
                        known.insert(name, place);
                    }
                }
            }
        }
    }

    fn affinities(&self, warnings: &mut Vec<String>) {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let affinity = &self.spec["affinity"][kind];
            let terms = [
                ("requiredDuringSchedulingIgnoredDuringExecution", ""),
                ("preferredDuringSchedulingIgnoredDuringExecution", ".podAffinityTerm"),
            ];
            for (list, below) in terms {
                for (at, term) in items(affinity, list) {
                    let term = if below.is_empty() { term } else { &term["podAffinityTerm"] };
                    if term.get("labelSelector").is_none() {
                        let place = self.at(&format!(".affinity.{kind}.{list}[{at}]{below}"));
                        warnings.push(format!("{place}.labelSelector: {NULL_SELECTOR}"));
                    }
                }
            }
        }
    }
}
