//! How functions are added to the language, and how they read their arguments.
//!
//! Answers: how is a function or a type of values made? Which there are, is in `library.rs`, `net.rs` and `quantity.rs`.
//! 1. A function is chosen by the types of its arguments.
use std::collections::BTreeSet;

use cel::common::functions::Function;
use cel::common::types::{CelBool, CelInt, CelList, CelString, Type};
use cel::common::value::{CowVal, FromVal, Val};
use cel::{Env, ExecutionError};

/// The result of a function.
pub(super) type Given<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// A language that is being made.
pub(super) struct Library {
    pub(super) env: Env,
    pub(super) names: BTreeSet<String>,
}

impl Library {
    /// Adds a function of these arguments.
    pub(super) fn global(&mut self, name: &str, args: &[Type], run: Function) {
        let added = self.env.add_overload(name, &id(name, args), types(args), run);
        self.added(name, added.is_ok());
    }

    /// Adds a function that is called on the first of its arguments.
    pub(super) fn member(&mut self, name: &str, args: &[Type], run: Function) {
        let (target, rest) = args.split_first().expect("it is called on something");
        let added = self.env.add_member_overload(name, &id(name, args), target.to_owned(), types(rest), run);
        self.added(name, added.is_ok());
    }

    fn added(&mut self, name: &str, new: bool) {
        debug_assert!(new, "{name} is added once for these arguments");
        self.names.insert(name.to_owned());
    }
}

fn types(args: &[Type]) -> Vec<Type> {
    args.iter().map(Type::to_owned).collect()
}

fn id(name: &str, args: &[Type]) -> String {
    format!("{name} of {}", args.iter().map(Type::name).collect::<Vec<_>>().join(", "))
}

/// Makes a type of values, by the name that expressions see.
macro_rules! value {
    ($name:ident($inner:ty), $told:literal) => {
        #[derive(Debug, Clone, PartialEq)]
        pub(super) struct $name(pub(super) $inner);

        impl cel::common::value::Val for $name {
            fn get_type(&self) -> &cel::common::types::Type {
                Self::cel_type()
            }

            fn cel_type() -> &'static cel::common::types::Type {
                static OWN: cel::common::types::Type = cel::common::types::Type::new_unspecified_type($told);
                &OWN
            }

            fn equals(&self, other: &dyn cel::common::value::Val) -> bool {
                other.downcast_ref::<Self>() == Some(self)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn cel::common::value::Val + 'v>
            where
                Self: 'v,
            {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
        }

        impl cel::common::value::StaticVal for $name {}
    };
}
pub(super) use value;

/// An argument of this type.
pub(super) fn of<'b, 'v, T: FromVal<'b, 'v>>(
    given: &'b [CowVal<'_, 'v>],
    at: usize,
) -> Result<&'b T, ExecutionError> {
    let found = given.get(at).and_then(|given| T::from_val(given.as_ref()));
    found.ok_or_else(|| ExecutionError::no_such_overload("", Vec::new()))
}

pub(super) fn text<'b>(given: &'b [CowVal<'_, '_>], at: usize) -> Result<&'b str, ExecutionError> {
    of::<CelString<'_>>(given, at).map(CelString::inner)
}

pub(super) fn int(given: &[CowVal<'_, '_>], at: usize) -> Result<i64, ExecutionError> {
    of::<CelInt>(given, at).map(|value| *value.inner())
}

pub(super) fn give<'b, 'v>(value: impl Val + 'static) -> Given<'b, 'v> {
    Ok(CowVal::owned(value))
}

pub(super) fn truth<'b, 'v>(value: bool) -> Given<'b, 'v> {
    give(CelBool::from(value))
}

pub(super) fn number<'b, 'v>(value: i64) -> Given<'b, 'v> {
    give(CelInt::from(value))
}

pub(super) fn word<'b, 'v>(value: &str) -> Given<'b, 'v> {
    give(CelString::from(value.to_owned()))
}

pub(super) fn words(texts: impl IntoIterator<Item = String>) -> CelList<'static> {
    CelList::from(
        texts.into_iter().map(|text| Box::new(CelString::from(text)) as Box<dyn Val>).collect::<Vec<_>>(),
    )
}

/// A function's own error.
pub(super) fn failed(words: impl ToString) -> ExecutionError {
    ExecutionError::function_error("", words)
}
