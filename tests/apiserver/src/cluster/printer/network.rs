//! The rows of services, endpoints, ingresses, nodes and other kinds with addresses.
//!
//! Answers: where is it reached, from where, and on which ports?
//! 1. For other kinds it returns none.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::view::{View, first_few};

/// How many addresses, ports or hosts a cell shows.
const MOST_SHOWN: usize = 3;
const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";

pub(super) fn cells(group: &str, plural: &str, view: &View<'_>) -> Option<Vec<Value>> {
    let mut cells = vec![view.name()];
    match (group, plural) {
        ("", "services") => {
            let ports: Vec<String> = view.list("/spec/ports").iter().map(service_port).collect();
            let ports = if ports.is_empty() { "<none>".to_owned() } else { ports.join(",") };
            cells.extend([json!(view.text("/spec/type")), view.or("/spec/clusterIPs/0", "<none>")]);
            cells.extend([json!(external(view)), json!(ports), view.age(), view.labels("/spec/selector")]);
        }
        ("", "endpoints") => cells.extend([endpoints(view), view.age()]),
        ("discovery.k8s.io", "endpointslices") => {
            let ports: Vec<String> = view.list("/ports").iter().map(slice_port).collect();
            let addresses =
                view.list("/endpoints").iter().flat_map(|one| one["addresses"].as_array()).flatten();
            let addresses: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
            cells.push(json!(view.text("/addressType")));
            cells.extend([
                first_few(&ports, MOST_SHOWN, "<unset>"),
                first_few(&addresses, MOST_SHOWN, "<unset>"),
            ]);
            cells.push(view.age());
        }
        ("networking.k8s.io", "ingresses") => {
            let ports = if view.list("/spec/tls").is_empty() { "80" } else { "80, 443" };
            cells.extend([view.or("/spec/ingressClassName", "<none>"), hosts(view)]);
            cells.extend([json!(balancer(view)), json!(ports), view.age()]);
        }
        ("networking.k8s.io", "ingressclasses") => {
            cells = vec![default_name(view, &["ingressclass.kubernetes.io/is-default-class"])];
            cells.extend([json!(view.text("/spec/controller")), parameters(view), view.age()]);
        }
        ("networking.k8s.io", "networkpolicies") => {
            cells.extend([view.selector("/spec/podSelector"), view.age()])
        }
        ("networking.k8s.io", "servicecidrs") => cells.extend([json!(view.texts("/spec/cidrs")), view.age()]),
        ("networking.k8s.io", "ipaddresses") => cells.extend([parent(view), view.age()]),
        ("", "nodes") => cells.extend(node(view)),
        _ => return None,
    }
    Some(cells)
}

/// The name, marked where an annotation says that this is the default.
pub(super) fn default_name(view: &View<'_>, annotations: &[&str]) -> Value {
    let known = view.map("/metadata/annotations");
    let is_default = known.is_some_and(|known| {
        annotations.iter().any(|name| known.get(*name).is_some_and(|value| value == "true"))
    });
    let name = view.text("/metadata/name");
    if is_default { json!(format!("{name} (default)")) } else { json!(name) }
}

