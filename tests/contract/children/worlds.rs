//! Whose children are whose, in many worlds: what users, crashes and the garbage collector do is drawn from a seed.
//!
//! Answers "is a child of another ever deleted, and is one of ours ever left?" `INFORMER_SIM_SEEDS=300 cargo test --all-features
//! --test contract operator_worlds` runs more seeds. For each seed:
//! 1. No process deletes what another manager has made and wants, nor what a person has made.
//! 2. In the end there are exactly the children that the owners want, and what users made.
//! 3. It ends: nobody sends anything any more.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::error::Error;
use std::time::Duration;

use actix_informer::client::api::DeleteParams;
use actix_informer::controller::{Controller, Outcome, Owns, ReconcileError, Request};
use actix_informer::leader_election::{LeaderElection, LeaseName};
use actix_informer::reconcile::{Adopt, ChildPolicy};
use actix_informer::testing::{Host, RandomNumbers, World, each_seed};

use super::*;

mod deletions;
mod leaders;
mod managers;

const SITES: &str = "sites.example.org";
const MAPS: &str = "configmaps";
const SECOND: Duration = Duration::from_secs(1);
/// How many owners there are.
const OWNERS: usize = 4;
/// How many pages each of them may want of each manager.
const PAGES: usize = 3;
/// How long users act and things go wrong.
const TROUBLED: Duration = Duration::from_secs(40);

/// The seeds of a usual run; `.ci/long` runs 300.
const SEEDS: std::ops::Range<u64> = 0..20;

type Failed = Box<dyn Error>;

/// What a process makes of a site: the children of each of its managers, as passes of one reconcile.
type Parts = &'static [&'static str];

/// The name of the child of one manager for one wish of a site.
fn child_name(site: &str, manager: &str, wish: &str) -> String {
    if wish == "shared" { format!("{site}-shared") } else { format!("{site}-{manager}-{wish}") }
}

/// The children that this manager has to make for a site: a wish is `manager/page`, or `manager/shared`.
fn wanted<'a>(pages: &'a [String], manager: &'a str) -> impl Iterator<Item = &'a str> {
    pages.iter().filter_map(move |page| page.strip_prefix(manager)?.strip_prefix('/'))
}

/// A process that reconciles sites, with one `Children` for each of its managers.
async fn operate(host: Host, parts: Parts) -> Result<(), Failed> {
    let (client, runtime) = (host.client(), host.runtime());
    let sites = client.resource::<Site>().informer(runtime)?.start()?;
    let maps = client.resource::<ConfigMap>().informer(runtime)?.start()?;
    let children: Vec<_> =
        parts.iter().map(|part| (*part, Children::new(client, *part).cached(&maps.lister()))).collect();
    let reconcile = move |request: Request<Site>| {
        let children = children.clone();
        async move {
            let site = request.object().filter(|site| site.metadata.deletion_timestamp.is_none());
            let Some(site) = site else { return Ok::<_, ReconcileError>(Outcome::Done) };
            for (part, children) in &children {
                let mut pass = children.of(&request, site)?;
                for wish in wanted(&site.spec.pages, part) {
                    let text = if wish == "shared" { wish } else { part };
                    // What two controllers make together, each of them takes.
                    let policy = ChildPolicy::new();
                    let policy = if wish == "shared" { policy.adopt(Adopt::Always) } else { policy };
                    pass.apply_with(page(&child_name(site.key().name(), part, wish), text), &policy).await?;
                }
                pass.prune().await?;
            }
            Ok(Outcome::Done)
        }
    };
    let controller = Controller::builder(&sites).owns(&maps).workers(2).reconcile(reconcile).start()?;
    host.stopping().await;
    controller.shut_down();
    controller.ended().await;
    Ok(())
}

/// The users of one world.
struct Users {
    world: World,
    dice: RefCell<RandomNumbers>,
    parts: Parts,
}

impl Users {
    fn new(world: &World, parts: Parts) -> Self {
        let dice = RefCell::new(RandomNumbers::new(world.seed(), 31));
        define_sites(world.server());
        let users = Self { world: world.clone(), dice, parts };
        (0..OWNERS).for_each(|site| users.make(site));
        users
    }

