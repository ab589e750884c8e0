//! What is wrong with a text that is not YAML, in the error texts of Go's parser.
//!
//! Answers: which error does a client of a real server read? Our parser finds the same faults and has other texts.
//! 1. A line number is given as in Go: none for the first line; the parser counts from 0.
//! 2. A fault without a text in Go keeps ours.

/// The error text of Go for this one.
pub(super) fn of_go(ours: &str, text: &[u8]) -> String {
    if let Some(words) = of_bytes(text) {
        return words.to_owned();
    }
    let (what, place) = ours.rsplit_once(" at line ").unwrap_or((ours, "1"));
    let (line, column) = place.split_once(", column ").unwrap_or((place, "1"));
    let [line, column]: [usize; 2] = [line, column].map(|number| number.parse().unwrap_or(1));
    let text = String::from_utf8_lossy(text);
    let here = text.lines().nth(line - 1).and_then(|here| here.get(column - 1..)).unwrap_or_default();
    let scanned = |words: &str| told(line, words);
    if let Some(opened) =
        what.strip_prefix("unclosed bracket '").or_else(|| what.strip_prefix("mismatched bracket '"))
    {
        return brackets(opened, line, what.starts_with("unclosed"), &text);
    }
    match what {
        "unclosed quote" | "invalid indentation in multiline quoted scalar" => {
            told(text.split('\n').count(), "found unexpected end of stream")
        }
        "alias references unknown anchor" => {
            let name = here.trim_start_matches('*').split(|c: char| c.is_whitespace() || ",]}".contains(c));
            format!("unknown anchor '{}' referenced", name.into_iter().next().unwrap_or_default())
        }
        "YAML merge value must be mapping or sequence of mappings" => {
            "map merge requires map or sequence of maps as the value".to_owned()
        }
        _ if what.starts_with("unexpected character") || what.starts_with("tabs disallowed") => {
            scanned("found character that cannot start any token")
        }
        _ => match what.split_once(", ") {
            Some((context, words)) if context.starts_with("while parsing a block") => {
                from_zero(line - 1, words)
            }
            Some((context, words)) if context.starts_with("while ") => scanned(words),
            _ => scanned(what),
        },
    }
}

/// A text with its line number, unless it is the first line.
fn told(line: usize, words: &str) -> String {
    if line > 1 { format!("line {line}: {words}") } else { words.to_owned() }
}

/// A text with a line number that is counted from 0.
fn from_zero(line: usize, words: &str) -> String {
    if line > 0 { format!("line {line}: {words}") } else { words.to_owned() }
}

/// A bracket that is not closed, or by another one.
fn brackets(opened: &str, line: usize, unclosed: bool, text: &str) -> String {
    let wanted = if opened.starts_with('[') { "',' or ']'" } else { "',' or '}'" };
    let open_end = text.trim_end().ends_with([',', ':', '[', '{']);
    let words = if unclosed && open_end {
        "did not find expected node content".to_owned()
    } else {
        format!("did not find expected {wanted}")
    };
    // The end counts as a line of its own.
    let end = text.matches('\n').count() + usize::from(!text.ends_with('\n'));
    from_zero(if unclosed { end } else { line - 1 }, &words)
}

/// Refusals of the bytes themselves.
fn of_bytes(text: &[u8]) -> Option<&'static str> {
    match std::str::from_utf8(text) {
        Err(error) => {
            let leads = text.get(error.valid_up_to()).is_some_and(|byte| (0xc2..0xf5).contains(byte));
            Some(match (leads, error.error_len()) {
                (false, _) => "invalid leading UTF-8 octet",
                (true, None) => "incomplete UTF-8 octet sequence",
                (true, Some(_)) => "invalid trailing UTF-8 octet",
            })
        }
        Ok(text) => {
            let control =
                |c: char| matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}');
            text.contains(control).then_some("control characters are not allowed")
        }
    }
}

#[test]
fn faults_have_the_texts_of_a_real_server() {
    for (text, words) in [
        ("a: [1", "line 1: did not find expected ',' or ']'"),
        ("a: {b", "line 1: did not find expected ',' or '}'"),
        ("{\"a\":", "line 1: did not find expected node content"),
        ("a: [1, 2}", "did not find expected ',' or ']'"),
        ("a: b: c", "mapping values are not allowed in this context"),
        ("a: 1\n b: 2", "line 2: mapping values are not allowed in this context"),
        ("a:\n\t- b", "line 2: found character that cannot start any token"),
        ("a: `x`", "found character that cannot start any token"),
        ("a: \"x", "found unexpected end of stream"),
        ("a: *x", "unknown anchor 'x' referenced"),
        ("- a\nb: c", "line 1: did not find expected '-' indicator"),
        ("a: 1\n- b", "line 1: did not find expected key"),
        ("%", "could not find expected directive name"),
        ("a: |x", "did not find expected comment or line break"),
        ("a: \"\\q\"", "found unknown escape character"),
        ("<<: x", "map merge requires map or sequence of maps as the value"),
        ("a: \u{1}", "control characters are not allowed"),
    ] {
        assert_eq!(super::decode(text.as_bytes()), Err(words.to_owned()), "{text:?}");
    }
    assert_eq!(super::decode(b"\xff"), Err("invalid leading UTF-8 octet".to_owned()));
    assert_eq!(super::decode(b"a: \xc3\x28"), Err("invalid trailing UTF-8 octet".to_owned()));
}
