//! Cuts fields out of an object's JSON, and reads the values at a path. Other values are passed by their brackets.
//!
//! 1. [`Cut::Done`]: if `out` is JSON, it is the object without the fields, as a parser would see it. What is kept is not
//!    checked.
//! 2. What is cut is parsed first, so that no other bytes are cut with it. On any doubt (not JSON, or deeper lists than a parser
//!    takes) the result is [`Cut::Unsure`]. [`LeftOut::Passed`] does without that.
//! 3. A repeated field is cut each time.

use serde::de::IgnoredAny;

use super::Cursor;
use crate::wire::{FieldTree, PathStep, Step};

/// serde_json's limit.
const MAX_DEPTH: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Done,
    /// The buffer is unchanged: a parser refuses the bytes.
    Unsure,
}

/// What replaces a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeftOut {
    Gone,
    /// As [`Self::Gone`], but only the brackets of what is cut are checked.
    Passed,
    /// Spaces and line breaks: the rest keeps its line and column.
    Blank,
}

pub(crate) fn cut(json: &[u8], fields: &FieldTree, left_out: LeftOut, out: &mut Vec<u8>) -> Cut {
    let length = out.len();
    let mut cutter = Cutter { cursor: Cursor::new(json), json, copied: 0, left_out, out };
    let walked = cutter.value(fields, 0).filter(|()| cutter.cursor.peek().is_none());
    if walked.is_none() {
        out.truncate(length);
        return Cut::Unsure;
    }
    cutter.keep_until(json.len());
    Cut::Done
}

struct Cutter<'a, 'o> {
    json: &'a [u8],
    cursor: Cursor<'a>,
    /// Earlier bytes are in `out` or left out.
    copied: usize,
    left_out: LeftOut,
    out: &'o mut Vec<u8>,
}

impl Cutter<'_, '_> {
    fn at(&self) -> usize {
        self.json.len() - self.cursor.rest().len()
    }

    fn keep_until(&mut self, end: usize) {
        self.out.extend_from_slice(&self.json[self.copied..end]);
        self.copied = end;
    }

    /// `None` on any doubt.
    fn value(&mut self, fields: &FieldTree, depth: usize) -> Option<()> {
        (depth <= MAX_DEPTH).then_some(())?;
        match self.cursor.peek()? {
            b'{' => self.object(fields, depth),
            b'[' => self.list(fields, depth),
            _ => self.parsed_value(),
        }
    }

    fn list(&mut self, fields: &FieldTree, depth: usize) -> Option<()> {
        self.cursor.eat(b'[')?;
        if self.cursor.eat(b']').is_some() {
            return Some(());
        }
        loop {
            self.value(fields, depth + 1)?;
            if self.cursor.eat(b',').is_none() {
                return self.cursor.eat(b']');
            }
        }
    }

    fn object(&mut self, fields: &FieldTree, depth: usize) -> Option<()> {
        self.cursor.eat(b'{')?;
        if self.cursor.eat(b'}').is_some() {
            return Some(());
        }
        let mut has_kept = false;
        loop {
            let from = self.at();
            let key = self.cursor.key()?;
            let step = fields.step(Cursor::unescape(key)?.as_bytes());
            match step {
                Step::Cut => {
                    match self.left_out {
                        LeftOut::Passed => drop(self.cursor.value()?),
                        LeftOut::Gone | LeftOut::Blank => self.parsed_value()?,
                    }
                    self.leave_out(from, has_kept)?;
                }
                Step::Descend(below) => self.value(below, depth + 1)?,
                Step::Keep => drop(self.cursor.value()?),
            }
            has_kept |= !matches!(step, Step::Cut);
            if self.cursor.eat(b',').is_none() {
                return self.cursor.eat(b'}');
            }
        }
    }

