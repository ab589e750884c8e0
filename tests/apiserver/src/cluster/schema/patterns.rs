//! The patterns of schemas, and those that cannot be read in Go's words.
//!
//! Answers: what would Go's `regexp` say of this text? The common mistakes are received word for word; others in general.
//! 1. With the feature `cel` patterns have the syntax of Go's; without it they know no classes of Unicode, and a pattern
//!    that has one is refused with its definition.
#[cfg(feature = "cel")]
pub(crate) use regex::Regex;
#[cfg(not(feature = "cel"))]
pub(crate) use regex_lite::Regex;

/// Go's error for a pattern that cannot be read.
pub(crate) fn pattern_words(text: &str) -> String {
    let told = Regex::new(text).err().map(|error| error.to_string()).unwrap_or_default();
    let mistake = told.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or_default();
    // The second line repeats the pattern, the third marks the place.
    let at = told.lines().nth(2).and_then(|line| line.find('^')).map_or(0, |column| column.saturating_sub(4));
    let from = |at: usize| text.chars().skip(at).collect::<String>();
    let (why, shown) = match mistake {
        "unclosed character class" => ("missing closing ]", from(at)),
        "unclosed group" => ("missing closing )", text.to_owned()),
        "unopened group" => ("unexpected )", text.to_owned()),
        "repetition operator missing expression" => {
            ("missing argument to repetition operator", from(at).chars().take(1).collect())
        }
        "look-around, including look-ahead and look-behind, is not supported" => {
            ("invalid or unsupported Perl syntax", from(at).chars().take(3).collect())
        }
        "incomplete escape sequence, reached end of pattern prematurely" => {
            ("trailing backslash at end of expression", String::new())
        }
        _ if mistake.contains("escape sequence") || mistake.contains("backreferences") => {
            ("invalid escape sequence", from(at).chars().take(2).collect())
        }
        _ if mistake.contains("invalid character class range") => ("invalid character class range", from(at)),
        _ => ("invalid syntax", text.to_owned()),
    };
    format!("error parsing regexp: {why}: `{shown}`")
}
