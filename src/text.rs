//! Text of others on its way into an error, a log or a line.
//!
//! Answers "how much of it is kept?" and nothing else; what may be told at all is decided where the text comes from,
//! and what a terminal may be shown in `service/printable.rs`. Invariants:
//! 1. What is kept is bounded in characters, so that no error grows with what a server or a file sent.

/// At most `most` characters of a text, and whether there was more.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
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
