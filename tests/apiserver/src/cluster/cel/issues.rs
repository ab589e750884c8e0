//! Issues of expressions as text.
//!
//! Answers: how is an issue shown, with its line and a mark under its place? The form is a real server's.
use cel::ParseErrors;
use cel::common::ast::SourceInfo;

/// The issues in the order of their places.
pub(super) fn tell(source: &SourceInfo, mut issues: Vec<(u64, String)>) -> String {
    issues.sort_by_key(|(id, _)| place(source, *id));
    let told: Vec<String> =
        issues.iter().map(|(id, words)| told(&source.source, place(source, *id), words)).collect();
    told.join("\n")
}

/// Errors of the parser.
pub(super) fn of_syntax(text: &str, errors: &ParseErrors) -> String {
    let told = errors.errors.iter().filter_map(|error| {
        let (place, words) = worded(error.pos, &error.msg)?;
        Some(told(text, place, &words))
    });
    told.collect::<Vec<_>>().join("\n")
}

/// The parser's error text and place in the form of Go's parser; none if Go's parser reports nothing.
fn worded((line, column): (isize, isize), words: &str) -> Option<((isize, isize), String)> {
    if words.starts_with("Incomplete `") {
        return None;
    }
    if let Some(name) = words.strip_prefix("reserved identifier: .") {
        return Some(((line, column - 1), format!("reserved identifier: {name}")));
    }
    let words = match words.split_once(" expecting {<EOF>, ") {
        Some((before, _)) => format!("{before} expecting <EOF>"),
        None => words.to_owned(),
    };
    Some(((line, column), words))
}

fn place(source: &SourceInfo, id: u64) -> (isize, isize) {
    let start = source.offset_for(id).map_or(0, |(start, _)| start as usize);
    let before: String = source.source.chars().take(start).collect();
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
    (isize::try_from(line + 1).unwrap_or(1), isize::try_from(column + 1).unwrap_or(1))
}

/// One issue with its line and a mark under its place.
fn told(text: &str, (line, column): (isize, isize), words: &str) -> String {
    let shown =
        usize::try_from(line - 1).ok().and_then(|line| text.split('\n').nth(line)).unwrap_or_default();
    let dots = ".".repeat(usize::try_from(column - 1).unwrap_or_default());
    format!("ERROR: <input>:{line}:{column}: {words}\n | {shown}\n | {dots}^")
}
