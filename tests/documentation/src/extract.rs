//! Finds the examples of the documentation: blocks of Rust in the comments of sources and in Markdown.
//!
//! Answers "what would a reader paste?" Lines that rustdoc hides (`# ...`) are kept and marked. Blocks of other languages,
//! blocks that must not compile, and blocks that nobody compiles are left out. The build script here and the layering
//! test both use this file.

use std::path::Path;

/// Folders and files, from the root of the workspace, whose examples a user of `actix-informer` reads.
pub(crate) const DOCUMENTATION: [&str; 5] =
    ["README.md", "actors/core/src", "actors/src", "actors/operator/src", "src"];

/// An example of the documentation.
pub(crate) struct Example {
    /// Its file, from the root of the workspace.
    pub(crate) file: String,
    /// The line of its opening fence, from one.
    pub(crate) line: usize,
    /// Each line without the marks of a comment; `true` if rustdoc does not show it.
    pub(crate) lines: Vec<(bool, String)>,
}

impl Example {
    /// Whether it uses parts that no program can name, or may; such an example is compiled in its own crate alone.
    pub(crate) fn is_inner(&self) -> bool {
        let code = self.code();
        [
            "informer_core::",
            "informer_actors::",
            "informer_client::",
            "informer_operator::",
            "actix_informer::unstable",
        ]
        .iter()
        .any(|path| code.contains(path))
    }

    /// The text to compile, without the line that renames one of our own crates.
    pub(crate) fn code(&self) -> String {
        let aliases = ["informer_core", "informer_actors"].map(alias);
        let kept = self.lines.iter().filter(|(_, text)| !aliases.iter().any(|alias| text.trim() == alias));
        kept.map(|(_, text)| format!("{text}\n")).collect()
    }
}

/// The hidden line by which an example in one of our own crates uses the names of `actix-informer`.
fn alias(name: &str) -> String {
    format!("use {name}::face as actix_informer;")
}

/// The examples of all [`DOCUMENTATION`], in the order of files.
pub(crate) fn examples(root: &Path) -> Vec<Example> {
    let mut open: Vec<String> = DOCUMENTATION.map(str::to_owned).to_vec();
    let mut found = Vec::new();
    while let Some(file) = open.pop() {
        let path = root.join(&file);
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a readable folder");
            let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            open.extend(entries.map(|entry| format!("{file}/{}", name(entry.expect("a readable entry")))));
        } else if file.ends_with(".rs") || file.ends_with(".md") {
            found.extend(of_text(&file, &std::fs::read_to_string(&path).expect("a readable text")));
        }
    }
    found.sort_by(|one, other| (&one.file, one.line).cmp(&(&other.file, other.line)));
    found
}

fn of_text(file: &str, text: &str) -> Vec<Example> {
    let (mut found, mut open) = (Vec::new(), None);
    for (at, line) in text.lines().enumerate() {
        let Some(shown) = documentation(file, line) else { continue };
        match (shown.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((at + 1, is_compiled(file, language.trim()), Vec::new())),
            (Some(_), Some((line, is_compiled, lines))) => {
                if *is_compiled {
                    found.push(Example { file: file.to_owned(), line: *line, lines: std::mem::take(lines) });
                }
                open = None;
            }
            (None, Some((_, _, lines))) => lines.push(unhide(shown)),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{file}: a block does not end");
    found
}

/// What a line says to rustdoc: all of Markdown, and of a source what stands behind `///` or `//!`.
fn documentation<'a>(file: &str, line: &'a str) -> Option<&'a str> {
    if file.ends_with(".md") {
        return Some(line);
    }
    let line = line.trim_start();
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
    Some(text.strip_prefix(' ').unwrap_or(text))
}

fn is_compiled(file: &str, language: &str) -> bool {
    let words: Vec<&str> = language.split(',').collect();
    let is_rust = words.contains(&"rust") || (file.ends_with(".rs") && !words.contains(&"text"));
    is_rust && !words.iter().any(|word| word.starts_with("compile_fail") || word.starts_with("ignore"))
}

fn unhide(line: &str) -> (bool, String) {
    let inside = line.trim_start();
    match inside.strip_prefix('#') {
        Some("") => (true, String::new()),
        Some(rest) if rest.starts_with(' ') => (true, rest[1..].to_owned()),
        Some(rest) if rest.starts_with('#') => (false, line.replacen("##", "#", 1)),
        _ => (false, line.to_owned()),
    }
}
