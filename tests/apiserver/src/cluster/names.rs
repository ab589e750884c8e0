//! The rules for names, label keys and label values.
//!
//! Answers: is this text valid, and if not, what is the error text of the API? Nothing else is checked here.
//! 1. The sentences are those of the API machinery, because clients show them, and all that apply are reported.
//! 2. Names count characters in their sentences where keys and values of labels count bytes: so does the API.

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation \
is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// The rule for names of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// RFC 1123 subdomain, up to 253 characters.
    Subdomain,
    /// RFC 1123 label, up to 63 characters.
    Label,
    /// Anything that is valid in a path: not `.`, `..`, no `/`, no `%`.
    PathSegment,
}

/// All faults of `name`.
pub(crate) fn faults(name: &str, rule: NameRule) -> Vec<String> {
    let bounded =
        |most: usize| (name.len() > most).then(|| format!("must be no more than {most} characters"));
    let faults = match rule {
        NameRule::Label if !is_label(name) && is_subdomain(name) => {
            [bounded(63), Some("must not contain dots".to_owned())]
        }
        NameRule::Label => [bounded(63), (!is_label(name)).then(|| LABEL.to_owned())],
        NameRule::Subdomain => [bounded(253), (!is_subdomain(name)).then(|| SUBDOMAIN.to_owned())],
        NameRule::PathSegment if matches!(name, "." | "..") => [Some(format!("may not be '{name}'")), None],
        NameRule::PathSegment => {
            ['/', '%'].map(|letter| name.contains(letter).then(|| format!("may not contain '{letter}'")))
        }
    };
    faults.into_iter().flatten().collect()
}

/// All faults of a label's key: a name of up to 63 bytes, with an optional DNS name of its owner before it.
pub(crate) fn label_key_faults(key: &str) -> Vec<String> {
    let parts: Vec<&str> = key.split('/').collect();
    let (prefix, name) = match *parts.as_slice() {
        [name] => (None, name),
        [prefix, name] => (Some(prefix), name),
        _ => {
            let prefixed = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {KEY} {prefixed}")];
        }
    };
    let mut faults = Vec::new();
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            faults.push("prefix part must be non-empty".to_owned());
        } else {
            if prefix.len() > 253 {
                faults.push("prefix part must be no more than 253 bytes".to_owned());
            }
            if !is_subdomain(prefix) {
                faults.push(format!("prefix part {SUBDOMAIN}"));
            }
        }
    }
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        faults.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_label_name(name) {
        faults.push(format!("name part {KEY}"));
    }
    faults
}

/// All that is not sound in the value of a label.
pub(crate) fn label_value_faults(value: &str) -> Vec<String> {
    let long = (value.len() > 63).then(|| "must be no more than 63 bytes".to_owned());
    let odd = (!value.is_empty() && !is_label_name(value)).then(|| VALUE.to_owned());
    long.into_iter().chain(odd).collect()
}

/// The fault of a label that has to begin with a letter.
pub(crate) const OLD_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// All that is not sound in a label that has to begin with a letter.
pub(crate) fn old_label_faults(text: &str) -> Vec<String> {
    let begins = text.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
    let long = (text.len() > 63).then(|| "must be no more than 63 characters".to_owned());
    let odd = (!(begins && is_label(text))).then(|| OLD_LABEL.to_owned());
    long.into_iter().chain(odd).collect()
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = text.as_bytes().first().zip(text.as_bytes().last());
    ends.is_some_and(|(first, last)| inner(*first) && inner(*last))
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
}

fn is_label_name(text: &str) -> bool {
    let ends = text.as_bytes().first().zip(text.as_bytes().last());
    ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_their_rule() {
        for (name, rule, sound) in [
            ("web-0", NameRule::Subdomain, true),
            ("widgets.example.com", NameRule::Subdomain, true),
            ("a..b", NameRule::Subdomain, false),
            ("Web", NameRule::Subdomain, false),
            ("-a", NameRule::Label, false),
            ("a.b", NameRule::Label, false),
            ("system:node", NameRule::PathSegment, true),
            ("system:node", NameRule::Subdomain, false),
            ("a/b", NameRule::PathSegment, false),
            ("", NameRule::Label, false),
        ] {
            assert_eq!(faults(name, rule).is_empty(), sound, "{name}");
        }
        assert_eq!(faults(&"a".repeat(64), NameRule::Label), ["must be no more than 63 characters"]);
        assert!(!faults(&"a.".repeat(127), NameRule::Subdomain).is_empty());
        assert_eq!(faults("a.b", NameRule::Label), ["must not contain dots"]);
        assert_eq!(faults(&"A".repeat(64), NameRule::Label).len(), 2);
    }

    #[test]
    fn all_faults_of_a_label_are_reported() {
        let count = |key: &str| label_key_faults(key).len();
        assert_eq!([count("a"), count("a.b/c_D"), count("a/b/c"), count("/"), count("A/-")], [0, 0, 1, 3, 2]);
        assert_eq!(label_value_faults(""), [""; 0]);
        assert_eq!(label_value_faults(&"-".repeat(64)).len(), 2);
    }
}
