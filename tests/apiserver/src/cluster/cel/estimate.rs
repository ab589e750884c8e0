//! What an expression may cost at most, when only schemas are known.
//!
//! Answers: how expensive can this be for the largest values that a schema allows? Definitions with too expensive
//! rules are refused.
//! 1. The path of a part through the schema (`self`, `spec`, `@items`) gives its largest size.
//! 2. A loop costs its step as often as its range has items; nested loops multiply.
//!
//! Next: `estimate_calls.rs` has the costs of calls.
use std::collections::HashMap;

use cel::IdedExpr;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr};

use super::check::Checked;
use super::cost::{LIST, MAP};
use super::declared::Declared;
use super::macros::RESULT;
use super::size::Range;
use super::types::Type;

/// The most an expression may cost.
pub(super) fn most(tree: &IdedExpr, checked: &Checked, root: &Declared) -> u64 {
    let mut estimate = Estimate { checked, root, ..Estimate::new(checked, root) };
    estimate.cost(tree).most
}

/// The sizes of the items of a list or the entries of a map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entries {
    list: bool,
    pub(super) key: Range,
    pub(super) value: Range,
}

/// A variable of a loop.
#[derive(Debug, Clone, Default)]
struct Local {
    path: Vec<String>,
    size: Option<Range>,
    entries: Option<Entries>,
}

pub(super) struct Estimate<'a> {
    pub(super) checked: &'a Checked,
    root: &'a Declared,
    pub(super) paths: HashMap<u64, Vec<String>>,
    locals: Vec<(String, Local)>,
    pub(super) sizes: HashMap<u64, Range>,
    pub(super) entries: HashMap<u64, Entries>,
}

impl<'a> Estimate<'a> {
    fn new(checked: &'a Checked, root: &'a Declared) -> Self {
        Self {
            checked,
            root,
            paths: HashMap::new(),
            locals: Vec::new(),
            sizes: HashMap::new(),
            entries: HashMap::new(),
        }
    }

