//! What a program says about an object. What passes [`Event::checked`] is accepted by both APIs of events, as
//! far as a client can know. A note is cut and never refused. An object's version is no part of an identity.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The most bytes of a note; servers refuse longer ones.
pub const MOST_NOTE: usize = 1024;

/// The most bytes of a reason and of an action.
pub const MOST_WORD: usize = 128;

/// What an event says of many that differ only in their notes, before the note of one of them.
pub const COMBINED: &str = "(combined from similar events): ";

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EventType {
    /// Something went as it should.
    Normal,
    /// Something did not.
    Warning,
}

impl EventType {
    /// The word of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object that an event is about. A text that is empty is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Reference {
    /// Group and version: `apps/v1`, `v1`.
    pub api_version: String,
    /// The kind: `Deployment`.
    pub kind: String,
    /// Empty for an object in no namespace: its events are in `default`.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The version of the object that the event is about.
    pub resource_version: String,
    /// A part of the object, such as `spec.containers{web}`.
    pub field_path: String,
}

impl Reference {
    fn without_version(&self) -> Self {
        Self { resource_version: String::new(), ..self.clone() }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, name, .. } = self;
        if namespace.is_empty() { write!(f, "{kind} {name}") } else { write!(f, "{kind} {namespace}/{name}") }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// What it is about.
    pub regarding: Reference,
    /// Another object that has to do with it.
    pub related: Option<Reference>,
    /// How much it matters.
    pub event_type: EventType,
    /// Why, in one word for machines: `ScalingReplicaSet`.
    pub reason: String,
    /// What was done or tried, in one word for machines: `Scale`.
    pub action: String,
    /// A sentence for people.
    pub note: String,
}

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "every event has these three")]
pub struct EventText<'a> {
    /// Why, in one word for machines: `ScalingReplicaSet`.
    pub reason: &'a str,
    /// What was done or tried, in one word for machines: `Scale`.
    pub action: &'a str,
    /// A sentence for people. Beyond 1,024 bytes it is cut.
    pub note: &'a str,
}

/// Why an event cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEvent {
    /// The object has no name or no kind.
    #[error("the object of the event has no {0}")]
    Nameless(&'static str),
    /// Reason or action is not one word.
    #[error("the event's {what} {text:?} is not one word of at most {MOST_WORD} bytes")]
    Word {
        /// Which of them.
        what: &'static str,
        /// Its text, cut.
        text: String,
    },
}

impl Event {
    /// An event about this object.
    pub fn new(regarding: Reference, event_type: EventType, text: EventText<'_>) -> Self {
        let EventText { reason, action, note } = text;
        let (reason, action, note) = (reason.to_owned(), action.to_owned(), note.to_owned());
        Self { regarding, related: None, event_type, reason, action, note }
    }

    /// The same event, with a note that is short enough.
    ///
    /// # Errors
    /// When no server would accept it.
    pub fn checked(mut self) -> Result<Self, InvalidEvent> {
        let Reference { kind, name, .. } = &self.regarding;
        for (what, text) in [("name", name), ("kind", kind)] {
            if text.is_empty() {
                return Err(InvalidEvent::Nameless(what));
            }
        }
        for (what, text) in [("reason", &self.reason), ("action", &self.action)] {
            let is_word = !text.contains(|char: char| char.is_whitespace() || char.is_control());
            if text.is_empty() || text.len() > MOST_WORD || !is_word {
                return Err(InvalidEvent::Word { what, text: cut(text, MOST_WORD).to_owned() });
            }
        }
        self.note.truncate(cut(&self.note, MOST_NOTE).len());
        Ok(self)
    }

    /// The key of the spam filter, unless another one is chosen: the object.
    pub fn object_key(&self) -> String {
        let Reference { api_version, kind, namespace, name, uid, .. } = &self.regarding;
        format!("{api_version}/{kind}/{namespace}/{name}/{uid}")
    }

    /// The namespace in which it is kept.
    pub fn namespace(&self) -> &str {
        match &*self.regarding.namespace {
            "" => "default",
            namespace => namespace,
        }
    }
}

pub(super) fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity {
    regarding: Reference,
    related: Option<Reference>,
    event_type: EventType,
    reason: String,
    action: String,
    /// None for all that differ only in their notes.
    note: Option<String>,
}

impl Identity {
    pub(super) fn similar(event: &Event) -> Self {
        Self {
            regarding: event.regarding.without_version(),
            related: event.related.as_ref().map(Reference::without_version),
            event_type: event.event_type,
            reason: event.reason.clone(),
            action: event.action.clone(),
            note: None,
        }
    }

    pub(super) fn with_note(&self, note: &str) -> Self {
        Self { note: Some(note.to_owned()), ..self.clone() }
    }
}

/// The same in each run.
pub(super) fn digest(note: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    note.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn name_of(object: &str, number: u64) -> String {
    let object = cut(object, 253 - 17).trim_end_matches(['-', '.']);
    let is_label = |label: &str| {
        let ends = |char: Option<char>| char.is_some_and(|char| char.is_ascii_alphanumeric());
        let fits = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
        ends(label.chars().next()) && ends(label.chars().next_back()) && label.chars().all(fits)
    };
    // A role may be named `system:node`, which no event may be.
    let object = if object.split('.').all(is_label) { object } else { "event" };
    format!("{object}.{number:x}")
}
