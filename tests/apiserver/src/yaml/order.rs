//! The order of keys in a YAML mapping: in natural order, numbers by their value.
//!
//! Answers: which of two keys comes first? `item2` before `item10`, signs before letters.
//! 1. The order is not a total order (`1a`, `2`, `10` form a cycle), so the sort must allow that: it is a merge sort,
//!    whose result depends only on the keys.

/// Whether `a` comes before `b`.
fn precedes(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else { return a.len() < b.len() };
    match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
        (true, true) => return a[at] < b[at],
        (false, false) => {}
        (_, letter) => return letter,
    }
    let number = |digits: &[char], before: i64| {
        let digits = digits.iter().map_while(|c| c.to_digit(10));
        digits.fold((before, 0), |(value, count), digit| {
            (value.wrapping_mul(10).wrapping_add(i64::from(digit)), count + 1)
        })
    };
    let mut common = a[..at].iter().rev().take_while(|c| c.is_ascii_digit());
    let zero = a[at] == '0' || b[at] == '0';
    let before = i64::from(zero && common.any(|digit| *digit != '0'));
    let (left, right) = (number(&a[at..], before), number(&b[at..], before));
    if left == right { a[at] < b[at] } else { left < right }
}

/// Sorts entries by their keys.
pub(super) fn sorted<T>(entries: Vec<(&str, T)>) -> Vec<(&str, T)> {
    if entries.len() < 2 {
        return entries;
    }
    let mut left = entries;
    let right = left.split_off(left.len() / 2);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (sorted(left).into_iter().peekable(), sorted(right).into_iter().peekable());
    while let (Some((first, _)), Some((second, _))) = (left.peek(), right.peek()) {
        let next = if precedes(second, first) { right.next() } else { left.next() };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

#[test]
fn keys_are_sorted_as_go_sorts_them() {
    let keys = ["a10", "a2", "b", ".", "f:x", "a", "A", "a02", "-", "10", "9", "k:{}", "a.b", "ab"];
    let sorted: Vec<&str> =
        sorted(keys.map(|key| (key, ())).to_vec()).into_iter().map(|(key, ())| key).collect();
    assert_eq!(sorted, ["-", ".", "9", "10", "A", "a", "a.b", "a2", "a02", "a10", "ab", "b", "f:x", "k:{}"]);
}
