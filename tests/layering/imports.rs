//! Which files of a crate use which others.
//!
//! Answers "what does this file import?" from the text of the sources: `use` items and paths in the code that begin with
//! `crate::`, `super::` or `self::`. A name that a file only passes on is followed to the file that defines it. Not seen:
//! what a macro makes of a path, and a path through a name that a `use` of another crate has brought.

use std::collections::{BTreeMap, BTreeSet};

/// The files that each file of `sources` imports, both as module paths: without a module and its own children, without
/// tests and what only tests use, and without what a file only passes on (`pub use`): a public module names the parts of its
/// subject, in whatever file they are written.
pub(crate) fn imports(folder: &str, sources: BTreeMap<String, String>) -> BTreeMap<String, BTreeSet<String>> {
    let files: BTreeMap<String, File> =
        sources.into_iter().map(|(file, text)| (module(folder, &file), File::new(&text))).collect();
    let crate_ = Crate { files };
    crate_
        .files
        .keys()
        .filter(|module| !is_test(module))
        .map(|module| (module.clone(), crate_.of(module)))
        .collect()
}

/// Groups of files of which each imports each other, directly or through others.
pub(crate) fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|file| (file, reach(imports, file))).collect();
    let with = |file: &String| -> BTreeSet<String> {
        let others =
            reached[file].iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(file)));
        others.map(|other| (*other).clone()).collect()
    };
    imports.keys().map(with).filter(|group| !group.is_empty()).collect()
}

fn reach<'a>(imports: &'a BTreeMap<String, BTreeSet<String>>, file: &str) -> BTreeSet<&'a String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![file]);
    while let Some(file) = open.pop() {
        for import in imports.get(file).into_iter().flatten() {
            if found.insert(import) {
                open.push(import);
            }
        }
    }
    found
}

/// The module path of a file; empty for the root of the crate.
fn module(folder: &str, file: &str) -> String {
    let inside = file.strip_prefix(folder).unwrap_or(file).trim_start_matches('/').trim_end_matches(".rs");
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    if inside == "lib" { String::new() } else { inside.replace('/', "::") }
}

fn is_test(module: &str) -> bool {
    module.split("::").any(|part| part == "tests" || part == "test" || part.ends_with("_tests"))
}

fn is_related(a: &str, b: &str) -> bool {
    a == b || is_below(a, b) || is_below(b, a)
}

/// Whether the first is the second's child, or a child's child.
fn is_below(a: &str, b: &str) -> bool {
    b.is_empty() || a.strip_prefix(b).is_some_and(|rest| rest.starts_with("::"))
}

fn join(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

struct File {
    /// What it brings into scope: the name (`*` for all of a module), its path, and whether it only passes it on.
    uses: Vec<(String, Vec<String>, bool)>,
    /// The paths in its code.
    paths: Vec<Vec<String>>,
    /// The names of its items.
    items: BTreeSet<String>,
}

impl File {
    fn new(text: &str) -> Self {
        let words = words(text);
        let mut file = Self { uses: Vec::new(), paths: Vec::new(), items: BTreeSet::new() };
        let mut at = 0;
        while at < words.len() {
            if words[at] == "use" && words.get(at + 1) != Some(&"<") {
                let is_passed_on = at > 0 && (words[at - 1] == "pub" || words[at - 1] == ")");
                at = file.tree(&words, at + 1, &[], is_passed_on);
            } else if ["crate", "super", "self"].contains(&words[at]) && words.get(at + 1) == Some(&"::") {
                let mut path = vec![words[at].to_owned()];
                while words.get(at + 1) == Some(&"::") && words.get(at + 2).is_some_and(|word| is_name(word))
                {
                    path.push(words[at + 2].to_owned());
                    at += 2;
                }
                file.paths.push(path);
                at += 1;
            } else {
                let begins =
                    ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "macro_rules"];
                if begins.contains(&words[at])
                    && let Some(name) = words.get(at + 1).filter(|name| is_name(name))
                {
                    file.items.insert((*name).to_owned());
                }
                at += 1;
            }
        }
        file
    }

    /// Notes what a `use` brings from `at` on; returns where it ends.
    fn tree(&mut self, words: &[&str], mut at: usize, before: &[String], is_passed_on: bool) -> usize {
        let mut path = before.to_vec();
        while at < words.len() {
            match words[at] {
                "::" => at += 1,
                "{" => {
                    at += 1;
                    while words[at] != "}" {
                        at = self.tree(words, at, &path, is_passed_on);
                        if words[at] == "," {
                            at += 1;
                        }
                    }
                    return at + 1;
                }
                "," | "}" | ";" => break,
                "as" => {
                    self.uses.push((words[at + 1].to_owned(), path, is_passed_on));
                    return at + 2;
                }
                word => {
                    path.push(word.to_owned());
                    at += 1;
                }
            }
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = path.last().cloned() {
            self.uses.push((name, path, is_passed_on));
        }
        at
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|letter: char| letter == '_' || letter.is_alphabetic())
}

/// The words and signs of a source, without comments, texts and what only tests compile.
fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = quoted(rest) {
            length
        } else if rest.starts_with("::") {
            found.push(&rest[..2]);
            2
        } else if first == '_' || first.is_alphanumeric() {
            let end = rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
            found.push(&rest[..end.unwrap_or(rest.len())]);
            end.unwrap_or(rest.len())
        } else {
            if !first.is_whitespace() {
                found.push(&rest[..first.len_utf8()]);
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    without_tests(&found)
}

/// The length of the text or character that begins here.
fn quoted(rest: &str) -> Option<usize> {
    let raw = rest.strip_prefix('b').unwrap_or(rest);
    if let Some(hashes) = raw.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len()) {
        let opening = rest.len() - raw.len() + 1 + hashes;
        if rest[opening..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            return Some(
                rest[opening + 1..].find(&end).map_or(rest.len(), |at| opening + 1 + at + end.len()),
            );
        }
    }
    let quote = rest.strip_prefix('b').unwrap_or(rest);
    let start = rest.len() - quote.len();
    if quote.starts_with('"') {
        let (mut is_escaped, mut at) = (false, start + 1);
        for letter in quote.chars().skip(1) {
            at += letter.len_utf8();
            match letter {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => return Some(at),
                _ => {}
            }
        }
        return Some(rest.len());
    }
    let mut letters = quote.strip_prefix('\'')?.char_indices();
    let (_, first) = letters.next()?;
    if first == '\\' {
        return quote[3..].find('\'').map(|at| start + 3 + at + 1);
    }
    let (at, second) = letters.next()?;
    // Else a lifetime.
    (second == '\'').then_some(start + 1 + at + 1)
}

/// Leaves out each item below `#[cfg(test)]`.
fn without_tests<'a>(words: &[&'a str]) -> Vec<&'a str> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < words.len() {
        if !words[at..].starts_with(&MARK) {
            kept.push(words[at]);
            at += 1;
            continue;
        }
        at += MARK.len();
        let mut depth = 0_usize;
        while at < words.len() {
            match words[at] {
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
            if depth == 0 && (words[at - 1] == ";" || words[at - 1] == "," || words[at - 1] == "}") {
                break;
            }
        }
    }
    kept
}

