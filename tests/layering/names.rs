//! The house rule for names: one word for one thing.
//!
//! Answers "does a name that is `pub` or `pub(crate)` stand for one type or function of its crate alone?". A reader who meets it
//! in another file need not ask which one it is.

use std::collections::{BTreeMap, BTreeSet};

use super::{code, sources};

/// The crates, and what in each may have one name twice: what is reached by the path of its module only.
const CRATES: [(&str, &[&str]); 6] = [
    ("actors/core/src", &[]),
    ("actors/src", &[]),
    ("actors/operator/src", &[]),
    // What a stream of a pod brings, and one line of a watch.
    ("src/client/src", &["Event"]),
    // That of reading the configuration, and that of the service.
    ("src/informerd/src", &["Error"]),
    ("src", &[]),
];

/// The name of the type or function that this line declares for more than its module.
fn declared(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) "))?;
    let mut words =
        rest.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| !word.is_empty());
    let kind = words.find(|word| !["const", "async", "unsafe"].contains(word))?;
    let declares = ["struct", "enum", "trait", "type", "union", "fn"].contains(&kind);
    words.next().filter(|_| declares)
}

#[test]
fn a_name_stands_for_one_type_or_function_of_its_crate() {
    for (folder, allowed) in CRATES {
        let other = |file: &str| {
            CRATES.iter().any(|(one, _)| *one != folder && one.starts_with(folder) && file.starts_with(one))
        };
        let mut places = BTreeMap::<_, BTreeSet<_>>::new();
        let found: Vec<_> = sources(folder)
            .into_iter()
            .filter(|(file, _)| !other(file) && !file.contains("/tests"))
            .collect();
        for (file, text) in &found {
            for name in code(text).filter_map(declared) {
                places.entry(name).or_default().insert(file);
            }
        }
        assert!(places.len() > 20, "{folder}: only {} names", places.len());
        let twice: Vec<_> =
            places.iter().filter(|(name, files)| files.len() > 1 && !allowed.contains(name)).collect();
        assert!(twice.is_empty(), "{folder}: {twice:#?}");
        for name in allowed {
            assert!(
                places.get(name).is_some_and(|files| files.len() > 1),
                "{folder}: {name} is there once, take it off the list"
            );
        }
    }
}
