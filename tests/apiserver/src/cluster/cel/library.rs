//! The language with Kubernetes' functions.
//!
//! Answers: which functions may an expression call? The crate brings those of the language, of texts and of lists; here are
//! patterns, sets, sums and named formats. `net.rs` and `quantity.rs` add their own.
//! 1. What a real server knows and this one does not is in `ABSENT`: a definition that uses it is refused.
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use cel::common::functions::Function;
use cel::common::types::{CelOptional, DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError, extensions};
use regex::Regex;

use super::functions::{Given, Library, failed, give, int, number, of, text, truth, value, word, words};
use super::search::holds;
use super::{net, quantity, search};
use crate::cluster::names::{self, NameRule};
use crate::cluster::schema::{format as formats, pattern as syntax};

/// What the crate's own libraries have.
const OWN: &str = "bool bytes double duration dyn int string timestamp type uint size contains endsWith matches startsWith \
    getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds \
    hasValue or orValue value optional.none optional.of optional.ofNonZeroValue charAt format indexOf join lastIndexOf \
    lowerAscii replace split strings.quote substring trim upperAscii distinct flatten lists.range reverse slice sort";
/// What a real server has beside: loops of two variables, versions, and lists of optional values.
const ABSENT: &str = "all exists existsOne exists_one transformList transformMap transformMapEntry isSemver semver \
    optional.unwrap unwrapOpt";

/// The names of all functions, and the language.
static ALL: LazyLock<(BTreeSet<String>, Arc<Env>)> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    for extension in [extensions::strings, extensions::lists] {
        let added = env.add_extension(extension);
        debug_assert!(added.is_ok(), "the crate's libraries fit together");
    }
    let mut library = Library { env, names: OWN.split_whitespace().map(str::to_owned).collect() };
    patterns(&mut library);
    lists(&mut library);
    named_formats(&mut library);
    net::add(&mut library);
    quantity::add(&mut library);
    search::add(&mut library);
    (library.names, Arc::new(library.env))
});

/// The language.
pub(super) static LANGUAGE: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::clone(&ALL.1));

pub(super) fn is_function(name: &str) -> bool {
    ALL.0.contains(name)
}

pub(super) fn is_absent(name: &str) -> bool {
    ABSENT.split_whitespace().any(|absent| absent == name)
}

/// Whether names of functions begin so.
pub(super) fn is_namespace(prefix: &str) -> bool {
    let begins = |name: &str| name.split_once('.').is_some_and(|(first, _)| first == prefix);
    ALL.0.iter().any(|name| begins(name)) || ABSENT.split_whitespace().any(begins)
}

