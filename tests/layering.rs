//! The house rules that a machine can check: layers, headers, sizes, examples shown in the guide, and the files and
//! functions named in ARCHITECTURE.md.
//!
//! Crates enforce most arrows between layers; this test reads the sources for the rest. A rule that fails names the
//! file, so that the reader knows where to look. Limits are those of the house style: files of at most 400 lines,
//! functions within clippy's `too_many_lines`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[path = "layering/documentation.rs"]
mod documentation;
#[path = "layering/imports.rs"]
mod imports;
#[path = "layering/names.rs"]
mod names;
#[path = "layering/operators.rs"]
mod operators;
#[path = "layering/promises.rs"]
mod promises;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const OPERATOR: &str = "actors/operator/src";
const CLIENT: &str = "src/client/src";

fn sources(folder: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![Path::new(ROOT).join(folder)];
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.map(|entry| entry.expect("a readable folder").path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.insert(relative(&path), std::fs::read_to_string(&path).expect("a readable source"));
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(ROOT).map_or_else(|_| PathBuf::from(path), PathBuf::from).display().to_string()
}

fn all_sources() -> BTreeMap<String, String> {
    ["src", "actors", "tests", "examples", "benches"].into_iter().flat_map(sources).collect()
}

/// Code lines of `text`: without comments, and without what is compiled for tests only, wherever it stands.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_for_tests, mut is_inside) = (false, false);
    text.lines().filter(move |line| {
        if is_inside {
            is_inside = !line.starts_with('}');
        } else if line.starts_with("#[cfg(test)]") {
            is_for_tests = true;
        } else if is_for_tests {
            // What follows the attributes is the item: a line, or a block that ends in the first column.
            is_for_tests = line.starts_with('#');
            is_inside = !is_for_tests && line.ends_with('{');
        } else {
            return !line.trim_start().starts_with("//");
        }
        false
    })
}

/// Without unit tests, some of which record from more than one thread.
fn without_tests(mut sources: BTreeMap<String, String>) -> BTreeMap<String, String> {
    sources.retain(|file, _| !file.ends_with("/tests.rs") && !file.contains("/tests/"));
    sources
}

fn assert_absent(folder: &str, except: &[&str], words: &[&str]) {
    assert_absent_in(sources(folder), except, words);
}

fn assert_absent_in(sources: BTreeMap<String, String>, except: &[&str], words: &[&str]) {
    for (file, text) in sources {
        if except.iter().any(|allowed| file.ends_with(allowed)) {
            continue;
        }
        for line in code(&text) {
            let word = words.iter().find(|word| line.contains(**word));
            assert!(word.is_none(), "{file}: {} has no place here: {}", word.unwrap_or(&""), line.trim());
        }
    }
}

#[test]
fn every_source_begins_with_a_header_and_has_at_most_400_lines() {
    for (file, text) in all_sources() {
        assert!(text.starts_with("//!") || text.starts_with("#!["), "{file} has no header");
        let lines = promises::without_sentences(&text);
        assert!(lines <= 400, "{file} has {lines} lines, promises not counted");
        let second = text.lines().find(|line| line.starts_with("// Answers \""));
        assert_eq!(second, None, "{file} has a second header");
    }
}

/// What nothing that decides may use.
const OF_ACTORS: [&str; 10] = [
    "std::time::Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
    "rand::",
    "fastrand",
    "tracing",
    "tokio",
    "actix",
    "println!",
];
/// What no actor may use.
const OF_CLIENTS: [&str; 6] = ["awc", "kube", "k8s_openapi", "http::", "std::fs", "serde"];
/// What only the runtime's folder may use: others hold a `Guarded`, and send messages.
const LOCKS: [&str; 4] = ["Mutex", "RwLock", "mpsc", "oneshot"];

#[test]
fn the_client_and_the_in_memory_server_have_one_table_of_messages() {
    let read = |path: &str| std::fs::read_to_string(Path::new(ROOT).join(path)).expect("a table");
    let (client, server) =
        ("src/client/src/wire/protobuf/messages.txt", "tests/apiserver/src/protobuf/messages.txt");
    assert!(read(client) == read(server), "{client} is not {server}: copy the one that was made last");
}

#[test]
fn the_core_uses_no_clock_no_randomness_no_hash_order_and_no_log() {
    assert_absent("actors/core/src", &[], &OF_ACTORS);
}

#[test]
fn the_actors_crate_uses_no_http_no_files_and_no_kubernetes() {
    assert_absent("actors/src", &[], &OF_CLIENTS);
}

