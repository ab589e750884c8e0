//! Gives the warnings of the server to whoever wants them.
//!
//! Answers "who learns of a Warning header?" Invariants:
//! 1. Warnings change nothing of the answer.
//! 2. At most 1,000 texts are remembered as known; then all are forgotten, and each may be given once again.
//! 3. A handler that panics ends no request.
//!
//! Read next: `../warning.rs`, which reads the header.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, header};

use super::super::warning::{OnWarning, Warning, texts};

/// So many texts are remembered. They are made by servers: without a bound, one that puts the time in them would fill
/// the memory.
const REMEMBERED: usize = 1000;

/// What a client does with warnings.
pub(super) struct Warnings {
    on_warning: OnWarning,
    known: Mutex<BTreeSet<String>>,
}

impl Warnings {
    pub(super) fn new(on_warning: OnWarning) -> Self {
        Self { on_warning, known: Mutex::default() }
    }

    /// Reports the warnings in the headers of an answer to a request at this path.
    pub(super) fn report(&self, path: &str, headers: &HeaderMap) {
        for header in headers.get_all(header::WARNING) {
            // One header may hold many warnings: one that is not ASCII does not take the others with it.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::HeaderValue;

    use super::super::super::warning::WarningHandler;
    use super::*;

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
}
