//! Tests of marks: who leaves them, which are kept, how a path is told.

use proptest::prelude::*;

use super::changes::MOST_CHANGES;
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
fn a_controller_that_has_ended_is_forgotten_and_the_work_of_others_is_not() {
    let mut marks = Marks::default();
    let [sites, shops]: [Arc<str>; 2] = ["sites".into(), "shops".into()];
    for controller in [&sites, &shops] {
        for name in ["web", "api"] {
            marks.note(Mark::new(Hop::KeyAdded, Arc::clone(controller), key(name)));
        }
    }
    marks.forget_controller(&sites);
    for name in ["web", "api"] {
        assert!(!marks.has_work(&sites, &key(name)) && marks.has_work(&shops, &key(name)), "{name}");
    }
    // The oldest work of what is left gives way, and not a place of what was forgotten.
    for number in 0..MOST_WORK - 1 {
        marks.note(Mark::new(Hop::KeyAdded, Arc::clone(&sites), key(&number.to_string())));
    }
    assert!(!marks.has_work(&shops, &key("web")) && marks.has_work(&shops, &key("api")));
}

const ALL: Choice = Choice(SAMPLES);

/// A change of version `number` of this object has passed this hop of `pods`.
fn pass(marks: &mut Marks, of: (&str, u64), step: Passage<'_>, at: Duration) {
    let (key, version) = (key(of.0), version(of.1));
    marks.pass(ALL, &"pods".into(), (step, at), [(&key, &version, true)].into_iter());
}

const fn queued() -> Passage<'static> {
    Passage::Passed(Hop::Queued)
}

fn hops(path: &Path) -> Vec<Hop> {
    path.marks.iter().map(|mark| mark.hop).collect()
}

#[test]
fn what_a_subscriber_was_handed_has_its_mark_when_it_is_handled() {
    let mut marks = Marks::default();
    let (pods, one, other): (Arc<str>, Arc<str>, Arc<str>) = ("pods".into(), "one".into(), "other".into());
    for subscription in [&one, &other] {
        pass(&mut marks, ("web", 7), Passage::Delivered(subscription), Duration::ZERO);
    }
    drop(marks.handled(Duration::from_secs(2), &pods, &one));
    drop(marks.handled(Duration::from_secs(3), &pods, &one));
    let handled: Vec<_> = marks.all().marks.into_iter().filter(|mark| mark.hop == Hop::Handled).collect();
    let [mark] = &handled[..] else { panic!("{handled:?}") };
    assert_eq!((mark.at, mark.by.as_ref()), (Duration::from_secs(2), Some(&one)));
    marks.forget_subscription(&pods, &other);
    drop(marks.handled(Duration::from_secs(4), &pods, &other));
    assert_eq!(marks.all().marks.len(), 3, "it gets nothing more");
}

#[test]
fn what_arrives_has_the_times_of_the_hops_before_if_its_source_has_said_them() {
    let (source, ms) = (SourceId::default(), Duration::from_millis);
    for (read, scanned, expected) in [
        (Some(ms(1)), Some(ms(2)), vec![(Hop::Read, ms(1)), (Hop::Scanned, ms(2)), (Hop::Decoded, ms(5))]),
        (Some(ms(9)), None, vec![(Hop::Read, ms(5)), (Hop::Decoded, ms(5))]),
        (None, None, vec![(Hop::Decoded, ms(5))]),
    ] {
        let mut marks = Marks::default();
        pass(&mut marks, ("web", 7), Passage::Arrived { source: &source, read, scanned }, ms(5));
        let path = marks.of(&key("web"));
        assert_eq!(path.marks.iter().map(|mark| (mark.hop, mark.at)).collect::<Vec<_>>(), expected);
        assert!(path.marks.iter().all(|mark| mark.by.as_deref() == Some("default")));
    }
}

#[test]
fn a_path_names_what_led_to_it_and_is_told_in_one_line_a_mark() {
    let mut marks = Marks::default();
    let (source, micros) = (SourceId::new("pods"), Duration::from_micros);
    pass(
        &mut marks,
        ("web", 7),
        Passage::Arrived { source: &source, read: None, scanned: None },
        micros(250),
    );
    pass(&mut marks, ("web", 7), Passage::Passed(Hop::Published), micros(1_250));
    let added = Mark::new(Hop::KeyAdded, "sites".into(), key("site")).by("pods").other(key("web"));
    marks.note(added.at(micros(1_250)));
    let told = marks.of(&key("web")).to_string();
    let lines: Vec<_> = told.lines().map(str::trim_start).collect();
    assert_eq!(
        lines,
        [
            "0.000 ms  +0.000     decoded     a/web version 7 in pods, pods",
            "1.000 ms  +1.000     published   a/web version 7 in pods",
            "1.000 ms  +0.000     key added   a/site in sites, pods, a/web",
        ]
    );
    assert_eq!(marks.of(&key("site")).marks.len(), 1);
}

