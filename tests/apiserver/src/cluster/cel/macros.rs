//! From text to a tree: the grammar with the macros a Kubernetes environment has.
//!
//! Answers: which tree does this text give, or what is wrong with it? Macros are expanded to loops.
//! 1. A loop is a fold: it has an accumulator with a first value, a condition to continue, a step and a result.
//!
//! Next: `check.rs` types the tree.
use std::sync::LazyLock;

use cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, MapExpr, SourceInfo, operators,
};
use cel::parser::{Macro, MacroExprHelper};
use cel::{Env, IdedExpr, ParseError};

use super::issues::told;

/// The name of the accumulator; no expression can contain it.
pub(super) const RESULT: &str = "@result";
/// Adds an entry, or the entries of another map, to a map.
pub(super) const INSERT: &str = "cel.@mapInsert";
/// Sorts a list by a list of keys.
pub(super) const SORT: &str = "@sortByAssociatedKeys";
const SORTED: &str = "@__sortBy_input__";

static LANGUAGE: LazyLock<Env> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    let two: [(&str, usize, Fold); 10] = [
        ("all", 3, all),
        ("exists", 3, exists),
        ("existsOne", 3, exists_one),
        ("exists_one", 3, exists_one),
        ("transformList", 3, transform_list),
        ("transformList", 4, transform_list),
        ("transformMap", 3, transform_map),
        ("transformMap", 4, transform_map),
        ("transformMapEntry", 3, transform_entries),
        ("transformMapEntry", 4, transform_entries),
    ];
    for (name, arguments, fold) in two {
        let added = env.add_macro(Macro::receiver(name, arguments, move |made, target, arguments| {
            two_variables(made, target, arguments, fold).map(Some)
        }));
        debug_assert!(added.is_ok(), "the standard macros have one variable");
    }
    let added = env.add_macro(Macro::receiver("sortBy", 2, |made, target, arguments| {
        sort_by(made, target, arguments).map(Some)
    }));
    debug_assert!(added.is_ok(), "the standard macros do not sort");
    env
});

/// Reads an expression.
///
/// # Errors The parser's error text, with the places.
pub(super) fn parse(text: &str) -> Result<(IdedExpr, SourceInfo), String> {
    LANGUAGE.parser().parse_with_source_info(text).map_err(|errors| {
        let errors = errors.errors.iter().filter_map(|error| {
            let (place, words) = worded(error.pos, &error.msg)?;
            Some(told(text, place, &words))
        });
        errors.collect::<Vec<_>>().join("\n")
    })
}

/// The parser's error text and place in the form of Go's parser; none if Go's parser reports nothing.
fn worded((line, column): (isize, isize), words: &str) -> Option<((isize, isize), String)> {
    if words.starts_with("Incomplete `") {
        return None;
    }
    if let Some(name) = words.strip_prefix("reserved identifier: .") {
        return Some(((line, column - 1), format!("reserved identifier: {name}")));
    }
    let words = match words.split_once(" expecting {<EOF>, ") {
        Some((before, _)) => format!("{before} expecting <EOF>"),
        None => words.to_owned(),
    };
    Some(((line, column), words))
}

type Arguments = Vec<IdedExpr>;
/// The first value, the condition, the step and the result of a fold of these arguments.
type Fold = fn(&mut MacroExprHelper<'_>, Arguments, &str) -> [IdedExpr; 4];

fn two_variables(
    made: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    arguments: &mut Arguments,
    fold: Fold,
) -> Result<IdedExpr, ParseError> {
    let mut rest = arguments.split_off(2);
    let repeated = arguments.last().map_or(0, |argument| argument.id);
    let second = arguments.pop().map(|argument| variable(made, &argument)).transpose()?.unwrap_or_default();
    let first = arguments.pop().map(|argument| variable(made, &argument)).transpose()?.unwrap_or_default();
    if first == second {
        return Err(made.new_error(repeated, format!("duplicate variable name: {first}")));
    }
    let [accu_init, loop_cond, loop_step, result] = fold(made, std::mem::take(&mut rest), &first);
    Ok(made.next_expr(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: target.take().unwrap_or_default(),
        iter_var: first,
        iter_var2: Some(second),
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    }))))
}

fn variable(made: &MacroExprHelper<'_>, argument: &IdedExpr) -> Result<String, ParseError> {
    match &argument.expr {
        Expr::Ident(name) => Ok(name.clone()),
        _ => Err(made.new_error(argument.id, "argument must be a simple name")),
    }
}

fn accumulated(made: &mut MacroExprHelper<'_>) -> IdedExpr {
    made.next_expr(Expr::Ident(RESULT.to_owned()))
}

