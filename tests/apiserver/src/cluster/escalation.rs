//! A user cannot grant rights that the user does not have.
//!
//! Answers: may this user write this role, or bind this role to a subject? Checked if rights come from roles; the
//! verbs `escalate` (on roles) and `bind` (on the bound role) skip the check.
//! 1. Members of `system:masters` are not checked.
//! 2. A write that only changes owners and finalizers is not checked either: a collector may do it.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rbac::{GROUP, On, Policy, Rule, Wish};
use crate::access::user::User;
use crate::cluster::call::Call;
use crate::cluster::metadata::member;
use crate::cluster::status::ApiError;
use crate::cluster::store::Cluster;

impl Cluster {
    /// Checks that a role, or the role of a binding, grants nothing that its writer does not have.
    ///
    /// # Errors
    /// 403 with the rights that are missing; 404 for a role that is not there.
    pub(in crate::cluster) fn check_grants(
        &mut self,
        call: &Call<'_>,
        body: &Value,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let Some(user) = call.user.filter(|_| &*call.kind.resource.group == GROUP) else { return Ok(()) };
        let collected = old.is_some_and(|old| for_rights(old) == for_rights(body));
        if user.is_master() || collected {
            return Ok(());
        }
        let policy = self.policy();
        let grants = Grants { policy: &policy, user, call, name: member(body, "name") };
        match &*call.kind.resource.plural {
            "roles" | "clusterroles" => grants.role(body, old),
            "rolebindings" | "clusterrolebindings" => grants.binding(&body["roleRef"]),
            _ => Ok(()),
        }
    }
}

/// An object without the fields that collectors write.
fn for_rights(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in ["ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"] {
            metadata.remove(name);
        }
    }
    if let Some(root) = object.as_object_mut() {
        root.remove("apiVersion");
        root.remove("kind");
    }
    object
}

struct Grants<'a> {
    policy: &'a Policy,
    user: &'a User,
    call: &'a Call<'a>,
    name: &'a str,
}

impl Grants<'_> {
    fn may(&self, verb: &str, plural: &str, name: &str) -> bool {
        let namespace = self.call.namespace;
        let on = On::Resource { group: GROUP, plural, sub: "", namespace, name };
        self.policy.decide(self.user, &Wish { verb, on }).allowed
    }

    fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(self.call.kind.named(self.name), why)
    }

    fn role(&self, body: &Value, old: Option<&Value>) -> Result<(), ApiError> {
        if self.may("escalate", &self.call.kind.resource.plural, self.call.name) {
            return Ok(());
        }
        let rules = body.get("rules").cloned().unwrap_or_else(|| json!([]));
        let rules: Vec<Rule> = serde_json::from_value(rules).unwrap_or_default();
        self.hold(&rules)?;
        let aggregates = |role: &Value| {
            let selectors = role.pointer("/aggregationRule/clusterRoleSelectors");
            selectors.and_then(Value::as_array).is_some_and(|selectors| !selectors.is_empty())
        };
        if (aggregates(body) || old.is_some_and(aggregates)) && self.hold(&Rule::everything()).is_err() {
            return Err(self.forbidden("must have cluster-admin privileges to use the aggregationRule"));
        }
        Ok(())
    }

    fn binding(&self, role: &Value) -> Result<(), ApiError> {
        let text = |name: &str| role.get(name).and_then(Value::as_str).unwrap_or_default();
        let (plural, namespace) = match text("kind") {
            "ClusterRole" => ("clusterroles", ""),
            "Role" => ("roles", self.call.namespace),
            other => {
                return Err(ApiError::untyped(format!("unsupported role reference kind: {other:?}")));
            }
        };
        if self.may("bind", plural, text("name")) {
            return Ok(());
        }
        match self.policy.role(namespace, text("name")) {
            Some(rules) => self.hold(rules),
            // Reported as if it were a binding, as by a real server.
            None => Err(ApiError::not_found(self.call.kind.named(text("name")))),
        }
    }

    /// Checks that the user has all these rights.
    fn hold(&self, rules: &[Rule]) -> Result<(), ApiError> {
        let own = self.policy.rules(self.user, self.call.namespace);
        let missing: Vec<Rule> = rules
            .iter()
            .flat_map(broken_down)
            .filter(|right| !own.iter().any(|rule| rule.covers(right)))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let told: BTreeSet<String> = compacted(missing).iter().map(shown).collect();
        let told: Vec<String> = told.into_iter().collect();
        let why = format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.user.name,
            quoted(&self.user.groups),
            told.join("\n")
        );
        Err(self.forbidden(&why))
    }
}

/// Rules of one verb on one thing each.
fn broken_down(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut rights = Vec::new();
    for (group, resource, verb) in rule.api_groups.iter().flat_map(|group| {
        rule.resources
            .iter()
            .flat_map(move |resource| rule.verbs.iter().map(move |verb| (group, resource, verb)))
    }) {
        let right =
            Rule { verbs: one(verb), api_groups: one(group), resources: one(resource), ..Rule::default() };
        if rule.resource_names.is_empty() {
            rights.push(right.clone());
        }
        rights.extend(
            rule.resource_names.iter().map(|name| Rule { resource_names: one(name), ..right.clone() }),
        );
    }
    for url in &rule.non_resource_urls {
        rights.extend(rule.verbs.iter().map(|verb| Rule {
            verbs: one(verb),
            non_resource_urls: one(url),
            ..Rule::default()
        }));
    }
    rights
}

/// Merges the verbs on one thing again.
fn compacted(rights: Vec<Rule>) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::new();
    for right in rights {
        let same = |known: &&mut Rule| {
            known.api_groups == right.api_groups
                && known.resources == right.resources
                && known.resource_names == right.resource_names
        };
        match compacted.iter_mut().find(same).filter(|_| right.non_resource_urls.is_empty()) {
            Some(known) => known.verbs.extend(right.verbs),
            None => compacted.push(right),
        }
    }
    compacted
}

fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

fn shown(rule: &Rule) -> String {
    let parts = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let parts = parts.into_iter().filter(|(_, texts)| !texts.is_empty());
    let parts: Vec<String> = parts.map(|(name, texts)| format!("{name}:{}", quoted(texts))).collect();
    format!("{{{}}}", parts.join(", "))
}
