//! The sources of an informer: who may join, who may go, and who takes over from whom.

use informer_core::meta::SourceId;
use informer_core::reflector::ReflectorConfig;

use super::{NotRemoved, Refusal, Refused, Sources};
use crate::pipeline::source_spec::{Coverage, SourceSpec};
use crate::testing::Server;

fn spec(name: &str) -> SourceSpec<String> {
    let connect = Server::named(SourceId::new(name)).connect();
    SourceSpec::new(SourceId::new(name), connect, ReflectorConfig::new("texts"))
}

fn covering(name: &str, namespace: Option<&str>, selectors: &str) -> SourceSpec<String> {
    let coverage = Coverage::everything().selectors(selectors);
    let coverage = namespace.into_iter().fold(coverage, Coverage::namespace);
    spec(name).covering(coverage)
}

fn join(sources: &Sources, spec: &SourceSpec<String>) -> Result<(), Refused> {
    sources.join([spec], false).map_err(|refusal| refusal.why)
}

#[test]
fn a_name_is_taken_until_its_source_is_removed() {
    let sources = Sources::default();
    sources.join([&spec("a"), &spec("b")], false).expect("two names");
    assert_eq!(join(&sources, &spec("a")), Err(Refused::Taken));
    let removal = sources.begin_removal(&SourceId::new("a")).expect("it is there");
    assert!(removal.is_new && !sources.contains(&SourceId::new("a")));
    assert!(!sources.begin_removal(&SourceId::new("a")).expect("it is under way").is_new);
    assert_eq!(join(&sources, &spec("a")), Err(Refused::Taken));
    sources.forget(&SourceId::new("a"));
    assert_eq!(join(&sources, &spec("a")), Ok(()));
    assert_eq!(sources.ids(), [SourceId::new("b"), SourceId::new("a")]);
}

#[test]
fn the_last_source_that_stays_cannot_be_removed_and_an_unknown_one_neither() {
    let sources = Sources::default();
    sources.join([&spec("a"), &spec("b")], false).expect("two names");
    sources.begin_removal(&SourceId::new("a")).expect("another one stays");
    assert_eq!(sources.begin_removal(&SourceId::new("b")).err(), Some(NotRemoved::Last));
    assert_eq!(sources.begin_removal(&SourceId::new("c")).err(), Some(NotRemoved::Unknown));
}

#[test]
fn all_of_several_join_or_none() {
    let sources = Sources::default();
    join(&sources, &spec("a")).expect("the first");
    let refused = sources.join([&spec("b"), &spec("a")], true);
    assert_eq!(refused, Err(Refusal { id: SourceId::new("a"), why: Refused::Taken }));
    assert_eq!(sources.ids(), [SourceId::new("a")]);
}

#[test]
fn sources_that_surely_have_objects_in_common_are_refused_unless_one_takes_over() {
    let pairs = [
        ((Some("x"), ""), (Some("x"), ""), true),
        ((None, ""), (Some("x"), ""), true),
        ((Some("x"), "app=a"), (None, ""), true),
        ((Some("x"), "app=a"), (None, "app=a"), true),
        ((Some("x"), "app=a"), (Some("x"), "app=b"), false),
        ((Some("x"), ""), (Some("y"), ""), false),
    ];
    for (one, other, overlap) in pairs {
        let sources = Sources::default();
        let (first, second) = (covering("a", one.0, one.1), covering("b", other.0, other.1));
        join(&sources, &first).expect("the first");
        let refused = join(&sources, &second).err();
        assert_eq!(refused, overlap.then(|| Refused::Overlaps(SourceId::new("a"))), "{one:?} {other:?}");
        assert!(!overlap || sources.join([&second], true).is_ok(), "it may take over");
    }
    let sources = Sources::default();
    let cluster = |name: &str| name.parse().expect("a name");
    join(&sources, &covering("a", None, "").in_cluster(cluster("eu"))).expect("the first");
    join(&sources, &covering("b", None, "").in_cluster(cluster("us"))).expect("another cluster");
    assert_eq!(join(&sources, &covering("c", None, "")), Err(Refused::Cluster { has_cluster: false }));
}
