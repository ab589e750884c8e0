//! Random histories, each from a seed, run on both servers and compared with a naive model.
//!
//! They answer: whatever is written in whatever order, are lists of every version and watches from every version the
//! same on both, and equal to a model that keeps every whole state?
//! 1. The model decides how many events a watch must get; more or fewer fail on our server already, without the real
//!    one.
//! 2. A history that fails is repeated by its seed, which is in the name of its test.
use std::collections::BTreeMap;

use serde_json::json;

use crate::harness::{Session, judge};

const MAPS: &str = "/api/v1/namespaces/{ns}/configmaps";
const STEPS: u32 = 45;
const SELECTORS: [&str; 4] = ["", "app=x", "app!=x", "app in (x,y)"];

/// The existing objects: name and label.
type View = BTreeMap<String, String>;

/// Every past state, with its version for clients.
#[derive(Default)]
struct Model {
    states: Vec<(String, View)>,
}

impl Model {
    fn now(&self) -> View {
        self.states.last().map(|(_, view)| view.clone()).unwrap_or_default()
    }

    fn write(&mut self, version: String, change: impl FnOnce(&mut View)) {
        let mut view = self.now();
        change(&mut view);
        self.states.push((version, view));
    }

    /// How many events a watch with this selector must get that began after this state.
    fn owed(&self, from: usize, selector: &str) -> usize {
        let pairs = self.states[from..].windows(2);
        pairs.filter(|pair| tells(&pair[0].1, &pair[1].1, selector)).count()
    }
}

fn matches(selector: &str, app: Option<&String>) -> bool {
    app.is_some_and(|app| match selector {
        "" => true,
        "app=x" => app == "x",
        "app!=x" => app != "x",
        _ => app == "x" || app == "y",
    })
}

/// Whether a write from one state to the next is an event for this selector: it matches before or after.
fn tells(before: &View, after: &View, selector: &str) -> bool {
    let mut names = before.keys().chain(after.keys());
    let changed = names.find(|name| before.get(*name) != after.get(*name));
    // A patch may write the same label again with other data: the object changed, but not for the selector.
    changed.is_none_or(|name| matches(selector, before.get(name)) || matches(selector, after.get(name)))
}

/// A small generator: equal seeds, equal histories.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

fn write(s: &mut Session, model: &mut Model, dice: &mut Dice) {
    let name = format!("m{}", dice.below(6));
    let app = dice.of(&["x", "y", "z"]);
    let there = model.now().contains_key(&name);
    if !there {
        let made = s.post(MAPS, &json!({"metadata": {"name": name, "labels": {"app": app}}}));
        model.write(made.version(), |view| drop(view.insert(name, app.to_owned())));
    } else if dice.below(3) == 0 {
        s.delete(format!("{MAPS}/{name}"));
        // The next list shows the version of a deletion.
        let list = s.get(format!("{MAPS}?limit=1"));
        model.write(list.version(), |view| drop(view.remove(&name)));
    } else if model.now().get(&name).is_some_and(|now| now != app) {
        let made = s.patch("merge", format!("{MAPS}/{name}"), &json!({"metadata": {"labels": {"app": app}}}));
        model.write(made.version(), |view| drop(view.insert(name, app.to_owned())));
    }
}

fn read(s: &mut Session, model: &Model, dice: &mut Dice) {
    let selector = dice.of(&SELECTORS);
    let Some(last) = model.states.len().checked_sub(1) else { return };
    let at = dice.below(model.states.len() as u64) as usize;
    let (version, view) = &model.states[at];
    let path = match dice.below(4) {
        0 => format!("{MAPS}?labelSelector={selector}"),
        1 => format!(
            "{MAPS}?labelSelector={selector}&resourceVersion={}&resourceVersionMatch=NotOlderThan",
            model.states[last].0
        ),
        _ => format!("{MAPS}?labelSelector={selector}&resourceVersion={version}&resourceVersionMatch=Exact"),
    };
    let view = if path.ends_with("Exact") { view.clone() } else { model.now() };
    let list = s.get(path.clone()).json();
    let told = list["items"].as_array().map_or(0, Vec::len);
    let expected = view.values().filter(|app| matches(selector, Some(app))).count();
    assert_eq!(told, expected, "{path}");
}

/// Watches from a state on; its events are read at the end of the history.
fn history(s: &mut Session, seed: u64) {
    let (mut model, mut dice) = (Model::default(), Dice(seed));
    let mut watches = Vec::new();
    for _ in 0..STEPS {
        match dice.below(6) {
            0 | 1 => read(s, &model, &mut dice),
            2 if !model.states.is_empty() && watches.len() < 8 => {
                let from = dice.below(model.states.len() as u64) as usize;
                let selector = dice.of(&SELECTORS);
                let version = &model.states[from].0;
                let path = format!("{MAPS}?watch=1&labelSelector={selector}&resourceVersion={version}");
                watches.push((s.watch(path), from, selector));
            }
            _ => write(s, &mut model, &mut dice),
        }
    }
    for (watch, from, selector) in &mut watches {
        let owed = model.owed(*from, selector);
        assert_eq!(watch.events(s, owed).len(), owed, "{selector} from {from}");
    }
}

#[test]
fn api_16_a_random_history_of_seed_1_is_the_same_on_both() {
    judge(|s| history(s, 1));
}

#[test]
fn api_16_a_random_history_of_seed_2_is_the_same_on_both() {
    judge(|s| history(s, 2));
}

#[test]
fn api_16_a_random_history_of_seed_3_is_the_same_on_both() {
    judge(|s| history(s, 3));
}
