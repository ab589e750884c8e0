//! Texts that are compressed, read while they are compressed again, and dictionaries that follow the objects.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::machine::FIRST;
use super::*;
use crate::representation::compressed::SAMPLE_BYTES;
use crate::representation::{Controlled, ReadFields, ReadMetadata};

/// Of 40 applications, each with values of its own.
fn map(of: &str, number: usize) -> Value {
    let app = format!("{of}-{}", number % 40);
    json!({
        "metadata": {
            "name": format!("{app}-{number:05}"), "namespace": "shop", "uid": format!("{:016x}", (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            "resourceVersion": (1_000 + number).to_string(),
            "labels": {"app": app}, "ownerReferences": [{"apiVersion": "v1", "kind": "Shop", "name": app, "uid": "u", "controller": true}],
        },
        "data": {
            "host": format!("{app}.shop.svc.cluster.local"),
            "settings": (0..12).map(|at| format!("{of}.settings.number-{at}={};", (number % 40) * at)).collect::<String>(),
        },
    })
}

fn kept(packed: &Packed<ConfigMap>, object: &Value) -> LazyBody<ConfigMap> {
    packed.keep(&Encoded::json(&object.to_string()), &Prune::nothing()).expect("it is an object")
}

fn text(object: &Value) -> String {
    Lazy::<ConfigMap>::new()
        .keep(&Encoded::json(&object.to_string()), &Prune::nothing())
        .expect("it is an object")
        .text()
        .into_owned()
}

fn upkeep(packed: &Packed<ConfigMap>) -> Arc<dyn Upkeep<LazyBody<ConfigMap>>> {
    packed.upkeep().expect("it has one")
}

fn renew_all(upkeep: &dyn Upkeep<LazyBody<ConfigMap>>, bodies: &[LazyBody<ConfigMap>]) {
    for body in bodies {
        assert_eq!(upkeep.renew(body), body.kept_bytes());
    }
}

fn bytes(bodies: &[LazyBody<ConfigMap>]) -> usize {
    bodies.iter().map(LazyBody::kept_bytes).sum()
}

#[test]
fn a_packed_body_reads_as_the_lazy_one_does() {
    let object = map("web", 7);
    let lazy = Lazy::<ConfigMap>::new().keep(&Encoded::json(&object.to_string()), &Prune::nothing()).unwrap();
    let packed = kept(&Packed::new(), &object);
    assert_eq!((packed.text(), packed == lazy), (lazy.text(), true));
    assert_eq!(*packed.decoded().unwrap(), *lazy.decoded().unwrap());
    assert_eq!((packed.metadata(), packed.label("app")), (lazy.metadata(), lazy.label("app")));
    assert_eq!((packed.owner_uids(), packed.controller()), (lazy.owner_uids(), lazy.controller()));
    let host = "data.host".parse().unwrap();
    assert_eq!(packed.values_at(&host).unwrap(), ["web-7.shop.svc.cluster.local"]);
    assert_eq!((packed.clone().text(), packed.kept_bytes() < lazy.kept_bytes()), (lazy.text(), true));
}

#[test]
fn a_dictionary_is_trained_after_a_thousand_texts_and_what_was_kept_before_is_compressed_by_it() {
    let packed = Packed::new();
    let objects: Vec<Value> = (0..FIRST).map(|number| map("web", number)).collect();
    let (upkeep, mut bodies) = (upkeep(&packed), Vec::new());
    for object in &objects {
        assert!(Arc::clone(&upkeep).due().now_or_never().is_none(), "there are too few texts");
        bodies.push(kept(&packed, object));
    }
    let before = bytes(&bodies);
    let turn = Arc::clone(&upkeep).due().now_or_never().expect("there are enough");
    assert!(Arc::clone(&upkeep).due().now_or_never().is_none(), "one does it for all");
    upkeep.prepare();
    assert!(upkeep.round_ended(), "a dictionary is trained");
    for body in &bodies {
        upkeep.renew(body);
    }
    assert!(!upkeep.round_ended());
    drop(turn);
    assert!(upkeep.due().now_or_never().is_none(), "nothing is left to do");
    assert!(bytes(&bodies) * 2 < before, "{} of {before} bytes", bytes(&bodies));
    for (body, object) in bodies.iter().zip(&objects) {
        assert_eq!(body.text(), text(object));
    }
}

#[test]
fn another_population_gets_another_dictionary_and_the_former_one_is_freed() {
    let packed = Packed::new();
    let upkeep = upkeep(&packed);
    let mut trainings = 0;
    let mut round = |of: &str, numbers: std::ops::Range<usize>| {
        let bodies: Vec<_> = numbers.map(|number| kept(&packed, &map(of, number))).collect();
        let before = Arc::clone(&packed.packer.state().newest);
        upkeep.prepare();
        let trained = !Arc::ptr_eq(&before, &packed.packer.state().newest);
        trainings += usize::from(trained);
        renew_all(&*upkeep, &bodies);
        (bodies, trained)
    };
    let (web, _) = round("web", 0..FIRST);
    for n in 1..3 {
        let (_, trained) = round("web", n * 5_000..(n + 1) * 5_000);
        assert!(!trained, "the same population, round {n}");
    }
    let small = bytes(&web);
    // Longer than the whole history before.
    let kinds: Vec<_> = (0..4)
        .map(|n| round("completely/other-words-which-are-not-known", n * 5_000..(n + 1) * 5_000))
        .collect();
    assert_eq!(kinds.iter().filter(|(_, trained)| *trained).count(), 1, "once for the new population");
    drop(kinds);
    assert!(upkeep.round_ended(), "the first objects still have the first dictionary");
    renew_all(&*upkeep, &web);
    assert!(!upkeep.round_ended());
    assert!(bytes(&web) < small * 3 / 2, "the old population is still known: {} of {small}", bytes(&web));
    assert_eq!(web[7].text(), text(&map("web", 7)));
    assert_eq!(trainings, 2);
}

#[test]
fn a_body_is_read_by_many_while_it_is_compressed_again() {
    let packed = Packed::new();
    let bodies: Vec<_> = (0..FIRST).map(|number| kept(&packed, &map("web", number))).collect();
    let (upkeep, done) = (upkeep(&packed), AtomicBool::new(false));
    let expected: Vec<String> = (0..FIRST).map(|number| text(&map("web", number))).collect();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    for (body, expected) in bodies.iter().zip(&expected) {
                        assert_eq!(body.text(), *expected);
                    }
                }
            });
        }
        upkeep.prepare();
        renew_all(&*upkeep, &bodies);
        done.store(true, Ordering::Release);
    });
    assert!(!upkeep.round_ended());
}

