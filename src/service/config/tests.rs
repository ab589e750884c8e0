//! What the configuration promises: the file shows the defaults, and an error says what would be right.
//!
//! Answers "does a person get from each mistake to the right value?" by the texts themselves.

use super::reader::Document;
use super::{Config, Format, Kept, rules};
use crate::core::delta_fifo::Discipline;
use crate::core::listener::{Policy, WhenFull};

const FILE: &str = include_str!("../../../config/informerd.toml");

fn refusal(text: &str) -> String {
    Config::parse("c.toml", text).unwrap_err().to_string()
}

#[test]
fn the_file_that_comes_with_informerd_shows_every_key_with_its_default() {
    let document = Document::new("informerd.toml", FILE);
    let (config, absent) = rules::read(&document).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(absent, Vec::<String>::new(), "keys that the file does not show");
}

#[test]
fn a_misspelt_key_is_refused_with_the_one_that_was_meant() {
    let error = refusal("[output]\n\nstatus_secnds = 5\n");
    assert!(
        error.starts_with("c.toml, line 3: unknown key output.status_secnds (did you mean status_seconds?)")
    );
    assert!(error.contains("allowed here: format, colour, status_seconds"), "{error}");
    assert!(refusal("[ouput]\n").contains("line 1: unknown key ouput (did you mean output?)"));
}

#[test]
fn a_value_that_is_not_allowed_is_refused_with_line_allowed_values_and_default() {
    assert_eq!(
        refusal("[probes]\nport = 70000"),
        "c.toml, line 2: probes.port is 70000; allowed: a port from 0 to 65535, 0 for a free one (default: 0)"
    );
    assert!(refusal("[run]\ndrain_seconds = \"10s\"").contains("allowed: whole seconds from 1 to 600"));
    assert!(refusal("output = 3").contains("line 1: output is 3; allowed: a table"));
    assert!(refusal("[informer]\nkind = \"Pod\"").contains("tables that begin with [[informer]]"));
}

#[test]
fn what_is_no_toml_is_refused_with_its_line() {
    assert!(refusal("[output]\nformat = \n").starts_with("c.toml, line 2: "));
}

#[test]
fn a_kind_that_is_not_built_in_needs_its_plural_and_version() {
    let error = refusal("[[informer]]\nkind = \"Pood\"");
    assert!(error.contains("line 2: informer.kind") && error.contains("did you mean Pod?"), "{error}");
    let text =
        "[[informer]]\nkind = \"Widget\"\ngroup = \"example.com\"\nversion = \"v1\"\nplural = \"widgets\"";
    let config = Config::parse("c.toml", text).unwrap();
    assert_eq!(config.informers[0].kind.name(), "Widget");
    assert_eq!(config.informers[0].representation, Kept::Dynamic);
}

#[test]
fn one_kind_is_watched_once() {
    let error = refusal("[[informer]]\nkind = \"Pod\"\n[[informer]]\nlabels = \"a=b\"\nkind = \"Pod\"");
    assert!(error.contains("line 5: informer.kind: Pod is watched twice"), "{error}");
}

#[test]
fn a_kind_without_namespaces_is_in_none() {
    let error = refusal("[[informer]]\nkind = \"Node\"\nnamespaces = [\"web\"]");
    assert!(error.contains("line 3: informer.namespaces: a Node is in no namespace"), "{error}");
}

#[test]
fn what_is_set_is_taken() {
    let config = Config::parse("c.toml", "[output]\nformat = \"json\"\n[probes]\nenabled = false").unwrap();
    assert_eq!((config.output.format, config.probes.listen), (Format::Json, None));
}

#[test]
fn the_order_of_changes_and_what_a_slow_output_is_told_can_be_chosen() {
    let informer = |text: &str| {
        let text = format!("[[informer]]\nkind = \"Pod\"\n{text}");
        Config::parse("c.toml", &text).unwrap().informers.remove(0)
    };
    let default = informer("");
    assert_eq!((default.discipline, default.policy), (Discipline::InOrder, Policy::Coalesce));
    let chosen = informer("discipline = \"per-key\"\npolicy = \"restate\"\nbacklog_bytes = 65536");
    let every = Policy::Every { bytes: 65_536, when_full: WhenFull::Restate };
    assert_eq!((chosen.discipline, chosen.policy), (Discipline::PerKey, every));
    assert_eq!(
        refusal("[[informer]]\npolicy = \"evry\""),
        r#"c.toml, line 2: informer.policy is "evry"; allowed: "coalesce", "restate" or "disconnect" (default: "coalesce")"#
    );
}

#[test]
fn of_a_secret_the_metadata_is_kept_unless_the_file_says_otherwise() {
    let kept = |text: &str| {
        let text = format!("[[informer]]\nkind = \"Secret\"\n{text}");
        Config::parse("c.toml", &text).unwrap().informers[0].representation
    };
    assert_eq!(kept(""), Kept::Metadata);
    assert_eq!(kept("representation = \"auto\""), Kept::Metadata);
    assert_eq!(kept("representation = \"dynamic\""), Kept::Dynamic);
}

#[test]
fn a_built_in_kind_of_another_group_is_told_what_is_missing() {
    let error = refusal("[[informer]]\nkind = \"Event\"\ngroup = \"events.k8s.io\"");
    assert!(error.contains("version and plural are missing") && !error.contains("did you mean"), "{error}");
    let error = refusal("[[informer]]\nkind = \"Widget\"\nversion = \"v1\"");
    assert!(error.contains("plural is missing") && !error.contains("version and"), "{error}");
}

#[test]
fn a_kind_that_is_asked_for_by_another_plural_or_version_has_no_type() {
    for other in ["plural = \"widgets\"", "version = \"v2\""] {
        let text = format!("[[informer]]\nkind = \"Pod\"\n{other}\n");
        assert_eq!(Config::parse("c.toml", &text).unwrap().informers[0].representation, Kept::Dynamic);
        assert!(refusal(&format!("{text}representation = \"typed\"")).contains("no type is built in"));
    }
}

#[test]
fn a_namespace_stands_once() {
    let error = refusal("[[informer]]\nnamespaces = [\"a\", \"b\", \"a\"]");
    assert!(error.starts_with(r#"c.toml, line 2: informer.namespaces: "a" stands there twice"#), "{error}");
}
