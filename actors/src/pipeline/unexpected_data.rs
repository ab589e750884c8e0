//! One log line for each reported incident in the data of sources.
//!
//! 1. A line names informer, source, object and reason as fields; its text says what follows.
//! 2. Foreign text is quoted up to [`QUOTED`] bytes.

use std::borrow::Cow;

use informer_core::indexer::{Incident, Reported};
use informer_core::meta::ResourceVersion;

const QUOTED: usize = 200;

pub(crate) fn log(informer: &str, Reported { source, incident, .. }: &Reported) {
    let versions = versions(incident);
    let (error, index) = match incident {
        Incident::Undecodable(undecodable) => (Some(bounded(&undecodable.error)), None),
        Incident::IndexFailed { index, error, .. } => {
            (Some(Cow::Owned(bounded(&error.to_string()).into_owned())), Some(&**index))
        }
        _ => (None, None),
    };
    let count = matches!(incident, Incident::Omitted { .. }).then(|| incident.count());
    tracing::warn!(
        target: "actix_informer::informer",
        informer,
        source = source.as_ref().map(tracing::field::display),
        key = incident.key().map(tracing::field::display),
        reason = incident.reason().name(),
        stored = versions.map(|(stored, _)| tracing::field::display(stored)),
        version = versions.map(|(_, came)| tracing::field::display(came)),
        index,
        error = error.as_deref(),
        count,
        "{}",
        words(incident),
    );
}

fn words(incident: &Incident) -> &'static str {
    match incident {
        Incident::Undecodable(_) => "object cannot be decoded",
        Incident::DeletedUnknown(_) => {
            "a deletion of an object that the store does not hold: nothing changes"
        }
        Incident::Duplicate(_) => "an object is twice in one list: its higher version is kept",
        Incident::Unchanged(_) => "an object came again in the stored version: nothing changes",
        Incident::StaleVersion { .. } => {
            "an object came in an older version than the stored one: not applied"
        }
        Incident::OlderListed { .. } => "a list holds an older version of an object than the store: applied",
        Incident::OlderReplace { .. } => "a list is older than what its source had reached: applied",
        Incident::ForeignSource { .. } => {
            "an object came under the name of another source: stored, but lists of this source do not find it"
        }
        Incident::IndexFailed { .. } => {
            "an index function failed: the object is stored and is not in this index"
        }
        Incident::Omitted { .. } => "more of the same in one publish, counted and not logged one by one",
        _ => "unexpected data from the source",
    }
}

fn versions(incident: &Incident) -> Option<(&ResourceVersion, &ResourceVersion)> {
    match incident {
        Incident::StaleVersion { stored, received, .. } => Some((stored, received)),
        Incident::OlderListed { stored, listed, .. } => Some((stored, listed)),
        Incident::OlderReplace { published, listed, .. } => Some((published, listed)),
        _ => None,
    }
}

/// Cut where a character ends.
fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= QUOTED {
        return Cow::Borrowed(text);
    }
    let end = (0..=QUOTED).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use super::{QUOTED, bounded};

    #[test]
    fn a_long_text_is_cut_where_a_character_ends() {
        assert_eq!(bounded("short"), "short");
        let long = format!("{}ää", "a".repeat(QUOTED - 1));
        assert_eq!(bounded(&long), format!("{}…", "a".repeat(QUOTED - 1)));
    }
}
