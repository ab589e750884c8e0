//! Any history of a server that is restored from a backup once, while sources that read it take over from each other.
//!
//! Answers "is the store right when each source has noticed, and what is told until then?". The sources notice in any
//! order, and what they have read of the former history may be applied after others have noticed. `model.rs` plays it.

use proptest::prelude::*;

use self::model::{Model, NAMES, SOURCES};

mod model;

#[derive(Debug, Clone)]
enum Deed {
    Write(usize),
    Delete(usize),
    /// The source brings the next so many events of the history that it reads.
    Bring(usize, usize),
    /// The source is asked for a list.
    Ask(usize),
    /// The list arrives.
    Land(usize),
    HandOver,
    /// The server goes back, to so many events before all that any source has brought.
    Rewind(usize),
    /// The store is built again from what is published.
    Restart,
}

fn deeds(longest: usize) -> impl Strategy<Value = Vec<Deed>> {
    let source = 0..SOURCES.len();
    let deed = prop_oneof![
        6 => (0..NAMES).prop_map(Deed::Write),
        4 => (0..NAMES).prop_map(Deed::Delete),
        6 => (source.clone(), 1..6_usize).prop_map(|(source, count)| Deed::Bring(source, count)),
        4 => source.clone().prop_map(Deed::Ask),
        4 => source.prop_map(Deed::Land),
        2 => Just(Deed::HandOver),
        1 => Just(Deed::Restart),
    ];
    prop::collection::vec(deed, 0..longest)
}

/// A history with a rewind in it.
fn history() -> impl Strategy<Value = Vec<Deed>> {
    (deeds(60), 0..3_usize, deeds(60))
        .prop_map(|(before, back, after)| [before, vec![Deed::Rewind(back)], after].concat())
}

fn play(deeds: &[Deed]) {
    let mut model = Model::new();
    deeds.iter().for_each(|deed| model.play(deed));
    model.end();
}

#[test]
fn informer_1_who_notices_a_rewind_second_puts_no_older_state_over_what_the_first_has_brought_since() {
    use Deed::{Ask, Bring, Land, Rewind, Write};
    let both = [Ask(0), Land(0), Rewind(1), Ask(1), Ask(0), Land(1)];
    play(&[&both[..], &[Write(0), Bring(1, 1), Land(0)]].concat());
}

#[test]
fn informer_1_what_was_deleted_since_a_rewind_does_not_come_back_with_who_notices_second() {
    use Deed::{Ask, Bring, Delete, Land, Rewind};
    let gone = [Ask(0), Land(0), Delete(0), Bring(0, 1), Bring(1, 1)];
    let back = [Rewind(1), Ask(1), Ask(0), Land(1)];
    play(&[&gone[..], &back, &[Delete(0), Bring(1, 1), Land(0)]].concat());
}

#[test]
fn informer_1_who_has_noticed_a_rewind_passes_what_it_holds_to_a_successor_that_has_not() {
    use Deed::{Ask, Delete, HandOver, Land, Rewind};
    play(&[Delete(1), Ask(0), Land(0), Rewind(0), Ask(2), Land(2), HandOver]);
}

#[test]
fn informer_1_who_has_noticed_a_rewind_before_another_joins_is_not_outdated_by_the_first_list_of_that() {
    use Deed::{Ask, Bring, HandOver, Land, Rewind, Write};
    let joins = [Rewind(1), Ask(1), Land(1), Ask(0), Write(0), Bring(1, 1), Land(0)];
    play(&joins);
    let made = [Write(0), Write(0), Rewind(3)];
    play(&[&made[..], &joins[1..], &[HandOver]].concat());
}

#[test]
fn informer_1_what_was_told_as_deleted_to_who_has_yet_to_notice_a_rewind_is_not_what_it_holds_of_the_former_history()
 {
    use Deed::{Ask, Bring, Delete, HandOver, Land, Rewind, Write};
    let former = [Ask(0), Land(0), HandOver, Ask(1), Write(0), Write(0), Rewind(0), Bring(0, 2)];
    play(&[&former[..], &[Land(1), Ask(1), Bring(1, 2), Delete(0), Ask(0), Write(0)]].concat());
}

#[test]
fn informer_1_what_was_deleted_since_a_rewind_does_not_go_back_before_it_ends_with_who_notices_second() {
    use Deed::{Ask, Bring, Delete, HandOver, Land, Rewind, Write};
    let former = [&vec![Write(0); 8][..], &[Ask(0), Rewind(0), Land(0), HandOver]].concat();
    play(&[&former[..], &[Ask(1), Land(1), Ask(0), Write(0), Write(0), Delete(0), Bring(1, 3)]].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn informer_1_whatever_happens_around_a_rewind_the_store_is_right_when_each_source_has_noticed(
        deeds in history(),
    ) {
        play(&deeds);
    }
}
