//! Texts from servers and files, shortened for an error, a log or a line of output.
//!
//! Answers "how much of it is kept?" and nothing else. Where the text comes from is decided whether it may be shown at
//! all; `printable.rs` decides what a terminal may receive. Invariants:
//! 1. What is kept is bounded in characters, so that no error grows with what a server or a file sent.

/// At most `most` characters of a text, and whether there was more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A name in quotes, at most a hundred characters of it.
pub(crate) fn quoted(name: &str) -> String {
    format!("{:?}", shortened(name, 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        assert_eq!(shortened("éàè", 2), "éà...");
        assert_eq!(shortened("éà", 2), "éà");
    }
}
