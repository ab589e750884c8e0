//! Types a tree: which function is meant by each call, and which type has each part?
//!
//! Answers: is this expression valid, and where is it not? Variables come from the caller, functions from `library/`.
//! 1. If an argument is `dyn`, a call may have several possible overloads; the run decides then.
//! 2. All issues are reported, at the places and with the texts of a real server.
//!
//! Next: `assign.rs` says which types fit.
use std::collections::{BTreeSet, HashMap};

use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, SelectExpr, SourceInfo,
    operators,
};

use super::assign::{Bindings, instantiate, is_less_specific};
use super::issues::tell;
use super::library::{self, Overload};
use super::types::Type;

/// What is known about a tree's parts, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    types: HashMap<u64, Type>,
    calls: HashMap<u64, Vec<&'static Overload>>,
    /// Selections that form the name of a type, and calls whose target is part of the function's name.
    pub(super) names: HashMap<u64, String>,
    pub(super) variables: BTreeSet<String>,
}

impl Checked {
    pub(super) fn type_of(&self, id: u64) -> &Type {
        self.types.get(&id).unwrap_or(&Type::Dyn)
    }

    pub(super) fn overloads(&self, id: u64) -> &[&'static Overload] {
        self.calls.get(&id).map_or(&[], Vec::as_slice)
    }
}

/// Types a tree.
///
/// # Errors
/// All issues, as text.
pub(super) fn check(
    tree: &IdedExpr,
    source: &SourceInfo,
    variables: &[(&str, Type)],
) -> Result<Checked, String> {
    let scope = variables.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    let mut check = Check { source, scope, ..Check::new(source) };
    check.own = variables.len();
    check.visit(tree);
    if !check.issues.is_empty() {
        return Err(tell(source, check.issues));
    }
    let Check { mut known, bindings, .. } = check;
    for of in known.types.values_mut() {
        *of = bindings.resolve(of, true);
    }
    Ok(known)
}

struct Check<'a> {
    source: &'a SourceInfo,
    scope: Vec<(String, Type)>,
    /// How many variables of the scope are the caller's.
    own: usize,
    bindings: Bindings,
    known: Checked,
    issues: Vec<(u64, String)>,
}

impl<'a> Check<'a> {
    fn new(source: &'a SourceInfo) -> Self {
        Self {
            source,
            scope: Vec::new(),
            own: 0,
            bindings: Bindings::default(),
            known: Checked::default(),
            issues: Vec::new(),
        }
    }