#[test]
fn a_long_text_is_compressed_whole_and_only_its_beginning_is_a_sample() {
    let packed = Packed::new();
    let mut object = map("web", 0);
    object["data"]["file"] = "é".repeat(SAMPLE_BYTES).into();
    let body = kept(&packed, &object);
    assert_eq!(body.text(), text(&object));
    let sample = packed.packer.state().samples[0].content().unwrap();
    assert!((SAMPLE_BYTES - 1..=SAMPLE_BYTES).contains(&sample.len()), "{} bytes", sample.len());
}

#[test]
fn texts_that_are_too_short_to_train_on_are_kept_without_a_dictionary() {
    let packed = Packed::new();
    let object = json!({"metadata": {"name": "a"}});
    let bodies: Vec<_> = (0..FIRST).map(|_| kept(&packed, &object)).collect();
    let upkeep = upkeep(&packed);
    upkeep.prepare();
    renew_all(&*upkeep, &bodies);
    assert_eq!((bodies[0].text(), upkeep.round_ended()), (text(&object).into(), false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_text_comes_back_by_every_dictionary(texts in prop::collection::vec(".{0,400}", 1..20)) {
        let none = Arc::new(Dictionary::none());
        let of_words = Arc::new(Dictionary::of(&texts.concat().into_bytes().repeat(20)).unwrap());
        for text in &texts {
            for dictionary in [&none, &of_words] {
                prop_assert_eq!(&Frame::of(text.as_bytes(), Arc::clone(dictionary)).unwrap().content().unwrap(), text.as_bytes());
            }
        }
    }

    #[test]
    fn samples_are_where_a_plain_list_of_them_has_room(sizes in prop::collection::vec((1..10_000_usize, 1..1_000_usize), 0..3_000)) {
        let (mut drift, mut samples) = (Drift::default(), 0);
        for (since, (long, packed)) in (1..).zip(sizes) {
            if let Some(place) = drift.note(long, packed) {
                prop_assert!(place <= samples && place < FIRST);
                samples = samples.max(place + 1);
            }
            prop_assert_eq!(drift.is_due(), since >= FIRST, "nothing is trained yet");
        }
    }
}

#[test]
fn trainings_are_ever_rarer_also_if_every_window_is_worse() {
    let (mut drift, mut trainings) = (Drift::default(), Vec::new());
    for n in 1..2_000_000_u64 {
        drift.note(1_000, usize::try_from(n / 100).unwrap());
        if drift.is_due() {
            drift.trained(true);
            trainings.push(n);
        }
    }
    assert_eq!(trainings[0], FIRST as u64);
    assert!(trainings.len() < 12, "{trainings:?}");
    assert!(
        trainings.windows(2).all(|two| two[1] >= two[0] * 2 || two[1] - two[0] >= 1_000_000),
        "{trainings:?}"
    );
}
