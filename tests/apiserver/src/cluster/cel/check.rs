//! What an expression refers to: variables, functions, and fields of the schema.
//!
//! Answers: is all of it there? Only what the schema says of the path from `self` is followed; a part whose schema is not
//! known, such as the result of a function, may be anything.
//! 1. Expressions do not see values whose schema has no type (open objects, lists of them).
//! 2. All issues are reported, at the places and with the texts of a real server.
use std::collections::BTreeSet;

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, SourceInfo, operators};
use cel::{IdedExpr, Program};

use super::names::{escape, is_seen};
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
        lists_of_sets: has_lists_of_sets(source),
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

    /// Whether it is a list that is a set or a map, or holds such lists.
    fn holds_sets(self) -> bool {
        match self {
            Self::Of(source, _) if matches!(source.list_type.as_deref(), Some("set" | "map")) => true,
            Self::Unknown => false,
            _ => self.element().holds_sets(),
        }
    }
}

struct Check<'a> {
    info: &'a SourceInfo,
    scope: Vec<(&'a str, Shape<'a>)>,
    lists_of_sets: bool,
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
        if let (operators::OPT_SELECT, [operand, name]) = (&*call.func_name, &*call.args)
            && let Expr::Literal(LiteralValue::String(name)) = &name.expr
        {
            let operand = self.visit(operand);
            self.field(id, operand, name.inner());
            return Shape::Unknown;
        }
        if let (operators::INDEX, [of, at]) = (&*call.func_name, &*call.args) {
            self.visit(at);
            return self.visit(of).element();
        }
        if let (operators::ADD, [left, right]) = (&*call.func_name, &*call.args) {
            return self.sum(id, left, right);
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

    /// A real server gives the elements of the right list the kind of those of the left, which this one does not.
    fn sum(&mut self, id: u64, left: &'a IdedExpr, right: &'a IdedExpr) -> Shape<'a> {
        let parts = [(left, self.visit(left)), (right, self.visit(right))];
        let scalar = parts.iter().any(|(_, shape)| shape.type_name().is_some());
        let may_hold_sets = |(tree, shape): &(&IdedExpr, Shape<'_>)| match shape {
            Shape::Unknown => may_be_of_the_object(tree),
            list => list.element().holds_sets(),
        };
        if self.lists_of_sets && !scalar && parts.iter().any(may_hold_sets) {
            self.absent(id, "'+' of lists of sets");
        }
        match parts[0].1 {
            list @ Shape::Of(Source { items: Some(_), .. }, _) => list,
            _ => Shape::Unknown,
        }
    }

    fn comprehension(&mut self, of: &'a ComprehensionExpr) -> Shape<'a> {
        let range = self.visit(&of.iter_range);
        let start = self.visit(&of.accu_init);
        // Keys of a map are texts, whatever its values are.
        let item = match range {
            Shape::Of(Source { items: Some(_), .. }, _) => range.element(),
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
    match &tree.expr {
        // The loops of `map` and `filter` add to it.
        Expr::Ident(name) => !name.starts_with('@'),
        Expr::Select(select) => !select.test,
        Expr::Call(call) => matches!(
            &*call.func_name,
            operators::CONDITIONAL
                | operators::INDEX
                | operators::OPT_INDEX
                | operators::OPT_SELECT
                | "value"
                | "or"
                | "orValue"
                | "dyn"
        ),
        _ => false,
    }
}

/// Whether it has lists of lists that are sets or maps.
fn has_lists_of_sets(source: &Source) -> bool {
    let mut any = false;
    source.each(&mut |source| any |= source.items.as_deref().is_some_and(|of| Shape::of(of).holds_sets()));
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
