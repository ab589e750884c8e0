//! What authors of websites, other people, and a cluster that runs pods do in one world, drawn from its seed.
//!
//! Answers "what does the operator have to follow, and which of its children were taken from it?" What is done may meet what
//! is not there any more; then nothing happens. Invariants:
//! 1. One seed gives one list of actions and moments.
//! 2. A site with a number below [`OWN_HOSTS`] has a host that no other site wants: its parts are made once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use actix_informer::testing::{RandomNumbers, World};
use serde_json::json;

use super::stage::{DEPLOYMENTS, MAPS, SERVICES, SITES, create};

/// How many websites there are.
pub(crate) const WEBSITES: usize = 20;
/// How many of them have a host of their own. The others want one of two.
pub(crate) const OWN_HOSTS: usize = 16;
/// How often something is done.
const ACTIONS: usize = 20;

pub(crate) struct Users {
    world: World,
    dice: RefCell<RandomNumbers>,
    /// How often somebody has deleted a part of the site with this uid.
    taken: RefCell<BTreeMap<String, usize>>,
    /// When each website was made, in this order, by its name, and its uid.
    lives: RefCell<Vec<(String, Duration, String)>>,
}

impl Users {
    /// Makes all websites.
    pub(crate) fn new(world: &World) -> Self {
        let dice = RefCell::new(RandomNumbers::new(world.seed(), 20));
        let users = Self { world: world.clone(), dice, taken: RefCell::default(), lives: RefCell::default() };
        (0..WEBSITES).for_each(|site| users.make(site));
        users
    }

    /// Does what users do, at moments within this time.
    pub(crate) async fn act(&self, within: Duration) {
        for _ in 0..ACTIONS {
            let pause = self.below(2 * within.as_millis() as usize / ACTIONS);
            tokio::time::sleep(Duration::from_millis(pause as u64)).await;
            self.act_once();
        }
    }

    /// How often somebody has deleted a part of the site with this uid.
    pub(crate) fn taken_from(&self, uid: &str) -> usize {
        self.taken.borrow().get(uid).copied().unwrap_or_default()
    }

    /// The uid of the newest website of this name that was made before this moment.
    pub(crate) fn life_at(&self, name: &str, at: Duration) -> Option<String> {
        let lives = self.lives.borrow();
        let newest = lives.iter().rev().find(|(made, since, _)| made == name && *since <= at)?;
        Some(newest.2.clone())
    }

    /// Draws a number below this one.
    pub(crate) fn below(&self, bound: usize) -> usize {
        ((self.dice.borrow_mut().draw() * bound as f64) as usize).min(bound - 1)
    }

    fn act_once(&self) {
        let site = self.below(WEBSITES);
        let (server, name) = (self.world.server(), format!("site-{site}"));
        let change = |spec| drop(server.merge_patch(SITES, "default", &name, &json!({"spec": spec})));
        match self.below(10) {
            0 | 1 => change(json!({"page": format!("page {}", self.below(1_000))})),
            2 => change(json!({"replicas": self.below(4)})),
            3 => change(json!({"host": self.host(site)})),
            4 => drop(server.delete(SITES, "default", &name)),
            5 => {
                drop(server.delete(SITES, "default", &name));
                self.make(site);
            }
            6 => self.make(site),
            7 => self.take([MAPS, SERVICES, DEPLOYMENTS][self.below(3)], &name),
            _ => {
                let ready = self.below(4);
                let status = json!({"status": {"replicas": ready, "readyReplicas": ready}});
                drop(server.merge_patch("deployments.apps/status", "default", &name, &status));
            }
        }
    }

    fn make(&self, site: usize) {
        let name = format!("site-{site}");
        let made = create(&self.world, &name, &self.host(site));
        let at = self.world.runtime().now();
        self.lives.borrow_mut().extend(made.map(|uid| (name, at, uid)));
    }

    fn host(&self, site: usize) -> String {
        match site {
            0..OWN_HOSTS => format!("site-{site}-{}.example.org", self.below(2)),
            _ => format!("shared-{}.example.org", self.below(2)),
        }
    }

    /// Deletes a part of a site, as somebody does who does not know whose it is.
    fn take(&self, resource: &str, name: &str) {
        let Ok(part) = self.world.server().delete(resource, "default", name) else { return };
        let uid = part["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default().to_owned();
        *self.taken.borrow_mut().entry(uid).or_default() += 1;
    }
}
