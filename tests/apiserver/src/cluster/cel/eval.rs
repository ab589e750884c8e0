//! Runs a tree.
//!
//! Answers: what is the result of this expression for these variables, and what did it cost?
//! 1. `&&` and `||` give an answer if either side decides, even where the other fails.
//! 2. A run that costs more than its limit is cancelled, and nothing turns that into another answer.
use std::collections::BTreeMap;
use std::sync::Arc;

use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, MapExpr, operators,
};
use imbl::Vector;

use super::check::Checked;
use super::library::{Overload, index};
use super::types::Type;
use super::value::{Key, Value};
use super::{Outcome, cost};

/// Why an expression has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An error of the expression, with the text of a real server.
    Error(String),
    /// It cost more than it may.
    TooExpensive,
}

impl From<String> for Failure {
    fn from(words: String) -> Self {
        Self::Error(words)
    }
}

type Given = Result<Value, Failure>;

/// Runs a tree with these variables.
pub(super) fn run(tree: &IdedExpr, checked: &Checked, variables: &[(&str, Value)], limit: u64) -> Outcome {
    let scope = variables.iter().map(|(name, value)| (*name, value.clone())).collect();
    let mut run = Run { checked, scope, cost: 0, limit };
    let result = run.visit(tree);
    Outcome { result, cost: run.cost }
}

struct Run<'a> {
    checked: &'a Checked,
    scope: Vec<(&'a str, Value)>,
    cost: u64,
    limit: u64,
}

fn no_overload() -> Failure {
    Failure::Error("no such overload".to_owned())
}

impl<'a> Run<'a> {
    fn spend(&mut self, cost: u64) -> Result<(), Failure> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Failure::TooExpensive) } else { Ok(()) }
    }

    fn visit(&mut self, tree: &'a IdedExpr) -> Given {
        match &tree.expr {
            Expr::Literal(literal) => Ok(literal_value(literal)),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                if let Some(of) = self.checked.names.get(&tree.id).and_then(|name| Type::named(name)) {
                    return Ok(Value::Type(of));
                }
                let operand = self.visit(&select.operand)?;
                if select.test {
                    return present(&operand, &select.field).map(Value::Bool);
                }
                self.spend(1)?;
                field(&operand, &select.field)
            }
            Expr::Call(call) => self.call(tree.id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => self.map(map),
            Expr::Comprehension(of) => self.comprehension(of),
            Expr::Struct(_) | Expr::Unspecified => Err(no_overload()),
        }
    }

    fn variable(&mut self, name: &str) -> Given {
        let found = self.scope.iter().rev().find(|(known, _)| *known == name);
        let value = match found {
            Some((_, value)) => value.clone(),
            None => Value::Type(Type::named(name).ok_or_else(|| format!("no such attribute: {name}"))?),
        };
        self.spend(1)?;
        match value {
            Value::Failed(words) => Err(Failure::Error(words.to_string())),
            value => Ok(value),
        }
    }

    fn call(&mut self, id: u64, call: &'a CallExpr) -> Given {
        match (call.func_name.as_str(), call.target.as_deref(), call.args.as_slice()) {
            (operators::LOGICAL_AND, _, [a, b]) => self.either(false, a, b),
            (operators::LOGICAL_OR, _, [a, b]) => self.either(true, a, b),
            (operators::CONDITIONAL, _, [condition, yes, no]) => match self.visit(condition)? {
                Value::Bool(true) => self.visit(yes),
                Value::Bool(false) => self.visit(no),
                _ => Err(no_overload()),
            },
            (operators::NOT_STRICTLY_FALSE, _, [condition]) => match self.visit(condition) {
                Err(Failure::Error(_)) => Ok(Value::Bool(true)),
                other => other,
            },
            (operators::OPT_SELECT, _, [operand, name]) => {
                let operand = self.visit(operand)?;
                self.spend(1)?;
                let Expr::Literal(LiteralValue::String(name)) = &name.expr else { return Err(no_overload()) };
                Ok(optional_field(&operand, name.inner()))
            }
            (operators::INDEX, _, [of, at]) => {
                let given = [self.visit(of)?, self.visit(at)?];
                self.spend(1)?;
                Ok(index(&given)?)
            }
            ("or", Some(target), [other]) => match self.visit(target)? {
                Value::Optional(None) => self.visit(other),
                value => Ok(value),
            },
            ("orValue", Some(target), [other]) => match self.visit(target)? {
                Value::Optional(None) => self.visit(other),
                Value::Optional(Some(value)) => Ok((*value).clone()),
                _ => Err(no_overload()),
            },
            _ => self.function(id, call),
        }
    }

    fn function(&mut self, id: u64, call: &'a CallExpr) -> Given {
        let mut given = Vec::with_capacity(call.args.len() + 1);
        if let (Some(target), false) = (&call.target, self.checked.names.contains_key(&id)) {
            given.push(self.visit(target)?);
        }
        for argument in &call.args {
            given.push(self.visit(argument)?);
        }
        let candidates = self.checked.overloads(id);
        let chosen = match candidates {
            [one] => Some(*one),
            several => several.iter().copied().find(|overload| takes(overload, &given)),
        };
        let chosen = chosen.ok_or_else(no_overload)?;
        if !takes(chosen, &given) {
            return Err(no_overload());
        }
        let result = (chosen.run)(&given);
        let cost = cost::of_call(&call.func_name, chosen, &given, result.as_ref().ok());
        self.spend(cost)?;
        Ok(result?)
    }

    /// `||` is decided by true, `&&` by false.
    fn either(&mut self, deciding: bool, a: &'a IdedExpr, b: &'a IdedExpr) -> Given {
        let first = self.visit(a);
        if matches!(&first, Ok(Value::Bool(value)) if *value == deciding)
            || first == Err(Failure::TooExpensive)
        {
            return first;
        }
        let second = self.visit(b);
        match (first, second) {
            (_, Ok(Value::Bool(value))) if value == deciding => Ok(Value::Bool(deciding)),
            (_, Err(Failure::TooExpensive)) => Err(Failure::TooExpensive),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
            (Ok(Value::Bool(_)), Ok(Value::Bool(_))) => Ok(Value::Bool(!deciding)),
            _ => Err(no_overload()),
        }
    }

    fn list(&mut self, list: &'a ListExpr) -> Given {
        let mut items = Vector::new();
        for (at, element) in list.elements.iter().enumerate() {
            match self.visit(element)? {
                Value::Optional(value) if list.optional_indices.contains(&at) => {
                    items.extend(value.as_deref().cloned());
                }
                value => items.push_back(value),
            }
        }
        self.spend(cost::LIST)?;
        Ok(Value::from(items))
    }

    fn map(&mut self, map: &'a MapExpr) -> Given {
        let mut members = BTreeMap::new();
        for entry in &map.entries {
            let EntryExpr::MapEntry(entry) = &entry.expr else { continue };
            let key = self.visit(&entry.key)?;
            let key = key.key().ok_or_else(|| "unsupported key type".to_owned())?;
            let value = match self.visit(&entry.value)? {
                Value::Optional(value) if entry.optional => match value {
                    Some(value) => (*value).clone(),
                    None => continue,
                },
                value => value,
            };
            if members.insert(key, value).is_some() {
                return Err(Failure::Error("Failed with repeated key".to_owned()));
            }
        }
        self.spend(cost::MAP)?;
        Ok(Value::Map(Arc::new(members)))
    }

    fn comprehension(&mut self, of: &'a ComprehensionExpr) -> Given {
        let range = self.visit(&of.iter_range)?;
        let start = self.visit(&of.accu_init)?;
        let depth = self.scope.len();
        self.scope.push((&of.accu_var, start));
        let steps = self.steps(of, &range, depth);
        let result = steps.and_then(|()| self.visit(&of.result));
        self.scope.truncate(depth);
        result
    }

    fn steps(&mut self, of: &'a ComprehensionExpr, range: &Value, depth: usize) -> Result<(), Failure> {
        let two = of.iter_var2.as_deref();
        let pairs: Vec<(Value, Value)> = match range {
            Value::List(list) => {
                let numbered = list.items.iter().enumerate();
                let pair = |(at, item): (usize, &Value)| match two {
                    Some(_) => (Value::Int(i64::try_from(at).unwrap_or(i64::MAX)), item.clone()),
                    None => (item.clone(), Value::Null),
                };
                numbered.map(pair).collect()
            }
            Value::Map(members) | Value::Object(members) => {
                members.iter().map(|(key, value)| (key.value(), value.clone())).collect()
            }
            _ => return Err(no_overload()),
        };
        for (first, second) in pairs {
            self.scope.truncate(depth + 1);
            self.scope.push((&of.iter_var, first));
            if let Some(name) = two {
                self.scope.push((name, second));
            }
            if let Value::Bool(false) = self.visit(&of.loop_cond)? {
                break;
            }
            let next = self.visit(&of.loop_step);
            self.scope[depth].1 = match next {
                // A later item may still decide an `exists` or `all`.
                Err(Failure::Error(words)) => Value::Failed(words.into()),
                next => next?,
            };
        }
        self.scope.truncate(depth + 1);
        Ok(())
    }
}

