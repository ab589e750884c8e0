//! Two controllers over one owner, and two parts of one reconcile: each has a field manager of its own.

use super::*;

/// Users change what sites want, delete sites and children, and add to what is there; things go wrong.
fn run(seed: u64, processes: &'static [(&'static str, Parts)], parts: Parts) {
    World::simulated(seed).run(|world| async move {
        let users = Users::new(&world, parts);
        for (name, parts) in processes {
            world.start(name, move |host| operate(host, parts));
        }
        let act = async {
            for _ in 0..20 {
                users.pause(TROUBLED / 10).await;
                let site = users.below(OWNERS);
                match users.below(8) {
                    0..=3 => users.change(site),
                    4 => users.delete(site, &DeleteParams::background()).await,
                    5 => users.make(site),
                    6 => {
                        let (part, number) = (parts[users.below(parts.len())], users.below(PAGES));
                        let name = child_name(&format!("site-{site}"), part, &number.to_string());
                        drop(world.server().delete(MAPS, "default", &name));
                    }
                    _ => {
                        let note = json!({"metadata": {"annotations": {"note": "a person's"}}});
                        let name = format!("site-{site}-shared");
                        drop(world.server().merge_patch(MAPS, "default", &name, &note));
                    }
                }
            }
        };
        futures_util::join!(act, world.disturb(6, TROUBLED));
        world.eventually(1_200 * SECOND, || is_right(&world, parts)).await;
        world.settles(20 * SECOND, 300 * SECOND).await;
        is_right(&world, parts).expect("what has settled stays");
        check_deletions(&world, |process| {
            processes.iter().find(|(name, _)| *name == process).map_or(&[][..], |(_, parts)| parts)
        });
    });
}

#[test]
fn operator_worlds_two_controllers_over_one_owner_delete_nothing_of_each_other_and_leave_nothing() {
    each_seed(SEEDS, |seed| run(seed, &[("dns", &["dns"]), ("tls", &["tls"])], &["dns", "tls"]));
}

#[test]
fn operator_worlds_two_parts_of_one_reconcile_delete_nothing_of_each_other_and_leave_nothing() {
    each_seed(SEEDS, |seed| run(seed, &[("both", &["dns", "tls"])], &["dns", "tls"]));
}
