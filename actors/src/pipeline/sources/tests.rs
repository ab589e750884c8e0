//! The sources of an informer: who may join, who may go, who takes over from whom, and who says that an object is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use informer_core::meta::{ObjectKey, ResourceVersion, SourceId};
use informer_core::namespaces::Names;
use informer_core::reflector::ReflectorConfig;

use super::{AskedFor, NotRemoved, Refusal, Refused, Selected, Sources};
use crate::pipeline::namespace_filter::NamespaceFilter;
use crate::pipeline::source_spec::{Coverage, Member, SelectorInput, SourceSpec};
use crate::testing::Server;

const FIRST: AskedFor = AskedFor { is_first: true, after_rewind: None };

fn after_rewind(to: &ResourceVersion) -> AskedFor {
    AskedFor { is_first: false, after_rewind: Some(to.clone()) }
}

fn spec(name: &str) -> SourceSpec<String> {
    let connect = Server::named(SourceId::new(name)).connect();
    SourceSpec::new(SourceId::new(name), connect, ReflectorConfig::new("texts"))
}

fn covering(name: &str, namespace: Option<&str>, selectors: &str) -> SourceSpec<String> {
    let coverage = Coverage::everything().selectors(selectors);
    let coverage = namespace.into_iter().fold(coverage, Coverage::namespace);
    spec(name).covering(coverage)
}

/// A source of one set: the cluster-wide one is `all`.
fn member(id: &SourceId) -> SourceSpec<String> {
    let namespace = (id.as_str() != "all").then(|| id.as_str().into());
    SourceSpec { member: Some(Member { set: 1, namespace }), ..spec(id.as_str()) }
}