    fn leave_out(&mut self, from: usize, has_kept: bool) -> Option<()> {
        let follows = self.cursor.peek()? == b',';
        self.keep_until(if has_kept { from - 1 } else { from });
        let end = self.at() + usize::from(follows && !has_kept);
        if self.left_out == LeftOut::Blank {
            let field = self.json[self.copied..end].iter();
            self.out.extend(field.map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
        }
        self.copied = end;
        Some(())
    }

    /// Passes a value that a parser accepts.
    fn parsed_value(&mut self) -> Option<()> {
        let mut values = serde_json::Deserializer::from_slice(self.cursor.rest()).into_iter::<IgnoredAny>();
        values.next()?.ok()?;
        self.cursor.advance(values.byte_offset());
        Some(())
    }
}

// For JSON without repeated keys, `scan` finds what a parser finds. In other bytes it finds something, and never panics.

pub(crate) fn scan(json: &[u8], path: &[PathStep], values: &mut Vec<String>) {
    // The values before a fault are kept.
    let _ = walk(&mut Cursor::new(json), path, values);
}

fn walk(cursor: &mut Cursor<'_>, path: &[PathStep], values: &mut Vec<String>) -> Option<()> {
    match (path.split_first(), cursor.peek()?) {
        (None, _) => {
            values.extend(scalar(cursor.value()?));
            Some(())
        }
        (Some((PathStep::Field(name), rest)), b'{') => cursor.members(|key, cursor| {
            match is_named(key, name) {
                true => walk(cursor, rest, values)?,
                false => drop(cursor.value()?),
            }
            Some(true)
        }),
        (Some((PathStep::Elements, rest)), b'[') => {
            cursor.eat(b'[')?;
            while cursor.peek()? != b']' {
                walk(cursor, rest, values)?;
                if cursor.eat(b',').is_none() {
                    break;
                }
            }
            cursor.eat(b']')
        }
        (Some(_), _) => cursor.value().map(drop),
    }
}

fn is_named(key: &[u8], name: &str) -> bool {
    key == name.as_bytes() || key.contains(&b'\\') && Cursor::unescape(key).is_some_and(|key| key == name)
}

fn scalar(json: &[u8]) -> Option<String> {
    match json.first()? {
        b'"' => serde_json::from_slice(json).ok(),
        b'{' | b'[' | b'n' => None,
        b't' | b'f' => serde_json::from_slice::<bool>(json).ok().map(|value| value.to_string()),
        _ => serde_json::from_slice::<serde_json::Number>(json).ok().map(|number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn tree(paths: &[&[&str]]) -> FieldTree {
        let mut tree = FieldTree::default();
        paths.iter().for_each(|path| tree.cut(path.iter().map(|step| (*step).into())));
        tree
    }

    fn cut_text(json: &str, paths: &[&[&str]]) -> Option<String> {
        let mut out = b"before".to_vec();
        let done = cut(json.as_bytes(), &tree(paths), LeftOut::Gone, &mut out) == Cut::Done;
        let rest = String::from_utf8(out).unwrap().strip_prefix("before").unwrap().to_owned();
        assert!(done || rest.is_empty());
        done.then_some(rest)
    }

    fn removed(value: Value, path: &[&str]) -> Value {
        match (value, path) {
            (Value::Object(members), [first, rest @ ..]) => {
                let kept = members.into_iter().filter(|(key, _)| !rest.is_empty() || key != first);
                let below =
                    |(key, value)| if key == *first { (key, removed(value, rest)) } else { (key, value) };
                Value::Object(kept.map(below).collect())
            }
            (Value::Array(items), path) => items.into_iter().map(|item| removed(item, path)).collect(),
            (value, _) => value,
        }
    }

    #[test]
    fn a_member_is_left_out_with_one_comma_wherever_it_stands() {
        for (json, rest) in [
            (r#"{"x":1}"#, "{}"),
            (r#"{"x":1,"a":2}"#, r#"{"a":2}"#),
            (r#"{"a":2,"x":{"y":[1]}}"#, r#"{"a":2}"#),
            (r#"{"a":2,"x":1,"b":3}"#, r#"{"a":2,"b":3}"#),
            (r#"{"x":1,"x":2,"a":3,"x":4,"x":5,"b":6}"#, r#"{"a":3,"b":6}"#),
            (r#"{ "x" : 1 , "a" : 2 , "x" : 3 } "#, r#"{  "a" : 2 } "#),
            (r#"[{"x":1},[{"x":2,"a":3}],4]"#, r#"[{},[{"a":3}],4]"#),
            (r#"{"\u0078":1,"\u0061":2}"#, r#"{"\u0061":2}"#),
        ] {
            assert_eq!(cut_text(json, &[&["x"]]).as_deref(), Some(rest), "{json}");
        }
        let nested = r#"{"a":{"x":1,"y":2},"x":3}"#;
        assert_eq!(cut_text(nested, &[&["a", "x"]]).as_deref(), Some(r#"{"a":{"y":2},"x":3}"#));
    }

    #[test]
    fn what_is_left_out_is_json_and_nothing_else() {
        for json in [
            r#"{"x":[tru]}"#,
            r#"{"x":[1}]}"#,
            r#"{"x":1 "a":2}"#,
            r#"{"x":1,}"#,
            r#"{"a":1,"x":{"y":1}{"name":"b"},"c":2}"#,
            r#"{"x":1"#,
            r#"{"x":1} {}"#,
            r#"{"\ud800":1}"#,
            "",
        ] {
            assert_eq!(cut_text(json, &[&["x"]]), None, "{json}");
        }
        assert_eq!(cut_text(&"[".repeat(100_000), &[&["x"]]), None, "too deep");
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i8>().prop_map(Value::from),
            r#"[x,"\]{]{0,3}"#.prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[abx]", inner, 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_cut_object_is_the_object_without_the_fields_and_never_hides_that_it_is_not_json(
            value in json_value(),
            path in prop::sample::select(vec![vec!["x"], vec!["a", "x"], vec!["a", "b", "x"], vec!["b"]]),
            is_pretty in any::<bool>(),
            broken in any::<prop::sample::Index>(),
            byte in prop::sample::select(b"{}[]\",:\\x1 ".to_vec()),
        ) {
            let mut json = match is_pretty {
                true => serde_json::to_string_pretty(&value).unwrap(),
                false => value.to_string(),
            }.into_bytes();
            let fields = tree(&[&path]);
            let mut out = Vec::new();
            prop_assert_eq!(cut(&json, &fields, LeftOut::Blank, &mut out), Cut::Done);
            prop_assert_eq!(out.len(), json.len());
            prop_assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), removed(value.clone(), &path));
            out.clear();
            prop_assert_eq!(cut(&json, &fields, LeftOut::Gone, &mut out), Cut::Done);
            prop_assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), removed(value, &path));
            let gone = out.clone();
            out.clear();
            prop_assert_eq!(cut(&json, &fields, LeftOut::Passed, &mut out), Cut::Done);
            prop_assert_eq!(&out, &gone);

            let at = broken.index(json.len());
            json[at] = byte;
            out.clear();
            if cut(&json, &fields, LeftOut::Gone, &mut out) == Cut::Done && super::super::is_document(&out) {
                let parsed = serde_json::from_slice::<Value>(&json);
                prop_assert!(parsed.is_ok(), "{}", String::from_utf8_lossy(&json));
                prop_assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), removed(parsed.unwrap(), &path));
            }
        }
    }
}
