//! The path of a field, such as `spec.nodeName` or `spec.containers[*].image`, and trees of paths.
//!
//! 1. Paths have the syntax of Kubernetes' field paths. A printed path can be parsed again.
//! 2. A path leads through an array only by `[*]`. In a tree it needs no such step: it continues in each element.
//! 3. The values at a path are strings, numbers and booleans, each as text (`3`, `true`). A field that is missing, null, an
//!    object or an array has no value.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The path of a field of an object. Cloning copies two pointers.
///
/// ```
/// use actix_informer::object::FieldPath;
///
/// let images: FieldPath = "spec.containers[*].image".parse()?;
/// let pod = serde_json::json!({"spec": {"containers": [{"image": "a"}, {"image": "b"}, {}]}});
/// assert_eq!(images.values_of(&pod)?, ["a", "b"]);
///
/// let app: FieldPath = "metadata.labels['app.kubernetes.io/name']".parse()?;
/// assert_eq!(app.to_string(), "metadata.labels['app.kubernetes.io/name']");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath {
    text: Arc<str>,
    steps: Arc<[PathStep]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    Field(Box<str>),
    Elements,
}

/// Why there is no index or scan by a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldPathError {
    /// The text is not a path.
    #[error("the field path {path:?} is invalid at character {at}: {what}")]
    Invalid {
        /// The text.
        path: String,
        /// Where, counted from 1.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// The path leads to what is not kept.
    #[error("the informer of {resource} keeps metadata alone, and the field path {path:?} is not below it")]
    NotMetadata {
        /// The resource.
        resource: String,
        /// The path.
        path: String,
    },
}

impl FieldPath {
    pub(crate) fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// Refuses a path that can have several values in one object.
    pub(crate) fn of_one_value(self) -> Result<Self, FieldPathError> {
        if !self.steps.contains(&PathStep::Elements) {
            return Ok(self);
        }
        let before = self.text.split("[*]").next().unwrap_or_default();
        let (at, path) = (before.chars().count() + 1, self.text.to_string());
        Err(FieldPathError::Invalid { path, at, what: "a field selector needs one value for each object" })
    }

    pub(crate) fn is_in_metadata(&self) -> bool {
        matches!(&*self.steps, [PathStep::Field(name), _, ..] if &**name == "metadata")
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(text: &str) -> Result<Self, FieldPathError> {
        let without_dot = text.strip_prefix('.').unwrap_or(text);
        let mut rest = without_dot;
        let mut steps = Vec::new();
        while steps.is_empty() || !rest.is_empty() {
            let (step, behind) = step(rest, steps.is_empty()).map_err(|what| {
                let at = text.chars().count() - rest.chars().count() + 1;
                FieldPathError::Invalid { path: text.to_owned(), at, what }
            })?;
            steps.push(step);
            rest = behind;
        }
        Ok(Self { text: without_dot.into(), steps: steps.into() })
    }
}

fn step(text: &str, is_first: bool) -> Result<(PathStep, &str), &'static str> {
    if let Some(inside) = text.strip_prefix('[') {
        return bracket(inside);
    }
    let text = match is_first {
        true => text,
        false => text.strip_prefix('.').ok_or("a dot or a bracket is missing")?,
    };
    let end = text.find(['.', '[', ']', '\'', '"', '*']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        Err("the name of a field is missing")
    } else {
        Ok((PathStep::Field(name.into()), rest))
    }
}

fn bracket(inside: &str) -> Result<(PathStep, &str), &'static str> {
    if let Some(rest) = inside.strip_prefix("*]") {
        return Ok((PathStep::Elements, rest));
    }
    let quote = inside.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let quote = quote.ok_or("in brackets is * or a name in quotes")?;
    let (name, rest) = inside[1..].split_once(quote).ok_or("a quote is missing")?;
    let rest = rest.strip_prefix(']').ok_or("a bracket is missing")?;
    Ok((PathStep::Field(name.into()), rest))
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FieldTree {
    fields: Vec<(Box<str>, Step)>,
    /// Fields that are not named are left out; else they are kept.
    is_choice: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Cut,
    Keep,
    /// Leave out fields in it.
    Descend(FieldTree),
}