fn known(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
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

/// A source that covers this, and has listed.
fn listed(sources: &Sources, spec: &SourceSpec<String>) {
    join(sources, spec).expect("a free name");
    sources.state.with(|state| state.list(&spec.id));
}

#[test]
fn operator_b_only_a_source_that_no_object_can_leave_says_that_one_is_gone_and_only_when_it_has_listed() {
    let key = ObjectKey::namespaced("web", "a");
    let by = |input| Coverage::everything().selectors("x").reading(input);
    for (coverage, would_hold) in [
        (None, true),
        (Some(Coverage::everything()), true),
        (Some(Coverage::everything().namespace("web")), true),
        (Some(Coverage::everything().namespace("shop")), false),
        (Some(Coverage::everything().selectors("x")), false),
        (Some(by(SelectorInput::Key)), true),
        (Some(by(SelectorInput::Labels)), false),
        (Some(by(SelectorInput::Fields)), false),
    ] {
        let sources = Sources::default();
        let one = coverage.iter().fold(spec("one"), |spec, coverage| spec.covering(coverage.clone()));
        join(&sources, &one).expect("a free name");
        assert!(!sources.would_hold(&key), "it has not listed: {coverage:?}");
        sources.state.with(|state| state.list(&one.id));
        assert_eq!(sources.would_hold(&key), would_hold, "{coverage:?}");
        join(&sources, &spec("other")).expect("a free name");
        sources.begin_removal(&one.id).expect("another one stays");
        assert!(!sources.would_hold(&key), "it is followed no more: {coverage:?}");
    }
}

#[test]
fn operator_b_of_what_no_source_holds_it_is_known_whether_one_follows_it_again() {
    let key = ObjectKey::namespaced("web", "a");
    let shop = BTreeMap::from([("shop".to_owned(), "yes".to_owned())]);
    let by = |input| {
        let in_shop = |_: &ObjectKey, labels: &BTreeMap<String, String>| labels.contains_key("shop");
        Coverage::everything().selectors("shop").selecting(in_shop).reading(input)
    };
    for (coverage, with_label, without) in [
        (Coverage::everything(), Selected::Again, Selected::Again),
        (Coverage::everything().namespace("other"), Selected::NotFollowed, Selected::NotFollowed),
        (Coverage::everything().selectors("x"), Selected::LeftOut, Selected::LeftOut),
        (by(SelectorInput::Labels), Selected::Again, Selected::LeftOut),
        (by(SelectorInput::Fields), Selected::LeftOut, Selected::LeftOut),
    ] {
        let sources = Sources::default();
        join(&sources, &spec("one").covering(coverage.clone())).expect("a free name");
        assert_eq!(sources.selected(&key, &shop), with_label, "{coverage:?}");
        assert_eq!(sources.selected(&key, &BTreeMap::new()), without, "{coverage:?}");
    }
}

#[test]
fn operator_b_a_cluster_wide_source_follows_the_namespaces_that_it_keeps_and_says_what_is_gone_in_those_listed()
 {
    let names = |names: &[&str]| Names::new(names.iter().map(|name| (*name).into()).collect());
    let filter = Arc::new(NamespaceFilter::new(names(&["web", "shop"])));
    let mut all = spec("all").covering(Coverage::everything());
    all.filter = Some(Arc::clone(&filter));
    let sources = Sources::default();
    listed(&sources, &all);
    let told = |namespace: &str| {
        let key = ObjectKey::namespaced(namespace, "a");
        (sources.would_hold(&key), sources.selected(&key, &BTreeMap::new()))
    };
    assert_eq!(told("web"), (false, Selected::Again), "no list that kept it is published");
    filter.change(|holdings| holdings.handle_settled(&names(&["web"])));
    assert_eq!(told("web"), (true, Selected::Again));
    assert_eq!(told("shop"), (false, Selected::Again));
    assert_eq!(told("other"), (false, Selected::NotFollowed));
    filter.ask(names(&["shop"]));
    assert_eq!(told("web"), (false, Selected::NotFollowed), "it has left the set");
}

#[test]
fn who_takes_over_lists_from_the_newest_version_that_its_exchange_has_delivered_since_the_last_rewind() {
    let sources = Sources::default();
    let [a, b, c] = ["a", "b", "c"].map(SourceId::new);
    let version = |number| ResourceVersion::from_number(number);
    let deliver = |id: &SourceId, number, is_rewind| {
        let version = version(number).expect("not zero");
        if is_rewind {
            sources.note_rewind(id, &version, u64::MAX);
        } else {
            sources.note_delivered(id, &version);
        }
    };
    sources.join([&spec("a"), &spec("other")], false).expect("two names");
    deliver(&a, 7, false);
    deliver(&a, 5, false);
    deliver(&SourceId::new("other"), 900, false);
    let first = sources.hand_over(std::slice::from_ref(&a), &[spec("b")]);
    sources.join([&spec("b")], true).expect("it takes over");
    assert_eq!(
        (sources.begin_list(&a, AskedFor::default()), sources.begin_list(&b, FIRST)),
        (None, version(7))
    );
    deliver(&a, 9, false);
    deliver(&b, 8, false);
    assert_eq!(sources.begin_list(&b, AskedFor::default()), version(9));
    drop(first);
    assert_eq!(sources.begin_list(&b, AskedFor::default()), None, "the hand-over has ended");
    let _second = sources.hand_over(std::slice::from_ref(&b), &[spec("c")]);
    sources.join([&spec("c")], true).expect("it takes over");
    assert_eq!(sources.begin_list(&c, FIRST), version(9), "b may have yet to bring what a has delivered");
    deliver(&b, 3, true);
    assert_eq!(sources.begin_list(&c, AskedFor::default()), version(3), "the server went back");
    sources.state.with(|state| state.remove(&b, &sources.exchanged));
    assert!(
        !sources.state.with(|state| state.exchanges.delivered.contains_key(&b)),
        "its name may come back as another server"
    );
}

#[test]
fn who_takes_over_in_a_set_lists_from_what_each_of_it_has_delivered_until_the_store_knows_who_is_outdated() {
    let sources = Sources::default();
    let [all, a, b] = ["all", "a", "b"].map(SourceId::new);
    let version = |number| Some(known(number));
    sources.join([&member(&a), &member(&b)], false).expect("two names");
    sources.note_delivered(&a, &known(9));
    sources.note_delivered(&b, &known(7));
    sources.note_rewind(&a, &known(3), 0);
    sources.join([&member(&all)], true).expect("it takes over");
    assert_eq!(
        sources.begin_list(&all, FIRST),
        version(7),
        "b has yet to notice that, and the store knows nothing of it"
    );
    sources.note_rewind(&all, &known(4), 0);
    assert_eq!(
        sources.begin_list(&a, AskedFor::default()),
        version(7),
        "the store did not know of the exchange"
    );
    let mut seen = 0;
    sources.exchanged_since(&mut seen).expect("it has begun");
    sources.note_rewind(&all, &known(4), seen);
    assert_eq!(sources.begin_list(&a, AskedFor::default()), version(4), "the store knows that b is outdated");
    sources.note_delivered(&all, &known(6));
    sources.state.with(|state| state.remove(&all, &sources.exchanged));
    sources.join([&member(&all)], true).expect("again");
    assert_eq!(sources.begin_list(&all, FIRST), version(6), "what has left has delivered it");
    sources.exchanged_since(&mut seen).expect("it has begun again");
    sources.note_delivered(&a, &known(9));
    sources.note_rewind(&all, &known(5), seen);
    sources.note_delivered(&a, &known(4));
    assert_eq!(
        sources.begin_list(&all, AskedFor::default()),
        version(5),
        "what it had delivered before is outdated"
    );
    sources.state.with(|state| state.remove(&a, &sources.exchanged));
    sources.state.with(|state| state.remove(&b, &sources.exchanged));
    sources.join([&member(&a)], true).expect("again");
    assert_eq!(sources.begin_list(&a, FIRST), version(5), "also when it has left");
}

#[test]
fn no_call_takes_more_than_250_outdated_sources_out_of_a_set() {
    let sources = Sources::default();
    let all = SourceId::new("all");
    let each: Vec<SourceId> = (0..600).map(|number| SourceId::new(format!("n{number}"))).collect();
    let specs: Vec<_> = each.iter().chain([&all]).map(member).collect();
    sources.join(specs.iter(), true).expect("601 names");
    (1000..).zip(&each).for_each(|(number, id)| sources.note_delivered(id, &known(number)));
    sources.note_delivered(&all, &known(2000));
    let mut seen = 0;
    sources.exchanged_since(&mut seen).expect("it has begun");
    sources.begin_list(&all, after_rewind(&known(5)));
    sources.note_rewind(&each[599], &known(7), 0); // it has noticed since
    sources.note_rewind(&all, &known(5), seen);
    let newest = || sources.begin_list(&all, AskedFor::default());
    let walked: Vec<_> = (0..3).map(|_| newest()).collect();
    assert_eq!(
        walked,
        [Some(known(1098)), Some(known(7)), Some(known(7))],
        "the call before took out the first 250"
    );
}

#[test]
fn who_has_moved_on_since_the_list_after_a_rewind_was_asked_for_is_not_outdated_by_it() {
    let sources = Sources::default();
    let [all, a, b] = ["all", "a", "b"].map(SourceId::new);
    sources.join([&member(&a), &member(&b), &member(&all)], true).expect("three names");
    [(&a, 2), (&b, 9), (&all, 9)].iter().for_each(|(id, number)| sources.note_delivered(id, &known(*number)));
    let mut seen = 0;
    assert!(sources.begin_list(&all, after_rewind(&known(5))).is_some());
    sources.note_delivered(&a, &known(6));
    let [among] = &*sources.exchanged_since(&mut seen).expect("it has begun") else { panic!("one set") };
    assert_eq!(among.is_former(&a, &all), Some(false));
    assert_eq!(among.is_former(&b, &all), Some(true));
    sources.note_rewind(&all, &known(5), seen);
    assert_eq!(sources.begin_list(&all, AskedFor::default()), Some(known(6)), "b is outdated, a is not");
}

#[test]
fn who_has_moved_on_before_the_exchange_began_is_not_outdated_by_a_list_asked_for_before_that() {
    let sources = Sources::default();
    let [all, a, b] = ["all", "a", "b"].map(SourceId::new);
    sources.join([&member(&a), &member(&b)], false).expect("two names");
    [&a, &b].iter().for_each(|id| sources.note_delivered(id, &known(9)));
    assert_eq!(sources.begin_list(&a, after_rewind(&known(5))), None, "it takes over from nobody");
    sources.note_rewind(&b, &known(5), 0);
    sources.note_delivered(&b, &known(7));
    sources.join([&member(&all)], true).expect("it takes over");
    let mut seen = 0;
    let [among] = &*sources.exchanged_since(&mut seen).expect("it has begun") else { panic!("one set") };
    assert_eq!(among.is_former(&b, &a), Some(false));
    sources.note_rewind(&a, &known(5), seen);
    assert_eq!(sources.begin_list(&all, FIRST), Some(known(7)), "b has told it since");
}

#[test]
fn who_goes_and_notices_a_rewind_outdates_none_that_noticed_it_before_its_list_is_published() {
    let sources = Sources::default();
    let [a, b, c] = ["a", "b", "c"].map(SourceId::new);
    sources.join([&spec("a"), &spec("b")], false).expect("two names");
    [&a, &b].iter().for_each(|id| sources.note_delivered(id, &known(9)));
    let _handing_over = sources.hand_over(&[a.clone(), b.clone()], &[spec("c")]);
    sources.join([&spec("c")], true).expect("it takes over");
    assert_eq!(sources.begin_list(&a, after_rewind(&known(5))), None, "it goes");
    sources.note_rewind(&b, &known(5), 0);
    sources.note_delivered(&b, &known(7));
    let [both] = &*sources.exchanged_since(&mut 0).expect("it has begun") else { panic!("one hand-over") };
    assert_eq!((both.is_former(&b, &a), both.is_former(&c, &a)), (Some(false), Some(false)));
}

#[test]
fn a_hand_over_that_fails_leaves_nothing_under_the_names_of_those_that_did_not_come() {
    let sources = Sources::default();
    let [a, b, c] = ["a", "b", "c"].map(SourceId::new);
    sources.join([&spec("a"), &spec("b")], false).expect("two names");
    sources.note_delivered(&a, &known(9));
    sources.note_delivered(&b, &known(2));
    let refused = sources.hand_over(std::slice::from_ref(&a), &[spec("b"), spec("c")]);
    sources.join([&spec("b"), &spec("c")], true).expect_err("the name is taken");
    drop(refused);
    let delivered = sources.state.with(|state| state.exchanges.delivered.clone());
    assert_eq!(delivered, BTreeMap::from([(a.clone(), known(9)), (b, known(2))]));
    let handing_over = sources.hand_over(&[a], &[spec("c")]);
    sources.join([&spec("c")], true).expect("it takes over");
    sources.state.with(|state| state.remove(&c, &sources.exchanged));
    drop(handing_over);
    let has_delivered = sources.state.with(|state| state.exchanges.delivered.contains_key(&c));
    assert!(!has_delivered, "it has left before the end");
}
