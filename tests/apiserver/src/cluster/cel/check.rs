//! What an expression refers to: variables, functions, and fields of the schema.
//!
//! Answers: is all of it there? Only what the schema says of the path from `self` is followed; a part whose schema is not
//! known, such as the result of a function, may be anything.
//! 1. Expressions do not see values whose schema has no type (open objects, lists of them).
//! 2. All issues are reported, at the places and with the texts of a real server.
use std::collections::BTreeSet;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SourceInfo, operators};
use cel::{IdedExpr, Program};

use super::object::{escape, is_seen};
use super::{library, tell};
use crate::cluster::schema::source::{Others, Source};

/// The names of types, which are values too.
const TYPES: &str =
    "bool bytes double dyn google int kubernetes list map net null_type optional_type string type uint";

/// How deep an expression may be nested.
const DEEPEST: usize = 250;

/// The variables an expression uses, and the name of its result's type where that is evident.
///
/// # Errors All issues, as text.
pub(super) fn check(
    program: &Program,
    source: &Source,
    whole: bool,
) -> Result<(BTreeSet<String>, Option<&'static str>), String> {
    let own = Shape::Of(source, whole);
    let scope = vec![("self", own), ("oldSelf", own)];
    let mut check = Check {
        info: program.source_info(),
        scope,
        read_anew: has_lists_read_anew(source),
        used: BTreeSet::new(),
        issues: Vec::new(),
        depth: 0,
    };
    let shape = check.visit(program.expression());
    match check.issues.is_empty() {
        true => Ok((check.used, shape.type_name())),
        false => Err(tell(check.info, check.issues)),
    }
}

/// What is known of a part.
#[derive(Debug, Clone, Copy)]
enum Shape<'a> {
    /// It has this schema; a whole object has a type and a name.
    Of(&'a Source, bool),
    /// The metadata of a whole object, of which only names are seen.
    Metadata,
    /// A scalar of the type with this name.
    Scalar(&'static str),
    Unknown,
}

impl<'a> Shape<'a> {
    fn of(source: &'a Source) -> Self {
        Self::Of(source, source.embedded)
    }

    fn type_name(self) -> Option<&'static str> {
        match self {
            Self::Scalar(name) => Some(name),
            Self::Of(source, _) if !source.int_or_string => match (&*source.kind, &*source.format) {
                ("boolean", _) => Some("bool"),
                ("integer", _) => Some("int"),
                ("number", _) => Some("double"),
                ("string", "byte" | "date" | "date-time" | "duration") => None,
                ("string", _) => Some("string"),
                _ => None,
            },
            _ => None,
        }
    }

    /// What a list or a map holds.
    fn element(self) -> Self {
        match self {
            Self::Of(Source { items: Some(of), .. }, _) => Self::of(of),
            Self::Of(Source { additional_properties: Some(Others::Typed(of)), .. }, false) => Self::of(of),
            _ => Self::Unknown,
        }
    }

    fn is_list(self) -> bool {
        matches!(self, Self::Of(Source { items: Some(_), .. }, _))
    }

    fn is_map(self) -> bool {
        matches!(self, Self::Of(Source { additional_properties: Some(Others::Typed(_)), .. }, false))
    }

    /// Whether it is a time, a duration or bytes, which are texts in the object.
    fn is_formed(self) -> bool {
        matches!(self, Self::Of(of, _) if of.kind == "string" && self.type_name().is_none())
    }

    /// Whether it is the same value in any list. A real server reads what was added to a list once more, by that list's
    /// schema: it cannot read a time, and a list may become a set.
    fn stays(self) -> bool {
        !matches!(self, Self::Unknown) && !self.is_list() && !self.is_map() && !self.is_formed()
    }

    /// Whether another value of this type is a set, or a map, where this one is.
    fn has_kinds_of(self, other: Self) -> bool {
        let (Self::Of(own, _), Self::Of(of, _)) = (self, other) else { return true };
        let kind = |of: &'a Source| of.list_type.as_deref().filter(|kind| *kind != "atomic");
        kind(own) == kind(of) && self.element().has_kinds_of(other.element())
    }
}

struct Check<'a> {
    info: &'a SourceInfo,
    scope: Vec<(&'a str, Shape<'a>)>,
    /// Whether the object has lists that `+` may not join here.
    read_anew: bool,
    used: BTreeSet<String>,
    issues: Vec<(u64, String)>,
    depth: usize,
}

