//! The list of known differences: DIFFERENCES.md beside the README, one line each, with its owner.
//!
//! Answers: is this difference known, and is each known one still there?
//! 1. A line is `| script | step | at | owner | about |`. The step is a label, its number, numbers (`1, 4-6`: in each there
//!    must be a difference), or `*` (in any). `at` is a pointer; everything below it is covered too (`/` is all of the
//!    step); `*` stands for one member and `**` for any number.
//! 2. A script of `* (name)` stands for all scripts; the one named proves that the difference is still there.
use std::fs;
use std::path::Path;

use super::compare::Difference;

/// One line of the list.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    script: String,
    everywhere: bool,
    step: String,
    at: Vec<String>,
    pub(crate) line: String,
}

/// All lines, read each time: the file is small, and tests are few.
pub(crate) fn list() -> Vec<Known> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("DIFFERENCES.md");
    let text = fs::read_to_string(path).expect("DIFFERENCES.md can be read");
    text.lines().flat_map(Known::parse).collect()
}

impl Known {
    /// One for each of the line's steps.
    fn parse(line: &str) -> Vec<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let ["", script, step, at, _owner, _about, ..] = cells.as_slice() else { return Vec::new() };
        if !at.starts_with('/') && !at.starts_with('*') {
            return Vec::new();
        }
        let script_of_all = script.strip_prefix("* (").and_then(|rest| rest.strip_suffix(')'));
        let at = at.trim_start_matches('/').split('/').filter(|member| !member.is_empty());
        let at: Vec<String> = at.map(str::to_owned).collect();
        let of_step = |step| Self {
            script: script_of_all.unwrap_or(script).to_owned(),
            everywhere: script_of_all.is_some(),
            step,
            at: at.clone(),
            line: line.to_owned(),
        };
        steps(step).into_iter().map(of_step).collect()
    }

    /// Whether this script must show the difference.
    pub(crate) fn is_proved_by(&self, script: &str) -> bool {
        self.script == script
    }

    pub(crate) fn covers(&self, script: &str, difference: &Difference) -> bool {
        let number = difference.step.split(' ').next().unwrap_or_default();
        let step = self.step == "*" || self.step == difference.step || self.step == number;
        let pointer: Vec<&str> = difference.at.trim_start_matches('/').split('/').collect();
        (self.everywhere || self.script == script) && step && begins(&pointer, &self.at)
    }
}

/// The numbers of `1, 4-6`, or a single label.
fn steps(cell: &str) -> Vec<String> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse::<u32>().ok()?..=to.parse().ok()?)
    };
    let ranges: Option<Vec<_>> = cell.split(", ").map(range).collect();
    ranges.map_or_else(
        || vec![cell.to_owned()],
        |ranges| ranges.into_iter().flatten().map(|number| number.to_string()).collect(),
    )
}

/// Whether the pointer is at or below the pattern.
fn begins(pointer: &[&str], pattern: &[String]) -> bool {
    match (pattern, pointer) {
        ([], _) => true,
        ([any, rest @ ..], _) if any == "**" => {
            (0..=pointer.len()).any(|skipped| begins(&pointer[skipped..], rest))
        }
        ([first, rest @ ..], [here, below @ ..]) => (first == "*" || first == here) && begins(below, rest),
        (_, []) => false,
    }
}

#[test]
fn a_line_covers_what_lies_below_it_in_its_script_and_step() {
    let difference = |step: &str, at: &str| Difference {
        step: step.to_owned(),
        at: at.to_owned(),
        ours: None,
        real: None,
    };
    let parse = |line: &str| Known::parse(line).pop().unwrap();
    let line = parse("| api_1 | 2 | /body/spec | kinds | defaults |");
    assert!(line.covers("api_1", &difference("2 GET pods/a", "/body/spec/x")));
    assert!(!line.covers("api_1", &difference("12 GET pods/a", "/body/spec")));
    assert!(!line.covers("api_1", &difference("2 GET pods/a", "/body/specs")));
    assert!(!line.covers("api_2", &difference("2 GET pods/a", "/body/spec")));
    let whole = parse("| api_1 | 2 | / | kinds | refused |");
    assert!(whole.covers("api_1", &difference("2 GET pods/a", "/code")));
    let all = parse("| * (api_1) | * | /**/metadata/managedFields | apply | not made |");
    assert!(all.covers("api_2", &difference("1 GET", "/events/0/object/metadata/managedFields/0")));
    assert!(all.is_proved_by("api_1") && !all.is_proved_by("api_2"));
    let several = Known::parse("| api_1 | 1, 3-5 | / | kinds | refused |");
    let steps: Vec<_> = several.iter().map(|line| &*line.step).collect();
    assert_eq!(steps, ["1", "3", "4", "5"], "each of them must be there");
    assert!(Known::parse("| script | step | at | owner | about |").is_empty());
}
