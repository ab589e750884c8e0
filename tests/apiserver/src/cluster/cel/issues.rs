//! Issues of expressions as text.
//!
//! Answers: how is an issue shown, with its line and a mark under its place? The form is a real server's.
use cel::common::ast::SourceInfo;

/// The issues in the order of their places.
pub(super) fn tell(source: &SourceInfo, mut issues: Vec<(u64, String)>) -> String {
    issues.sort_by_key(|(id, _)| place(source, *id));
    let told: Vec<String> =
        issues.iter().map(|(id, words)| told(&source.source, place(source, *id), words)).collect();
    told.join("\n")
}

fn place(source: &SourceInfo, id: u64) -> (isize, isize) {
    let start = source.offset_for(id).map_or(0, |(start, _)| start as usize);
    let before: String = source.source.chars().take(start).collect();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
    (isize::try_from(line + 1).unwrap_or(1), isize::try_from(column + 1).unwrap_or(1))
}

/// One issue with its line and a mark under its place.
pub(super) fn told(text: &str, (line, column): (isize, isize), words: &str) -> String {
    let shown =
        usize::try_from(line - 1).ok().and_then(|line| text.split('\n').nth(line)).unwrap_or_default();
    let dots = ".".repeat(usize::try_from(column - 1).unwrap_or_default());
    format!("ERROR: <input>:{line}:{column}: {words}\n | {shown}\n | {dots}^")
}
