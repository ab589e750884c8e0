//! Checks of literals: finds errors of literals before the run.
//!
//! Answers: is each literal duration, time and pattern readable, are a list's items of one type, does `format` have
//! its arguments? Types are known already.
use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SourceInfo};

use super::check::Checked;
use super::issues::tell;
use super::library::{self, printf};
use super::time;
use super::types::Type;

/// Checks all literals of a tree.
///
/// # Errors
/// All issues, as text.
pub(super) fn check(tree: &IdedExpr, source: &SourceInfo, checked: &Checked) -> Result<(), String> {
    let mut literals = Literals { checked, issues: Vec::new() };
    literals.visit(tree, false);
    if literals.issues.is_empty() { Ok(()) } else { Err(tell(source, literals.issues)) }
}

/// Calls `visit` with the direct parts of a tree.
pub(super) fn parts<'a>(tree: &'a IdedExpr, visit: &mut dyn FnMut(&'a IdedExpr)) {
    match &tree.expr {
        Expr::Select(select) => visit(&select.operand),
        Expr::Call(call) => {
            call.target.iter().for_each(|target| visit(target));
            call.args.iter().for_each(visit);
        }
        Expr::List(list) => list.elements.iter().for_each(visit),
        Expr::Map(map) => map.entries.iter().for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                visit(&entry.key);
                visit(&entry.value);
            }
            EntryExpr::StructField(field) => visit(&field.value),
        }),
        Expr::Comprehension(of) => {
            let parts = [&of.iter_range, &of.accu_init, &of.loop_cond, &of.loop_step, &of.result];
            parts.into_iter().for_each(visit);
        }
        Expr::Struct(_) | Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

struct Literals<'a> {
    checked: &'a Checked,
    issues: Vec<(u64, String)>,
}

impl Literals<'_> {
    fn visit(&mut self, tree: &IdedExpr, formatted: bool) {
        let mut formatted = formatted;
        match &tree.expr {
            Expr::List(list) if !formatted => self.list(list),
            Expr::Map(map) if !formatted => self.map(map),
            Expr::Call(call) => {
                self.call(tree.id, call);
                formatted |= call.func_name == "format";
            }
            _ => {}
        }
        parts(tree, &mut |part| self.visit(part, formatted));
    }

    fn same(&mut self, id: u64, first: &Type, other: &Type) -> bool {
        let same = first == other;
        if !same {
            self.issues.push((id, format!("expected type '{first}' but found '{other}'")));
        }
        same
    }

    fn type_of(&self, of: &IdedExpr, optional: bool) -> Type {
        match self.checked.type_of(of.id) {
            Type::Optional(inner) if optional => (**inner).clone(),
            other => other.clone(),
        }
    }

    fn list(&mut self, list: &ListExpr) {
        let mut first: Option<Type> = None;
        for (at, element) in list.elements.iter().enumerate() {
            let of = self.type_of(element, list.optional_indices.contains(&at));
            match &first {
                None => first = Some(of),
                Some(first) if !self.same(element.id, first, &of) => return,
                Some(_) => {}
            }
        }
    }

    fn map(&mut self, map: &MapExpr) {
        let mut first: Option<(Type, Type)> = None;
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let of = (self.type_of(&entry.key, false), self.type_of(&entry.value, entry.optional));
            match &first {
                None => first = Some(of),
                Some((key, value)) => {
                    self.same(entry.key.id, key, &of.0);
                    self.same(entry.value.id, value, &of.1);
                }
            }
        }
    }

    fn call(&mut self, id: u64, call: &CallExpr) {
        let literal = |at: usize| match &call.args.get(at)?.expr {
            Expr::Literal(LiteralValue::String(text)) => Some((call.args[at].id, text.inner())),
            _ => None,
        };
        let sound = match (call.func_name.as_str(), literal(0)) {
            ("duration", Some((id, text))) => (id, time::duration(text).is_some()),
            ("timestamp", Some((id, text))) => (id, time::timestamp(text).is_some()),
            ("matches", Some((id, text))) => (id, library::pattern(text).is_ok()),
            ("format", _) => return self.format(id, call),
            _ => return,
        };
        if let (id, false) = sound {
            self.issues.push((id, format!("invalid {} argument", call.func_name)));
        }
    }

    fn format(&mut self, id: u64, call: &CallExpr) {
        let (Some(target), Some(arguments)) = (&call.target, call.args.first()) else { return };
        let Expr::Literal(LiteralValue::String(text)) = &target.expr else { return };
        let Expr::List(arguments) = &arguments.expr else { return };
        let types: Vec<(u64, Type)> = arguments
            .elements
            .iter()
            .map(|argument| (argument.id, self.checked.type_of(argument.id).clone()))
            .collect();
        if let Err((at, words)) = printf::check(text.inner(), &types) {
            self.issues.push((at.unwrap_or(id), words));
        }
    }
}
