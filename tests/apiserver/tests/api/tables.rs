//! Tables over HTTP: behaviours 37 and E13. The cells of each kind have their test beside the printers.
//!
//! They answer: what does a client get that requests Tables as kubectl does, for one object, a list, a watch, a custom
//! kind?
use serde_json::{Value, json};

use crate::client::{Answer, Incoming, config_map, open, request, server};
use crate::reads::{widget, widgets};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn ask(server: &informer_apiserver::ApiServer, path: &str, accept: &str) -> Answer {
    request(server, "GET", path, &[("Accept", accept)], "")
}

fn table_watch(server: &informer_apiserver::ApiServer, path: &str) -> Incoming {
    open(server, "GET", path, &[("Accept", TABLE)], "")
}

fn names(table: &Value) -> Vec<&str> {
    let columns = table["columnDefinitions"].as_array().into_iter().flatten();
    columns.filter_map(|column| column["name"].as_str()).collect()
}

#[test]
fn api_37_a_list_and_an_object_are_tables() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    server.create(config_map("b", "x")).unwrap();
    let list = ask(&server, MAPS, KUBECTL).json();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(names(&list), ["Name", "Data", "Age"]);
    assert_eq!(list["rows"].as_array().unwrap().len(), 2);
    assert_eq!(list["rows"][0]["cells"].as_array().unwrap()[..2], [json!("a"), json!(0)]);
    let object = &list["rows"][0]["object"];
    assert_eq!(
        (&object["kind"], &object["metadata"]["name"]),
        (&json!("PartialObjectMetadata"), &json!("a"))
    );
    let one = ask(&server, &format!("{MAPS}/b"), KUBECTL).json();
    assert_eq!((one["rows"].as_array().unwrap().len(), names(&one).len()), (1, 3));
    let none = ask(&server, &format!("{MAPS}?labelSelector=app=none"), KUBECTL).json();
    assert_eq!(none["rows"], json!([]));
}

#[test]
fn api_37_a_page_of_a_table_has_the_metadata_of_a_page() {
    let server = server();
    for name in ["a", "b", "c"] {
        server.create(config_map(name, "x")).unwrap();
    }
    let page = ask(&server, &format!("{MAPS}?limit=2"), TABLE).json();
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = ask(&server, &format!("{MAPS}?limit=2&continue={token}"), TABLE).json();
    assert_eq!((rest["rows"].as_array().unwrap().len(), rest["metadata"].get("continue")), (1, None));
}

#[test]
fn api_37_the_query_decides_what_a_row_contains() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    let row = |include: &str| {
        let path = format!("{MAPS}/a?includeObject={include}");
        ask(&server, &path, TABLE).json()["rows"][0]["object"].clone()
    };
    assert_eq!(row("None"), Value::Null);
    assert_eq!(row("Object")["kind"], "ConfigMap");
    assert_eq!(row("Metadata")["kind"], "PartialObjectMetadata");
    let refused = ask(&server, &format!("{MAPS}/a?includeObject=Foo"), TABLE);
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert_eq!(
        (refused.code, message.contains("must be 'Metadata', 'Object', 'None', or empty")),
        (400, true)
    );
}

#[test]
fn api_37_only_some_forms_of_a_table_are_acceptable() {
    let server = server();
    let beta = ask(&server, MAPS, "application/json;as=Table;v=v1beta1;g=meta.k8s.io").json();
    assert_eq!(beta["apiVersion"], "meta.k8s.io/v1beta1");
    for unknown in ["application/json;as=Table;v=v2;g=meta.k8s.io", "application/json;as=Table;v=v1;g=other"]
    {
        assert_eq!(ask(&server, MAPS, unknown).code, 406, "{unknown}");
        assert_eq!(
            ask(&server, MAPS, &format!("{unknown},application/json")).json()["kind"],
            "ConfigMapList"
        );
    }
}

#[test]
fn api_e13_only_the_first_event_of_a_watch_has_the_columns() {
    let server = server();
    server.create(config_map("a", "x")).unwrap();
    server.create(config_map("b", "x")).unwrap();
    let query = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let mut watch = table_watch(&server, &format!("{MAPS}?{query}"));
    let first = watch.event().unwrap().unwrap();
    assert_eq!(names(&first["object"]), ["Name", "Data", "Age"]);
    let second = watch.event().unwrap().unwrap();
    assert_eq!((&second["type"], &second["object"]["columnDefinitions"]), (&json!("ADDED"), &Value::Null));
    let end = watch.event().unwrap().unwrap();
    assert_eq!((&end["type"], &end["object"]["kind"]), (&json!("BOOKMARK"), &json!("Table")));
    assert_eq!(end["object"]["rows"][0]["cells"], json!(["", 0, "<unknown>"]));
    let metadata = &end["object"]["rows"][0]["object"]["metadata"];
    assert_eq!(metadata["annotations"]["k8s.io/initial-events-end"], "true");
    server.delete("configmaps", "default", "a").unwrap();
    let gone = watch.event().unwrap().unwrap();
    assert_eq!((&gone["type"], &gone["object"]["rows"][0]["cells"][0]), (&json!("DELETED"), &json!("a")));
}

#[test]
fn api_37_a_custom_kind_has_the_columns_of_its_definition() {
    let server = server();
    server.create(widgets()).unwrap();
    server.create(widget("w")).unwrap();
    let path = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(names(&ask(&server, path, TABLE).json()), ["Name", "Age"]);
    let columns = json!([
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "When", "type": "date", "jsonPath": ".spec.when"},
        {"name": "List", "type": "string", "jsonPath": ".spec.list"},
        {"name": "None", "type": "string", "jsonPath": ".status.none"}]);
    let mut definition =
        server.get("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.com").unwrap();
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = columns;
    server.update(definition).unwrap();
    let spec =
        json!({"spec": {"color": "red", "size": 3.7, "when": "1970-01-01T00:00:00Z", "list": ["a", 1]}});
    server.merge_patch("widgets.example.com", "default", "w", &spec).unwrap();
    let table = ask(&server, path, TABLE).json();
    assert_eq!(names(&table), ["Name", "Color", "Size", "When", "List", "None"]);
    assert_eq!(table["columnDefinitions"][2]["priority"], 1);
    let cells = table["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(
        [&cells[1], &cells[2], &cells[4], &cells[5]],
        [&json!("red"), &json!(3), &json!("[\"a\",1]"), &Value::Null]
    );
    assert!(cells[3].as_str().unwrap().ends_with('y'), "{}", cells[3]);
}
