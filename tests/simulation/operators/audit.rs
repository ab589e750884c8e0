//! The writes of leaders, in the order in which the server accepted them.
//!
//! Answers "has a replica whose term was over changed something after the next leader had?". It looks at the children after
//! each request that takes effect, which a world lets happen one by one. Invariants:
//! 1. A write shows the fencing number of its term, in an annotation.
//! 2. What somebody else changes at a child is not counted.
//!
//! Read next: `../operators.rs`, which says how many may be late.

use std::collections::BTreeMap;

use actix_informer::testing::World;
use serde_json::Value;

use super::site::FENCE;

/// The annotation of what a world changes as somebody else.
const TOUCHED: &str = "world/touched";

#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// The revision of the server at the last look.
    revision: u64,
    /// Of each child by uid: its version, and who else has changed it last.
    seen: BTreeMap<String, (String, Value)>,
    /// The greatest fencing number of a write.
    newest: u64,
    /// The writes that came later than one with a greater number.
    late: Vec<String>,
}

impl Audit {
    /// Looks at what has changed.
    pub(crate) fn look(&mut self, world: &World) {
        let revision = world.server().revision();
        if std::mem::replace(&mut self.revision, revision) == revision {
            return;
        }
        let mut maps = world.server().list("configmaps").expect("they are served");
        maps.sort_by_key(|map| version_of(map).parse::<u64>().unwrap_or_default());
        maps.iter().for_each(|map| self.look_at(map));
    }

    fn look_at(&mut self, map: &Value) {
        let annotations = &map["metadata"]["annotations"];
        let Some(fence) = annotations[FENCE].as_str().and_then(|fence| fence.parse::<u64>().ok()) else {
            return;
        };
        let uid = map["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let now = (version_of(map).to_owned(), annotations[TOUCHED].clone());
        let before = self.seen.insert(uid, now.clone());
        let is_of_the_operator = before.is_none_or(|before| before.0 != now.0 && before.1 == now.1);
        if !is_of_the_operator {
            return;
        }
        if fence < self.newest {
            let name = &map["metadata"]["name"];
            self.late.push(format!("{name} was written in the term {fence}, after {}", self.newest));
        }
        self.newest = self.newest.max(fence);
    }

    /// The writes that came too late, and the number of the newest term.
    pub(crate) fn late(&self) -> (&[String], u64) {
        (&self.late, self.newest)
    }
}

fn version_of(map: &Value) -> &str {
    map["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}