impl FieldTree {
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty() && !self.is_choice
    }

    /// What is left out, or alone kept, in one normal form.
    pub(crate) fn paths(&self) -> BTreeSet<Vec<String>> {
        let mut paths = BTreeSet::new();
        let mut open = vec![(Vec::new(), self)];
        while let Some((above, tree)) = open.pop() {
            let below =
                |name: &str| -> Vec<String> { above.iter().cloned().chain([name.to_owned()]).collect() };
            // No field of Kubernetes has such a name.
            paths.extend(tree.is_choice.then(|| below("*only")));
            for (name, step) in &tree.fields {
                let mut path = below(name);
                match step {
                    Step::Cut => drop(paths.insert(path)),
                    Step::Keep => {
                        path.push("*kept".to_owned());
                        paths.insert(path);
                    }
                    Step::Descend(below) => open.push((path, below)),
                }
            }
        }
        paths
    }

    pub(crate) fn step(&self, key: &[u8]) -> &Step {
        let named = self.fields.iter().find(|(name, _)| name.as_bytes() == key);
        named.map_or(if self.is_choice { &Step::Cut } else { &Step::Keep }, |(_, step)| step)
    }

    /// Keeps this field; of a choice, nothing else that was not named.
    pub(crate) fn choose(&mut self, path: &[PathStep]) {
        let mut names = path.iter().filter_map(|step| match step {
            PathStep::Field(name) => Some(name),
            PathStep::Elements => None,
        });
        let Some(name) = names.next() else { return };
        self.is_choice = true;
        let below: Vec<PathStep> = names.cloned().map(PathStep::Field).collect();
        let known = self.fields.iter_mut().find(|(known, _)| known == name).map(|(_, step)| step);
        match (known, below.is_empty()) {
            (Some(step), true) => *step = Step::Keep,
            (Some(Step::Descend(node)), false) if node.is_choice => node.choose(&below),
            (Some(_), false) => {}
            (None, true) => self.fields.push((name.clone(), Step::Keep)),
            (None, false) => {
                let mut node = Self::default();
                node.choose(&below);
                self.fields.push((name.clone(), Step::Descend(node)));
            }
        }
    }

    pub(crate) fn cut(&mut self, mut path: impl Iterator<Item = Box<str>>) {
        if let Some(first) = path.next() {
            self.add(first, path.peekable());
        }
    }

    fn add<I: Iterator<Item = Box<str>>>(&mut self, name: Box<str>, mut rest: std::iter::Peekable<I>) {
        let at = self.fields.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            let step = if self.is_choice { Step::Cut } else { Step::Keep };
            self.fields.push((name, step));
            self.fields.len() - 1
        });
        let step = &mut self.fields[at].1;
        match (rest.next(), &mut *step) {
            (None, _) => *step = Step::Cut,
            (Some(_), Step::Cut) => {}
            (Some(next), Step::Keep) => {
                let mut node = Self::default();
                node.add(next, rest);
                *step = Step::Descend(node);
            }
            (Some(next), Step::Descend(node)) => node.add(next, rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(path: &str) -> Vec<String> {
        let path: FieldPath = path.parse().unwrap_or_else(|error| panic!("{error}"));
        let shown = |step: &PathStep| match step {
            PathStep::Field(name) => name.to_string(),
            PathStep::Elements => "<each>".to_owned(),
        };
        path.steps().iter().map(shown).collect()
    }

    #[test]
    fn a_path_is_names_and_brackets() {
        assert_eq!(steps("spec.nodeName"), ["spec", "nodeName"]);
        assert_eq!(steps(".spec.containers[*].image"), ["spec", "containers", "<each>", "image"]);
        assert_eq!(steps("metadata.labels['a.b/c']"), ["metadata", "labels", "a.b/c"]);
        assert_eq!(steps(r#"['a']["it's"][*][*].b-c"#), ["a", "it's", "<each>", "<each>", "b-c"]);
    }

    #[test]
    fn idx_34_what_is_not_a_path_is_refused_with_the_character() {
        for (path, at) in [
            ("", 1),
            (".", 2),
            ("a.", 2),
            ("a..b", 2),
            ("é[0]", 2),
            ("a[*", 2),
            ("a['b", 2),
            ("a['b'", 2),
            ("a]", 2),
            ("a['b']c", 7),
            ("a*", 2),
        ] {
            let error = path.parse::<FieldPath>().expect_err(path);
            assert!(matches!(&error, FieldPathError::Invalid { at: found, .. } if *found == at), "{error}");
        }
        let error = "a[0]".parse::<FieldPath>().unwrap_err().to_string();
        assert_eq!(
            error,
            "the field path \"a[0]\" is invalid at character 2: in brackets is * or a name in quotes"
        );
    }
}
