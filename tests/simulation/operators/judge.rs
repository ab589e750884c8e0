//! What users do in a run, what is outside of the cluster, and what must be true in the end.
//!
//! Answers "has the operator made of each site what it should be, and did it keep its own rules?". Invariants:
//! 1. The judge reads what is stored, not what the operator says.
//! 2. A process works on a key once at a time; a crash ends its work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actix_informer::prelude::*;
use actix_informer::testing::World;
use serde_json::{Value, json};

use super::plan::Plan;
use super::site::{CHILD, NAMESPACE, ROLE, THEME, child_name};
use crate::dice::Dice;

const SITES: &str = "websites.example.org";
const MAPS: &str = "configmaps";
const THEMES: usize = 3;

/// What is outside of the cluster: one entry for each site, and what processes work on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outside(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    entries: BTreeSet<String>,
    flights: BTreeSet<(String, ObjectKey)>,
    begun: u64,
    twice: Vec<String>,
}

/// The work on one key; its end is the drop.
pub(crate) struct Flight(Outside, (String, ObjectKey));

impl Outside {
    pub(crate) fn add(&self, name: &str) {
        self.state().entries.insert(name.to_owned());
    }

    pub(crate) fn remove(&self, name: &str) {
        self.state().entries.remove(name);
    }

    pub(crate) fn begin(&self, process: &str, key: &ObjectKey) -> Flight {
        let flight = (process.to_owned(), key.clone());
        let mut state = self.state();
        state.begun += 1;
        if !state.flights.insert(flight.clone()) {
            state.twice.push(format!("{flight:?}"));
        }
        Flight(self.clone(), flight)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.state().flights.remove(&self.1);
    }
}

/// The users of one world, and what they want.
pub(crate) struct Truth {
    world: World,
    plan: Plan,
    outside: Outside,
}

impl Truth {
    pub(crate) fn new(world: &World, plan: Plan) -> Self {
        let truth = Self { world: world.clone(), plan, outside: Outside::default() };
        for theme in 0..THEMES {
            truth.put_theme(theme, "red");
        }
        for site in 0..truth.plan.sites {
            truth.make_site(site, &mut Dice::new(truth.plan.seed ^ site as u64));
        }
        truth
    }

    pub(crate) fn outside(&self) -> Outside {
        self.outside.clone()
    }

    /// Does what users do, at moments of the seed.
    pub(crate) async fn act(&self) {
        let mut dice = Dice::new(!self.plan.seed);
        let most = self.plan.lasts.as_millis() as usize / self.plan.actions.max(1);
        for _ in 0..self.plan.actions {
            let pause = dice.below(2 * most + 1) as u64;
            tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
            self.act_once(&mut dice);
        }
    }

    /// What it does may meet what is not there: then nothing happens.
    fn act_once(&self, dice: &mut Dice) {
        let server = self.world.server();
        let site = dice.below(self.plan.sites);
        let name = format!("site-{site}");
        match dice.below(10) {
            0..=3 => {
                let patch = json!({"spec": {"text": format!("text {}", dice.below(1_000))}});
                drop(server.merge_patch(SITES, NAMESPACE, &name, &patch));
            }
            4 | 5 => drop(server.delete(SITES, NAMESPACE, &name)),
            6 => {
                drop(server.delete(SITES, NAMESPACE, &name));
                self.make_site(site, dice);
            }
            7 => drop(server.delete(MAPS, NAMESPACE, &child_name(&name))),
            8 => self.put_theme(dice.below(THEMES), ["red", "blue", "green"][dice.below(3)]),
            // Only who looks without a reason can find out.
            _ if self.plan.every.is_some() => self.outside.remove(&name),
            _ => self.make_site(site, dice),
        }
    }

    fn make_site(&self, site: usize, dice: &mut Dice) {
        let theme = self.plan.themes.then(|| format!("theme-{}", dice.below(THEMES)));
        let made = self.world.server().create(json!({
            "apiVersion": "example.org/v1", "kind": "Website",
            "metadata": {"name": format!("site-{site}"), "namespace": NAMESPACE},
            "spec": {"text": format!("text {}", dice.below(1_000)), "theme": theme},
        }));
        // It may be there already, or still be on its way out.
        assert!(made.map_or_else(|error| error.code() == 409, |_| true));
    }

    fn put_theme(&self, theme: usize, colour: &str) {
        let name = format!("theme-{theme}");
        let data = json!({"data": {"colour": colour}});
        if self.world.server().merge_patch(MAPS, NAMESPACE, &name, &data).is_err() {
            let labels = json!({ROLE: THEME});
            let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": labels});
            let map =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data["data"]});
            self.world.server().create(map).expect("themes stay");
        }
    }

    /// Whether all is as it should be, or the first thing that is not.
    pub(crate) fn is_converged(&self) -> Result<(), String> {
        let list = |resource| self.world.server().list(resource).expect("both are served");
        let sites = list(SITES);
        let maps: BTreeMap<String, Value> = list(MAPS).into_iter().map(|map| (name_of(&map), map)).collect();
        for site in &sites {
            self.is_right(site, &maps).map_err(|wrong| format!("{}: {wrong}", name_of(site)))?;
        }
        let names: BTreeSet<String> = sites.iter().map(name_of).collect();
        let children: BTreeSet<String> = names.iter().map(|name| child_name(name)).collect();
        let is_child = |map: &Value| map["metadata"]["labels"][ROLE] == CHILD;
        let orphan = maps.iter().find(|(name, map)| is_child(map) && !children.contains(*name));
        if let Some((name, _)) = orphan {
            return Err(format!("{name} has no site any more"));
        }
        let (entries, wanted) =
            (self.outside.state().entries.clone(), if self.plan.outside { names } else { BTreeSet::new() });
        if entries != wanted {
            return Err(format!("outside there are {entries:?}, and sites {wanted:?}"));
        }
        Ok(())
    }

    fn is_right(&self, site: &Value, maps: &BTreeMap<String, Value>) -> Result<(), String> {
        let meta = &site["metadata"];
        if !meta["deletionTimestamp"].is_null() {
            return Err(format!("is not deleted yet: {}", meta["finalizers"]));
        }
        let child = maps.get(&child_name(&name_of(site))).ok_or("has no child")?;
        let colour = site["spec"]["theme"].as_str().map(|theme| maps[theme]["data"]["colour"].clone());
        let wanted = json!({"text": site["spec"]["text"], "colour": colour.unwrap_or_else(|| json!(""))});
        if child["data"] != wanted {
            return Err(format!("its child has {}, not {wanted}", child["data"]));
        }
        let owners = child["metadata"]["ownerReferences"].as_array().ok_or("its child has no owner")?;
        if owners.len() != 1 || owners[0]["uid"] != meta["uid"] {
            return Err(format!("its child belongs to {owners:?}"));
        }
        if site["status"]["observedGeneration"] != meta["generation"] {
            return Err(format!("its status is {}", site["status"]));
        }
        Ok(())
    }

    /// No process worked twice on a key at once, and each worked at all.
    pub(crate) fn check_flights(&self) {
        let state = self.outside.state();
        assert!(state.twice.is_empty(), "worked on twice at once: {:?}", state.twice);
        assert!(state.flights.is_empty(), "{:?}", state.flights);
    }
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
