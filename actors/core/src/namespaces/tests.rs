//! Plans as a table, and a model of sources that come and go in any order.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use super::holdings::Holdings;
use super::{AllFollowed, AllStep, ClusterWide, Followed, Names, NamespaceState, Plan, plan};

fn names(text: &str) -> Names {
    Arc::new(text.split_whitespace().map(Arc::from).collect())
}

/// Sources as a text: `a` has listed, `b?` has not, `c!` is being removed.
fn sources(text: &str, all: Option<AllFollowed>) -> Followed {
    let one = |word: &str| {
        let name = word.trim_end_matches(['?', '!']).into();
        let progress = match word.strip_suffix('?') {
            Some(_) => NamespaceState::Listing,
            None if word.ends_with('!') => NamespaceState::Leaving,
            None => NamespaceState::Listed,
        };
        (name, progress)
    };
    Followed { each: text.split_whitespace().map(one).collect(), all }
}

fn all(asked: &str, listed: Option<&str>) -> Option<AllFollowed> {
    let (asked, listed) = (names(asked), listed.map(names));
    let held = listed.clone().unwrap_or_default();
    Some(AllFollowed { asked, listed, held, is_refused: false, is_leaving: false })
}

fn refused(asked: &str, listed: Option<&str>) -> Option<AllFollowed> {
    all(asked, listed).map(|all| AllFollowed { is_refused: true, ..all })
}

/// A plan as a text: `+a -b`, then `follow a b`, `filter a b` or `leave` for the cluster-wide source.
fn text(plan: &Plan) -> String {
    let joined = |names: &Names| names.iter().map(|name| format!(" {name}")).collect::<String>();
    let mut words: Vec<String> = plan.follow.iter().map(|name| format!("+{name}")).collect();
    words.extend(plan.leave.iter().map(|name| format!("-{name}")));
    words.extend(plan.all.iter().map(|step| match step {
        AllStep::Follow(names) => format!("follow{}", joined(names)),
        AllStep::Filter(names) => format!("filter{}", joined(names)),
        AllStep::Leave => "leave".to_owned(),
    }));
    words.join(" ")
}

fn check(wanted: &str, followed: &Followed, above: usize, expected: &str) {
    let plan = plan(&names(wanted), followed, Some(ClusterWide::above(above)), true);
    assert_eq!(text(&plan), expected, "wanted {wanted:?}, there {followed:?}, above {above}");
}

#[test]
fn what_was_asked_for_is_settled_once_and_again_only_after_another_question() {
    let mut holdings = Holdings::new(names("a"));
    assert!(!holdings.handle_settled(&names("a b")), "the store has more");
    assert!(holdings.handle_settled(&names("a")));
    assert!(!holdings.handle_settled(&names("a")));
    holdings.handle_asked(names("a b"));
    assert!(!holdings.handle_settled(&names("a")));
    assert!(holdings.handle_settled(&names("a b")));
}

#[test]
fn each_namespace_has_a_source_and_exactly_the_difference_is_planned() {
    check("a b", &sources("", None), 4, "+a +b");
    check("b c", &sources("a b?", None), 4, "+c -a");
    check("", &sources("a", None), 4, "-a");
    check("a", &sources("a", None), 4, "");
    check("a", &sources("a!", None), 4, "-a");
    let many = plan(&names("a b c"), &Followed::default(), None, true);
    assert_eq!(text(&many), "+a +b +c", "there is no cluster-wide source without a policy");
}

#[test]
fn above_the_number_the_cluster_wide_source_takes_over_when_it_has_listed_and_a_quarter_below_it_gives_back()
{
    check("a b c", &sources("a b", None), 2, "follow a b c");
    check("a b c", &sources("a b", all("a b c", None)), 2, "");
    check("a b c", &sources("a b", all("a b c", Some("a b c"))), 2, "-a -b");
    check("a b", &sources("", all("a b", Some("a b"))), 2, "");
    check("a", &sources("", all("a b", Some("a b"))), 2, "+a filter a");
    check("a", &sources("a?", all("a", Some("a"))), 2, "");
    check("a", &sources("a", all("a", Some("a"))), 2, "leave");
}

