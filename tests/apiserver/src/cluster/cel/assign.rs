//! Which types fit which: finds the unknown types of an expression.
//!
//! Answers: may a value of this type be used where that one is required? Unknown types are bound when they are met.
//! 1. A binding that a failed attempt made is undone.
//! 2. `dyn` fits everywhere; null fits Kubernetes' types.
use std::collections::HashMap;
use std::sync::Arc;

use super::types::Type;

/// The bindings of the unknown types of one expression.
#[derive(Debug, Clone, Default)]
pub(super) struct Bindings {
    bound: HashMap<u32, Type>,
    next: u32,
}

impl Bindings {
    /// A type that is not known yet.
    pub(super) fn fresh(&mut self) -> Type {
        let var = Type::Var(self.next);
        self.next += 1;
        var
    }

    /// Whether these types fit those, in pairs; then what had to be bound is.
    pub(super) fn fit(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        let before = self.bound.clone();
        let fits = given.len() == wanted.len()
            && given.iter().zip(wanted).all(|(given, wanted)| self.assign(given, wanted));
        if !fits {
            self.bound = before;
        }
        fits
    }

    pub(super) fn fits(&mut self, a: &Type, b: &Type) -> bool {
        self.fit(std::slice::from_ref(a), std::slice::from_ref(b))
    }

    fn assign(&mut self, a: &Type, b: &Type) -> bool {
        if let Type::Var(var) = b {
            match self.substitute_var(a, *var, b) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if let Type::Var(var) = a {
            return self.substitute_var(b, *var, a).0;
        }
        match (a, b) {
            _ if a.is_free() || b.is_free() => true,
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Optional(_)
                    | Type::Object(_)
                    | Type::Library(_)
                    | Type::Duration
                    | Type::Timestamp
            ),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.assign(a, b),
            (Type::Map(a, b), Type::Map(c, d)) => self.assign(a, c) && self.assign(b, d),
            _ => a == b,
        }
    }

    /// Whether `a` can be what the unknown `var` is, and whether that was known already.
    fn substitute_var(&mut self, a: &Type, var: u32, own: &Type) -> (bool, bool) {
        if a == own {
            return (true, true);
        }
        if let Some(known) = self.bound.get(&var).cloned() {
            if *a == known {
                return (true, true);
            }
            if self.assign(a, &known) {
                let general = if is_less_specific(a, &known) { a.clone() } else { known };
                if !self.names(var, &general) {
                    self.bound.insert(var, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.names(var, a) {
            return (false, false);
        }
        self.bound.insert(var, a.clone());
        (true, false)
    }

    /// Whether a type contains an unknown.
    fn names(&self, var: u32, within: &Type) -> bool {
        match within {
            Type::Var(other) => {
                *other == var || self.bound.get(other).is_some_and(|bound| self.names(var, bound))
            }
            Type::List(of) | Type::Optional(of) | Type::Meta(of) => self.names(var, of),
            Type::Map(key, value) => self.names(var, key) || self.names(var, value),
            _ => false,
        }
    }

    /// The type with the known bindings inserted; unknown ones become `dyn` at the end.
    pub(super) fn resolve(&self, of: &Type, last: bool) -> Type {
        let inner = |of: &Arc<Type>| Arc::new(self.resolve(of, last));
        match of {
            Type::Var(var) => match self.bound.get(var) {
                Some(bound) => self.resolve(bound, last),
                None if last => Type::Dyn,
                None => of.clone(),
            },
            Type::List(of) => Type::List(inner(of)),
            Type::Optional(of) => Type::Optional(inner(of)),
            Type::Meta(of) => Type::Meta(inner(of)),
            Type::Map(key, value) => Type::Map(inner(key), inner(value)),
            other => other.clone(),
        }
    }
}

/// Replaces the parameters of a signature.
pub(super) fn instantiate(of: &Type, parameters: &mut Vec<(char, Type)>, bindings: &mut Bindings) -> Type {
    let mut inner = |of: &Arc<Type>| Arc::new(instantiate(of, parameters, bindings));
    match of {
        Type::Param(letter) => match parameters.iter().find(|(known, _)| known == letter) {
            Some((_, var)) => var.clone(),
            None => {
                let var = bindings.fresh();
                parameters.push((*letter, var.clone()));
                var
            }
        },
        Type::List(of) => Type::List(inner(of)),
        Type::Optional(of) => Type::Optional(inner(of)),
        Type::Meta(of) => Type::Meta(inner(of)),
        Type::Map(key, value) => {
            let key = inner(key);
            Type::Map(key, inner(value))
        }
        other => other.clone(),
    }
}

/// Whether the first type is not more specific than the second.
pub(super) fn is_less_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Var(_) | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Var(_) | Type::Param(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => is_less_specific(a, b),
        (Type::Map(a, b), Type::Map(c, d)) => is_less_specific(a, c) && is_less_specific(b, d),
        (Type::Meta(_), Type::Meta(_)) => true,
        _ => a == b,
    }
}