fn takes(overload: &Overload, given: &[Value]) -> bool {
    overload.args.len() == given.len()
        && overload.args.iter().zip(given).all(|(wanted, value)| is_of(wanted, value))
}

fn is_of(wanted: &Type, value: &Value) -> bool {
    match (wanted, value) {
        (Type::Dyn | Type::Param(_), _)
        | (Type::List(_), Value::List(_))
        | (Type::Map(..), Value::Map(_) | Value::Object(_)) => true,
        (Type::Optional(of), Value::Optional(value)) => value.as_deref().is_none_or(|value| is_of(of, value)),
        (wanted, value) => *wanted == value.type_of(),
    }
}

fn literal_value(literal: &LiteralValue) -> Value {
    match literal {
        LiteralValue::Boolean(value) => Value::Bool(*value.inner()),
        LiteralValue::Bytes(bytes) => Value::Bytes(bytes.inner().into()),
        LiteralValue::Double(value) => Value::Double(*value.inner()),
        LiteralValue::Int(value) => Value::Int(*value.inner()),
        LiteralValue::Null => Value::Null,
        LiteralValue::String(text) => Value::text(text.inner()),
        LiteralValue::UInt(value) => Value::Uint(*value.inner()),
    }
}

fn field(operand: &Value, name: &str) -> Given {
    match operand {
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(value)) => Ok(optional_field(value, name)),
        other => match other.members() {
            Some(members) => {
                members.get(&Key::text(name)).cloned().ok_or_else(|| format!("no such key: {name}").into())
            }
            None => Err(no_overload()),
        },
    }
}

fn optional_field(operand: &Value, name: &str) -> Value {
    match operand {
        Value::Optional(value) => {
            value.as_deref().map_or(Value::Optional(None), |value| optional_field(value, name))
        }
        other => {
            let member = other.members().and_then(|members| members.get(&Key::text(name)));
            member.map_or(Value::Optional(None), |member| Value::some(member.clone()))
        }
    }
}

fn present(operand: &Value, name: &str) -> Result<bool, Failure> {
    match operand {
        Value::Optional(value) => value.as_deref().map_or(Ok(false), |value| present(value, name)),
        other => match other.members() {
            Some(members) => Ok(members.contains_key(&Key::text(name))),
            None => Err(no_overload()),
        },
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}
