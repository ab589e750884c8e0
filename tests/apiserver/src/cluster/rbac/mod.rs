//! Role-based access control: what roles and bindings in the store allow.
//!
//! Answers: may this user do this, and which binding allows it? The server's mode decides whether this is checked at
//! all.
//! 1. Members of `system:masters` may do everything, whatever the bindings say.
//! 2. Rules only allow; a binding whose role is missing is named in the refusal.
//! 3. It is compiled from the stored objects at the first request after a change of one of them.
//! 4. A cluster role with an aggregation rule has the rules of the roles it selects, at once.
//!
//! Next: `policy.rs` compiles, `rule.rs` matches; `../store.rs` says which is in force, `../escalation.rs` prevents users from
//! granting rights that they do not have.
mod policy;
mod rule;
#[cfg(test)]
mod tests;

pub(crate) use policy::Policy;
pub(crate) use rule::Rule;

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