impl<'a> Check<'a> {
    fn undeclared(&mut self, id: u64, name: &str) -> Shape<'a> {
        self.issues.push((id, format!("undeclared reference to '{name}' (in container '')")));
        Shape::Unknown
    }

    fn absent(&mut self, id: u64, what: &str) {
        self.issues.push((id, format!("this server does not evaluate {what}: see its DIFFERENCES.md")));
    }

    fn visit(&mut self, tree: &'a IdedExpr) -> Shape<'a> {
        if self.depth == DEEPEST {
            self.issues.push((tree.id, format!("expression recursion limit exceeded: {DEEPEST}")));
            return Shape::Unknown;
        }
        self.depth += 1;
        let shape = self.shape(tree);
        self.depth -= 1;
        shape
    }

    fn shape(&mut self, tree: &'a IdedExpr) -> Shape<'a> {
        match &tree.expr {
            Expr::Literal(literal) => literal_type(literal).map_or(Shape::Unknown, Shape::Scalar),
            Expr::Ident(name) => self.variable(tree.id, name),
            Expr::Select(select) => {
                let operand = self.visit(&select.operand);
                let field = self.field(tree.id, operand, &select.field);
                if select.test { Shape::Scalar("bool") } else { field }
            }
            Expr::Call(call) => self.call(tree.id, call),
            Expr::List(list) => self.all(&list.elements),
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.visit(&entry.key);
                        self.visit(&entry.value);
                    }
                }
                Shape::Unknown
            }
            Expr::Comprehension(of) => self.comprehension(of),
            Expr::Struct(made) => self.undeclared(tree.id, &made.type_name),
            Expr::Unspecified => Shape::Unknown,
        }
    }

    fn all(&mut self, parts: &'a [IdedExpr]) -> Shape<'a> {
        for part in parts {
            self.visit(part);
        }
        Shape::Unknown
    }

    fn variable(&mut self, id: u64, name: &str) -> Shape<'a> {
        match self.scope.iter().rposition(|(known, _)| *known == name) {
            Some(at) => {
                if at < 2 {
                    self.used.insert(name.to_owned());
                }
                self.scope[at].1
            }
            None if TYPES.split(' ').any(|known| known == name) => Shape::Unknown,
            None => self.undeclared(id, name),
        }
    }

    fn field(&mut self, id: u64, operand: Shape<'a>, name: &str) -> Shape<'a> {
        let found = match operand {
            Shape::Unknown => return Shape::Unknown,
            Shape::Of(source, _) if source.int_or_string => return Shape::Unknown,
            Shape::Metadata => matches!(name, "name" | "generateName").then_some(Shape::Scalar("string")),
            Shape::Of(_, true) if matches!(name, "apiVersion" | "kind") => Some(Shape::Scalar("string")),
            Shape::Of(_, true) if name == "metadata" => Some(Shape::Metadata),
            Shape::Of(source, whole) if source.kind == "object" => match &source.additional_properties {
                Some(Others::Typed(_)) if !whole => return operand.element(),
                _ => {
                    let mut seen = source.properties.iter().filter(|(_, of)| is_seen(of, of.embedded));
                    seen.find(|(own, _)| escape(own).is_some_and(|own| own == name))
                        .map(|(_, of)| Shape::of(of))
                }
            },
            scalar => {
                if let Some(name) = scalar.type_name() {
                    self.issues.push((id, format!("type '{name}' does not support field selection")));
                }
                return Shape::Unknown;
            }
        };
        found.unwrap_or_else(|| {
            self.issues.push((id, format!("undefined field '{name}'")));
            Shape::Unknown
        })
    }

    fn call(&mut self, id: u64, call: &'a CallExpr) -> Shape<'a> {
        match (&*call.func_name, call.target.as_deref(), &*call.args) {
            (operators::OPT_SELECT, _, [operand, name]) => {
                if let Expr::Literal(LiteralValue::String(name)) = &name.expr {
                    let operand = self.visit(operand);
                    return self.field(id, operand, name.inner());
                }
            }
            (operators::INDEX, _, [of, at]) => {
                self.visit(at);
                return self.visit(of).element();
            }
            (operators::ADD, _, [left, right]) => return self.sum(id, left, right),
            (operators::CONDITIONAL, _, [condition, yes, no]) => {
                self.visit(condition);
                return self.either(yes, no);
            }
            ("or" | "orValue", Some(target), [other]) => return self.either(target, other),
            ("value", Some(target), []) => return self.visit(target),
            _ => {}
        }
        let name = match call.target.as_deref() {
            Some(IdedExpr { expr: Expr::Ident(prefix), .. }) if library::is_namespace(prefix) => {
                format!("{prefix}.{}", call.func_name)
            }
            Some(target) => {
                self.visit(target);
                call.func_name.clone()
            }
            None => call.func_name.clone(),
        };
        if library::is_absent(&name) {
            self.absent(id, &format!("'{name}'"));
        } else if name.starts_with(char::is_alphabetic) && !library::is_function(&name) {
            self.undeclared(id, &name);
        }
        self.all(&call.args)
    }

    /// Two values of one type: what is known of one of them.
    fn either(&mut self, one: &'a IdedExpr, other: &'a IdedExpr) -> Shape<'a> {
        match (self.visit(one), self.visit(other)) {
            (Shape::Unknown, other) => other,
            (one, _) => one,
        }
    }

    fn sum(&mut self, id: u64, left: &'a IdedExpr, right: &'a IdedExpr) -> Shape<'a> {
        let (own, other) = (self.visit(left), self.visit(right));
        let of_lists = |shape: Shape<'_>| shape.is_list() || matches!(shape, Shape::Unknown);
        let (of, added) = (own.element(), other.element());
        let joined = match own {
            _ if !of_lists(own) || !of_lists(other) || is_empty(right) => true,
            Shape::Unknown => added.stays() || !may_be_of_the_object(left),
            _ => of.stays() || !of.is_formed() && other.is_list() && of.has_kinds_of(added),
        };
        if self.read_anew && !joined {
            self.absent(id, "'+' of lists of lists, maps or times");
        }
        own
    }

    fn comprehension(&mut self, of: &'a ComprehensionExpr) -> Shape<'a> {
        let range = self.visit(&of.iter_range);
        let start = self.visit(&of.accu_init);
        let item = match range {
            Shape::Of(Source { items: Some(_), .. }, _) => range.element(),
            // Keys of a map are texts, whatever its values are.
            Shape::Of(Source { additional_properties: Some(_), .. }, _) => Shape::Scalar("string"),
            _ => Shape::Unknown,
        };
        let depth = self.scope.len();
        self.scope
            .push((&of.accu_var, if matches!(start, Shape::Scalar(_)) { Shape::Unknown } else { start }));
        self.scope.push((&of.iter_var, item));
        self.visit(&of.loop_cond);
        self.visit(&of.loop_step);
        self.scope.truncate(depth + 1);
        self.visit(&of.result);
        self.scope.truncate(depth);
        Shape::Unknown
    }
}