#[derive(Debug, Clone)]
enum Said {
    Arrived { informer: u8, changes: Vec<(u8, u64)> },
    Passed { informer: u8, hop: usize, changes: Vec<(u8, u64)> },
    Delivered { informer: u8, to: u8, changes: Vec<(u8, u64)> },
    Handled { informer: u8, by: u8 },
    Noted { controller: u8, of: u8 },
    InformerEnds(u8),
    ControllerEnds(u8),
}

fn said() -> impl Strategy<Value = Said> {
    // Two objects may have one version: those of two clusters.
    let changes = || prop::collection::vec((0..4_u8, 1..12_u64), 1..4);
    prop_oneof![
        4 => (0..3_u8, changes()).prop_map(|(informer, changes)| Said::Arrived { informer, changes }),
        8 => (0..3_u8, 3..6_usize, changes())
            .prop_map(|(informer, hop, changes)| Said::Passed { informer, hop, changes }),
        4 => (0..3_u8, 0..2_u8, changes())
            .prop_map(|(informer, to, changes)| Said::Delivered { informer, to, changes }),
        2 => (0..3_u8, 0..2_u8).prop_map(|(informer, by)| Said::Handled { informer, by }),
        2 => (0..3_u8, 0..4_u8).prop_map(|(controller, of)| Said::Noted { controller, of }),
        1 => (0..3_u8).prop_map(Said::InformerEnds),
        1 => (0..3_u8).prop_map(Said::ControllerEnds),
    ]
}

const IN_INFORMER: [Hop; 6] =
    [Hop::Read, Hop::Scanned, Hop::Decoded, Hop::Queued, Hop::Published, Hop::Distributed];

proptest! {
    /// Against a list of all marks. An informer and a controller may have one name.
    #[test]
    fn all_marks_are_kept_in_order(all in prop::collection::vec((said(), 0..3_u64), 0..60)) {
        let (mut marks, mut naive) = (Marks::default(), Vec::<(bool, Mark)>::new());
        let mut unhandled = Vec::<Mark>::new();
        let (name, source) = (|number: u8| Arc::<str>::from(number.to_string()), SourceId::default());
        let mark = |hop, place: u8, of: (u8, u64), at| {
            let mark = Mark::new(hop, name(place), key(&of.0.to_string())).at(at);
            mark.version(Some(version(of.1)))
        };
        let mut at = Duration::ZERO;
        for (said, later) in all {
            at += Duration::from_secs(later);
            let mut tell = |informer: u8, step: Passage<'_>, changes: &[(u8, u64)]| {
                let changes = changes.iter();
                let changes: Vec<_> = changes.map(|of| (key(&of.0.to_string()), version(of.1))).collect();
                let changes = changes.iter().map(|(key, version)| (key, version, true));
                marks.pass(ALL, &name(informer), (step, at), changes);
            };
            match said {
                Said::Arrived { informer, changes } => {
                    tell(informer, Passage::Arrived { source: &source, read: Some(at), scanned: None }, &changes);
                    for (of, hop) in changes.into_iter().flat_map(|of| [(of, Hop::Read), (of, Hop::Decoded)]) {
                        naive.push((true, mark(hop, informer, of, at).by("default")));
                    }
                }
                Said::Passed { informer, hop, changes } => {
                    tell(informer, Passage::Passed(IN_INFORMER[hop]), &changes);
                    let marks = changes.into_iter().map(|of| mark(IN_INFORMER[hop], informer, of, at));
                    naive.extend(marks.map(|mark| (true, mark)));
                }
                Said::Delivered { informer, to, changes } => {
                    tell(informer, Passage::Delivered(&name(to)), &changes);
                    let marks = changes.into_iter().map(|of| mark(Hop::Delivered, informer, of, at).by(name(to)));
                    let marks: Vec<_> = marks.collect();
                    unhandled.extend(marks.clone());
                    naive.extend(marks.into_iter().map(|mark| (true, mark)));
                }
                Said::Handled { informer, by } => {
                    let is_of = |mark: &Mark| mark.place == name(informer) && mark.by == Some(name(by));
                    drop(marks.handled(at, &name(informer), &name(by)));
                    let handled = unhandled.extract_if(.., |mark| is_of(mark));
                    naive.extend(handled.map(|mark| (true, Mark { hop: Hop::Handled, at, ..mark })));
                }
                Said::Noted { controller, of } => {
                    let mark = mark(Hop::KeyTaken, controller, (of, 1), at);
                    marks.note(mark.clone());
                    naive.push((false, mark));
                }
                Said::InformerEnds(informer) => {
                    marks.forget_informer(&name(informer));
                    unhandled.retain(|mark| mark.place != name(informer));
                    naive.retain(|(is_informer, mark)| !is_informer || mark.place != name(informer));
                }
                Said::ControllerEnds(controller) => {
                    marks.forget_controller(&name(controller));
                    naive.retain(|(is_informer, mark)| *is_informer || mark.place != name(controller));
                }
            }
        }
        let naive: Vec<_> = naive.into_iter().map(|(_, mark)| mark).collect();
        prop_assert_eq!(marks.all().marks, naive.clone());
        let of_one = naive.into_iter().filter(|mark| mark.key == key("1")).collect::<Vec<_>>();
        prop_assert_eq!(marks.of(&key("1")).marks, of_one);
    }
}