#[test]
fn beside_the_cluster_wide_source_a_few_new_namespaces_have_their_own_and_more_are_listed_together() {
    let there = all("a b c d e", Some("a b c d e"));
    check("a b c d e f", &sources("", there.clone()), 4, "+f");
    check("a b c d e f", &sources("f", there.clone()), 4, "");
    check("a b c d e f g", &sources("f", there.clone()), 4, "filter a b c d e f g");
    check("a b c d e f g", &sources("f", all("a b c d e f g", Some("a b c d e"))), 4, "");
    check("a b c d e f g", &sources("f", all("a b c d e f g", Some("a b c d e f g"))), 4, "-f");
    check("a b c d", &sources("", there), 4, "filter a b c d");
}

#[test]
fn a_namespace_that_left_the_filter_and_comes_back_has_its_own_source_until_it_is_listed_again() {
    let there = all("a b c d", Some("a b c d e"));
    check("a b c d e", &sources("", there.clone()), 4, "+e");
    check("a b c d e", &sources("e", there), 4, "");
}

#[test]
fn a_cluster_wide_source_that_is_refused_is_left_once_its_namespaces_are_followed() {
    check("a b c", &sources("", refused("a b c", None)), 2, "+a +b +c leave");
    check("a b c", &sources("a b? c", refused("a b c", Some("a b c"))), 2, "");
    check("a b c", &sources("a b c", refused("a b c", Some("a b c"))), 2, "leave");
    let young = plan(&names("a b c"), &sources("a b c", None), Some(ClusterWide::above(2)), false);
    assert_eq!(text(&young), "", "it is not asked for again soon");
    check("a b c", &sources("a b c", None), 2, "follow a b c");
    let leaving = refused("a b c", None).map(|all| AllFollowed { is_leaving: true, ..all });
    check("a b c", &sources("a b c", leaving), 2, "leave");
}

#[test]
fn a_cluster_wide_source_whose_list_is_on_its_way_is_not_left_before_each_namespace_of_it_is_listed() {
    let delivered = || refused("a b c", None).map(|all| AllFollowed { held: names("a b c"), ..all });
    check("a b c", &sources("", delivered()), 2, "+a +b +c");
    check("a b c", &sources("a b? c", delivered()), 2, "");
    check("a b c", &sources("a b c", delivered()), 2, "leave");
    check("a c", &sources("a b? c", delivered()), 2, "-b leave");
}

#[derive(Debug, Clone)]
enum Event {
    Want(BTreeSet<usize>),
    Lists(usize),
    AllDelivers,
    AllLists,
    Refuse(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => prop::collection::btree_set(0..10_usize, 0..10).prop_map(Event::Want),
        3 => (0..10_usize).prop_map(Event::Lists),
        2 => Just(Event::AllDelivers),
        3 => Just(Event::AllLists),
        1 => any::<bool>().prop_map(Event::Refuse),
    ]
}

/// The sources, and the filter of the list that the cluster-wide one makes at present.
#[derive(Default)]
struct Model {
    wanted: Names,
    followed: Followed,
    listing: Option<Names>,
    refused: bool,
}

impl Model {
    fn covered(&self) -> BTreeSet<Arc<str>> {
        let each = self.followed.each.iter().filter(|(_, progress)| **progress == NamespaceState::Listed);
        let all = self.followed.all.iter().flat_map(|all| {
            let listed = all.listed.iter().flat_map(|listed| listed.iter());
            listed.filter(|name| all.asked.contains(*name)).chain(all.held.iter())
        });
        let covered = each.map(|(name, _)| name).chain(all);
        covered.filter(|name| self.wanted.contains(*name)).cloned().collect()
    }

