//! One policy rule: verbs on resources, or on paths.
//!
//! Answers: does this rule allow this action? It also has the JSON form of a rule.
//! 1. `*` matches all; `*/scale` a subresource of all; `/healthz/*` all paths that begin so.
//! 2. Resource names restrict only actions that name an object.
use serde::{Deserialize, Serialize};

use super::{On, Wish};

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
