//! A set of paths into an object, as a trie: which fields does a manager own?
//!
//! Answers: which fields do two owners share, which has only one, and how is a set written? It does not use schemas or values.
//! 1. The nodes of a level are sorted by element, each element once.
//! 2. No node is empty: it is a member, or has a member below it. So equal sets are equal tries.
//! 3. A path and a longer one are two members: `difference` of a parent leaves its children, only
//!    `recursive_difference` removes them too.
//!
//! 4. In `metadata.managedFields` a set stands as `fieldsV1`: a member without anything below it is `{}`; one with something
//!    below it holds `".": {}` beside that. Reading what was written gives the same set. Elements of an unknown type are
//!    skipped, with all below them.
//!
//! Next: `managed.rs` puts manager, operation and time around a set, `compare.rs` makes sets of objects.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use super::element::{Element, ElementError, write_text};

/// A set of paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    nodes: Vec<Node>,
}

/// One element of a level: a member itself or not, and what is owned below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: Element,
    pub(crate) member: bool,
    pub(crate) children: FieldSet,
}

impl Node {
    fn is_alive(&self) -> bool {
        self.member || !self.children.is_empty()
    }
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn position(&self, element: &Element) -> Result<usize, usize> {
        // Most insertions come in order.
        match self.nodes.last().map(|last| last.element.cmp(element)) {
            None => Err(0),
            Some(Ordering::Less) => Err(self.nodes.len()),
            Some(Ordering::Equal) => Ok(self.nodes.len() - 1),
            Some(Ordering::Greater) => self.nodes.binary_search_by(|node| node.element.cmp(element)),
        }
    }

    /// Adds a node, or adds what it has to the one that is there. An empty one is left out.
    pub(crate) fn insert(&mut self, element: Element, member: bool, children: Self) {
        let node = Node { element, member, children };
        if !node.is_alive() {
            return;
        }
        match self.position(&node.element) {
            Err(at) => self.nodes.insert(at, node),
            Ok(at) => {
                let known = &mut self.nodes[at];
                known.member |= node.member;
                known.children = std::mem::take(&mut known.children).union(node.children);
            }
        }
    }

    /// Adds one path. The empty path means the whole object, which has no owner.
    pub(crate) fn insert_path(&mut self, path: &[Element]) {
        if let [first, rest @ ..] = path {
            let mut children = Self::default();
            children.insert_path(rest);
            self.insert(first.clone(), rest.is_empty(), children);
        }
    }

