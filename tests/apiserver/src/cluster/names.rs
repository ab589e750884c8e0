//! What a name may look like.
//!
//! Answers: is this text a sound object name, and if not, what does the API say about it? Nothing else is judged here.
//! 1. The sentences are those of the API machinery, because clients show them.
use super::kind::NameRule;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Why `name` is not sound, if it is not.
pub(crate) fn refuse(name: &str, rule: NameRule) -> Option<String> {
    match rule {
        NameRule::Label if name.contains('.') => Some("must not contain dots".to_owned()),
        NameRule::Label => bounded(name, 63).or_else(|| (!is_label(name)).then(|| LABEL.to_owned())),
        NameRule::Subdomain => {
            let sound = name.split('.').all(is_label);
            bounded(name, 253).or_else(|| (!sound).then(|| SUBDOMAIN.to_owned()))
        }
        NameRule::PathSegment => match name {
            "." | ".." => Some(format!("may not be '{name}'")),
            _ => ['/', '%']
                .into_iter()
                .find(|letter| name.contains(*letter))
                .map(|l| format!("may not contain '{l}'")),
        },
    }
}

fn bounded(name: &str, most: usize) -> Option<String> {
    (name.len() > most).then(|| format!("must be no more than {most} characters"))
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = text.as_bytes().first().zip(text.as_bytes().last());
    ends.is_some_and(|(first, last)| inner(*first) && inner(*last))
        && text.bytes().all(|byte| inner(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_their_rule() {
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
            assert_eq!(refuse(name, rule).is_none(), sound, "{name}");
        }
        assert!(refuse(&"a".repeat(64), NameRule::Label).is_some());
        assert!(refuse(&"a.".repeat(127), NameRule::Subdomain).is_some());
    }
}