fn service_port(port: &Value) -> String {
    let (number, protocol) = (&port["port"], port["protocol"].as_str().unwrap_or_default());
    match port["nodePort"].as_i64() {
        Some(node) if node > 0 => format!("{number}:{node}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}

fn external(view: &View<'_>) -> String {
    let own = view.texts("/spec/externalIPs");
    let shown = match view.text("/spec/type") {
        "ClusterIP" | "NodePort" => own,
        "LoadBalancer" => {
            let parts = [balancer(view), own];
            let all: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            return if all.is_empty() { "<pending>".to_owned() } else { all.join(",") };
        }
        "ExternalName" => return view.text("/spec/externalName").to_owned(),
        _ => return "<unknown>".to_owned(),
    };
    if shown.is_empty() { "<none>".to_owned() } else { shown }
}

fn balancer(view: &View<'_>) -> String {
    let address = |one: &Value| {
        let text = |name: &str| one[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        text("ip").or_else(|| text("hostname"))
    };
    let addresses: BTreeSet<String> =
        view.list("/status/loadBalancer/ingress").iter().filter_map(address).collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

fn endpoints(view: &View<'_>) -> Value {
    let mut all: Vec<String> = Vec::new();
    for subset in view.list("/subsets") {
        let list = |name: &str| subset[name].as_array().map_or(&[][..], Vec::as_slice);
        let addresses = || list("addresses").iter().filter_map(|address| address["ip"].as_str());
        if list("ports").is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in list("ports") {
            let join = |ip: &str| {
                if ip.contains(':') {
                    format!("[{ip}]:{}", port["port"])
                } else {
                    format!("{ip}:{}", port["port"])
                }
            };
            all.extend(addresses().map(join));
        }
    }
    first_few(&all, MOST_SHOWN, if view.list("/subsets").is_empty() { "<none>" } else { "" })
}

fn slice_port(port: &Value) -> String {
    match (port["port"].as_i64(), port["name"].as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}

fn hosts(view: &View<'_>) -> Value {
    let hosts = view.list("/spec/rules").iter().filter_map(|rule| rule["host"].as_str());
    let hosts: Vec<String> = hosts.filter(|host| !host.is_empty()).map(str::to_owned).collect();
    first_few(&hosts, MOST_SHOWN, "*")
}

fn parameters(view: &View<'_>) -> Value {
    if view.at("/spec/parameters").is_none() {
        return json!("<none>");
    }
    let text = |name: &str| view.text(&format!("/spec/parameters/{name}"));
    let group = match text("apiGroup") {
        "" => String::new(),
        group => format!(".{group}"),
    };
    json!(format!("{}{group}/{}", text("kind"), text("name")))
}

fn parent(view: &View<'_>) -> Value {
    if view.at("/spec/parentRef").is_none() {
        return json!("<none>");
    }
    let text = |name: &str| view.text(&format!("/spec/parentRef/{name}"));
    let with =
        |before: &str, text: &str| if text.is_empty() { String::new() } else { format!("{before}{text}") };
    let resource = format!("{}{}", text("resource"), with(".", text("group"))).to_lowercase();
    json!(format!("{resource}{}/{}", with("/", text("namespace")), text("name")))
}

fn node(view: &View<'_>) -> Vec<Value> {
    let mut status = match view.condition("Ready") {
        Some(condition) if condition["status"] == "True" => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if view.flag("/spec/unschedulable", false) {
        status.push_str(",SchedulingDisabled");
    }
    let labels = view.map("/metadata/labels").into_iter().flatten();
    let role = |(name, value): (&String, &Value)| match name.strip_prefix(ROLE_PREFIX) {
        Some(role) => Some(role.to_owned()),
        None if name == ROLE_LABEL => value.as_str().map(str::to_owned),
        None => None,
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    let roles =
        if roles.is_empty() { "<none>".to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") };
    let address = |wanted: &str| {
        let found = view.list("/status/addresses").iter().find(|address| address["type"] == wanted);
        json!(found.and_then(|address| address["address"].as_str()).unwrap_or("<none>"))
    };
    let info = |name: &str| view.or(&format!("/status/nodeInfo/{name}"), "<unknown>");
    let kernel = match (info("kernelVersion"), view.text("/status/nodeInfo/architecture")) {
        (Value::String(kernel), architecture) if !architecture.is_empty() => {
            json!(format!("{kernel} ({architecture})"))
        }
        (kernel, _) => kernel,
    };
    vec![
        json!(status),
        json!(roles),
        view.age(),
        json!(view.text("/status/nodeInfo/kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        kernel,
        info("containerRuntimeVersion"),
    ]
}
