//! The headers of Kubernetes' user impersonation. The escaping of extra keys is client-go's
//! (`transport/round_trippers.go`).
//!
//! Groups, a uid or extra values without a user are refused: the server would refuse every request.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::{HeaderName, HeaderValue};

use crate::error::Error;

/// By default the user of the credentials.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Impersonation {
    pub(crate) user: Option<String>,
    pub(crate) uid: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Removes what a kubeconfig contains, whose groups come first; all if it names the user.
    pub(crate) fn without(mut self, written: &Self) -> Self {
        if written.user.is_some() {
            return Self::default();
        }
        self.uid = self.uid.filter(|_| written.uid.is_none());
        self.groups.drain(..written.groups.len().min(self.groups.len()));
        self.extra.retain(|key, _| !written.extra.contains_key(key));
        self
    }

    pub(crate) fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Error> {
        let unusable =
            |reason: &str| Error::Unusable { what: "the impersonation", reason: reason.to_owned() };
        if self.user.is_none() && !self.is_empty() {
            return Err(unusable("it has groups, a uid or extra values, and no user"));
        }
        let fixed = |name: &'static str, value: &str| (name.to_owned(), value.to_owned());
        let user = self.user.iter().map(|user| fixed("impersonate-user", user));
        let uid = self.uid.iter().map(|uid| fixed("impersonate-uid", uid));
        let groups = self.groups.iter().map(|group| fixed("impersonate-group", group));
        let extra = self.extra.iter().flat_map(|(key, values)| {
            let name = format!("impersonate-extra-{}", escaped(key));
            values.iter().map(move |value| (name.clone(), value.clone()))
        });
        user.chain(uid)
            .chain(groups)
            .chain(extra)
            .map(|(name, value)| {
                let value = HeaderValue::from_str(&value);
                let value =
                    value.map_err(|_| unusable("a value has characters that an HTTP header cannot carry"))?;
                let name = HeaderName::try_from(name)
                    .map_err(|_| unusable("a key of its extra values is too long"))?;
                Ok((name, value))
            })
            .collect()
    }
}

/// Also escapes the percent sign, so that the server can undo it.
fn escaped(key: &str) -> String {
    key.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => text.push(char::from(byte)),
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|'
            | b'~' => {
                text.push(char::from(byte));
            }
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rest_31_user_uid_groups_and_extra_values_become_headers() {
        let whom = Impersonation {
            user: Some("jane".to_owned()),
            uid: Some("7".to_owned()),
            groups: vec!["a".to_owned(), "b".to_owned()],
            extra: BTreeMap::from([("example.com/scopes".to_owned(), vec!["x".to_owned(), "y".to_owned()])]),
        };
        let headers = whom.headers().expect("valid");
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| (name.as_str(), value.to_str().expect("text"))).collect();
        assert_eq!(
            headers,
            [
                ("impersonate-user", "jane"),
                ("impersonate-uid", "7"),
                ("impersonate-group", "a"),
                ("impersonate-group", "b"),
                ("impersonate-extra-example.com%2fscopes", "x"),
                ("impersonate-extra-example.com%2fscopes", "y"),
            ]
        );
    }

    #[test]
    fn groups_without_a_user_are_refused() {
        let whom = Impersonation { groups: vec!["a".to_owned()], ..Impersonation::default() };
        assert!(matches!(whom.headers(), Err(Error::Unusable { .. })));
        assert!(Impersonation::default().headers().expect("nobody").is_empty());
    }

    proptest! {
        #[test]
        fn rest_31_the_escaping_of_extra_keys_can_be_undone(key in "\\PC{1,40}") {
            let escaped = escaped(&key);
            let name = format!("impersonate-extra-{escaped}");
            prop_assert!(HeaderName::try_from(name).is_ok());
            prop_assert_eq!(percent_decode_str(&escaped).decode_utf8().expect("text"), key);
        }
    }
}