#[test]
fn locks_and_channels_stand_in_the_runtime_folder_alone() {
    let mut others = without_tests(sources("actors/src"));
    others.retain(|file, _| !file.starts_with("actors/src/runtime/"));
    assert_absent_in(others, &[], &LOCKS);
}

#[test]
fn only_the_published_cell_is_written_through_arc_swap() {
    // A store there visits every thread that has ever read one: what each poll writes must not.
    assert_absent("actors/src", &["pipeline/published.rs"], &["arc_swap", "ArcSwap"]);
}

#[test]
fn no_actor_uses_the_internals_of_another_actor() {
    // An actor may hold the address of the one it asks; it may use nothing else of its module.
    let actors = ["reflector", "delta_fifo", "indexer", "processor", "listener", "supervisor"];
    for actor in actors {
        let folder = if actor == "supervisor" { "supervision" } else { "pipeline" };
        let text = std::fs::read_to_string(Path::new(ROOT).join(format!("actors/src/{folder}/{actor}.rs")))
            .expect("an actor");
        for line in code(&text).filter(|line| line.trim_start().starts_with("use crate::")) {
            for other in actors.iter().filter(|other| **other != actor) {
                let names_it = line.contains(&format!("::{other}::"));
                let only_its_type = line.trim_end().ends_with(&format!("::{};", camel(other)));
                assert!(!names_it || only_its_type, "{actor}.rs: {line}");
            }
        }
    }
}

#[test]
fn files_of_the_actors_import_in_one_direction() {
    let layer = |module: &str| match module.split("::").next() {
        Some("runtime") => 0,
        Some("supervision") => 1,
        Some("pipeline" | "list_watch") => 2,
        _ => 3,
    };
    for (file, imports) in imports::imports("actors/src", sources("actors/src")) {
        for import in &imports {
            assert!(layer(import) <= layer(&file), "{file} imports {import}, which is above it");
        }
    }
}

#[test]
fn no_files_import_each_other_in_a_circle_but_a_module_and_its_own_children() {
    let crates = [CLIENT, "src/informerd/src"];
    let others = ["actors/core/src", "actors/src", "src", "tests/control-plane/src", "tests/apiserver/src"];
    for folder in others.into_iter().chain(crates).chain([OPERATOR]) {
        let mut files = sources(folder);
        files.retain(|file, _| crates.iter().all(|inner| folder == *inner || !file.starts_with(inner)));
        let circles = imports::circles(&imports::imports(folder, files));
        assert!(circles.is_empty(), "circles in {folder}: {circles:#?}");
    }
}

