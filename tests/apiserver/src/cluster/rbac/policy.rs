//! The roles and bindings of the store, compiled once so that each request is decided without decoding them.
//!
//! Answers: which grants does this user have here? `mod.rs` decides by them.
//! 1. Bindings come in the order of the store: those of the cluster first, then those of the namespace.
//! 2. An object that cannot be decoded grants nothing.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{GROUP, Rule};
use crate::access::user::User;
use crate::cluster::object::Object;
use crate::cluster::selector;

/// All grants in force.
#[derive(Debug, Default)]
pub(crate) struct Policy {
    cluster: Vec<Grant>,
    namespaced: HashMap<String, Vec<Grant>>,
    roles: Roles,
}

/// One binding with the rules it grants.
#[derive(Debug)]
pub(super) struct Grant {
    /// The binding and its role, as text for a review.
    pub(super) name: String,
    namespace: String,
    subjects: Vec<Subject>,
    /// The rules, or what is missing.
    pub(super) rules: Result<Arc<[Rule]>, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Binding {
    role_ref: RoleRef,
    subjects: Vec<Subject>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Role {
    rules: Option<Vec<Rule>>,
    aggregation_rule: Aggregation,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Aggregation {
    cluster_role_selectors: Vec<Value>,
}

/// The rules of every role by (namespace, name); cluster roles have no namespace.
type Roles = BTreeMap<(String, String), Arc<[Rule]>>;

impl Policy {
    /// Compiles the objects of each of the four kinds, by its plural.
    pub(in crate::cluster) fn compile(objects: impl Fn(&str) -> Vec<Arc<Object>>) -> Self {
        let roles = roles(&objects);
        let mut policy = Self::default();
        for binding in objects("clusterrolebindings") {
            policy.cluster.extend(Grant::read(&binding, &roles));
        }
        for binding in objects("rolebindings") {
            let place = policy.namespaced.entry(binding.namespace.to_string()).or_default();
            place.extend(Grant::read(&binding, &roles));
        }
        policy.roles = roles;
        policy
    }

    /// The rules of a role (of a cluster role, without a namespace); none if it is not there.
    pub(in crate::cluster) fn role(&self, namespace: &str, name: &str) -> Option<&[Rule]> {
        self.roles.get(&(namespace.to_owned(), name.to_owned())).map(|rules| &**rules)
    }

    /// The grants of a user in a namespace (empty for none), each with the subject that names the user.
    pub(super) fn of<'a>(
        &'a self,
        user: &'a User,
        namespace: &str,
    ) -> impl Iterator<Item = (&'a Grant, String)> + 'a {
        let here = self.namespaced.get(namespace).map_or(&[][..], Vec::as_slice);
        let all = self.cluster.iter().chain(here);
        all.filter_map(move |grant| grant.subject(user).map(|subject| (grant, subject)))
    }

    /// Every rule a user has in a namespace, for a rules review.
    pub(crate) fn rules(&self, user: &User, namespace: &str) -> Vec<Rule> {
        let granted = self.of(user, namespace).filter_map(|(grant, _)| grant.rules.as_ref().ok());
        granted.flat_map(|rules| rules.iter().cloned()).collect()
    }
}

fn roles(objects: impl Fn(&str) -> Vec<Arc<Object>>) -> Roles {
    let mut roles = Roles::new();
    let cluster_roles = objects("clusterroles");
    let read = |object: &Object| serde_json::from_slice::<Role>(&object.body).unwrap_or_default();
    let plain: Vec<(&Object, Role)> = cluster_roles.iter().map(|object| (&**object, read(object))).collect();
    for (object, role) in &plain {
        let mut rules = role.rules.clone().unwrap_or_default();
        for selector in &role.aggregation_rule.cluster_role_selectors {
            rules.extend(selected(&plain, selector));
        }
        roles.insert((String::new(), object.name.to_string()), rules.into());
    }
    for object in objects("roles") {
        let rules = read(&object).rules.unwrap_or_default();
        roles.insert((object.namespace.to_string(), object.name.to_string()), rules.into());
    }
    roles
}

/// The rules of the roles a selector chooses; for a role that aggregates itself, also the rules that it
/// selects.
fn selected(plain: &[(&Object, Role)], selector: &Value) -> Vec<Rule> {
    let mut chosen: Vec<usize> = Vec::new();
    let mut selectors = vec![selector];
    while let Some(selector) = selectors.pop() {
        for (at, (object, role)) in plain.iter().enumerate() {
            if !chosen.contains(&at) && selector::chooses(Some(selector), &|name| object.label(name)) {
                chosen.push(at);
                selectors.extend(&role.aggregation_rule.cluster_role_selectors);
            }
        }
    }
    chosen.iter().flat_map(|at| plain[*at].1.rules.clone().unwrap_or_default()).collect()
}

impl Grant {
    fn read(object: &Object, roles: &Roles) -> Option<Self> {
        let binding: Binding = serde_json::from_slice(&object.body).ok()?;
        let RoleRef { kind, name } = binding.role_ref;
        let namespace = object.namespace.to_string();
        let place = if kind == "Role" { namespace.clone() } else { String::new() };
        let absent = || format!("{}.{GROUP} {name:?} not found", kind.to_lowercase());
        let rules = roles.get(&(place, name.clone())).cloned().ok_or_else(absent);
        let own = if namespace.is_empty() {
            format!("ClusterRoleBinding {:?}", object.name)
        } else {
            format!("RoleBinding \"{}/{namespace}\"", object.name)
        };
        let name = format!("{own} of {kind} {name:?}");
        Some(Self { name, namespace, subjects: binding.subjects, rules })
    }

    /// The subject that names this user, as text for a review.
    fn subject(&self, user: &User) -> Option<String> {
        self.subjects.iter().find_map(|subject| match subject.kind.as_str() {
            "User" if subject.name == user.name => Some(format!("User {:?}", subject.name)),
            "Group" if user.groups.contains(&subject.name) => Some(format!("Group {:?}", subject.name)),
            "ServiceAccount" => {
                let (namespace, name) = user.as_service_account()?;
                let home = if subject.namespace.is_empty() { &self.namespace } else { &subject.namespace };
                (namespace == home && name == subject.name)
                    .then(|| format!("ServiceAccount \"{name}/{namespace}\""))
            }
            _ => None,
        })
    }
}
