//! The `Warning` headers of answers (RFC 7234, section 5.5, as Kubernetes uses it), and repeated causes in the client.
//!
//! 1. Only warnings with the code 299 are reported: others come from proxies.
//! 2. What cannot be read ends the header; the warnings before it are reported.
//! 3. A text has at most 1,024 characters and no control characters.
//! 4. A cause is told at most once in ten minutes. When the memory of texts or causes is full, all are forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, header};
use informer_core::words::shortened;
use tokio::time::Instant;

const MISCELLANEOUS_PERSISTENT: &str = "299";
const MAX_CHARS: usize = 1024;
/// Without a bound, a server that puts the time in its texts would fill the memory.
const REMEMBERED: usize = 1000;

/// A warning that a server has sent with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What the server says.
    pub text: String,
    /// The path of the request.
    pub path: String,
}

pub(crate) type WarningHandler = Arc<dyn Fn(&Warning) + Send + Sync>;

#[derive(Clone)]
pub(crate) enum OnWarning {
    LogNew,
    Call(WarningHandler),
    /// Once for each text.
    CallNew(WarningHandler),
}

pub(crate) struct Warnings {
    on_warning: OnWarning,
    known: Mutex<BTreeSet<String>>,
}

impl Warnings {
    pub(crate) fn new(on_warning: OnWarning) -> Self {
        Self { on_warning, known: Mutex::default() }
    }

    pub(crate) fn report(&self, path: &str, headers: &HeaderMap) {
        for header in headers.get_all(header::WARNING) {
            // A warning that is not ASCII must not lose the others of its header.
            for text in texts(&String::from_utf8_lossy(header.as_bytes())) {
                self.report_one(Warning { text, path: path.to_owned() });
            }
        }
    }

    fn report_one(&self, warning: Warning) {
        let handler = match &self.on_warning {
            OnWarning::Call(handler) => handler,
            _ if !self.is_new(&warning.text) => return,
            OnWarning::CallNew(handler) => handler,
            OnWarning::LogNew => {
                tracing::warn!(target: "actix_informer::client", path = warning.path, "the server warns: {}", warning.text);
                return;
            }
        };
        if catch_unwind(AssertUnwindSafe(|| handler(&warning))).is_err() {
            tracing::error!(target: "actix_informer::client", warning = warning.text, "the handler of warnings panicked");
        }
    }

    fn is_new(&self, text: &str) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(text) {
            return false;
        }
        if known.len() == REMEMBERED {
            known.clear();
        }
        known.insert(text.to_owned())
    }
}

impl fmt::Debug for OnWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LogNew => "LogNew",
            Self::Call(_) => "Call",
            Self::CallNew(_) => "CallNew",
        })
    }
}

/// `299 - "text"`, or several with commas.
fn texts(header: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), header.trim_start());
    while let Some((warning, after)) = one(rest) {
        found.extend(warning);
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    found
}

/// The text is `None` for another code than 299.
fn one(text: &str) -> Option<(Option<String>, &str)> {
    let (code, rest) = text.split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let (words, mut rest) = quoted(rest)?;
    if let Some((_date, after)) = rest.strip_prefix(' ').and_then(quoted) {
        rest = after;
    }
    Some(((code == MISCELLANEOUS_PERSISTENT).then(|| shortened(&words, MAX_CHARS)), rest))
}

fn quoted(text: &str) -> Option<(String, &str)> {
    let mut characters = text.strip_prefix('"')?.char_indices();
    let mut words = String::new();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((words, &text[at + 2..])),
            '\\' => words.push(characters.next()?.1),
            character if character.is_control() => words.push(' '),
            character => words.push(character),
        }
    }
    None
}

const WHILE: Duration = Duration::from_secs(600);
const REMEMBERED_CAUSES: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct OnceInAWhile(Mutex<BTreeMap<String, Instant>>);