    fn issue(&mut self, id: u64, words: String) {
        debug_assert!(self.source.offset_for(id).is_some() || id == 0, "every part has a place");
        self.issues.push((id, words));
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Type {
        self.issue(id, format!("undeclared reference to '{name}' (in container '')"));
        Type::Error
    }

    fn visit(&mut self, tree: &IdedExpr) -> Type {
        let of = match &tree.expr {
            Expr::Literal(literal) => type_of_literal(literal),
            Expr::Ident(name) => match self.look_up(name) {
                Some(of) => of,
                None => self.undeclared(tree.id, name),
            },
            Expr::Select(select) => self.select(tree, select),
            Expr::Call(call) => self.call(tree.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(made) => self.undeclared(tree.id, &made.type_name),
            Expr::Unspecified => Type::Error,
        };
        self.known.types.insert(tree.id, of.clone());
        of
    }

    fn look_up(&mut self, name: &str) -> Option<Type> {
        if let Some(at) = self.scope.iter().rposition(|(known, _)| known == name) {
            if at < self.own {
                self.known.variables.insert(name.to_owned());
            }
            return Some(self.scope[at].1.clone());
        }
        Type::named(name).map(|of| Type::Meta(of.into()))
    }

    fn select(&mut self, tree: &IdedExpr, select: &SelectExpr) -> Type {
        let named = qualified(tree).filter(|name| name.contains('.') && Type::named(name).is_some());
        if let Some((name, of)) = named.and_then(|name| Some((name.clone(), Type::named(&name)?))) {
            self.known.names.insert(tree.id, name);
            return Type::Meta(of.into());
        }
        let operand = self.visit(&select.operand);
        let of = self.field(tree.id, &operand, &select.field, false);
        if select.test { Type::Bool } else { self.bindings.resolve(&of, false) }
    }

    fn field(&mut self, id: u64, operand: &Type, field: &str, optional: bool) -> Type {
        let operand = self.bindings.resolve(operand, false);
        let (target, is_optional) = match &operand {
            Type::Optional(of) => (&**of, true),
            other => (other, false),
        };
        let of = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(declared) => match declared.fields.get(field) {
                Some(field) => field.of.clone(),
                None => {
                    self.issue(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Var(_) => {
                self.bindings.fits(&Type::Dyn, target);
                Type::Dyn
            }
            other => {
                if !other.is_free() {
                    self.issue(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(of) } else { of }
    }

    fn call(&mut self, id: u64, call: &CallExpr) -> Type {
        if call.func_name == operators::OPT_SELECT {
            return self.optional_select(id, call);
        }
        let mut given: Vec<Type> = call.args.iter().map(|argument| self.visit(argument)).collect();
        let Some(target) = &call.target else {
            return match library::named(&call.func_name) {
                Some(overloads) => self.resolve(id, call, overloads, (false, given)),
                None => self.undeclared(id, &call.func_name),
            };
        };
        if let Some(prefix) = qualified(target) {
            let whole = format!("{prefix}.{}", call.func_name);
            if let Some(overloads) = library::named(&whole) {
                self.known.names.insert(id, whole);
                return self.resolve(id, call, overloads, (false, given));
            }
        }
        given.insert(0, self.visit(target));
        match library::named(&call.func_name) {
            Some(overloads) => self.resolve(id, call, overloads, (true, given)),
            None => self.undeclared(id, &call.func_name),
        }
    }

    fn optional_select(&mut self, id: u64, call: &CallExpr) -> Type {
        let [operand, field] = call.args.as_slice() else { return Type::Error };
        let Expr::Literal(LiteralValue::String(field)) = &field.expr else { return Type::Error };
        let operand = self.visit(operand);
        let of = self.field(id, &operand, field.inner(), true);
        self.bindings.resolve(&of, false)
    }

    fn resolve(
        &mut self,
        id: u64,
        call: &CallExpr,
        overloads: &'static [Overload],
        (member, given): (bool, Vec<Type>),
    ) -> Type {
        let mut result: Option<Type> = None;
        let mut fitting = Vec::new();
        if matches!(call.func_name.as_str(), operators::LOGICAL_AND | operators::LOGICAL_OR) {
            return self.both(id, call, overloads, &given);
        }
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            let mut parameters = Vec::new();
            let wanted: Vec<Type> = overload
                .args
                .iter()
                .map(|wanted| instantiate(wanted, &mut parameters, &mut self.bindings))
                .collect();
            let gives = instantiate(&overload.result, &mut parameters, &mut self.bindings);
            if !self.bindings.fit(&given, &wanted) {
                continue;
            }
            fitting.push(overload);
            let gives = self.bindings.resolve(&gives, false);
            result = Some(match result {
                None => gives,
                Some(before) if before.is_dyn() || before == gives => before,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let shown: Vec<String> =
                given.iter().map(|of| self.bindings.resolve(of, true).to_string()).collect();
            let signature = match (member, shown.split_first()) {
                (true, Some((target, rest))) => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", shown.join(", ")),
            };
            let name = self.known.names.get(&id).map_or(call.func_name.as_str(), String::as_str);
            let words = format!("found no matching overload for '{name}' applied to '{signature}'");
            self.issue(id, words);
            return Type::Error;
        };
        self.known.calls.insert(id, fitting);
        result
    }

    fn both(&mut self, id: u64, call: &CallExpr, overloads: &'static [Overload], given: &[Type]) -> Type {
        let mut sound = true;
        for (argument, of) in call.args.iter().zip(given) {
            if !self.bindings.fits(of, &Type::Bool) {
                self.issue(argument.id, format!("expected type 'bool' but found '{of}'"));
                sound = false;
            }
        }
        self.known.calls.insert(id, overloads.iter().collect());
        if sound { Type::Bool } else { Type::Error }
    }

    fn list(&mut self, list: &ListExpr) -> Type {
        let mut of: Option<Type> = None;
        for (at, element) in list.elements.iter().enumerate() {
            let mut given = self.visit(element);
            if list.optional_indices.contains(&at) {
                given = self.unwrapped(element.id, given);
            }
            of = Some(self.join(element.id, of, given));
        }
        let of = of.unwrap_or_else(|| self.bindings.fresh());
        Type::list(of)
    }

    fn map(&mut self, map: &MapExpr) -> Type {
        let (mut key, mut value): (Option<Type>, Option<Type>) = (None, None);
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let given = self.visit(&entry.key);
            key = Some(self.join(entry.key.id, key, given));
            let mut given = self.visit(&entry.value);
            if entry.optional {
                given = self.unwrapped(entry.value.id, given);
            }
            value = Some(self.join(entry.value.id, value, given));
        }
        let key = key.unwrap_or_else(|| self.bindings.fresh());
        let value = value.unwrap_or_else(|| self.bindings.fresh());
        Type::map(key, value)
    }

    fn unwrapped(&mut self, id: u64, given: Type) -> Type {
        match given {
            Type::Optional(of) => (*of).clone(),
            Type::Dyn => Type::Dyn,
            other => {
                self.issue(id, format!("expected type 'optional_type({other})' but found '{other}'"));
                other
            }
        }
    }

    /// The type of items of a literal; items of different types are `dyn`, and refused by `literals.rs`.
    fn join(&mut self, _id: u64, before: Option<Type>, given: Type) -> Type {
        match before {
            None => given,
            Some(before) if self.bindings.fits(&before, &given) => {
                if is_less_specific(&before, &given) {
                    before
                } else {
                    given
                }
            }
            Some(_) => Type::Dyn,
        }
    }

    fn comprehension(&mut self, of: &ComprehensionExpr) -> Type {
        let range = self.visit(&of.iter_range);
        let accumulator = self.visit(&of.accu_init);
        let range = self.bindings.resolve(&range, false);
        let depth = self.scope.len();
        self.scope.push((of.accu_var.clone(), accumulator.clone()));
        let two = of.iter_var2.is_some();
        let (first, second) = match &range {
            Type::List(item) if two => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.bindings.fits(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let words = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.issue(of.iter_range.id, words);
                (Type::Error, Type::Error)
            }
        };
        self.scope.push((of.iter_var.clone(), first));
        if let Some(name) = &of.iter_var2 {
            self.scope.push((name.clone(), second));
        }
        let given = self.visit(&of.loop_cond);
        self.expect(of.loop_cond.id, &Type::Bool, &given);
        let given = self.visit(&of.loop_step);
        self.expect(of.loop_step.id, &accumulator, &given);
        self.scope.truncate(depth + 1);
        let result = self.visit(&of.result);
        self.scope.truncate(depth);
        self.bindings.resolve(&result, false)
    }

    fn expect(&mut self, id: u64, wanted: &Type, given: &Type) {
        if !self.bindings.fits(wanted, given) {
            self.issue(id, format!("expected type '{wanted}' but found '{given}'"));
        }
    }
}

/// The name that a chain of selections forms.
pub(super) fn qualified(tree: &IdedExpr) -> Option<String> {
    match &tree.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) if !select.test => {
            Some(format!("{}.{}", qualified(&select.operand)?, select.field))
        }
        _ => None,
    }
}

fn type_of_literal(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::Text,
        LiteralValue::UInt(_) => Type::Uint,
    }
}
