//! Owners that are deleted in the background, in the foreground, and with their children left behind.

use super::*;

const PARTS: Parts = &["sites"];

/// How an owner was deleted, and which of its children were there then.
struct Left {
    is_orphaned: bool,
    children: BTreeSet<String>,
}

/// The maps that a site controls.
fn controlled(world: &World, site: &str) -> BTreeSet<String> {
    let all = world.server().list(MAPS).expect("they are served");
    let is_of = |map: &&Value| map["metadata"]["ownerReferences"][0]["name"] == site;
    let name = |map: &Value| map["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    all.iter().filter(is_of).map(name).collect()
}

fn run(seed: u64, how: &DeleteParams, is_orphaned: bool) {
    World::simulated(seed).run(|world| async move {
        let users = Users::new(&world, PARTS);
        world.start("operator", |host| operate(host, PARTS));
        let lefts = RefCell::new(Vec::new());
        let act = async {
            for _ in 0..10 {
                users.pause(TROUBLED / 5).await;
                users.change(users.below(OWNERS));
            }
        };
        futures_util::join!(act, world.disturb(3, TROUBLED));
        world.eventually(1_200 * SECOND, || is_right(&world, PARTS)).await;
        // All of them go, while the operator may see old states of them and of their children.
        let deletions = async {
            for site in 0..OWNERS {
                users.pause(4 * SECOND).await;
                let name = format!("site-{site}");
                let children = controlled(&world, &name);
                lefts.borrow_mut().push(Left { is_orphaned, children });
                users.delete(site, how).await;
            }
        };
        futures_util::join!(deletions, world.disturb(6, TROUBLED / 2));
        let is_over = || {
            let sites = world.server().list(SITES).expect("they are served");
            if !sites.is_empty() {
                return Err(format!("{} owners are left", sites.len()));
            }
            let controlled: Vec<_> =
                (0..OWNERS).map(|site| controlled(&world, &format!("site-{site}"))).collect();
            let is_free = controlled.iter().all(BTreeSet::is_empty);
            if is_free { Ok(()) } else { Err(format!("children of owners that are gone: {controlled:?}")) }
        };
        world.eventually(1_200 * SECOND, is_over).await;
        world.settles(20 * SECOND, 300 * SECOND).await;
        is_over().expect("what has settled stays");
        let there = maps(&world);
        for Left { is_orphaned, children } in lefts.borrow().iter() {
            if *is_orphaned {
                let gone: Vec<_> = children.difference(&there).collect();
                assert!(gone.is_empty(), "they were to stay behind: {gone:?}");
            } else {
                let left: Vec<_> = children.intersection(&there).collect();
                assert!(left.is_empty(), "they are left: {left:?}");
            }
        }
        assert!(is_orphaned || there.is_empty(), "{there:?}");
    });
}

#[test]
fn operator_worlds_an_owner_deleted_in_the_background_leaves_no_child() {
    each_seed(SEEDS, |seed| run(seed, &DeleteParams::background(), false));
}

#[test]
fn operator_worlds_an_owner_deleted_in_the_foreground_leaves_no_child() {
    each_seed(SEEDS, |seed| run(seed, &DeleteParams::foreground(), false));
}

#[test]
fn operator_worlds_the_children_of_an_owner_deleted_with_orphans_stay_behind() {
    each_seed(SEEDS, |seed| run(seed, &DeleteParams::orphan(), true));
}
