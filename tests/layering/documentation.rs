//! The house rules for documentation: whoever reads an example can paste it, and what a comment names is there.
//!
//! Answers "does an example name only what a program can name?" That each compiles in a program is checked by
//! `tests/documentation`, whose list of examples is used here.

use std::collections::BTreeSet;
use std::path::Path;

use super::{OPERATOR, ROOT, all_sources, sources};

#[path = "../documentation/src/extract.rs"]
mod extract;

#[test]
fn newcomer_10_no_example_shows_a_crate_that_a_user_cannot_name() {
    let examples = extract::examples(Path::new(ROOT));
    for folder in extract::DOCUMENTATION {
        assert!(examples.iter().any(|example| example.file.starts_with(folder)), "no example in {folder}");
    }
    for example in &examples {
        for (_, text) in example.lines.iter().filter(|(is_hidden, _)| !is_hidden) {
            let inner = [
                "informer_core",
                "informer_actors",
                "informer_client",
                "informer_operator",
                "informer_apiserver",
            ];
            let named = inner.iter().find(|name| text.contains(**name));
            assert!(named.is_none(), "{}:{}: {text}", example.file, example.line);
        }
    }
}

#[test]
fn newcomer_10_every_example_of_what_a_user_can_name_is_compiled_as_a_user_would() {
    let of_actors = exported("src", "informer_actors");
    let of_core: BTreeSet<String> =
        &exported("src", "informer_core") | &(&exported("actors/src", "informer_core") & &of_actors);
    let of_operators = exported("src", "informer_operator");
    let of_machines: BTreeSet<String> =
        &of_machines("src", "informer_operator") | &(&of_machines(OPERATOR, "crate") & &of_operators);
    assert!(
        of_core.contains("ObjectKey") && of_machines.contains("Priority") && of_actors.contains("Informer")
    );
    // The Kubernetes side of a recorder and of an election has the name of the actor's handle in it.
    let kubernetes = sources(OPERATOR).into_iter().filter(|(file, _)| file.ends_with("kubernetes.rs"));
    let kubernetes: String = kubernetes.map(|(_, text)| text).collect();
    let of_kubernetes = kubernetes.lines().filter_map(declared).map(str::to_owned).collect();
    let of_acting = &of_operators - &of_kubernetes;
    assert!(of_operators.contains("Recorder") && of_operators.contains("Outcome"));
    assert!(of_actors.contains("Runtime"), "a module that is exported as a whole");
    let examples = extract::examples(Path::new(ROOT));
    for example in examples.iter().filter(|example| example.is_inner()) {
        let text = std::fs::read_to_string(Path::new(ROOT).join(&example.file)).expect("a source");
        let subject = subject(&text.lines().collect::<Vec<_>>(), example.line);
        let (file, line) = (&example.file, example.line);
        let exported = match () {
            () if file.starts_with("actors/core") => &of_core,
            () if file.starts_with(OPERATOR) && file.contains("/machine") => &of_machines,
            () if file.starts_with(OPERATOR) && !file.contains("/kubernetes") => &of_acting,
            () if file.starts_with(OPERATOR) => &of_operators,
            () => &of_actors,
        };
        assert!(
            !exported.contains(&subject),
            "{file}:{line}: begin with `# use {{crate}}::face as actix_informer;` and name {subject} by it"
        );
    }
}

#[test]
fn operator_d_the_documentation_is_found_by_the_words_of_the_field() {
    let sources: String = sources("actors").into_values().chain(sources("src").into_values()).collect();
    let aliases: Vec<&str> =
        sources.lines().filter(|line| line.trim_start().starts_with("#[doc(alias")).collect();
    let words =
        ["watches", "predicate", "MaxConcurrentReconciles", "requeue", "backoff", "resync", "reconcile_on"];
    for word in words {
        assert!(aliases.iter().any(|line| line.contains(&format!("\"{word}\""))), "{word}");
    }
}

