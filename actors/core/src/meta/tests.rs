//! Versions, lives and objects: what is accepted, what is refused, and how they compare.

use super::{Meta, Object, ObjectKey, ResourceVersion, SourceId, Uid};

fn version(text: &str) -> ResourceVersion {
    text.parse().expect("a live version")
}

#[test]
fn idx_20_versions_of_any_length_compare_numerically() {
    let ascending = [
        "9",
        "10",
        "18446744073709551615",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
    ];
    for pair in ascending.windows(2) {
        assert!(version(pair[0]) < version(pair[1]), "{pair:?}");
        assert!(version(pair[1]) > version(pair[0]), "{pair:?}");
    }
    assert_eq!(version("340282366920938463463374607431768211456").to_string().len(), 39);
}

// IDX-11: given a RV longer than 15 digits, when exported as a metric, then its last 15 digits are used.
#[test]
fn idx_11_a_version_as_a_metric_is_its_last_fifteen_digits() {
    for (text, figure) in [
        ("7", 7),
        ("999999999999999", 999_999_999_999_999),
        ("1000000000000000", 0),
        ("18446744073709551615", 744_073_709_551_615),
        ("340282366920938463463374607431768211456", 607_431_768_211_456),
        ("18446744073709551616000000000000042", 42),
    ] {
        assert_eq!(version(text).as_metric(), figure, "{text}");
    }
}

// IDX-20: given versions "9", "10", "340282366920938463463374607431768211456", when compared, then
// numerically; "", "007" and "1a" are refused.
// - a they compare numerically: `idx_20_versions_of_any_length_compare_numerically`
// - b "", "007" and "1a" are refused
#[test]
fn idx_20_texts_that_are_not_live_versions_are_refused() {
    for text in ["", "0", "007", "1a", "-1", " 1", "1.0", "00"] {
        assert!(text.parse::<ResourceVersion>().is_err(), "{text:?}");
    }
}

#[test]
fn client_a_version_of_more_than_64_digits_is_refused_and_not_repeated_in_full() {
    assert!("9".repeat(64).parse::<ResourceVersion>().is_ok());
    let error = "9".repeat(1_000_000).parse::<ResourceVersion>().expect_err("no version").to_string();
    assert!(error.len() < 200 && error.contains("at most 64 digits"), "{error}");
}

#[test]
fn a_new_uid_under_one_key_is_another_life() {
    let object = |uid: &str, number: u64| {
        let version = ResourceVersion::from_number(number).expect("not zero");
        let key = ObjectKey::namespaced("a", "b");
        Object::new(
            Meta { key, uid: Uid::new(uid), version, source: SourceId::default(), wire_bytes: 0, form: 0 },
            (),
        )
    };
    assert!(object("x", 1).is_same_as(&object("x", 1)));
    assert!(!object("x", 1).is_same_as(&object("x", 2)) && object("x", 1).is_same_life_as(&object("x", 2)));
    assert!(!object("x", 1).is_same_life_as(&object("y", 1)));
    assert!(object("", 1).is_same_life_as(&object("", 2)), "without uids the key is the identity");
}

/// Has one `way_in` for every type, and one more for each trait of the standard library that leads to a mutable body:
/// naming it is ambiguous, and so does not compile, for a type that has one of them.
trait WaysIn<A> {
    fn way_in() {}
}
struct Derefs;
struct References;
struct Borrows;
impl<T: ?Sized> WaysIn<()> for T {}
impl<T: ?Sized + std::ops::DerefMut> WaysIn<Derefs> for T {}
impl<T: ?Sized + AsMut<String>> WaysIn<References> for T {}
impl<T: ?Sized + std::borrow::BorrowMut<String>> WaysIn<Borrows> for T {}

// IDX-16: given an `Object` from a Notify, a lister or a snapshot, when code tries to change it, then it does
// not compile (a compile-fail test).
// - a neither an `Object`, a `Snapshot` nor a change has a standard way to a mutable body
// - b what an `Object` gives is shared with all its clones, and not mutable:
//   `idx_16_what_an_object_gives_is_shared_and_not_to_be_changed`
#[test]
fn idx_16_code_that_tries_to_change_an_object_does_not_compile() {
    <Object<String> as WaysIn<_>>::way_in();
    <crate::snapshot::Snapshot<String> as WaysIn<_>>::way_in();
    <crate::delta::Change<String> as WaysIn<_>>::way_in();
}

#[test]
fn idx_16_what_an_object_gives_is_shared_and_not_to_be_changed() {
    // A method that gives `&mut` could not be named as a function of `&Object`.
    let ways: [fn(&Object<String>) -> &String; 2] = [Object::body, std::ops::Deref::deref];
    let of_meta: fn(&Object<String>) -> &Meta = Object::cached_meta;
    let key = ObjectKey::namespaced("a", "b");
    let meta =
        Meta { key, uid: None, version: version("1"), source: SourceId::default(), wire_bytes: 0, form: 0 };
    let object = Object::new(meta, "body".to_owned());
    let copy = object.clone();
    assert!(ways.iter().all(|way| std::ptr::eq(way(&object), way(&copy))), "clones are one object");
    assert!(std::ptr::eq(of_meta(&object), of_meta(&copy)));
}
