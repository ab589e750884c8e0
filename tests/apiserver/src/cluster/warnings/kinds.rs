//! Kinds other than pods: the warnings of each, one function per family.
//!
//! Answers: what are the warnings for this service, volume, claim, network policy, driver, quota, node, endpoint?
use serde_json::Value;

use super::{items, node_terms, of_address, of_network, renamed_label, text};
use crate::cluster::schema::quantity;

const MANY_COMPLETIONS: i64 = 100_000;
const MUCH_PARALLELISM: i64 = 10_000;
const MILLI: i128 = 1_000_000;

/// The warnings for an object that replaces an old one.
pub(super) fn check(group: &str, plural: &str, states: (&Value, Option<&Value>), out: &mut Vec<String>) {
    let (object, old) = states;
    match (group, plural) {
        ("", "services") => service(object, out),
        ("", "persistentvolumes") => volume(object, out),
        ("", "persistentvolumeclaims") => {
            annotated(object, "volume.beta.kubernetes.io/storage-class", CLASS_OF_CLAIM, out);
            claim("spec", &object["spec"], out);
        }
        ("apps", "statefulsets") => stateful_set(object, old.is_some(), out),
        ("batch", "cronjobs") => {
            if old.is_some() && text(&object["spec"], "schedule").contains("TZ") {
                out.push(ZONED_SCHEDULE.to_owned());
            }
        }
        ("", "nodes") => {
            if !text(&object["spec"], "externalID").is_empty() {
                out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
            }
            networks("spec.podCIDRs", &object["spec"]["podCIDRs"], out);
        }
        ("", "resourcequotas") if old.is_none() => quota(object, out),
        ("", "serviceaccounts") => {
            let name = "kubernetes.io/enforce-mountable-secrets";
            if old.is_none_or(|old| old["metadata"]["annotations"].get(name).is_none()) {
                annotated(object, name, MOUNTABLE_SECRETS, out);
            }
        }
        ("", "endpoints") => endpoints(object, out),
        ("discovery.k8s.io", "endpointslices") => slice(object, old.is_none(), out),
        _ => rest(group, plural, states, out),
    }
}

const CLASS_OF_CLAIM: &str = r#"deprecated since v1.8; use "storageClassName" attribute instead"#;
const ZONED_SCHEDULE: &str = "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
const MOUNTABLE_SECRETS: &str =
    "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
const NO_TOKEN_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";

fn rest(group: &str, plural: &str, (object, old): (&Value, Option<&Value>), out: &mut Vec<String>) {
    match (group, plural) {
        ("networking.k8s.io", "networkpolicies") => network_policy(object, out),
        ("networking.k8s.io", "ingresses") if old.is_none() => {
            let name = "kubernetes.io/ingress.class";
            if object["metadata"]["annotations"].get(name).is_some()
                && object["spec"].get("ingressClassName").is_none()
            {
                out.push(format!(
                    "annotation {name:?} is deprecated, please use 'spec.ingressClassName' instead"
                ));
            }
        }
        ("storage.k8s.io", "csidrivers") => {
            let (asked, told) =
                (&object["spec"]["tokenRequests"], object["spec"].get("serviceAccountTokenInSecrets"));
            let changed = old.is_none_or(|old| old["spec"]["tokenRequests"] != *asked);
            if changed && told.is_none() && asked.as_array().is_some_and(|asked| !asked.is_empty()) {
                out.push(NO_TOKEN_IN_SECRETS.to_owned());
            }
        }
        ("storage.k8s.io", "storageclasses") => {
            for (at, topology) in items(object, "allowedTopologies") {
                for (nth, expression) in items(topology, "matchLabelExpressions") {
                    if let Some(why) = renamed_label(text(expression, "key")) {
                        out.push(format!("allowedTopologies[{at}].matchLabelExpressions[{nth}].key: {why}"));
                    }
                }
            }
        }
        ("storage.k8s.io", "csistoragecapacities") => {
            let selector = &object["nodeTopology"];
            node_terms("nodeTopology", selector, false, out);
            for key in keys(&selector["matchLabels"]) {
                out.extend(renamed_label(key).map(|why| format!("nodeTopology.matchLabels.{key}: {why}")));
            }
        }
        ("node.k8s.io", "runtimeclasses") => {
            for key in keys(&object["scheduling"]["nodeSelector"]) {
                out.extend(renamed_label(key).map(|why| format!("scheduling.nodeSelector: {why}")));
            }
        }
        ("resource.k8s.io", "resourceslices") => {
            let driver = text(&object["spec"], "driver");
            if driver != driver.to_lowercase() {
                out.push(format!(
                    "spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters"
                ));
            }
        }
        _ => {}
    }
}