/// The names that the sources in this folder export of one of our own crates. The test kit's are left out: it has a
/// `Recorder` of its own, which is not the one of events.
fn exported(folder: &str, name: &str) -> BTreeSet<String> {
    let start = format!("\npub use {name}::");
    let sources = sources(folder).into_iter().filter(|(file, _)| !file.contains("testing"));
    let texts = sources.map(|(_, text)| text).collect::<String>();
    let uses: Vec<&str> = texts.split(&start).skip(1).filter_map(|rest| rest.split(';').next()).collect();
    let words = uses.iter().flat_map(|names| names.split(|c: char| c != '_' && !c.is_alphanumeric()));
    // Of a module that is exported as a whole: what the top of its file declares.
    let inner = match name {
        "informer_core" => "actors/core/src",
        "informer_operator" => OPERATOR,
        _ => "actors/src",
    };
    let files = crate::sources(inner);
    let path = |module: &str| module.split(" as ").next().unwrap_or_default().replace("::", "/");
    let modules = uses.iter().filter_map(|module| files.get(&format!("{inner}/{}.rs", path(module))));
    let declared = modules.flat_map(|text| text.lines().filter_map(declared));
    words.filter(|word| !word.is_empty()).chain(declared).map(str::to_owned).collect()
}

/// The names that the sources in this folder export of machines of operators, whose paths begin so.
fn of_machines(folder: &str, start: &str) -> BTreeSet<String> {
    let texts: String = sources(folder).into_values().collect();
    let start = format!("\npub use {start}::");
    let uses = texts.split(&start).skip(1).filter_map(|rest| rest.split(';').next());
    let names = uses.filter_map(|names| names.split_once("::machine::")).map(|(_, names)| names);
    let words = names.flat_map(|names| names.split(|c: char| c != '_' && !c.is_alphanumeric()));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The name of the public type or trait that a line at the top of a file declares.
fn declared(line: &str) -> Option<&str> {
    let rest =
        ["pub struct ", "pub enum ", "pub trait "].iter().find_map(|start| line.strip_prefix(start))?;
    rest.split(|c: char| c != '_' && !c.is_alphanumeric()).next()
}

/// What the comment with this line documents: an item, or the type or trait that a method belongs to.
fn subject(lines: &[&str], line: usize) -> String {
    let is_item = |line: &&&str| {
        let line = line.trim_start();
        !line.is_empty() && !["//", "#[", ")]", "\""].iter().any(|other| line.starts_with(other))
    };
    let item = lines[line..].iter().find(is_item).expect("an item");
    let head = match item.starts_with(' ') {
        false => *item,
        true => lines[..line]
            .iter()
            .rfind(|line| !line.is_empty() && !line.starts_with([' ', '/', '#', '}', ')']))
            .expect("a head"),
    };
    let head = head.rsplit_once(" for ").map_or(head, |(_, subject)| subject);
    let word = head.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let keywords =
        ["pub", "crate", "unsafe", "struct", "enum", "trait", "type", "fn", "const", "async", "impl"];
    // Of `impl<S: Body> Informer<S>` the name is behind the parameters.
    let word = match head.strip_prefix("impl<").and_then(|rest| rest.split_once("> ")) {
        Some((_, name)) => return name.split(['<', ' ']).next().unwrap_or_default().to_owned(),
        None => word,
    };
    word.into_iter().find(|word| !keywords.contains(word)).unwrap_or_default().to_owned()
}

/// The lines of comments with the names of sources in them, such as `` `indexer.rs` `` and `` `indexer/replace.rs` ``.
fn named_in_comments(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let comments = text.lines().filter(|line| line.trim_start().starts_with("//"));
    let named = comments.flat_map(|line| line.split('`').skip(1).step_by(2).map(move |name| (line, name)));
    let is_ours = |name: &str| !["actix-http/", "awc/"].iter().any(|other| name.starts_with(other));
    let is_path =
        |name: &str| name.ends_with(".rs") && !name.contains(|c: char| c == ' ' || "*<{:".contains(c));
    // Two representations have names and no files: the next issues make them.
    named.filter(move |(_, name)| is_path(name) && is_ours(name) && !["lazy.rs", "packed.rs"].contains(name))
}

#[test]
fn each_source_that_a_comment_names_exists() {
    let all = all_sources();
    let ends: BTreeSet<&str> = all
        .keys()
        .flat_map(|path| path.match_indices('/').map(|(at, _)| &path[at + 1..]).chain([path.as_str()]))
        .collect();
    let mut gone = Vec::new();
    for (file, text) in &all {
        let names =
            named_in_comments(text).filter(|(_, name)| !ends.contains(name.trim_start_matches("../")));
        gone.extend(names.map(|(line, _)| format!("{file}: {line}")));
    }
    assert!(gone.is_empty(), "named, but gone:\n{}", gone.join("\n"));
}