    pub(super) fn cost(&mut self, tree: &IdedExpr) -> Range {
        match &tree.expr {
            Expr::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(tree.id, path);
                Range::exactly(1)
            }
            Expr::Select(_) if self.checked.names.contains_key(&tree.id) => {
                // The name of a type, which has the smallest size.
                self.sizes.insert(tree.id, Range::default());
                Range::exactly(1)
            }
            Expr::Select(select) => self.select(tree, select),
            Expr::Call(call) => self.call(tree, call),
            Expr::List(list) => self.list(tree.id, list),
            Expr::Map(map) => self.map(tree.id, map),
            Expr::Comprehension(of) if is_binding(of) => self.binding(tree, of),
            Expr::Comprehension(of) => self.comprehension(tree.id, of),
            Expr::Literal(_) | Expr::Struct(_) | Expr::Unspecified => Range::default(),
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|(known, _)| known == name).map(|(_, local)| local)
    }

    pub(super) fn path(&self, of: &IdedExpr) -> Vec<String> {
        if let Expr::Ident(name) = &of.expr
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&of.id).cloned().unwrap_or_default()
    }

    fn below(&self, of: &IdedExpr, name: &str) -> Vec<String> {
        let mut path = self.path(of);
        path.push(name.to_owned());
        path
    }

    /// Records that a part is the member of another part under a name.
    pub(super) fn is_below(&mut self, id: u64, of: &IdedExpr, name: &str) {
        let path = self.below(of, name);
        self.paths.insert(id, path);
    }

    /// How large the schema says that a value at a path may be.
    pub(super) fn declared(&self, path: &[String]) -> Option<Range> {
        let mut at = self.root;
        for name in path.get(1..).filter(|_| path[0] != RESULT)? {
            at = match name.as_str() {
                "@items" | "@values" => at.element.as_deref()?,
                "@keys" => at.key.as_deref()?,
                name => at.fields.get(name)?,
            };
        }
        Some(Range::new(0, at.most))
    }

    fn select(&mut self, tree: &IdedExpr, select: &SelectExpr) -> Range {
        let operand = self.cost(&select.operand);
        if select.test {
            return operand;
        }
        let own = match self.checked.type_of(select.operand.id) {
            Type::Map(..) | Type::Object(_) | Type::Library(_) | Type::Param(_) | Type::Var(_) => 1,
            _ => 0,
        };
        self.is_below(tree.id, &select.operand, &select.field);
        operand.plus(Range::exactly(own))
    }

    /// The size of a part, if it is known.
    pub(super) fn size(&mut self, of: &IdedExpr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&of.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(of) {
            return Some(size);
        }
        if let Some(size) = self.declared(&self.path(of)) {
            self.sizes.insert(of.id, size);
            return Some(size);
        }
        if self.checked.type_of(of.id).is_scalar() {
            return Some(Range::exactly(1));
        }
        match &of.expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    pub(super) fn size_or_unknown(&mut self, of: &IdedExpr) -> Range {
        self.size(of).unwrap_or(Range::UNKNOWN)
    }

    pub(super) fn entries_of(&self, of: &IdedExpr) -> Option<Entries> {
        match (self.entries.get(&of.id), &of.expr) {
            (Some(entries), _) => Some(*entries),
            (None, Expr::Ident(name)) => self.local(name).and_then(|local| local.entries),
            _ => None,
        }
    }

    fn list(&mut self, id: u64, list: &ListExpr) -> Range {
        let mut sum = Range::exactly(LIST);
        let mut value: Option<Range> = None;
        for element in &list.elements {
            sum = sum.plus(self.cost(element));
            let size = self.size_or_unknown(element);
            value = Some(value.map_or(size, |value| value.union(size)));
        }
        let value = value.unwrap_or_default();
        self.entries.insert(id, Entries { list: true, key: Range::exactly(1), value });
        sum
    }

    fn map(&mut self, id: u64, map: &MapExpr) -> Range {
        let mut sum = Range::exactly(MAP);
        let mut sizes: Option<(Range, Range)> = None;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            let size = (self.size_or_unknown(&entry.key), self.size_or_unknown(&entry.value));
            sizes = Some(sizes.map_or(size, |(key, value)| (key.union(size.0), value.union(size.1))));
        }
        let (key, value) = sizes.unwrap_or_default();
        self.entries.insert(id, Entries { list: false, key, value });
        sum
    }

    fn comprehension(&mut self, id: u64, of: &ComprehensionExpr) -> Range {
        let mut sum = self.cost(&of.iter_range).plus(self.cost(&of.accu_init));
        let depth = self.locals.len();
        self.bind(&of.accu_var, &of.accu_init);
        self.iterate(of);
        let step = self.cost(&of.loop_cond).plus(self.cost(&of.loop_step));
        self.locals.truncate(depth + 1);
        sum = sum.plus(self.cost(&of.result));
        let stepped = self.entries_of(&of.loop_step);
        let start = self.size(&of.accu_init);
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&of.iter_range);
        match &of.accu_init.expr {
            Expr::Literal(_) => {
                self.sizes.extend(start.map(|size| (id, size)));
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(id, count);
                self.entries.extend(stepped.map(|entries| (id, entries)));
            }
            _ => {}
        }
        sum.plus(count.times(step))
    }

    fn bind(&mut self, name: &str, to: &IdedExpr) {
        let local = Local { path: self.path(to), size: self.size(to), entries: self.entries_of(to) };
        self.locals.push((name.to_owned(), local));
    }

    fn iterate(&mut self, of: &ComprehensionExpr) {
        let range = &of.iter_range;
        let entries = self.entries_of(range);
        let list = entries
            .map_or_else(|| matches!(self.checked.type_of(range.id), Type::List(_)), |entries| entries.list);
        let local = |path, size| Local { path, size, entries: None };
        let key = entries.map(|entries| entries.key);
        let value = entries.map(|entries| entries.value);
        let held = self.below(range, if list { "@items" } else { "@values" });
        match &of.iter_var2 {
            Some(second) => {
                let keys = self.below(range, if list { "@indices" } else { "@keys" });
                self.locals.push((of.iter_var.clone(), local(keys, key)));
                self.locals.push((second.clone(), local(held, value)));
            }
            None if list => self.locals.push((of.iter_var.clone(), local(held, value))),
            None => {
                let keys = self.below(range, "@keys");
                self.locals.push((of.iter_var.clone(), local(keys, key)));
            }
        }
    }

    fn binding(&mut self, tree: &IdedExpr, of: &ComprehensionExpr) -> Range {
        let sum = self.cost(&of.iter_range).plus(self.cost(&of.accu_init));
        self.bind(&of.accu_var, &of.accu_init);
        let sum = sum.plus(self.cost(&of.result));
        self.locals.pop();
        self.copy(tree.id, &of.result);
        sum
    }

    /// A part has the same size as another one.
    pub(super) fn copy(&mut self, id: u64, from: &IdedExpr) {
        let size = self.size(from);
        self.sizes.extend(size.map(|size| (id, size)));
        let entries = self.entries_of(from);
        self.entries.extend(entries.map(|entries| (id, entries)));
    }
}

impl Entries {
    pub(super) fn union(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        let (a, b) = a.zip(b)?;
        Some(Self { list: a.list, key: a.key.union(b.key), value: a.value.union(b.value) })
    }
}

/// A loop without items only names a value.
fn is_binding(of: &ComprehensionExpr) -> bool {
    let empty = matches!(&of.iter_range.expr, Expr::List(list) if list.elements.is_empty());
    let never = matches!(&of.loop_cond.expr, Expr::Literal(LiteralValue::Boolean(go)) if !*go.inner());
    empty && never && of.accu_var != RESULT
}

fn literal_size(of: &IdedExpr) -> Option<Range> {
    let size = match &of.expr {
        Expr::Literal(LiteralValue::String(text)) => text.inner().chars().count(),
        Expr::Literal(LiteralValue::Bytes(bytes)) => bytes.inner().len(),
        Expr::Literal(_) => 1,
        Expr::List(list) => list.elements.len(),
        Expr::Map(map) => map.entries.len(),
        _ => return None,
    };
    Some(Range::exactly(size as u64))
}
