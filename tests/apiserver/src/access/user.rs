//! A user of the API: a name, groups, and what a credential adds.
//!
//! Answers: who is it, as reviews show it and as bindings name it? It does not decide what the user may do.
//! 1. A name is enough for a user; groups decide most rights.
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A user, as a credential names it: for tokens and client certificates of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct User {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

const NOBODY: &str = "system:anonymous";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

impl User {
    /// A user without groups.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The user's uid; by default none. Certificates do not carry one.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = uid.into();
        self
    }

    /// Adds a group. The members of `system:masters` may do everything.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// The user of a service account.
    pub(crate) fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("{SERVICE_ACCOUNT}{namespace}:{name}"))
            .group("system:serviceaccounts")
            .group(format!("system:serviceaccounts:{namespace}"))
    }

    /// The namespace and name of the service account this user is.
    pub(crate) fn as_service_account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')
    }

    /// With the group of all users with a valid credential.
    pub(crate) fn authenticated(mut self) -> Self {
        let group = "system:authenticated";
        if !self.groups.iter().any(|known| known == group) {
            self.groups.push(group.to_owned());
        }
        self
    }

    /// Whether this user may do everything, without regard to roles.
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }

    /// Whether this is the user of requests without credentials.
    pub(crate) fn is_nobody(&self) -> bool {
        self.name == NOBODY
    }

    /// As `userInfo` of a review; empty members are left out.
    pub(crate) fn to_value(&self) -> Value {
        let mut info = Map::new();
        for (name, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                info.insert(name.into(), json!(text));
            }
        }
        if !self.groups.is_empty() {
            info.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".into(), json!(self.extra));
        }
        Value::Object(info)
    }
}

/// The user of a request without a credential.
pub(crate) fn nobody() -> User {
    User::new(NOBODY).group("system:unauthenticated")
}
