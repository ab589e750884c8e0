//! Definitions as those of large projects: E10.
//!
//! They answer: what is a definition stored without, and what does it tell of its approval?
use serde_json::json;

use crate::definitions::{definition, with_spec};
use crate::harness::{Answer, Request, judge};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

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
