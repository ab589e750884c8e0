//! `in`: which of two values decides whether they are equal, where they are lists of different kinds?
//!
//! Answers: is this value in this list? To the crate always the element decides.
//! 1. In a list of the object the element decides; in one that the rule made, the value that is looked for.
use cel::ExecutionError;
use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, operators};
use cel::common::types::{CelList, DYN_TYPE, Kind};
use cel::common::value::Val;

use super::functions::{Library, truth};

/// Rules cannot call it by this name.
const SEARCH: &str = "@search";

pub(super) fn add(library: &mut Library) {
    library.global(SEARCH, &[DYN_TYPE, DYN_TYPE], |given| {
        let (value, list) = (&*given[0], &*given[1]);
        if list.get_type().kind() == Kind::List {
            return truth(holds(list, value));
        }
        let found = list.as_container().and_then(|container| container.contains(value).ok());
        truth(found.ok_or_else(|| ExecutionError::no_such_overload(operators::IN, Vec::new()))?)
    });
}

/// Whether a list has a value.
pub(super) fn holds(list: &dyn Val, value: &dyn Val) -> bool {
    // A list of the object only contains one of the crate's.
    let made = list.downcast_ref::<CelList<'_>>().is_some_and(|own| std::ptr::addr_eq(own, list));
    let mut rest = list.as_iterable().map(|list| list.iter());
    while let Some(item) = rest.as_mut().and_then(|rest| rest.next()) {
        if if made { value.equals(item) } else { item.equals(value) } {
            return true;
        }
    }
    false
}

/// Replaces each `in` by the search.
pub(super) fn replace(tree: &mut IdedExpr) {
    match &mut tree.expr {
        Expr::Call(call) => {
            if call.func_name == operators::IN {
                SEARCH.clone_into(&mut call.func_name);
            }
            call.target.iter_mut().for_each(|target| replace(target));
            call.args.iter_mut().for_each(replace);
        }
        Expr::Select(select) => replace(&mut select.operand),
        Expr::List(list) => list.elements.iter_mut().for_each(replace),
        Expr::Map(map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    replace(&mut entry.key);
                    replace(&mut entry.value);
                }
            }
        }
        Expr::Comprehension(of) => {
            let parts =
                [&mut of.iter_range, &mut of.accu_init, &mut of.loop_cond, &mut of.loop_step, &mut of.result];
            parts.into_iter().for_each(replace);
        }
        Expr::Literal(_) | Expr::Ident(_) | Expr::Struct(_) | Expr::Unspecified => {}
    }
}