fn keys(map: &Value) -> impl Iterator<Item = &String> {
    map.as_object().into_iter().flat_map(serde_json::Map::keys)
}

fn annotated(object: &Value, name: &str, why: &str, out: &mut Vec<String>) {
    if object["metadata"]["annotations"].get(name).is_some() {
        out.push(format!("metadata.annotations[{name}]: {why}"));
    }
}

fn service(service: &Value, out: &mut Vec<String>) {
    let (spec, hints) = (&service["spec"], "service.kubernetes.io/topology-aware-hints");
    if service["metadata"]["annotations"].get(hints).is_some() {
        out.push(format!(
            "annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let (kind, ip) = (text(spec, "type"), text(spec, "clusterIP"));
    let headless = kind == "ClusterIP" && ip == "None";
    if !matches!(ip, "" | "None") {
        addresses("spec.clusterIPs", &spec["clusterIPs"], out);
    }
    let reached = spec["externalIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
    let balancer = text(spec, "loadBalancerIP");
    if headless {
        let ignored = [
            ("loadBalancerIP", !balancer.is_empty()),
            ("externalIPs", reached),
            ("SessionAffinity", text(spec, "sessionAffinity") != "None"),
        ];
        let told = ignored.into_iter().filter(|(_, told)| *told);
        out.extend(told.map(|(name, _)| format!("spec.{name} is ignored for headless services")));
    }
    addresses("spec.externalIPs", &spec["externalIPs"], out);
    if reached && !headless && kind != "ExternalName" {
        out.push(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned(),
        );
    }
    if !balancer.is_empty() {
        out.extend(of_address("spec.loadBalancerIP", balancer));
    }
    networks("spec.loadBalancerSourceRanges", &spec["loadBalancerSourceRanges"], out);
    if kind == "ExternalName" && reached {
        out.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !text(spec, "externalName").is_empty() {
        out.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if text(spec, "trafficDistribution") == "PreferClose" {
        out.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
}

fn addresses(place: &str, list: &Value, out: &mut Vec<String>) {
    for (at, text) in list.as_array().into_iter().flatten().enumerate() {
        out.extend(of_address(&format!("{place}[{at}]"), text.as_str().unwrap_or_default()));
    }
}

fn networks(place: &str, list: &Value, out: &mut Vec<String>) {
    for (at, text) in list.as_array().into_iter().flatten().enumerate() {
        out.extend(of_network(&format!("{place}[{at}]"), text.as_str().unwrap_or_default()));
    }
}

fn volume(volume: &Value, out: &mut Vec<String>) {
    annotated(volume, "volume.beta.kubernetes.io/storage-class", CLASS_OF_CLAIM, out);
    let why = r#"deprecated since v1.31; use "mountOptions" attribute instead"#;
    annotated(volume, "volume.beta.kubernetes.io/mount-options", why, out);
    let spec = &volume["spec"];
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        out.push("spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.".to_owned());
    }
    for (at, term) in items(&spec["nodeAffinity"]["required"], "nodeSelectorTerms") {
        node_terms(&format!("spec.nodeAffinity.required.nodeSelectorTerms[{at}]"), term, false, out);
    }
    for (name, told, why) in [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ] {
        if spec.get(name).is_some() {
            out.push(format!("spec.{told}: {why}"));
        }
    }
}

/// The warnings for the spec of a claim.
pub(super) fn claim(place: &str, spec: &Value, out: &mut Vec<String>) {
    for list in ["requests", "limits"] {
        bytes(&format!("{place}.resources.{list}"), &spec["resources"][list], &["storage"], out);
    }
}

/// Amounts that should be whole bytes and are not.
pub(super) fn bytes(place: &str, amounts: &Value, names: &[&str], out: &mut Vec<String>) {
    for name in names {
        let amount = text(amounts, name);
        let nanos = quantity::nanos(amount).unwrap_or(0);
        let millis = nanos.div_euclid(MILLI) + i128::from(nanos.rem_euclid(MILLI) > 0);
        if millis % 1_000 != 0 {
            out.push(format!(
                "{place}[{name}]: fractional byte value {amount:?} is invalid, must be an integer"
            ));
        }
    }
}

/// The warnings for a job beside those of its pods.
pub(super) fn job(template: &str, spec: Option<&Value>) -> Option<String> {
    let place = template.trim_end_matches(".template");
    let number = |name: &str| spec.and_then(|spec| spec[name].as_i64()).unwrap_or(0);
    let indexed = spec.is_some_and(|spec| spec["completionMode"] == "Indexed");
    (indexed && number("completions") > MANY_COMPLETIONS && number("parallelism") > MUCH_PARALLELISM).then(|| {
        format!("{place}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail")
    })
}

fn stateful_set(set: &Value, changed: bool, out: &mut Vec<String>) {
    let below = if changed { ".Spec" } else { "" };
    for (at, template) in items(&set["spec"], "volumeClaimTemplates") {
        claim(&format!("spec.volumeClaimTemplates[{at}]{below}"), &template["spec"], out);
    }
    if set["spec"]["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        out.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned());
    }
}

fn quota(quota: &Value, out: &mut Vec<String>) {
    let hard = &quota["spec"]["hard"];
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let (mut asked, limit) = (format!("requests.{resource}"), format!("limits.{resource}"));
        if hard.get(&asked).is_none() && matches!(resource, "cpu" | "memory") {
            resource.clone_into(&mut asked);
        }
        let (request, most) = (text(hard, &asked), text(hard, &limit));
        if quantity::nanos(request).zip(quantity::nanos(most)).is_some_and(|(request, most)| request > most) {
            out.push(format!("ResourceQuota {asked} ({request}) should be less than {limit} ({most})"));
        }
    }
}

fn endpoints(endpoints: &Value, out: &mut Vec<String>) {
    if endpoints["metadata"]["labels"]["endpoints.kubernetes.io/managed-by"] == "endpoint-controller" {
        return;
    }
    for (at, subset) in items(endpoints, "subsets") {
        for list in ["addresses", "notReadyAddresses"] {
            for (nth, target) in items(subset, list) {
                let place = format!("subsets[{at}].{list}[{nth}].ip");
                out.extend(of_address(&place, text(target, "ip")));
            }
        }
    }
}

fn slice(slice: &Value, new: bool, out: &mut Vec<String>) {
    let kind = text(slice, "addressType");
    if new && kind == "FQDN" {
        out.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
}

fn network_policy(policy: &Value, out: &mut Vec<String>) {
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in items(&policy["spec"], rules) {
            for (nth, peer) in items(rule, peers) {
                let (place, block) = (format!("spec.{rules}[{at}].{peers}[{nth}].ipBlock"), &peer["ipBlock"]);
                if block.is_object() {
                    out.extend(of_network(&format!("{place}.cidr"), text(block, "cidr")));
                    networks(&format!("{place}.except"), &block["except"], out);
                }
            }
        }
    }
}