    fn handle(&mut self, event: &Event) {
        match event {
            Event::Want(wanted) => {
                self.wanted = Arc::new(wanted.iter().map(|name| format!("n{name}").into()).collect());
            }
            Event::Lists(name) => {
                let name: Arc<str> = format!("n{name}").into();
                self.followed.each.entry(name).and_modify(|progress| *progress = NamespaceState::Listed);
                self.followed.each.retain(|_, progress| *progress != NamespaceState::Leaving);
            }
            Event::AllDelivers => {
                let listing = self.listing.iter().flat_map(|listing| listing.iter());
                if let Some(all) = &mut self.followed.all {
                    all.held = Arc::new(all.held.iter().chain(listing).cloned().collect());
                }
            }
            Event::AllLists => self.all_lists(),
            Event::Refuse(refused) => {
                self.refused = *refused;
                if let Some(all) = &mut self.followed.all {
                    all.is_refused = *refused;
                }
            }
        }
    }

    fn all_lists(&mut self) {
        let Some(all) = self.followed.all.as_mut().filter(|all| !all.is_refused) else { return };
        if let Some(listing) = self.listing.take() {
            all.held = Names::clone(&listing);
            all.listed = Some(Arc::new(listing.intersection(&all.asked).cloned().collect()));
        }
        if all.listed.as_ref() != Some(&all.asked) {
            self.listing = Some(Names::clone(&all.asked));
        }
    }

    fn carry_out(&mut self, plan: Plan) {
        for name in plan.follow {
            assert!(self.followed.each.insert(name, NamespaceState::Listing).is_none(), "it has none yet");
        }
        for name in plan.leave {
            assert!(self.followed.each.remove(&name).is_some(), "it has one");
        }
        match plan.all {
            Some(AllStep::Follow(asked)) => {
                assert!(self.followed.all.is_none());
                self.listing = Some(Names::clone(&asked));
                let is_refused = self.refused;
                let (listed, held) = (None, Names::default());
                self.followed.all = Some(AllFollowed { asked, listed, held, is_refused, is_leaving: false });
            }
            Some(AllStep::Filter(asked)) => {
                let all = self.followed.all.as_mut().expect("it is there");
                let listed = all.listed.take();
                all.listed = listed.map(|listed| Arc::new(listed.intersection(&asked).cloned().collect()));
                all.asked = asked;
            }
            Some(AllStep::Leave) => {
                assert!(self.followed.all.take().is_some());
                self.listing = None;
            }
            None => {}
        }
    }
}

proptest! {
    #[test]
    fn what_is_listed_and_wanted_stays_listed_and_all_is_followed_in_the_end(
        events in prop::collection::vec(event(), 0..60),
        above in 0..8_usize,
    ) {
        let policy = Some(ClusterWide::above(above));
        let mut model = Model::default();
        for event in &events {
            model.handle(event);
            let before = model.covered();
            let may_ask = !model.refused;
            model.carry_out(plan(&model.wanted, &model.followed, policy, may_ask));
            prop_assert!(before.is_subset(&model.covered()), "{before:?} {:?}", model.followed);
        }
        model.handle(&Event::Refuse(false));
        for _ in 0..20 {
            (0..10).for_each(|name| model.handle(&Event::Lists(name)));
            model.all_lists();
            model.carry_out(plan(&model.wanted, &model.followed, policy, true));
        }
        prop_assert!(plan(&model.wanted, &model.followed, policy, true).is_empty());
        prop_assert_eq!(&model.covered(), &*model.wanted);
        let watches = model.followed.each.len() + usize::from(model.followed.all.is_some());
        prop_assert!(watches <= above.max(above.div_ceil(4) + 1), "{watches} watches above {above}");
        let held = model.followed.all.iter().flat_map(|all| all.asked.iter());
        prop_assert!(held.chain(model.followed.each.keys()).all(|name| model.wanted.contains(name)));
    }
}