impl OnceInAWhile {
    /// If true, the cause counts as told.
    pub(crate) fn is_new(&self, cause: &str) -> bool {
        let now = Instant::now();
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|_, at| now < *at + WHILE);
        if told.contains_key(cause) {
            return false;
        }
        if told.len() == REMEMBERED_CAUSES {
            told.clear();
        }
        told.insert(cause.to_owned(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use tokio::time::advance;

    use super::*;

    #[test]
    fn rest_13_only_warnings_with_code_299_are_read_and_all_of_a_header() {
        for (header, expected) in [
            (r#"299 - "a is deprecated""#, vec!["a is deprecated"]),
            (r#"199 - "a proxy's""#, vec![]),
            (r#"299 - "one", 199 - "two", 299 host:80 "three""#, vec!["one", "three"]),
            (r#"299 - "with \"quotes\", \\ and, commas""#, vec![r#"with "quotes", \ and, commas"#]),
            (r#"299 - "dated" "Sat, 25 Aug 2012 23:34:45 GMT", 299 - "next""#, vec!["dated", "next"]),
            (r#"299 - "good", 299 - "never ends"#, vec!["good"]),
            (r#"299 - """#, vec![""]),
            ("299 - unquoted", vec![]),
            ("299", vec![]),
            ("", vec![]),
            ("299 - \"a\u{7f}b\"", vec!["a b"]),
        ] {
            assert_eq!(texts(header), expected, "{header}");
        }
    }

    fn headers(warnings: &[&str]) -> HeaderMap {
        let value = |text: &&str| (header::WARNING, HeaderValue::from_str(text).expect("a header"));
        warnings.iter().map(value).collect()
    }

    /// What reaches a handler that is made so.
    fn reached(kind: fn(WarningHandler) -> OnWarning, sent: &[&str]) -> Vec<String> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&heard);
        let handler = move |warning: &Warning| keep.lock().expect("no panic").push(warning.text.clone());
        let warnings = Warnings::new(kind(Arc::new(handler)));
        for warning in sent {
            warnings.report("/a", &headers(&[warning, "199 - \"of a proxy\""]));
        }
        heard.lock().expect("no panic").clone()
    }

    // REST-13: given Warning headers 299 and 199, when received, then only 299 reaches the handler;
    // deduplication on request.
    // - a only 299 reaches the handler
    // - b deduplication on request
    // - c without a handler each text is logged once:
    //   `rest_13_warnings_reach_the_handler_and_are_logged_once_unless_there_is_one`
    #[test]
    fn rest_13_only_299_reaches_the_handler_and_once_for_each_text_on_request() {
        let sent = ["299 - \"old\"", "299 - \"old\"", "299 - \"one\", 299 - \"old\""];
        assert_eq!(reached(OnWarning::Call, &sent), ["old", "old", "one", "old"]);
        assert_eq!(reached(OnWarning::CallNew, &sent), ["old", "one"]);
    }

    #[test]
    fn a_warning_that_is_not_ascii_takes_no_other_one_with_it() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&heard);
        let handler = move |warning: &Warning| keep.lock().expect("no panic").push(warning.text.clone());
        let one = "299 - \"first\", 299 - \"gr\u{fc}n\", 299 - \"last\"";
        let value = HeaderValue::from_bytes(one.as_bytes()).expect("a header");
        Warnings::new(OnWarning::Call(Arc::new(handler)))
            .report("/a", &HeaderMap::from_iter([(header::WARNING, value)]));
        assert_eq!(*heard.lock().expect("no panic"), ["first", "gr\u{fc}n", "last"]);
    }

    #[test]
    fn a_thousand_texts_are_remembered_and_then_forgotten_together() {
        let warnings = Warnings::new(OnWarning::LogNew);
        assert!((0..REMEMBERED).all(|number| warnings.is_new(&number.to_string())));
        assert!(!warnings.is_new("0"));
        assert!(warnings.is_new("another"));
        assert!(warnings.is_new("0"));
    }

    #[test]
    fn a_handler_that_panics_ends_nothing() {
        let warnings = Warnings::new(OnWarning::Call(Arc::new(|_| panic!("on purpose"))));
        warnings.report("/a", &headers(&["299 - \"old\""]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cause_is_told_once_in_ten_minutes_and_another_one_at_once() {
        let told = OnceInAWhile::default();
        assert!(told.is_new("a") && told.is_new("b"));
        for _ in 0..59 {
            advance(Duration::from_secs(10)).await;
            assert!(!told.is_new("a"));
        }
        advance(Duration::from_secs(10)).await;
        assert!(told.is_new("a"));
        assert!((0..REMEMBERED_CAUSES).all(|number| told.is_new(&number.to_string())), "bounded");
    }
}
