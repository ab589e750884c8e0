//! What calls may cost at most.
//!
//! Answers: what can this call cost, and how large can its result be, for the largest arguments there may be? The factors
//! are those of a real server, since definitions are accepted or refused by them.
use cel::IdedExpr;
use cel::common::ast::{CallExpr, Expr, LiteralValue};

use super::cost::{LIST, PATTERN, TEXT, is_text_comparison};
use super::estimate::{Entries, Estimate};
use super::library::Overload;
use super::size::Range;
use super::types::{self, Type};

/// The cost of a call without its arguments, and the size of its result if it is known.
type Call = (Range, Option<Range>);

impl Estimate<'_> {
    pub(super) fn call(&mut self, tree: &IdedExpr, call: &CallExpr) -> Range {
        let costs: Vec<Range> = call.args.iter().map(|argument| self.cost(argument)).collect();
        let given = costs.iter().fold(Range::default(), |sum, cost| sum.plus(*cost));
        if let ("dyn", [argument]) = (call.func_name.as_str(), call.args.as_slice()) {
            self.copy(tree.id, argument);
            return given.plus(Range::exactly(1));
        }
        if call.func_name == cel::common::ast::operators::OPT_SELECT {
            return self.optional_select(tree.id, call, given);
        }
        let checked = self.checked;
        let overloads = checked.overloads(tree.id);
        if overloads.is_empty() {
            return Range::default();
        }
        let named = self.checked.names.contains_key(&tree.id);
        let target = call.target.as_deref().filter(|_| !named);
        let of_target = target.map_or_else(Range::default, |target| self.cost(target));
        let mut cost: Option<Range> = None;
        let mut size: Option<Range> = None;
        for &overload in overloads {
            let (own, result) = match overload.id.as_str() {
                "logical_and" | "logical_or" => (Range::new(costs[0].least, given.most), None),
                "conditional" => self.conditional(tree.id, call, &costs),
                _ => {
                    let (own, result) = self.function(tree, overload, (target, call));
                    (own.plus(given), result)
                }
            };
            cost = Some(cost.map_or(own, |cost| cost.union(own)));
            size = match (size, result) {
                (Some(size), Some(result)) => Some(size.union(result)),
                (size, result) => size.or(result),
            };
            size = self.indexed(tree.id, overload, call, size);
            size = size.or_else(|| self.size(tree));
        }
        self.sizes.extend(size.map(|size| (tree.id, size)));
        of_target.plus(cost.unwrap_or_default())
    }

    fn optional_select(&mut self, id: u64, call: &CallExpr, given: Range) -> Range {
        if let [operand, name] = call.args.as_slice()
            && let Expr::Literal(LiteralValue::String(name)) = &name.expr
        {
            self.is_below(id, operand, name.inner());
        }
        given.plus(Range::exactly(1))
    }

    fn indexed(
        &mut self,
        id: u64,
        overload: &Overload,
        call: &CallExpr,
        size: Option<Range>,
    ) -> Option<Range> {
        let below = match overload.id.as_str() {
            "index_list" => "@items",
            "index_map" => "@values",
            _ => return size,
        };
        let value = self.entries_of(&call.args[0]).map(|entries| entries.value);
        self.is_below(id, &call.args[0], below);
        value
    }

    fn conditional(&mut self, id: u64, call: &CallExpr, costs: &[Range]) -> Call {
        let [_, yes, no] = call.args.as_slice() else { return (Range::default(), None) };
        let size = self.size_or_unknown(yes).union(self.size_or_unknown(no));
        let entries = Entries::union(self.entries_of(yes), self.entries_of(no));
        self.entries.extend(entries.map(|entries| (id, entries)));
        (costs[0].plus(costs[1].union(costs[2])), Some(size))
    }

    fn text(&mut self, of: &IdedExpr) -> Range {
        self.size_or_unknown(of).scaled(TEXT)
    }

    fn function(
        &mut self,
        tree: &IdedExpr,
        overload: &Overload,
        call: (Option<&IdedExpr>, &CallExpr),
    ) -> Call {
        let known = match call {
            (Some(target), call) => self.member(target, overload, call),
            (None, call) => self.global(overload, call),
        };
        known.unwrap_or_else(|| self.standard(tree, overload, call))
    }

    /// Functions of Kubernetes' libraries that are called on a value.
    fn member(&mut self, target: &IdedExpr, overload: &Overload, call: &CallExpr) -> Option<Call> {
        let args = call.args.as_slice();
        let one = Range::exactly(1);
        Some(match (call.func_name.as_str(), args) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => {
                (self.traversal(target), None)
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", _) => {
                (self.text(target), Some(self.size_or_unknown(target)))
            }
            ("replace", [old, new, ..]) => {
                let sizes = [target, old, new].map(|of| self.size_or_unknown(of));
                (sizes[0].scaled(2.0 * TEXT), Some(replaced(sizes)))
            }
            ("split", _) => {
                let size = self.size_or_unknown(target);
                let most = args.get(1).and_then(literal).unwrap_or(size.most);
                (size.scaled(2.0 * TEXT), Some(Range::new(0, most)))
            }
            ("join", _) => {
                let size = self.joined(target, args.first());
                (size.scaled(TEXT), Some(size))
            }
            ("find" | "findAll", [pattern, ..]) => {
                let size = self.size_or_unknown(target);
                (self.matched(size, pattern), Some(Range::new(0, size.most)))
            }
            ("containsIP" | "containsCIDR", [other]) => (self.contained(overload, other), None),
            ("validate", [text]) => {
                let size = self.size_or_unknown(text);
                (size.scaled(TEXT).scaled(128.0 * PATTERN), None)
            }
            _ => {
                return self
                    .of_list(target, overload, call)
                    .or_else(|| nominal(&call.func_name).then_some((one, None)));
            }
        })
    }

    /// Functions that create or compare whole lists.
    fn of_list(&mut self, target: &IdedExpr, overload: &Overload, call: &CallExpr) -> Option<Call> {
        let size = self.size_or_unknown(target);
        let squared = |size: Range| size.times(size);
        Some(match overload.id.as_str() {
            "list_slice" => {
                let start = call.args.first().and_then(literal).unwrap_or(0);
                let end = call.args.get(1).and_then(literal).unwrap_or(size.most);
                allocated(Range::exactly(end.wrapping_sub(start)), 1.0)
            }
            "list_reverse" => allocated(size, 1.0),
            "list_flatten" => allocated(size, 1.0),
            #[expect(
                clippy::cast_precision_loss,
                reason = "costs are counted in floats, as by a real server"
            )]
            "list_flatten_int" => {
                allocated(size, call.args.first().and_then(literal).unwrap_or(u64::MAX) as f64)
            }
            "list_distinct" => allocated(squared(size), 2.0),
            id if id.starts_with("list_") && id.ends_with("_sort") => {
                allocated(squared(size), sort_factor(id))
            }
            id if id.ends_with("_sortByAssociatedKeys") => {
                let keys = self.size_or_unknown(call.args.first()?);
                allocated(squared(keys), sort_factor(id))
            }
            _ => return None,
        })
    }

    /// Functions of Kubernetes' libraries that are not called on a value.
    fn global(&mut self, overload: &Overload, call: &CallExpr) -> Option<Call> {
        let args = call.args.as_slice();
        let whole = |name: &str| overload.id == name;
        Some(match (call.func_name.as_str(), args) {
            ("url", [text]) => (self.text(text), Some(self.size_or_unknown(text))),
            (
                "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver",
                [text, ..],
            ) => (self.text(text), None),
            (_, [text]) if whole("ip_is_canonical") => (self.size_or_unknown(text).scaled(2.0 * TEXT), None),
            (_, [count]) if whole("lists_range") => {
                allocated(Range::exactly(literal(count).unwrap_or(u64::MAX)), 1.0)
            }
            (_, [a, b]) if overload.id.starts_with("list_sets_") => {
                let factor = if whole("list_sets_equivalent_list") { 2.0 } else { 1.0 };
                let sizes = self.size_or_unknown(a).times(self.size_or_unknown(b));
                (sizes.scaled(factor).plus(Range::exactly(1)), None)
            }
            ("_==_", [a, b]) => return self.special_equality(a, b),
            ("sign", _) => (Range::exactly(1), None),
            _ => return None,
        })
    }

    fn special_equality(&mut self, a: &IdedExpr, b: &IdedExpr) -> Option<Call> {
        let (Type::Library(name), Type::Library(other)) =
            (self.checked.type_of(a.id), self.checked.type_of(b.id))
        else {
            return None;
        };
        let cost = match *name {
            types::FORMAT => Range::new(1, 64).scaled(TEXT),
            types::URL => {
                let size = self.size(b);
                Range::new(1, size.map_or(1, |size| size.most)).scaled(TEXT)
            }
            _ => Range::exactly(1),
        };
        (name == other).then_some((cost, None))
    }

    /// A list whose items are each visited once; or a text.
    fn traversal(&mut self, target: &IdedExpr) -> Range {
        let size = self.size_or_unknown(target);
        let Type::List(of) = self.checked.type_of(target.id) else { return size.scaled(TEXT) };
        let mut each = Range::exactly(1);
        if matches!(**of, Type::Text | Type::Bytes) {
            each = each.plus(self.element(target).scaled(TEXT));
        }
        size.times(each)
    }

    fn element(&mut self, list: &IdedExpr) -> Range {
        let mut path = self.path(list);
        path.push("@items".to_owned());
        self.declared(&path).filter(|_| path.len() > 1).unwrap_or(Range::UNKNOWN)
    }

    fn joined(&mut self, target: &IdedExpr, between: Option<&IdedExpr>) -> Range {
        let count = self.size_or_unknown(target);
        let size = count.times(self.element(target));
        let Some(between) = between else { return size };
        let gaps = Range::new(count.least.saturating_sub(1), count.most.saturating_sub(1));
        size.plus(self.size_or_unknown(between).times(gaps))
    }

    fn matched(&mut self, text: Range, pattern: &IdedExpr) -> Range {
        let text = text.plus(Range::exactly(1)).scaled(TEXT);
        text.times(self.size_or_unknown(pattern).scaled(PATTERN))
    }

    fn contained(&mut self, overload: &Overload, other: &IdedExpr) -> Range {
        let octets = Range::new(4, 16);
        let mut cost = octets.plus(octets).scaled(TEXT);
        if overload.id.starts_with("cidr_contains_cidr") {
            cost = cost.plus(octets.scaled(TEXT)).plus(Range::exactly(1));
        }
        if overload.id.ends_with("_string") { cost.plus(self.text(other)) } else { cost }
    }

    /// The functions of the language itself.
    fn standard(
        &mut self,
        tree: &IdedExpr,
        overload: &Overload,
        (target, call): (Option<&IdedExpr>, &CallExpr),
    ) -> Call {
        let one = Range::exactly(1);
        match (overload.id.as_str(), target, call.args.as_slice()) {
            ("string_format", Some(target), _) => (self.text(target), None),
            ("string_to_bytes", _, [text]) => {
                let size = self.size_or_unknown(text);
                (size.scaled(TEXT), Some(Range::new(size.least, size.most.saturating_mul(4))))
            }
            ("bytes_to_string", _, [bytes]) => {
                let size = self.size_or_unknown(bytes);
                (size.scaled(TEXT), Some(Range::new(size.least / 4, size.most)))
            }
            ("strings_quote", _, [text]) => {
                let size = self.size_or_unknown(text);
                let most = size.most.saturating_mul(2).saturating_add(2);
                (size.scaled(TEXT), Some(Range::new(size.least + 2, most)))
            }
            ("starts_with_string" | "ends_with_string", _, [part]) => (self.text(part), None),
            ("in_list", _, [_, list]) => (self.size_or_unknown(list), None),
            ("matches_string", Some(target), [pattern]) => {
                let size = self.size_or_unknown(target);
                (self.matched(size, pattern), None)
            }
            ("contains_string", Some(target), [part]) => (self.text(target).times(self.text(part)), None),
            ("add_string" | "add_bytes" | "add_list", _, [a, b]) => {
                let size = self.size_or_unknown(a).plus(self.size_or_unknown(b));
                let entries = Entries::union(self.entries_of(a), self.entries_of(b));
                self.entries.extend(entries.map(|entries| (tree.id, entries)));
                (if overload.id == "add_list" { one } else { size.scaled(TEXT) }, Some(size))
            }
            (id, _, [a, b]) if matches!(id, "equals" | "not_equals") || is_text_comparison(id) => {
                let most = self.size_or_unknown(a).most.min(self.size_or_unknown(b).most);
                (Range::new(u64::from(most > 0), most).scaled(TEXT), None)
            }
            _ => (one, None),
        }
    }
}