struct Crate {
    files: BTreeMap<String, File>,
}

impl Crate {
    fn of(&self, module: &str) -> BTreeSet<String> {
        let file = &self.files[module];
        let uses = file.uses.iter().filter(|(_, _, is_passed_on)| !is_passed_on).map(|(_, path, _)| path);
        let targets = uses.chain(&file.paths).filter_map(|path| self.target(module, path, 0));
        targets.filter(|target| !is_test(target) && !is_related(module, target)).collect()
    }

    /// The file that defines what this path names, seen from `module`; `None` if that is no file of the crate.
    fn target(&self, module: &str, path: &[String], depth: usize) -> Option<String> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => String::new(),
            "self" => module.to_owned(),
            "super" => parent(module),
            child if self.files.contains_key(&join(module, child)) => join(module, child),
            // A name in scope that is a module, or another crate.
            name => return self.brought(module, name, rest, depth),
        };
        while let Some((name, after)) = rest.split_first() {
            if name == "super" {
                at = parent(&at);
            } else if self.files.contains_key(&join(&at, name)) {
                at = join(&at, name);
            } else if name == "*" {
                return Some(at);
            } else {
                return self.brought(&at, name, after, depth).or(Some(at));
            }
            rest = after;
        }
        Some(at)
    }

    /// The file that defines what the file `at` has brought into scope under this name, and what is below it.
    fn brought(&self, at: &str, name: &str, rest: &[String], depth: usize) -> Option<String> {
        let file = self.files.get(at).filter(|_| depth < 8)?;
        if file.items.contains(name) {
            return Some(at.to_owned());
        }
        let named = file
            .uses
            .iter()
            .find(|(alias, path, _)| alias == name && path.first().is_some_and(|first| first != name));
        if let Some((_, path, _)) = named {
            let path: Vec<String> = path.iter().chain(rest).cloned().collect();
            return self.target(at, &path, depth + 1);
        }
        let all = file.uses.iter().filter(|(alias, _, _)| alias == "*");
        all.filter_map(|(_, path, _)| self.target(at, path, depth + 1))
            .find(|module| self.files.get(module).is_some_and(|file| file.items.contains(name)))
    }
}

fn parent(module: &str) -> String {
    module.rfind("::").map_or(String::new(), |end| module[..end].to_owned())
}

#[test]
fn an_import_is_seen_however_it_is_written_and_what_is_passed_on_leads_to_the_file_that_defines_it() {
    let files = [
        ("lib.rs", "mod a; pub use a::one::One; pub use a::two::*;"),
        (
            "a.rs",
            "mod one; mod two; mod three; mod four; use three::{deep as shallow, Three}; pub(crate) use four::Four;",
        ),
        (
            "a/one.rs",
            "use super::two::Two; pub struct One; #[cfg(test)] mod tests { use crate::a::four::Four; }",
        ),
        (
            "a/two.rs",
            "pub struct Two; pub fn call() { super::shallow(); /* super::four::Four */ \"super::Four\"; }",
        ),
        (
            "a/three.rs",
            "use crate::{a::{self, Four}, Two}; pub fn deep<'a>() -> impl Fn() + use<'a> {} pub struct Three;",
        ),
        ("a/four.rs", "pub struct Four; use self::inner::Inner; use std::one::One;"),
        ("a/four/inner.rs", "pub struct Inner; use super::super::Three; use super::Four;"),
    ];
    let files = files.into_iter().map(|(file, text)| (format!("src/{file}"), text.to_owned())).collect();
    let found = imports("src", files);
    let of = |file: &str| found[file].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(of("a::one"), ["a::two"]);
    assert_eq!(of("a::two"), ["a::three"], "what the parent has brought under another name");
    assert_eq!(
        of("a::three"),
        ["a::four", "a::two"],
        "a group, and what the root passes on with all of a module"
    );
    assert_eq!(of("a::four"), [""; 0], "its own child");
    assert_eq!(of("a::four::inner"), ["a::three"]);
    let circle: BTreeSet<String> = ["a::two", "a::three"].map(str::to_owned).into();
    assert_eq!(circles(&found), BTreeSet::from([circle]));
}
