//! Rows compared with those of a real server: `tables.json` was recorded by `record-tables.py` from kube-apiserver
//! 1.36.2.
//!
//! They answer: does kubectl show here what it shows there?
use serde_json::Value;

use crate::cluster::builtin;

#[test]
fn api_37_rows_have_the_cells_of_a_real_server() {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("tables.json")).unwrap();
    let mut wrong = Vec::new();
    for row in &recorded {
        let text = |name: &str| row[name].as_str().unwrap();
        let named = |kind: &std::sync::Arc<crate::cluster::kind::Kind>| {
            kind.resource.is(text("group"), text("plural")) && kind.version == text("version")
        };
        let kind = builtin::kinds().find(named).expect("a recorded kind is a known one");
        let cells = super::cells(&kind, &row["object"], row["now"].as_i64().unwrap());
        if Value::Array(cells.clone()) != row["cells"] {
            wrong.push(format!("{}: {cells:?}\n  but: {}", text("plural"), row["cells"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
