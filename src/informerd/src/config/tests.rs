//! Checks that the configuration file shows the defaults, and that an error says what is allowed.
//!
//! Answers "can a person correct each mistake with the text of its error?".

use super::reader::Document;
use super::{Config, Format, Kept, rules};
use actix_informer::informer::QueueOrder;
use actix_informer::subscription::{Policy, WhenFull};

const FILE: &str = include_str!("../../../../config/informerd.toml");

fn error_of(text: &str) -> String {
    Config::parse("c.toml", text).unwrap_err().to_string()
}

#[test]
fn the_configuration_file_in_the_repository_shows_every_key_with_its_default() {
    let document = Document::new("informerd.toml", FILE);
    let (config, absent) = rules::read(&document).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(absent, Vec::<String>::new(), "keys that the file does not show");
}

#[test]
fn the_error_for_a_misspelt_key_suggests_the_key_that_was_probably_meant() {
    let error = error_of("[output]\n\nstatus_secnds = 5\n");
    assert!(
        error.starts_with("c.toml, line 3: unknown key output.status_secnds (did you mean status_seconds?)")
    );
    assert!(error.contains("allowed here: format, colour, status_seconds"), "{error}");
    assert!(error_of("[ouput]\n").contains("line 1: unknown key ouput (did you mean output?)"));
}

#[test]
fn the_error_for_a_value_that_is_not_allowed_names_the_line_the_allowed_values_and_the_default() {
    assert_eq!(
        error_of("[probes]\nport = 70000"),
        "c.toml, line 2: probes.port is 70000; allowed: a port from 0 to 65535, 0 for a free one (default: 0)"
    );
    assert!(error_of("[run]\ndrain_seconds = \"10s\"").contains("allowed: whole seconds from 1 to 600"));
    assert!(error_of("output = 3").contains("line 1: output is 3; allowed: a table"));
    assert!(error_of("[informer]\nkind = \"Pod\"").contains("tables that begin with [[informer]]"));
}

#[test]
fn a_text_that_is_not_toml_is_refused_with_its_line() {
    assert!(error_of("[output]\nformat = \n").starts_with("c.toml, line 2: "));
}

#[test]
fn a_kind_that_is_not_built_in_is_left_to_the_server_unless_its_plural_and_version_are_given() {
    let later = Config::parse("c.toml", "[[informer]]\nkind = \"Widget\"").unwrap().informers.remove(0);
    assert_eq!(
        (later.kind.resource(), later.kind.name(), later.kind.asked()),
        (None, "Widget", Some("Widget"))
    );
    let text =
        "[[informer]]\nkind = \"Widget\"\ngroup = \"example.com\"\nversion = \"v1\"\nplural = \"widgets\"";
    let config = Config::parse("c.toml", text).unwrap();
    assert_eq!((config.informers[0].kind.name(), config.informers[0].kind.asked()), ("Widget", None));
    assert_eq!(config.informers[0].kept(), Kept::Dynamic);
}

#[test]
fn a_kind_that_is_watched_twice_is_refused() {
    let error = error_of("[[informer]]\nkind = \"Pod\"\n[[informer]]\nlabels = \"a=b\"\nkind = \"Pod\"");
    assert!(error.contains("line 5: informer.kind: Pod is watched twice"), "{error}");
}

#[test]
fn namespaces_for_a_cluster_scoped_kind_are_refused() {
    let error = error_of("[[informer]]\nkind = \"Node\"\nnamespaces = [\"web\"]");
    assert!(error.contains("line 3: informer.namespaces: a Node is not in a namespace"), "{error}");
}

#[test]
fn values_of_the_file_replace_the_defaults() {
    let config = Config::parse("c.toml", "[output]\nformat = \"json\"\n[probes]\nenabled = false").unwrap();
    assert_eq!((config.output.format, config.probes.listen), (Format::Json, None));
}

#[test]
fn the_order_of_changes_and_the_policy_for_a_slow_output_can_be_chosen() {
    let informer = |text: &str| {
        let text = format!("[[informer]]\nkind = \"Pod\"\n{text}");
        Config::parse("c.toml", &text).unwrap().informers.remove(0)
    };
    let default = informer("");
    assert_eq!((default.queue_order, default.policy), (QueueOrder::InOrder, Policy::Coalesce));
    let chosen = informer("queue_order = \"per-key\"\npolicy = \"restate\"\nbacklog_bytes = 65536");
    let every = Policy::Every { bytes: 65_536, when_full: WhenFull::Restate };
    assert_eq!((chosen.queue_order, chosen.policy), (QueueOrder::PerKey, every));
    assert_eq!(
        error_of("[[informer]]\npolicy = \"evry\""),
        r#"c.toml, line 2: informer.policy is "evry"; allowed: "coalesce", "restate" or "disconnect" (default: "coalesce")"#
    );
}