fn call(made: &mut MacroExprHelper<'_>, name: &str, args: Arguments) -> IdedExpr {
    made.next_expr(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}

fn truth(made: &mut MacroExprHelper<'_>, value: bool) -> IdedExpr {
    made.next_expr(Expr::Literal(LiteralValue::Boolean(value.into())))
}

fn number(made: &mut MacroExprHelper<'_>, value: i64) -> IdedExpr {
    made.next_expr(Expr::Literal(LiteralValue::Int(value.into())))
}

fn all(made: &mut MacroExprHelper<'_>, mut rest: Arguments, _: &str) -> [IdedExpr; 4] {
    let condition = accumulated(made);
    let condition = call(made, operators::NOT_STRICTLY_FALSE, vec![condition]);
    rest.insert(0, accumulated(made));
    [truth(made, true), condition, call(made, operators::LOGICAL_AND, rest), accumulated(made)]
}

fn exists(made: &mut MacroExprHelper<'_>, mut rest: Arguments, _: &str) -> [IdedExpr; 4] {
    let condition = accumulated(made);
    let condition = call(made, operators::LOGICAL_NOT, vec![condition]);
    let condition = call(made, operators::NOT_STRICTLY_FALSE, vec![condition]);
    rest.insert(0, accumulated(made));
    [truth(made, false), condition, call(made, operators::LOGICAL_OR, rest), accumulated(made)]
}

fn exists_one(made: &mut MacroExprHelper<'_>, mut rest: Arguments, _: &str) -> [IdedExpr; 4] {
    let counted = vec![accumulated(made), number(made, 1)];
    rest.push(call(made, operators::ADD, counted));
    rest.push(accumulated(made));
    let step = call(made, operators::CONDITIONAL, rest);
    let result = vec![accumulated(made), number(made, 1)];
    [number(made, 0), truth(made, true), step, call(made, operators::EQUALS, result)]
}

/// A step that runs only if the filter, if there is one, is true.
fn filtered(made: &mut MacroExprHelper<'_>, filter: Option<IdedExpr>, step: IdedExpr) -> IdedExpr {
    match filter {
        Some(filter) => {
            let kept = accumulated(made);
            call(made, operators::CONDITIONAL, vec![filter, step, kept])
        }
        None => step,
    }
}

fn transform_list(made: &mut MacroExprHelper<'_>, mut rest: Arguments, _: &str) -> [IdedExpr; 4] {
    let item = rest.pop().unwrap_or_default();
    let step = vec![accumulated(made), made.next_expr(Expr::List(ListExpr::new(vec![item])))];
    let step = call(made, operators::ADD, step);
    let step = filtered(made, rest.pop(), step);
    [made.next_expr(Expr::List(ListExpr::new(Vec::new()))), truth(made, true), step, accumulated(made)]
}

fn transform_map(made: &mut MacroExprHelper<'_>, mut rest: Arguments, first: &str) -> [IdedExpr; 4] {
    let value = rest.pop().unwrap_or_default();
    let step = vec![accumulated(made), made.next_expr(Expr::Ident(first.to_owned())), value];
    let step = call(made, INSERT, step);
    let step = filtered(made, rest.pop(), step);
    [made.next_expr(Expr::Map(MapExpr::default())), truth(made, true), step, accumulated(made)]
}

fn transform_entries(made: &mut MacroExprHelper<'_>, mut rest: Arguments, _: &str) -> [IdedExpr; 4] {
    let entries = rest.pop().unwrap_or_default();
    let step = vec![accumulated(made), entries];
    let step = call(made, INSERT, step);
    let step = filtered(made, rest.pop(), step);
    [made.next_expr(Expr::Map(MapExpr::default())), truth(made, true), step, accumulated(made)]
}

/// `list.sortBy(v, key)`: binds the list, computes the list of keys, and sorts by it.
fn sort_by(
    made: &mut MacroExprHelper<'_>,
    target: &mut Option<IdedExpr>,
    arguments: &mut Arguments,
) -> Result<IdedExpr, ParseError> {
    let key = arguments.pop().unwrap_or_default();
    let name = arguments.pop().map(|argument| variable(made, &argument)).transpose()?.unwrap_or_default();
    let list = |made: &mut MacroExprHelper<'_>| made.next_expr(Expr::Ident(SORTED.to_owned()));
    let step = vec![accumulated(made), made.next_expr(Expr::List(ListExpr::new(vec![key])))];
    let keys = ComprehensionExpr {
        iter_range: list(made),
        iter_var: name,
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init: made.next_expr(Expr::List(ListExpr::new(Vec::new()))),
        loop_cond: truth(made, true),
        loop_step: call(made, operators::ADD, step),
        result: accumulated(made),
    };
    let keys = made.next_expr(Expr::Comprehension(Box::new(keys)));
    let sorted =
        CallExpr { func_name: SORT.to_owned(), target: Some(Box::new(list(made))), args: vec![keys] };
    let bound = ComprehensionExpr {
        iter_range: made.next_expr(Expr::List(ListExpr::new(Vec::new()))),
        iter_var: "#unused".to_owned(),
        iter_var2: None,
        accu_var: SORTED.to_owned(),
        accu_init: target.take().unwrap_or_default(),
        loop_cond: truth(made, false),
        loop_step: list(made),
        result: made.next_expr(Expr::Call(sorted)),
    };
    Ok(made.next_expr(Expr::Comprehension(Box::new(bound))))
}