    fn below(&self, bound: usize) -> usize {
        ((self.dice.borrow_mut().draw() * bound as f64) as usize).min(bound - 1)
    }

    /// What a site may want, drawn anew.
    fn pages(&self) -> Vec<String> {
        let mut pages = Vec::new();
        for part in self.parts {
            let each = (0..PAGES).filter(|_| self.below(2) == 0).map(|number| format!("{part}/{number}"));
            pages.extend(each.collect::<Vec<_>>());
            if self.below(2) == 0 {
                pages.push(format!("{part}/shared"));
            }
        }
        pages
    }

    /// Makes a site, and something of a person's own that it controls.
    fn make(&self, site: usize) {
        let name = format!("site-{site}");
        let mut made = super::site(&name);
        made["spec"]["pages"] = json!(self.pages());
        let Ok(made) = self.world.server().create(made) else { return };
        let owner = json!([{"apiVersion": "example.org/v1", "kind": "Site", "name": name, "controller": true,
            "uid": made["metadata"]["uid"]}]);
        let metadata =
            json!({"name": format!("{name}-person"), "namespace": "default", "ownerReferences": owner});
        let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let server = self.world.server();
        if server.create(theirs.clone()).is_err() {
            drop(server.delete(MAPS, "default", &format!("{name}-person")));
            server.create(theirs).expect("it is gone");
        }
    }

    /// Changes what a site wants.
    fn change(&self, site: usize) {
        let pages = json!({"spec": {"pages": self.pages()}});
        drop(self.world.server().merge_patch(SITES, "default", &format!("site-{site}"), &pages));
    }

    async fn pause(&self, most: Duration) {
        tokio::time::sleep(Duration::from_millis(self.below(most.as_millis() as usize) as u64)).await;
    }

    /// Deletes a site so.
    async fn delete(&self, site: usize, how: &DeleteParams) {
        let sites = self.world.client().api::<Site>().namespaced("default");
        let is_down = |error: &actix_informer::client::Error| !error.is_not_found();
        while sites.delete(&format!("site-{site}"), how).await.is_err_and(|error| is_down(&error)) {
            tokio::time::sleep(SECOND).await;
        }
    }
}

/// The names of the maps that are there.
fn maps(world: &World) -> BTreeSet<String> {
    let all = world.server().list(MAPS).expect("they are served");
    let name = |map: &Value| map["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    all.iter().map(name).filter(|name| name.starts_with("site-")).collect()
}

/// Whether each site has the children that it wants, and there are no others.
fn is_right(world: &World, parts: Parts) -> Result<(), String> {
    let mut expected = BTreeSet::new();
    for site in world.server().list(SITES).expect("they are served") {
        let name = site["metadata"]["name"].as_str().unwrap_or_default();
        if !site["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!("{name} is still being deleted"));
        }
        let pages: Vec<String> = serde_json::from_value(site["spec"]["pages"].clone()).expect("texts");
        for part in parts {
            expected.extend(wanted(&pages, part).map(|wish| child_name(name, part, wish)));
        }
        expected.insert(format!("{name}-person"));
    }
    let found = maps(world);
    if found == expected { Ok(()) } else { Err(format!("{found:?}, and not {expected:?}")) }
}

/// Panics if a process has deleted what a person or a process of other managers has made.
fn check_deletions(world: &World, managers_of: impl Fn(&str) -> Parts) {
    for asked in world.requests().iter().filter(|asked| asked.method == "DELETE") {
        let path = asked.path.split('?').next().unwrap_or_default();
        let child = path.rsplit('/').next().unwrap_or_default();
        let is_its_own = child.ends_with("-shared")
            || managers_of(&asked.process).iter().any(|part| child.contains(&format!("-{part}-")));
        let is_a_users = !world.processes().iter().any(|process| process.name() == &*asked.process);
        assert!(is_its_own || is_a_users, "{} deleted {child}", asked.process);
    }
}