fn nominal(function: &str) -> bool {
    matches!(
        function,
        "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "ip"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}

fn allocated(size: Range, factor: f64) -> Call {
    (size.scaled(factor).plus(Range::exactly(1 + LIST)), Some(size))
}

fn sort_factor(id: &str) -> f64 {
    if id.starts_with("list_string") || id.starts_with("list_bytes") { 2.0 + TEXT } else { 2.0 }
}

fn literal(of: &IdedExpr) -> Option<u64> {
    match &of.expr {
        Expr::Literal(LiteralValue::Int(value)) => u64::try_from(*value.inner()).ok(),
        _ => None,
    }
}

/// How long a text can be after replacing.
fn replaced([size, old, new]: [Range; 3]) -> Range {
    let (mut count, mut kept) = (Range::default(), Range::default());
    if old.least == 0 {
        count.most = size.most.saturating_add(1);
        kept.most = size.most;
    } else if new.most <= old.least {
        kept.most = size.most;
    } else {
        count.most = size.most.div_ceil(old.least);
    }
    if old.most == 0 {
        count.least = size.least.saturating_add(1);
        kept.least = size.least;
    } else if old.most <= new.least {
        kept.least = size.least;
    } else {
        count.least = size.least.div_ceil(old.most);
    }
    count.times(new).plus(kept)
}
