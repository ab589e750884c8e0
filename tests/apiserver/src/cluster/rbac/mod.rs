//! Role-based access control: what roles and bindings in the store allow.
//!
//! Answers: may this user do this, and which binding allows it? The server's mode decides whether this is checked at
//! all.
//! 1. Members of `system:masters` may do everything, whatever the bindings say.
//! 2. Rules only allow; a binding whose role is missing is named in the refusal.
//! 3. It is compiled from the stored objects at the first request after a change of one of them.
//! 4. A cluster role with an aggregation rule has the rules of the roles it selects, at once.
//! 5. In a rule `*` matches all; `*/scale` a subresource of all; `/healthz/*` all paths that begin so. Resource names restrict
//!    only actions that name an object.
//!
//! Next: `policy.rs` compiles; `../store.rs` says which is in force, `../escalation.rs` prevents users from
//! granting rights that they do not have.

mod policy;
#[cfg(test)]
mod tests;

pub(crate) use policy::Policy;

use serde::{Deserialize, Serialize};

use crate::access::user::User;

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// An action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish<'a> {
    pub(crate) verb: &'a str,
    pub(crate) on: On<'a>,
}

/// The target of an action; empty texts for what is not named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On<'a> {
    Resource { group: &'a str, plural: &'a str, sub: &'a str, namespace: &'a str, name: &'a str },
    Path(&'a str),
}

/// The answer, with the reason for reviews and refusals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    pub(crate) reason: String,
}

impl Policy {
    /// Decides about an action.
    pub(crate) fn decide(&self, user: &User, wish: &Wish<'_>) -> Decision {
        if user.is_master() {
            return Decision { allowed: true, reason: String::new() };
        }
        let namespace = match wish.on {
            On::Resource { namespace, .. } => namespace,
            On::Path(_) => "",
        };
        let mut missing: Vec<&str> = Vec::new();
        for (grant, subject) in self.of(user, namespace) {
            match &grant.rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(wish)) => {
                    return Decision {
                        allowed: true,
                        reason: format!("RBAC: allowed by {} to {subject}", grant.name),
                    };
                }
                Ok(_) => {}
                Err(absent) if !missing.contains(&absent.as_str()) => missing.push(absent),
                Err(_) => {}
            }
        }
        let reason = match missing.as_slice() {
            [] => String::new(),
            [one] => format!("RBAC: {one}"),
            several => format!("RBAC: [{}]", several.join(", ")),
        };
        Decision { allowed: false, reason }
    }
}

/// One rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub(crate) non_resource_urls: Vec<String>,
}

fn holds(list: &[String], text: &str) -> bool {
    list.iter().any(|known| known == "*" || known == text)
}

impl Rule {
    /// A rule that allows everything, on resources and on paths.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec!["*".to_owned()];
        let resources = Self { verbs: all(), api_groups: all(), resources: all(), ..Self::default() };
        let paths = Self { verbs: all(), non_resource_urls: all(), ..Self::default() };
        [resources, paths]
    }

    pub(crate) fn allows(&self, wish: &Wish<'_>) -> bool {
        if !holds(&self.verbs, wish.verb) {
            return false;
        }
        match wish.on {
            On::Path(path) => self.non_resource_urls.iter().any(|url| covers(url, path)),
            On::Resource { group, plural, sub, name, .. } => {
                let named =
                    self.resource_names.is_empty() || self.resource_names.iter().any(|known| known == name);
                holds(&self.api_groups, group) && named && self.covers_resource(plural, sub)
            }
        }
    }

    /// Whether this rule contains that right, which is one verb on one thing.
    pub(in crate::cluster) fn covers(&self, right: &Self) -> bool {
        let all = |own: &[String], wanted: &[String]| wanted.iter().all(|text| holds(own, text));
        let resource = |wanted: &String| match wanted.split_once('/') {
            Some((plural, sub)) => self.covers_resource(plural, sub),
            None => holds(&self.resources, wanted),
        };
        let names = match right.resource_names.as_slice() {
            _ if self.resource_names.is_empty() => true,
            [] => false,
            wanted => wanted.iter().all(|name| self.resource_names.contains(name)),
        };
        let path = |wanted: &String| self.non_resource_urls.iter().any(|url| covers(url, wanted));
        all(&self.verbs, &right.verbs)
            && all(&self.api_groups, &right.api_groups)
            && right.resources.iter().all(resource)
            && names
            && right.non_resource_urls.iter().all(path)
    }

    fn covers_resource(&self, plural: &str, sub: &str) -> bool {
        if sub.is_empty() {
            return holds(&self.resources, plural);
        }
        let whole = format!("{plural}/{sub}");
        let any = format!("*/{sub}");
        self.resources.iter().any(|known| *known == "*" || *known == whole || *known == any)
    }
}

fn covers(url: &str, path: &str) -> bool {
    url == "*" || url == path || url.strip_suffix('*').is_some_and(|prefix| path.starts_with(prefix))
}