/// Whether a part of an unknown schema may be a list of the object, and not one that the rule made.
fn may_be_of_the_object(tree: &IdedExpr) -> bool {
    let parts =
        |call: &CallExpr| call.target.as_deref().into_iter().chain(&call.args).any(may_be_of_the_object);
    match &tree.expr {
        // The loops of `map` and `filter` add to it.
        Expr::Ident(name) => !name.starts_with('@'),
        Expr::Select(select) => !select.test && may_be_of_the_object(&select.operand),
        Expr::Call(call) => match &*call.func_name {
            operators::CONDITIONAL | "value" | "or" | "orValue" | "dyn" => parts(call),
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT => {
                call.args.first().is_some_and(may_be_of_the_object)
            }
            _ => false,
        },
        _ => false,
    }
}

fn is_empty(tree: &IdedExpr) -> bool {
    matches!(&tree.expr, Expr::List(list) if list.elements.is_empty())
}

/// Whether it has lists that a sum with them may change.
fn has_lists_read_anew(source: &Source) -> bool {
    let mut any = false;
    source.each(&mut |source| any |= source.items.as_deref().is_some_and(|of| !Shape::of(of).stays()));
    any
}

fn literal_type(literal: &LiteralValue) -> Option<&'static str> {
    Some(match literal {
        LiteralValue::Boolean(_) => "bool",
        LiteralValue::Bytes(_) => "bytes",
        LiteralValue::Double(_) => "double",
        LiteralValue::Int(_) => "int",
        LiteralValue::String(_) => "string",
        LiteralValue::UInt(_) => "uint",
        LiteralValue::Null => return None,
    })
}
