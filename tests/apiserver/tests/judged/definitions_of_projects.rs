//! Definitions as those of large projects: E10.
//!
//! They answer: which patterns does a schema read, what is a definition stored without, and what does it tell of its approval?
//!
//! Next: `schemas_of_projects.rs` has their objects.
use serde_json::{Map, Value, json};

use crate::definitions::{define, definition, widget, with_spec};
use crate::harness::{Answer, Request, judge};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/{group}/v1/namespaces/{ns}/widgets";

const PATTERNS: &[(&str, &[&str])] = &[
    (r"^[^[]+$", &["a", "[", "]"]),
    (r"^[]a[:digit:]-]+$", &["]", "a:5-", "b"]),
    (r"^{a}$", &["{a}"]),
    (r"^\${[a-z]+}$", &["${a}", "{a}"]),
    (r"^a{,2}$", &["a{,2}", "aa"]),
    (r"^a{01}$", &["a{01}", "a"]),
    (r"^a{2,3}?$", &["aa", "aaaa"]),
    (r"^\Qa.b\E+$", &["a.bb", "axb"]),
    (r"^[\w-.]+$", &["a-b.c", "\u{e9}"]),
    (r"^\w\W$", &["a\u{e9}", "\u{e9}a"]),
    (r"^\d$", &["5", "\u{665}"]),
    (r"\bb\B", &["\u{e9}bb", "bb", "abb"]),
    (r"^\s\S$", &[" a", "\u{e9}a"]),
    (r"^[\D\s]$", &["a", "5", " "]),
    (r"^\<a\>$", &["<a>", "a"]),
    (r"^[a&&b]+$", &["a&b", "c"]),
    (r"^[a~~b]+$", &["a~b"]),
    (r"^\p{Greek}\x{41}$", &["\u{3b1}A", "aA"]),
    (r"^(?i:A)(?P<n>b)(?:c)??$", &["ab", "abc", "aB"]),
];

#[test]
fn e10_patterns_have_the_syntax_of_go() {
    judge(|s| {
        let name = |at: usize| format!("p{at}");
        let fields = PATTERNS.iter().enumerate();
        let fields: Map<String, Value> = fields
            .map(|(at, (pattern, _))| (name(at), json!({"type": "string", "pattern": pattern})))
            .collect();
        define(s, &with_spec(&json!({"type": "object", "properties": fields})));
        for (at, (_, texts)) in PATTERNS.iter().enumerate() {
            for text in *texts {
                let sent = widget(&json!({name(at): text}));
                s.send(Request::new("POST", format!("{WIDGETS}?dryRun=All")).json(&sent));
            }
        }
        for wrong in
            ["x**", "x*+", "x???", "a{1001}", "a{2,1}", "a{2}{3}", "a{1,1001}", "[z-a]", "[a", "(a", r"\h"]
        {
            let made = with_spec(&json!({"type": "string", "pattern": wrong}));
            s.send(Request::new("POST", format!("{DEFINITIONS}?dryRun=All")).json(&made));
        }
    });
}

#[test]
fn e10_definitions_are_stored_without_zero_values() {
    judge(|s| {
        let rule = json!({"rule": "true", "message": "", "messageExpression": "", "fieldPath": ""});
        let spec = json!({"type": "object", "nullable": false, "format": "", "id": "", "not": {"title": ""}, "properties": {
            "a": {"type": "integer", "exclusiveMaximum": false, "minimum": 0, "pattern": "", "default": 0, "enum": [0, 1],
                "maxLength": 0, "x-kubernetes-int-or-string": false, "uniqueItems": false, "externalDocs": {"url": ""}},
            "title": {"type": "string", "default": "", "title": ""},
            "m": {"type": "object", "additionalProperties": {"type": "object", "title": ""}},
            "r": {"type": "object", "required": [], "x-kubernetes-validations": [rule]},
            "l": {"type": "array", "items": {"type": "string", "title": ""}, "x-kubernetes-list-map-keys": []}}});
        let mut made = with_spec(&spec);
        made["spec"]["preserveUnknownFields"] = json!(false);
        made["spec"]["names"] =
            json!({"plural": "widgets", "singular": "", "kind": "Widget", "shortNames": []});
        made["spec"]["versions"][0]["deprecated"] = json!(false);
        made["spec"]["versions"][0]["additionalPrinterColumns"] = json!([{"name": "A", "type": "string",
            "jsonPath": ".spec.a", "priority": 0, "format": "", "description": ""}]);
        let dry = format!("{DEFINITIONS}?dryRun=All");
        s.send(Request::new("POST", &dry).json(&made));
        made["spec"]["versions"][0].as_object_mut().expect("a version").remove("served");
        s.send(Request::new("POST", &dry).json(&made));
        s.send(Request::new("POST", &dry).json(&definition()));
    });
}

#[test]
fn e10_definitions_of_the_community_tell_their_approval() {
    judge(|s| {
        const NAME: &str = "api-approved.kubernetes.io";
        let mut made = definition();
        made["metadata"] =
            json!({"name": "widgets.{group}.x-k8s.k8s.io", "annotations": {NAME: "https://a.b/pull/1"}});
        made["spec"]["group"] = json!("{group}.x-k8s.k8s.io");
        s.prepare(Request::new("POST", DEFINITIONS).json(&made));
        let path = format!("{DEFINITIONS}/widgets.{{group}}.x-k8s.k8s.io");
        for approval in ["https://a.b/pull/1", "unapproved, it is a test", "unapproved, it is another"] {
            let body = json!({"metadata": {"annotations": {NAME: approval}}}).to_string();
            s.prepare(Request::new("PATCH", &path).body("application/merge-patch+json", body));
            let told = move |answer: &Answer| {
                let conditions = answer.json()["status"]["conditions"].clone();
                let all = conditions.as_array().map_or(0, Vec::len);
                all == 3 && conditions.to_string().contains(approval)
            };
            s.until(&Request::new("GET", &path), told);
            let which = "{.status.conditions[?(@.type==\"KubernetesAPIApprovalPolicyConformant\")]";
            for member in ["status", "reason", "message"] {
                s.kubectl(&format!("get crd widgets.{{group}}.x-k8s.k8s.io -o jsonpath={which}.{member}}}"));
            }
        }
    });
}
