//! Large net results of watch-lists: moved in slices, delivered once.

use std::time::Duration;

use super::script::{frame, version, watch_lists};
use crate::delta::listed_bytes;
use crate::reflector::{Delivery, Effect, ListWatchMachine, Moment, StreamId};

/// A machine that has just received so many initial events, the end bookmark, and one live frame.
fn ended_after(count: usize) -> (ListWatchMachine<()>, StreamId) {
    let at = Moment { now: Duration::ZERO, chance: 0.0 };
    let mut machine = ListWatchMachine::new(watch_lists(), None);
    machine.start();
    assert!(matches!(machine.poll_effect(), Some(Effect::AcquireListPermit)));
    machine.handle_list_permit(at);
    let Some(Effect::Watch { stream, .. }) = machine.poll_effect() else { panic!("not a watch") };
    let initial = (0..count).map(|index| frame(&format!("o{index}@1")));
    let parts = initial.chain([frame("*3end"), frame("last@4")]).collect();
    machine.handle_watch_parts(stream, parts, at);
    (machine, stream)
}

#[test]
fn a_large_net_result_is_gathered_in_slices_and_delivered_once() {
    let (mut machine, _) = ended_after(750);
    let mut effects = Vec::new();
    while let Some(effect) = machine.poll_effect() {
        effects.push(effect);
    }
    let [Effect::Yield, Effect::Yield, Effect::Deliver(replace), Effect::Deliver(delta)] = effects.as_slice()
    else {
        panic!("{} effects", effects.len());
    };
    let Delivery::Replace(whole) = replace else { panic!("no Replace") };
    assert_eq!((whole.objects.len(), whole.bytes), (750, listed_bytes(&*whole.objects, &[])));
    assert!(matches!(delta, Delivery::Delta(parts) if parts.len() == 1));
}

#[test]
fn what_happens_before_a_large_net_result_is_gathered_comes_after_it() {
    let (mut machine, stream) = ended_after(750);
    assert!(matches!(machine.poll_effect(), Some(Effect::Yield)));
    machine.handle_watch_parts(stream, vec![frame("later@5")], Moment { now: Duration::ZERO, chance: 0.0 });
    let delivered: Vec<_> = std::iter::from_fn(|| machine.poll_effect()).collect();
    let [Effect::Deliver(Delivery::Replace(_)), Effect::Deliver(Delivery::Delta(_)), Effect::Deliver(last)] =
        delivered.as_slice()
    else {
        panic!("{delivered:?}");
    };
    assert!(matches!(last, Delivery::Delta(parts) if parts[0].version() == &version("5")));
}
