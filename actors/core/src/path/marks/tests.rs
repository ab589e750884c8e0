//! Tests of marks: who leaves them, which are kept, how a path is told.

use proptest::prelude::*;

use super::*;

fn version(number: u64) -> ResourceVersion {
    ResourceVersion::from_number(number).expect("not zero")
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("a", name)
}

#[test]
fn one_of_so_many_versions_is_sampled_and_all_places_choose_alike() {
    for (one_of, expected) in [(0, 0), (1, 1024), (2, 512), (100, 8), (1024, 1)] {
        let choice = Choice::NOTHING.sampling(one_of);
        let chosen = (1..=1024).filter(|number| choice.samples(&version(*number))).count();
        assert_eq!(chosen, expected, "one of {one_of}");
        assert_eq!((choice.is_on(), choice.is_all()), (one_of > 0, one_of == 1));
    }
    let with_keys = Choice::NOTHING.sampling(8).with_keys(true);
    assert!(with_keys.has_keys() && with_keys.samples(&version(16)) && !with_keys.samples(&version(17)));
    assert_eq!(with_keys.with_keys(false).sampling(0), Choice::NOTHING);
}

#[test]
fn a_key_of_a_queue_has_marks_from_its_addition_until_its_writes_are_seen() {
    let mut marks = Marks::default();
    let controller: Arc<str> = "sites".into();
    let at = |hop| Mark::new(hop, Arc::clone(&controller), key("web"));
    assert!(!marks.has_work(&controller, &key("web")));
    marks.note(at(Hop::KeyAdded));
    marks.note(at(Hop::Reconciled));
    assert!(marks.has_work(&controller, &key("web")));
    marks.note(at(Hop::Seen));
    assert!(!marks.has_work(&controller, &key("web")));
}

#[test]
fn what_a_subscriber_was_handed_has_its_mark_when_it_is_handled() {
    let mut marks = Marks::default();
    let (pods, one): (Arc<str>, Arc<str>) = ("pods".into(), "one".into());
    for subscription in ["one", "other"] {
        marks.note(Mark::new(Hop::Delivered, Arc::clone(&pods), key("web")).by(subscription));
    }
    drop(marks.handled(Duration::from_secs(2), &pods, &one));
    drop(marks.handled(Duration::from_secs(3), &pods, &one));
    let handled: Vec<_> = marks.all().marks.into_iter().filter(|mark| mark.hop == Hop::Handled).collect();
    let [mark] = &handled[..] else { panic!("{handled:?}") };
    assert_eq!((mark.at, mark.by.as_ref()), (Duration::from_secs(2), Some(&one)));
}

#[test]
fn a_path_names_what_led_to_it_and_is_told_in_one_line_a_mark() {
    let mut marks = Marks::default();
    let mark = |hop, place: &str, at| {
        let mark = Mark::new(hop, place.into(), key("web")).version(Some(version(7)));
        Mark { at: Duration::from_micros(at), ..mark }
    };
    marks.note(mark(Hop::Queued, "pods", 250).by("pods"));
    marks.note(mark(Hop::Published, "pods", 1_250));
    let added = Mark::new(Hop::KeyAdded, "sites".into(), key("site")).by("pods").other(key("web"));
    marks.note(Mark { at: Duration::from_micros(1_250), ..added });
    let told = marks.of(&key("web")).to_string();
    let lines: Vec<_> = told.lines().map(str::trim_start).collect();
    assert_eq!(
        lines,
        [
            "0.000 ms  +0.000     queued      a/web version 7 in pods, pods",
            "1.000 ms  +1.000     published   a/web version 7 in pods",
            "1.000 ms  +0.000     key added   a/site in sites, pods, a/web",
        ]
    );
    assert_eq!(marks.of(&key("site")).marks.len(), 1);
}

proptest! {
    /// Against a list of all marks.
    #[test]
    fn a_place_keeps_its_newest_marks_in_order(
        notes in prop::collection::vec((0..3_u8, 0..4_u8, 0..5_u64), 0..200),
        forgotten in prop::option::of(0..3_u8),
    ) {
        let (mut marks, mut naive) = (Marks::default(), Vec::new());
        for (place, name, at) in notes {
            let mark = Mark::new(Hop::Queued, place.to_string().into(), key(&name.to_string()));
            let mark = Mark { at: Duration::from_secs(at), ..mark };
            marks.note(mark.clone());
            naive.push(mark);
        }
        if let Some(place) = forgotten {
            marks.forget(&place.to_string().into());
            naive.retain(|mark| *mark.place != *place.to_string());
        }
        naive.sort_by_key(|mark| mark.at);
        prop_assert_eq!(marks.all().marks, naive.clone());
        let of_one = naive.into_iter().filter(|mark| mark.key == key("1")).collect::<Vec<_>>();
        prop_assert_eq!(marks.of(&key("1")).marks, of_one);
    }
}

#[test]
fn a_place_that_is_full_forgets_its_oldest_mark_and_the_path_says_so() {
    let mut marks = Marks::default();
    for number in 0..=MOST_MARKS {
        let mark = Mark::new(Hop::Queued, "pods".into(), key("web"));
        marks.note(Mark { at: Duration::from_secs(number as u64), ..mark });
    }
    let path = marks.of(&key("web"));
    assert_eq!((path.marks.len(), path.marks[0].at, path.is_cut), (MOST_MARKS, Duration::from_secs(1), true));
}

#[test]
fn at_most_64_keys_are_followed() {
    let mut marks = Marks::default();
    assert!((0..MOST_KEYS).all(|number| marks.follow(&key(&number.to_string()))));
    assert!(!marks.follow(&key("more")) && marks.follow(&key("0")));
    assert!(marks.unfollow(&key("0")) && marks.follow(&key("more")) && marks.follows(&key("more")));
}

#[test]
fn a_slow_change_is_told_with_its_hops_at_most_once_in_ten_minutes() {
    let (pods, one): (Arc<str>, Arc<str>) = ("pods".into(), "one".into());
    let mut marks = Marks::default();
    let mut handle = |number: u64, at: u64, took: u64| {
        let mark = |hop| Mark::new(hop, Arc::clone(&pods), key("web")).version(Some(version(number)));
        let at = Duration::from_secs(at);
        marks.note(mark(Hop::Queued).at(at));
        marks.note(mark(Hop::Delivered).at(at).by("one"));
        marks.handled(at + Duration::from_millis(took), &pods, &one)
    };
    assert_eq!(handle(1, 10, 1_000), None, "a second is not slow");
    let path = handle(2, 20, 1_001).expect("it is slow");
    let hops: Vec<Hop> = path.marks.iter().map(|mark| mark.hop).collect();
    assert_eq!(hops, [Hop::Queued, Hop::Delivered, Hop::Handled], "of this change alone: {path}");
    assert_eq!(handle(3, 30, 5_000), None, "one was told seconds ago");
    assert!(handle(4, 700, 5_000).is_some());
}
