//! Which page of a list is requested next, also after an expired one, as in client-go's `tools/pager`.
//!
//! 1. One page is requested at a time: only its answer has the token of the next one.
//! 2. If the page after an expired one expires, too, that is an error: there is no loop.
//! 3. An expired first page is an error: there is no older page that it must agree with.

/// What follows when the server no longer has the version of the earlier pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum WhenExpired {
    /// The error ends the pages: what was read is of one version, and not complete.
    #[default]
    End,
    /// The new token in the server's answer is used, if there is one. The remaining pages are of a newer
    /// version, so an object that changed in between may be there twice or not at all. Without a new token
    /// the error ends the pages.
    Continue,
    /// One whole list is requested without a limit, as client-go's pager does, and is the last page. It is
    /// complete and of one version, and contains the objects of the earlier pages again.
    ListAgain,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    First,
    After(String),
    /// All objects in one answer.
    Whole,
}

#[derive(Debug, Clone)]
pub(crate) struct Pager {
    pub(crate) prefetch: usize,
    pub(crate) when_expired: WhenExpired,
    /// `None` after the last page.
    next: Option<Page>,
    asked: Option<Page>,
    waiting: usize,
    /// The requested page has a fresh token (rule 2).
    is_fresh: bool,
    has_begun_again: bool,
}

impl Pager {
    pub(crate) fn new(prefetch: usize, when_expired: WhenExpired) -> Self {
        let next = Some(Page::First);
        Self {
            prefetch,
            when_expired,
            next,
            asked: None,
            waiting: 0,
            is_fresh: false,
            has_begun_again: false,
        }
    }

    pub(crate) fn next_page(&mut self) -> Option<Page> {
        if self.asked.is_some() || self.waiting > self.prefetch {
            return None;
        }
        self.asked = self.next.take();
        self.asked.clone()
    }

    pub(crate) fn handle_page(&mut self, token: &str) {
        (self.asked, self.is_fresh) = (None, false);
        self.waiting += 1;
        self.next = (!token.is_empty()).then(|| Page::After(token.to_owned()));
    }

    pub(crate) fn handle_taken(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// `fresh_token`: of the answer that says that the list has expired. Returns whether the reader gets the
    /// error.
    pub(crate) fn handle_failure(&mut self, is_expired: bool, fresh_token: Option<&str>) -> bool {
        let failed = self.asked.take();
        let can_go_on = is_expired && matches!(failed, Some(Page::After(_)));
        self.next = match (self.when_expired, fresh_token) {
            (WhenExpired::Continue, Some(token)) if can_go_on && !self.is_fresh && !token.is_empty() => {
                self.is_fresh = true;
                Some(Page::After(token.to_owned()))
            }
            (WhenExpired::ListAgain, _) if can_go_on => {
                self.has_begun_again = true;
                Some(Page::Whole)
            }
            _ => None,
        };
        self.next.is_none()
    }

    /// Because a page had expired.
    pub(crate) fn has_begun_again(&self) -> bool {
        self.has_begun_again
    }

    pub(crate) fn is_over(&self) -> bool {
        self.next.is_none() && self.asked.is_none() && self.waiting == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(token: &str) -> Option<Page> {
        Some(Page::After(token.to_owned()))
    }

    #[test]
    fn dyn_17_at_most_the_buffer_is_asked_for_ahead_one_page_at_a_time() {
        for prefetch in 0..4 {
            let mut pager = Pager::new(prefetch, WhenExpired::End);
            let mut asked = 0;
            while pager.next_page().is_some() {
                asked += 1;
                assert_eq!(pager.next_page(), None, "one at a time");
                pager.handle_page("more");
            }
            assert_eq!(asked, 1 + prefetch, "one for the reader, and the buffer");
            pager.handle_taken();
            assert!(pager.next_page().is_some(), "its place is free");
        }
    }

    #[test]
    fn dyn_17_nothing_is_asked_for_after_the_last_page_or_an_error() {
        let mut pager = Pager::new(3, WhenExpired::End);
        assert_eq!(pager.next_page(), Some(Page::First));
        pager.handle_page("");
        assert_eq!(pager.next_page(), None);
        assert!(!pager.is_over(), "it is not taken yet");
        pager.handle_taken();
        assert!(pager.is_over());
        let mut pager = Pager::new(3, WhenExpired::ListAgain);
        pager.next_page();
        assert!(pager.handle_failure(false, None));
        assert!(pager.is_over() && pager.next_page().is_none());
    }

    #[test]
    fn an_expired_page_is_answered_as_its_reader_wants_and_a_first_page_never_expires() {
        for (when_expired, fresh, next) in [
            (WhenExpired::End, Some("fresh"), None),
            (WhenExpired::Continue, Some("fresh"), after("fresh")),
            (WhenExpired::Continue, Some(""), None),
            (WhenExpired::Continue, None, None),
            (WhenExpired::ListAgain, Some("fresh"), Some(Page::Whole)),
            (WhenExpired::ListAgain, None, Some(Page::Whole)),
        ] {
            let mut pager = Pager::new(0, when_expired);
            pager.next_page();
            let mut first = pager.clone();
            assert!(first.handle_failure(true, fresh) && first.is_over(), "{when_expired:?}: the first page");
            pager.handle_page("old");
            pager.handle_taken();
            assert_eq!(pager.next_page(), after("old"));
            assert_eq!(pager.handle_failure(true, fresh), next.is_none(), "{when_expired:?} {fresh:?}");
            assert_eq!(pager.has_begun_again(), next == Some(Page::Whole));
            assert_eq!(pager.next_page(), next);
            // What is asked for instead may expire as well: that is an error, and no loop.
            assert!(pager.handle_failure(true, fresh) && pager.is_over());
        }
    }
}