value!(Format(&'static Named), "kubernetes.NamedFormat");

fn pattern(text: &str) -> Result<Regex, ExecutionError> {
    syntax::read(text).map_err(|why| failed(format!("Illegal regex: {why}")))
}

fn patterns(library: &mut Library) {
    library.member("find", &[STRING_TYPE, STRING_TYPE], |given| {
        word(pattern(text(&given, 1)?)?.find(text(&given, 0)?).map_or("", |found| found.as_str()))
    });
    library.member("findAll", &[STRING_TYPE, STRING_TYPE], |given| find_all(&given, usize::MAX));
    library.member("findAll", &[STRING_TYPE, STRING_TYPE, INT_TYPE], |given| {
        find_all(&given, usize::try_from(int(&given, 2)?).unwrap_or(usize::MAX))
    });
}

fn find_all<'b, 'v>(given: &[CowVal<'_, '_>], most: usize) -> Given<'b, 'v> {
    let pattern = pattern(text(given, 1)?)?;
    give(words(pattern.find_iter(text(given, 0)?).take(most).map(|found| found.as_str().to_owned())))
}

/// The items of a list.
fn items<'b, 'v>(given: &'b [CowVal<'_, 'v>], at: usize) -> Vec<&'b (dyn Val + 'v)> {
    let mut items = Vec::new();
    let mut rest = given.get(at).and_then(|list| list.as_iterable()).map(|list| list.iter());
    while let Some(item) = rest.as_mut().and_then(|rest| rest.next()) {
        items.push(item);
    }
    items
}

fn order(a: &dyn Val, b: &dyn Val) -> Result<Ordering, ExecutionError> {
    a.as_comparer().ok_or_else(|| failed("no such overload"))?.compare(b)
}

fn position<'b, 'v>(at: Option<usize>) -> Given<'b, 'v> {
    number(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn lists(library: &mut Library) {
    library.member("isSorted", &[LIST_TYPE], |given| {
        let sorted = items(&given, 0)
            .windows(2)
            .map(|pair| Ok(order(pair[0], pair[1])?.is_le()))
            .collect::<Result<Vec<_>, _>>();
        truth(sorted?.into_iter().all(|sorted| sorted))
    });
    library.member("min", &[LIST_TYPE], |given| extreme(&given, "min", Ordering::Less));
    library.member("max", &[LIST_TYPE], |given| extreme(&given, "max", Ordering::Greater));
    library.member("sum", &[LIST_TYPE], sum);
    library.member("first", &[LIST_TYPE], |given| optional(items(&given, 0).first().copied()));
    library.member("last", &[LIST_TYPE], |given| optional(items(&given, 0).last().copied()));
    library.member("indexOf", &[LIST_TYPE, DYN_TYPE], |given| {
        position(items(&given, 0).iter().position(|item| item.equals(given[1].as_ref())))
    });
    library.member("lastIndexOf", &[LIST_TYPE, DYN_TYPE], |given| {
        position(items(&given, 0).iter().rposition(|item| item.equals(given[1].as_ref())))
    });
    let two = [LIST_TYPE, LIST_TYPE];
    library.global("sets.contains", &two, |given| truth(holds_all(&given, 0, 1)));
    library
        .global("sets.equivalent", &two, |given| truth(holds_all(&given, 0, 1) && holds_all(&given, 1, 0)));
    library.global("sets.intersects", &two, |given| {
        truth(items(&given, 0).iter().any(|item| holds(&*given[1], *item)))
    });
}

/// Whether a list has all items of another.
fn holds_all(given: &[CowVal<'_, '_>], list: usize, part: usize) -> bool {
    items(given, part).iter().all(|item| holds(&*given[list], *item))
}

fn optional<'b, 'v>(value: Option<&(dyn Val + 'v)>) -> Given<'b, 'v> {
    Ok(CowVal::owned(CelOptional::from(value.map(Val::clone_as_boxed))))
}

fn extreme<'b, 'v>(given: &[CowVal<'_, 'v>], name: &str, wanted: Ordering) -> Given<'b, 'v> {
    let items = items(given, 0);
    let (first, rest) = items.split_first().ok_or_else(|| failed(format!("{name} called on empty list")))?;
    let best = rest.iter().try_fold(*first, |best, item| {
        Ok::<_, ExecutionError>(if order(*item, best)? == wanted { *item } else { best })
    });
    Ok(best?.clone_as_boxed().into())
}

fn sum<'b, 'v>(given: Vec<CowVal<'b, 'v>>) -> Given<'b, 'v> {
    let items = items(&given, 0);
    let Some((first, rest)) = items.split_first() else { return number(0) };
    let sum = rest.iter().try_fold(first.clone_as_boxed(), |sum, item| {
        let added = sum.as_adder().ok_or_else(|| failed("no such overload"))?.add(*item)?;
        Ok::<_, ExecutionError>(added.into_owned())
    });
    Ok(sum?.into())
}

/// A format by its name.
#[derive(Debug)]
pub(super) struct Named {
    name: &'static str,
    faults: fn(&str) -> Vec<String>,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

static FORMATS: [Named; 13] = [
    Named { name: "dns1123Label", faults: label },
    Named { name: "dns1123Subdomain", faults: |text| names::faults(text, NameRule::Subdomain) },
    Named { name: "dns1035Label", faults: names::old_label_faults },
    Named { name: "qualifiedName", faults: names::label_key_faults },
    Named { name: "dns1123LabelPrefix", faults: |text| label(&ended(text)) },
    Named { name: "dns1123SubdomainPrefix", faults: |text| names::faults(&ended(text), NameRule::Subdomain) },
    Named { name: "dns1035LabelPrefix", faults: |text| names::old_label_faults(&ended(text)) },
    Named { name: "labelValue", faults: names::label_value_faults },
    Named { name: "uri", faults: |text| super::url::Url::read(text).err().into_iter().collect() },
    Named { name: "uuid", faults: |text| refused("uuid", text, "does not match the UUID format") },
    Named { name: "byte", faults: |text| refused("byte", text, "invalid base64") },
    Named { name: "date", faults: |text| refused("date", text, "invalid date") },
    Named { name: "datetime", faults: |text| refused("date-time", text, "invalid datetime") },
];

fn label(text: &str) -> Vec<String> {
    // A dot is an invalid letter here; it does not separate parts of a name.
    names::faults(&text.replace('.', "!"), NameRule::Label)
}

/// A name that will be completed may end in a dash.
fn ended(text: &str) -> String {
    text.strip_suffix('-').map_or_else(|| text.to_owned(), |text| format!("{text}a"))
}

fn refused(format: &str, text: &str, words: &str) -> Vec<String> {
    if formats::holds(format, text) { Vec::new() } else { vec![words.to_owned()] }
}

fn format_named<'b, 'v>(name: &str) -> Given<'b, 'v> {
    let named = FORMATS.iter().find(|format| format.name == name);
    give(CelOptional::from(named.map(|format| Box::new(Format(format)) as Box<dyn Val>)))
}

fn named_formats(library: &mut Library) {
    macro_rules! constants {
        ($($at:literal)*) => {
            [$({
                let run: Function = |_| give(Format(&FORMATS[$at]));
                run
            }),*]
        };
    }
    for (format, run) in FORMATS.iter().zip(constants!(0 1 2 3 4 5 6 7 8 9 10 11 12)) {
        library.global(&format!("format.{}", format.name), &[], run);
    }
    library.global("format.named", &[STRING_TYPE], |given| format_named(text(&given, 0)?));
    library.member("validate", &[Format::cel_type().to_owned(), STRING_TYPE], |given| {
        let faults = (of::<Format>(&given, 0)?.0.faults)(text(&given, 1)?);
        let faults = (!faults.is_empty()).then(|| Box::new(words(faults)) as Box<dyn Val>);
        give(CelOptional::from(faults))
    });
}
