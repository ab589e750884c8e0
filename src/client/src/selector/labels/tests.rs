//! Tests of label selectors: their normal form, what is refused, and what they match.

use std::collections::BTreeMap;

use super::LabelSelector;

fn normal_form(text: &str) -> Result<String, String> {
    let selector = text.parse::<LabelSelector>().map_err(|error| error.to_string())?;
    let normal = selector.to_string();
    assert_eq!(normal.parse::<LabelSelector>().as_ref(), Ok(&selector), "the normal form means the same");
    Ok(normal)
}

#[test]
fn equal_label_selectors_have_one_normal_form() {
    for (text, normal) in [
        ("", ""),
        ("app", "app"),
        ("!app", "!app"),
        ("! app", "!app"),
        (" b == 2 , a ", "a,b=2"),
        ("a=", "a="),
        ("a=,b", "a=,b"),
        ("in in (in, notin)", "in in (in,notin)"),
        ("env in (b,a,b)", "env in (a,b)"),
        ("env notin (a,)", "env notin (,a)"),
        ("env in ()", "env in ()"),
        ("env in ( , )", "env in ()"),
        ("tier!=web", "tier!=web"),
        ("example.org/n>5, x<3", "example.org/n>5,x<3"),
        ("a=in", "a=in"),
    ] {
        assert_eq!(normal_form(text).as_deref(), Ok(normal), "{text:?}");
    }
}

#[test]
fn a_label_selector_that_is_malformed_is_refused_with_what_is_wrong() {
    for (text, why) in [
        ("app shop", "\"shop\" stands behind \"app\" where an operator should be"),
        ("app=shop web", "\"web\" stands where a comma or the end should be"),
        ("app=shop,", "nothing stands behind the last comma"),
        (",app", "a comma stands where a label's key should be"),
        ("=shop", "\"=\" stands where a label's key should be"),
        ("app in shop", "\"(\" is missing behind \"app in\""),
        ("app in (a b)", "\"b\" stands among the values of \"app\""),
        ("app in (a,,)", "\")\" stands among the values of \"app\""),
        ("app in (,,)", "\")\" stands among the values of \"app\""),
        ("app in (a", "the end stands among the values of \"app\""),
        ("!app=1", "\"=\" stands where a comma or the end should be"),
        ("n>five", "\"five\" stands where the integer of \"n\" should be"),
        ("app=-x", "\"-x\" is not the value of a label"),
        ("Up.Org/x=1", "\"Up.Org/x\" is not the key of a label"),
        ("a/b/c", "\"a/b/c\" is not the key of a label"),
        ("app=sh*p", "\"sh*p\" is not the value of a label"),
    ] {
        assert_eq!(normal_form(text), Err(why.to_owned()), "{text:?}");
    }
    assert!(normal_form(&"a".repeat(64)).is_err() && normal_form(&"a".repeat(63)).is_ok());
}

/// As apimachinery's `TestSelectorMatches`.
#[test]
fn a_selector_matches_the_labels_that_a_server_selects_by_it() {
    let labels: BTreeMap<String, String> = [("x", "y"), ("z", "w"), ("n", "5"), ("empty", "")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    for (selector, matches) in [
        ("", true),
        ("x=y", true),
        ("x=y,z=w", true),
        ("x=z", false),
        ("x!=y", false),
        ("x!=z", true),
        ("absent!=a", true),
        ("absent=a", false),
        ("x in (a,y)", true),
        ("x in (a,b)", false),
        ("absent in (a,b)", false),
        ("x notin (a,y)", false),
        ("x notin (a,b)", true),
        ("absent notin (a)", true),
        ("x", true),
        ("absent", false),
        ("!x", false),
        ("!absent", true),
        ("empty=", true),
        ("empty in ()", true),
        ("x=", false),
        ("n>4", true),
        ("n>5", false),
        ("n<6", true),
        ("n<5", false),
        ("x>1", false),
        ("absent<1", false),
    ] {
        let parsed: LabelSelector = selector.parse().expect("a selector");
        assert_eq!(parsed.matches(&labels), matches, "{selector:?}");
    }
}

#[test]
fn a_built_selector_is_the_parsed_one_and_is_checked_like_it() {
    let built = LabelSelector::everything()
        .equals("a", "1")
        .and_then(|selector| selector.differs("b", "2"))
        .and_then(|selector| selector.is_in("c", ["4", "3"]))
        .and_then(|selector| selector.is_not_in("d", ["5"]))
        .and_then(|selector| selector.has("e"))
        .and_then(|selector| selector.lacks("f"));
    assert_eq!(built, "!f,a=1,b!=2,c in (3,4),d notin (5),e".parse());
    let refused = |selector: Result<LabelSelector, super::SelectorError>| {
        selector.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let everything = LabelSelector::everything;
    assert_eq!(refused(everything().equals("a", "-")), "\"-\" is not the value of a label");
    assert_eq!(refused(everything().has("a/b/c")), "\"a/b/c\" is not the key of a label");
    assert_eq!(refused(everything().is_in("a", [])), "no value is named for \"a\"");
}