    /// The set of these paths of field names.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<Element> = path.iter().map(|name| Element::field(name)).collect();
            set.insert_path(&path);
        }
        set
    }

    /// The node of an element, if there is one.
    pub(crate) fn get(&self, element: &Element) -> Option<&Node> {
        self.position(element).ok().map(|at| &self.nodes[at])
    }

    pub(crate) fn contains(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.get(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self.get(first).is_some_and(|node| node.children.contains(rest)),
        }
    }

    /// What is in one of the two.
    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut others = other.nodes.into_iter().peekable();
        for mut node in self.nodes {
            while let Some(before) = others.next_if(|other| other.element < node.element) {
                nodes.push(before);
            }
            if let Some(same) = others.next_if(|other| other.element == node.element) {
                node.member |= same.member;
                node.children = node.children.union(same.children);
            }
            nodes.push(node);
        }
        nodes.extend(others);
        Self { nodes }
    }

    /// What is in both.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let shared = pairs(&self.nodes, &other.nodes).filter_map(|(node, other)| {
            let other = other?;
            let (member, children) =
                (node.member && other.member, node.children.intersection(&other.children));
            (member || !children.is_empty()).then(|| Node { element: node.element.clone(), member, children })
        });
        Self { nodes: shared.collect() }
    }

    /// What is in this one and not in the other; a removed parent leaves its children.
    #[must_use]
    pub(crate) fn difference(self, other: &Self) -> Self {
        self.without(other, |node, other| {
            node.member &= !other.member;
            node.children = std::mem::take(&mut node.children).difference(&other.children);
        })
    }

    /// What is in this one, and neither in the other nor below one of its members.
    #[must_use]
    pub(crate) fn recursive_difference(self, other: &Self) -> Self {
        self.without(other, |node, other| {
            if other.member {
                node.member = false;
                node.children = Self::default();
            } else {
                node.children = std::mem::take(&mut node.children).recursive_difference(&other.children);
            }
        })
    }

    fn without(mut self, other: &Self, thin: impl Fn(&mut Node, &Node)) -> Self {
        if self.is_empty() || other.is_empty() {
            return self;
        }
        let mut others = other.nodes.as_slice();
        self.nodes.retain_mut(|node| {
            while let [first, rest @ ..] = others
                && first.element < node.element
            {
                others = rest;
            }
            if let [first, ..] = others
                && first.element == node.element
            {
                thin(node, first);
            }
            node.is_alive()
        });
        self
    }

    /// Every path, at each level the members before what is below them.
    pub(crate) fn paths(&self) -> Vec<Vec<Element>> {
        let (mut paths, mut prefix) = (Vec::new(), Vec::new());
        self.collect_paths(&mut prefix, &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Vec<Element>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            paths.push(prefix.iter().chain(Some(&node.element)).cloned().collect());
        }
        for node in &self.nodes {
            prefix.push(node.element.clone());
            node.children.collect_paths(prefix, paths);
            prefix.pop();
        }
    }

    /// Rebuilds the set node by node; the function returns whether the node is a member, and its children.
    pub(crate) fn map_nodes(&self, mut change: impl FnMut(&Node) -> (bool, Self)) -> Self {
        let mut set = Self::default();
        for node in &self.nodes {
            let (member, children) = change(node);
            set.insert(node.element.clone(), member, children);
        }
        set
    }
}

/// Each node of the first level with the same node of the second.
fn pairs<'a>(ones: &'a [Node], mut others: &'a [Node]) -> impl Iterator<Item = (&'a Node, Option<&'a Node>)> {
    ones.iter().map(move |node| {
        while let [first, rest @ ..] = others
            && first.element < node.element
        {
            others = rest;
        }
        (node, others.first().filter(|first| first.element == node.element))
    })
}

/// A path as people read it: `.spec.containers[name="a"].image`.
#[derive(Debug)]
pub(crate) struct Path<'a>(pub(crate) &'a [Element]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

const SELF: &str = ".";

/// Why a value is not `fieldsV1`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FieldsError {
    #[error("a set of fields is a JSON object")]
    NotAnObject,
    #[error("cannot read a path element")]
    Element(#[from] ElementError),
}

/// Reads a set.
///
/// # Errors
/// If the value is not of this form.
pub(crate) fn decode(value: &Value) -> Result<FieldSet, FieldsError> {
    match value {
        Value::Null => Ok(FieldSet::default()),
        Value::Object(fields) => level(fields),
        _ => Err(FieldsError::NotAnObject),
    }
}

fn level(fields: &Map<String, Value>) -> Result<FieldSet, FieldsError> {
    let mut set = FieldSet::default();
    for (text, below) in fields {
        if text == SELF {
            continue;
        }
        let Some(element) = Element::parse(text)? else { continue };
        let children = decode(below)?;
        let member = children.is_empty() || below.get(SELF).is_some();
        set.insert(element, member, children);
    }
    Ok(set)
}

/// Writes a set.
pub(crate) fn encode(set: &FieldSet, out: &mut String) {
    let mut text = String::new();
    encode_level(set, false, out, &mut text);
}

fn encode_level(set: &FieldSet, member: bool, out: &mut String, text: &mut String) {
    out.push('{');
    let mut first = true;
    if member && !set.is_empty() {
        out.push_str("\".\":{}");
        first = false;
    }
    for node in set.nodes() {
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        text.clear();
        node.element.write(text);
        write_text(text, out);
        out.push(':');
        encode_level(&node.children, node.member, out, text);
    }
    out.push('}');
}
