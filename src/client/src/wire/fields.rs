//! Fields of an object, as a tree of their paths.
//!
//! Answers "what is done with this field?" for the cut of encoded objects (`json/cut.rs`). Invariants:
//! 1. A path needs no step for a list: it continues in each of the list's elements.
//! 2. A path below a field that is left out changes nothing.
//!
//! Read next: `representation/prune.rs`, which makes trees.

use std::collections::BTreeSet;

/// What to do with the fields of one object. Fields that are not in it are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldTree {
    fields: Vec<(Box<str>, Step)>,
}

/// What to do with one field.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Leave it out.
    Cut,
    /// Keep it, and leave out fields in it.
    Descend(FieldTree),
}

impl FieldTree {
    /// Whether every field is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The paths that are left out, in one form for all ways in which they were given.
    pub(crate) fn paths(&self) -> BTreeSet<Vec<String>> {
        let mut paths = BTreeSet::new();
        let mut open = vec![(Vec::new(), self)];
        while let Some((above, tree)) = open.pop() {
            for (name, step) in &tree.fields {
                let path: Vec<String> = above.iter().cloned().chain([name.to_string()]).collect();
                match step {
                    Step::Cut => drop(paths.insert(path)),
                    Step::Descend(below) => open.push((path, below)),
                }
            }
        }
        paths
    }

    /// What to do with this field; `None` if it is kept as it is.
    pub(crate) fn step(&self, key: &[u8]) -> Option<&Step> {
        self.fields.iter().find(|(name, _)| name.as_bytes() == key).map(|(_, step)| step)
    }

    /// Leaves out the field at this path. An empty path changes nothing.
    pub(crate) fn cut(&mut self, mut path: impl Iterator<Item = Box<str>>) {
        if let Some(first) = path.next() {
            self.add(first, path.peekable());
        }
    }

    fn add<I: Iterator<Item = Box<str>>>(&mut self, name: Box<str>, mut rest: std::iter::Peekable<I>) {
        let at = self.fields.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.fields.push((name, Step::Descend(Self::default())));
            self.fields.len() - 1
        });
        let step = &mut self.fields[at].1;
        match (rest.next(), step) {
            (None, step) => *step = Step::Cut,
            (Some(_), Step::Cut) => {}
            (Some(next), Step::Descend(node)) => node.add(next, rest),
        }
    }
}