#[test]
fn the_early_retries_of_a_missing_kind_can_be_chosen_and_the_longest_wait_is_not_below_the_first() {
    let informer = |text: &str| {
        let text = format!("[[informer]]\nkind = \"Pod\"\n{text}");
        Config::parse("c.toml", &text).unwrap().informers.remove(0)
    };
    let of = |text: &str| {
        let early = informer(text).early;
        [early.first, early.longest, early.within].map(|wait| wait.as_secs())
    };
    assert_eq!(of(""), [1, 15, 600]);
    assert_eq!(of("early_first_seconds = 2\nearly_longest_seconds = 2\nearly_for_seconds = 0"), [2, 2, 0]);
    let defaults = actix_informer::source::ReflectorConfig::default();
    let informerd = informer("").early;
    assert_eq!(
        (informerd.first, informerd.longest, informerd.within),
        (defaults.early_backoff.base, defaults.early_backoff.cap, defaults.early_for)
    );
    let error = error_of("[[informer]]\nearly_first_seconds = 5\nearly_longest_seconds = 4");
    assert!(error.starts_with("c.toml, line 3: informer.early_longest_seconds: 4 is less than"), "{error}");
    assert!(error_of("[[informer]]\nearly_for_seconds = -1").contains("0 for never (default: 600)"));
}

#[test]
fn only_the_metadata_of_secrets_is_kept_unless_the_file_sets_another_representation() {
    let kept = |text: &str| {
        let text = format!("[[informer]]\nkind = \"Secret\"\n{text}");
        Config::parse("c.toml", &text).unwrap().informers[0].kept()
    };
    assert_eq!(kept(""), Kept::Metadata);
    assert_eq!(kept("representation = \"auto\""), Kept::Metadata);
    assert_eq!(kept("representation = \"dynamic\""), Kept::Dynamic);
}

#[test]
fn the_server_is_asked_for_a_kind_by_the_name_group_and_version_that_are_given() {
    for (text, asked) in [
        ("kind = \"Pod\"", Some("Pod")),
        ("kind = \"Event\"\ngroup = \"events.k8s.io\"", Some("Event.events.k8s.io")),
        ("kind = \"Widget\"\nversion = \"v1\"", Some("Widget.v1.")),
        ("kind = \"deploy\"\ngroup = \"apps\"\nversion = \"v1\"", Some("deploy.v1.apps")),
        ("kind = \"Pod\"\nplural = \"widgets\"", None),
    ] {
        let informer = Config::parse("c.toml", &format!("[[informer]]\n{text}")).unwrap().informers.remove(0);
        assert_eq!(informer.kind.asked(), asked, "{text}");
    }
}

#[test]
fn the_values_of_a_secret_are_hidden_whatever_name_it_is_given() {
    for name in ["Secret", "secrets", "secret", "SECRETS", "secrets.v1."] {
        let text = format!("[[informer]]\nkind = \"{name}\"");
        let informer = Config::parse("c.toml", &text).unwrap().informers.remove(0);
        assert!(informer.kind.holds_secrets() && informer.kept() == Kept::Metadata, "{name}");
    }
}

#[test]
fn a_built_in_kind_with_another_plural_or_version_has_no_built_in_type() {
    for other in ["plural = \"widgets\"", "version = \"v2\""] {
        let text = format!("[[informer]]\nkind = \"Pod\"\n{other}\n");
        assert_eq!(Config::parse("c.toml", &text).unwrap().informers[0].kept(), Kept::Dynamic);
        assert!(error_of(&format!("{text}representation = \"typed\"")).contains("has no built-in type"));
    }
}

#[test]
fn a_namespace_that_is_listed_twice_is_refused() {
    let error = error_of("[[informer]]\nnamespaces = [\"a\", \"b\", \"a\"]");
    assert!(error.starts_with(r#"c.toml, line 2: informer.namespaces: "a" is listed twice"#), "{error}");
}