fn camel(snake: &str) -> String {
    snake.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

#[test]
fn only_the_transport_uses_awc() {
    let inside = |file: &String| file.contains("transport/awc");
    let all = ["src", OPERATOR].into_iter().flat_map(sources);
    for (file, text) in all.filter(|(file, _)| !inside(file)) {
        // A module of ours with that name may be named.
        let foreign = code(&text).find(|line| line.replace("transport::awc::", "").contains("awc::"));
        assert!(foreign.is_none(), "{file}: {foreign:?}");
    }
}

/// What begins an event, a span, or the question whether somebody wants one, of `tracing`.
const LOGGED: [&str; 12] = [
    "tracing::error!",
    "tracing::warn!",
    "tracing::info!",
    "tracing::debug!",
    "tracing::trace!",
    "tracing::event!",
    "tracing::enabled!",
    "span!",
    "span_enabled!",
    "event_enabled!",
    "tracing::instrument",
    "#[instrument",
];

#[test]
fn newcomer_3_everything_is_logged_under_the_name_of_the_crate_that_programs_use() {
    let mut found = 0;
    for (file, text) in ["src", "actors/src", OPERATOR].into_iter().flat_map(sources) {
        let text: String = code(&text).flat_map(|line| [line, "\n"]).collect();
        let imports_one = text.lines().any(|line| {
            let names = line.trim_start().strip_prefix("use tracing::").unwrap_or_default();
            names.split(|c: char| c != '_' && !c.is_alphanumeric()).any(|name| {
                ["error", "warn", "info", "debug", "trace", "event", "span"].contains(&name)
                    || name.ends_with("_span")
            })
        });
        assert!(!imports_one, "{file} imports a macro of tracing, so that this test does not find its calls");
        for begins in LOGGED {
            for (at, _) in text.match_indices(begins) {
                let arguments = text[at + begins.len()..].trim_start_matches(['(', '\n', ' ']);
                let has_target = arguments.starts_with("target: \"actix_informer::");
                assert!(has_target, "{file}: {begins} without a target of actix_informer");
                found += 1;
            }
        }
    }
    assert!(found >= 100, "{found} events and spans were found");
}

#[test]
fn only_the_wire_knows_how_lists_and_watches_are_written() {
    assert_absent("src/client/src/list_watch", &[], &["serde_json", "memchr", "b'{'", "b'\\n'", "br#"]);
}

#[test]
fn every_example_is_shown_in_the_guide() {
    let guide = std::fs::read_to_string(Path::new(ROOT).join("src/guide/examples.md")).expect("a guide");
    for file in sources("examples").into_keys() {
        let name = file.split('/').nth(1).expect("a name").trim_end_matches(".rs");
        assert!(guide.contains(&format!("--example {name}")), "the guide does not show {name}");
    }
}

/// The paths of sources named in a text, each with the names of functions that follow it in the same sentence part:
/// `` `file.rs`, `function` ``.
fn named_sources(text: &str) -> Vec<(String, Option<String>)> {
    let mut pieces = text.split('`').enumerate().map(|(at, word)| (at % 2 == 1, word)).peekable();
    let mut found = Vec::new();
    while let Some((is_code, word)) = pieces.next() {
        if !(is_code && word.contains('/') && word.ends_with(".rs")) {
            continue;
        }
        let follows = pieces.next().is_some_and(|(_, between)| matches!(between.trim(), "," | ", `"));
        let name = pieces.peek().filter(|_| follows).map(|(_, name)| (*name).to_owned());
        found.push((word.to_owned(), name.filter(|name| !name.contains('/'))));
    }
    found
}

#[test]
fn the_files_and_functions_that_the_architecture_names_exist() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for (file, function) in named_sources(&text) {
        let source = std::fs::read_to_string(Path::new(ROOT).join(&file));
        let source = source.unwrap_or_else(|_| panic!("ARCHITECTURE.md names {file}, which does not exist"));
        if let Some(function) = function {
            let starts = [format!("fn {function}("), format!("fn {function}<")];
            let is_there = starts.iter().any(|start| source.contains(start));
            assert!(is_there, "ARCHITECTURE.md names {function} in {file}, which has no such function");
        }
    }
}

#[test]
fn each_walk_in_the_architecture_leads_in_three_steps_from_the_drawing_to_a_function() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let walks =
        text.split("## Three walks").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("the walks");
    let walks: Vec<&str> = walks.split("\n**").skip(1).collect();
    assert_eq!(walks.len(), 3);
    for walk in walks {
        let steps: Vec<&str> = walk.split("\n1. ").nth(1).expect("a first step").split("\n2. ").collect();
        let (first, rest) = (steps[0], steps[1]);
        let (second, third) = rest.split_once("\n3. ").expect("a third step");
        assert!(first.starts_with("The box "), "{first}");
        for step in [first, second, third] {
            let named = named_sources(step);
            assert!(
                named.first().is_some_and(|(_, function)| function.is_some()),
                "names no function: {step}"
            );
        }
    }
}

#[test]
fn nothing_stands_at_the_top_that_was_not_decided() {
    let allowed = [
        "Cargo.toml",
        "Cargo.lock",
        "src",
        "actors",
        "examples",
        "tests",
        "config",
        "README.md",
        "benches",
        "fuzz",
        "clippy.toml",
        "rustfmt.toml",
        "deny.toml",
        "LICENSE",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "ARCHITECTURE.md",
        "target",
    ];
    for entry in std::fs::read_dir(ROOT).expect("the root") {
        let name = entry.expect("a readable entry").file_name().to_string_lossy().into_owned();
        assert!(name.starts_with('.') || allowed.contains(&name.as_str()), "{name} stands at the top");
    }
}

/// The anchor that rustdoc gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn each_row_of_the_guides_leads_to_an_example_that_is_compiled() {
    for guide in ["src/guide/from_client_go.md", "src/guide/from_kube_rs.md"] {
        let text = std::fs::read_to_string(guide).unwrap();
        let examples: BTreeSet<String> = text
            .split("\n## ")
            .skip(1)
            .filter(|section| section.contains("```rust"))
            .map(|section| anchor(section.lines().next().unwrap()))
            .collect();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
        assert!(rows.len() > 25, "{guide}");
        for row in rows {
            let example = row.rsplit_once("(#").and_then(|(_, rest)| rest.split_once(')')).map(|(at, _)| at);
            assert!(example.is_some_and(|example| examples.contains(example)), "{guide}: {row}");
        }
    }
}