#[test]
fn an_informer_that_is_full_forgets_its_oldest_change_and_the_path_says_so() {
    let mut marks = Marks::default();
    let many = MOST_CHANGES as u64;
    let at = Duration::from_secs;
    for number in 1..=many {
        pass(&mut marks, (&number.to_string(), number), queued(), at(number));
    }
    assert_eq!((marks.all().marks.len() as u64, marks.all().is_cut), (many, false));
    // Most slots have several versions by now; each is found.
    for number in 1..=many {
        pass(&mut marks, (&number.to_string(), number), Passage::Passed(Hop::Published), at(many + number));
    }
    assert_eq!((marks.all().marks.len() as u64, marks.all().is_cut), (2 * many, false), "none is twice");
    pass(&mut marks, ("new", many + 1), queued(), at(3 * many));
    assert!(marks.of(&key("1")).marks.is_empty() && marks.all().is_cut);
    pass(&mut marks, ("1", 1), Passage::Passed(Hop::Distributed), at(3 * many));
    assert_eq!(hops(&marks.of(&key("1"))), [Hop::Distributed], "the rest is gone");
    assert_eq!(hops(&marks.of(&key("3"))), [Hop::Queued, Hop::Published]);
}

#[test]
fn an_informer_of_many_subscribers_keeps_the_newest_deliveries() {
    let (mut marks, one): (_, Arc<str>) = (Marks::default(), "one".into());
    for number in 0..=MOST_MARKS {
        pass(&mut marks, ("web", 7), Passage::Delivered(&one), Duration::from_secs(number as u64));
    }
    let path = marks.all();
    assert_eq!((path.marks.len(), path.marks[0].at, path.is_cut), (MOST_MARKS, Duration::from_secs(1), true));
    drop(marks.handled(Duration::from_secs(9_999), &"pods".into(), &one));
    assert_eq!(marks.all().marks.len(), 2 * MOST_MARKS - 1, "one that is gone is not handled");
}

#[test]
fn a_controller_that_is_full_forgets_its_oldest_mark_and_the_path_says_so() {
    let mut marks = Marks::default();
    for number in 0..=MOST_MARKS {
        let mark = Mark::new(Hop::KeyTaken, "sites".into(), key("web"));
        marks.note(mark.at(Duration::from_secs(number as u64)));
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
        let at = Duration::from_secs(at);
        pass(&mut marks, ("web", number), queued(), at);
        pass(&mut marks, ("web", number), Passage::Delivered(&one), at);
        marks.handled(at + Duration::from_millis(took), &pods, &one)
    };
    assert_eq!(handle(1, 10, 1_000), None, "a second is not slow");
    let path = handle(2, 20, 1_001).expect("it is slow");
    assert_eq!(hops(&path), [Hop::Queued, Hop::Delivered, Hop::Handled], "of this change alone: {path}");
    assert_eq!(handle(3, 30, 5_000), None, "one was told seconds ago");
    assert!(handle(4, 700, 5_000).is_some());
}
