//! What users do in a run, and what must be true in the end.
//!
//! Answers "has the operator made of each site what it should be, and did it keep its own rules?". Invariants:
//! 1. Of objects the judge reads what is stored, not what the operator says.
//! 2. What the operator counts is judged too: how long it held a key, and the events that it gave.
//!
//! Read next: `trouble.rs`, what is done to the operator; `outside.rs`, `audit.rs`, what is judged while it happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actix_informer::testing::World;
use serde_json::{Value, json};

use super::outside::{Life, Outside};
use super::plan::{Plan, WRITE_WAIT};
use super::site::{CHILD, MAPS, NAMESPACE, ROLE, SITES, THEME, child_name, mirror_name};
use crate::dice::Dice;

const EVENTS: &str = "events.events.k8s.io";
const THEMES: usize = 3;

/// The users of one world, and what they want.
pub(crate) struct Truth {
    pub(super) world: World,
    pub(super) plan: Plan,
    pub(super) outside: Outside,
}

impl Truth {
    pub(crate) fn new(world: &World, plan: Plan) -> Self {
        let outside = Outside::new(world.runtime().now());
        let truth = Self { world: world.clone(), plan, outside };
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
            tokio::time::sleep(Duration::from_millis(pause)).await;
            self.act_once(&mut dice);
        }
    }

    /// The versions of all sites and config maps.
    pub(crate) fn versions(&self) -> String {
        let listed = |resource| self.world.server().list(resource).expect("both are served");
        let objects = [SITES, MAPS].into_iter().flat_map(listed);
        let version = |object: Value| object["metadata"]["resourceVersion"].to_string();
        objects.map(version).collect()
    }

    /// The name of a site, if there is one.
    pub(super) fn any_site(&self) -> Option<String> {
        self.world.server().list(SITES).expect("they are served").first().map(name_of)
    }

    /// Whether one replica alone works in the end.
    pub(super) fn is_one_at_work(&self) -> bool {
        self.plan.replicas == 1 || self.plan.takeover.is_some()
    }

    pub(super) fn patch(&self, site: &str, patch: &Value) {
        drop(self.world.server().merge_patch(SITES, NAMESPACE, site, patch));
    }

    /// What it does may meet what is not there: then nothing happens.
    fn act_once(&self, dice: &mut Dice) {
        let server = self.world.server();
        let site = dice.below(self.plan.sites);
        let name = format!("site-{site}");
        match dice.below(11) {
            0..=2 => {
                let text = format!("text {}", dice.below(1_000));
                self.patch(&name, &json!({"spec": {"text": text}}));
            }
            3 => self.patch(&name, &json!({"spec": {"mirror": self.plan.mirrors && dice.one_in(2)}})),
            4 | 5 => drop(server.delete(SITES, NAMESPACE, &name)),
            6 => {
                drop(server.delete(SITES, NAMESPACE, &name));
                self.make_site(site, dice);
            }
            7 => drop(server.delete(MAPS, NAMESPACE, &dice.pick(&[child_name(&name), mirror_name(&name)]))),
            8 => self.put_theme(dice.below(THEMES), ["red", "blue", "green"][dice.below(3)]),
            9 => self.spoil(&dice.pick(&[child_name(&name), mirror_name(&name)])),
            // Only who looks without a reason can find out.
            _ if self.plan.every.is_some() => drop(self.outside.state().entries.remove(&name)),
            _ => self.make_site(site, dice),
        }
    }

    /// Somebody changes a child, which is not theirs.
    pub(super) fn spoil(&self, child: &str) {
        let patch = json!({"data": {"text": "of somebody else"}});
        drop(self.world.server().merge_patch(MAPS, NAMESPACE, child, &patch));
    }

    fn make_site(&self, site: usize, dice: &mut Dice) {
        let theme = self.plan.themes.then(|| format!("theme-{}", dice.below(THEMES)));
        let made = self.world.server().create(json!({
            "apiVersion": "example.org/v1", "kind": "Website",
            "metadata": {"name": format!("site-{site}"), "namespace": NAMESPACE},
            "spec": {
                "text": format!("text {}", dice.below(1_000)), "theme": theme,
                "mirror": self.plan.mirrors && dice.one_in(2),
            },
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
        let children: BTreeSet<String> =
            names.iter().flat_map(|name| [child_name(name), mirror_name(name)]).collect();
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
        let colour = site["spec"]["theme"].as_str().map(|theme| maps[theme]["data"]["colour"].clone());
        let wanted = json!({"text": site["spec"]["text"], "colour": colour.unwrap_or_else(|| json!(""))});
        let (child, mirror) = (maps.get(&child_name(&name_of(site))), maps.get(&mirror_name(&name_of(site))));
        is_child_right(child.ok_or("has no child")?, meta, &wanted)?;
        match (site["spec"]["mirror"] == true, mirror) {
            (true, mirror) => is_child_right(mirror.ok_or("has no mirror")?, meta, &wanted)?,
            (false, Some(_)) => return Err("has a mirror, and wants none".to_owned()),
            (false, None) => {}
        }
        if site["status"]["observedGeneration"] != meta["generation"] {
            return Err(format!("its status is {}", site["status"]));
        }
        Ok(())
    }

    /// What was noted while the processes ran, and what they have counted. They have ended.
    pub(crate) fn check_lives(&self) {
        let state = self.outside.state();
        assert!(state.broken.is_empty(), "{:?}", state.broken);
        assert!(state.flights.is_empty(), "{:?}", state.flights);
        assert_eq!(state.lives.len(), self.plan.replicas, "each process has ended in order once");
        state.lives.iter().for_each(|life| self.check_life(life));
    }

    fn check_life(&self, life: &Life) {
        // A key of a replica that does not lead is held until it does; and what stands still is late.
        let is_excused = || self.plan.takeover.is_some() || self.has_happened(&["Freeze"]);
        let bound = life.longest_reconcile + WRITE_WAIT + Duration::from_secs(1);
        assert!(life.longest_reconcile <= self.plan.time_limit || is_excused(), "{life:?}");
        assert!(life.longest_hold <= bound || is_excused(), "{life:?}: a key waited too long for its writes");
        let Some(figures) = &life.events else { return };
        let events = self.world.server().list(EVENTS).expect("they are served");
        let own = events.iter().filter(|event| event["reportingInstance"] == *life.instance);
        let told: u64 = own.map(|event| event["series"]["count"].as_u64().unwrap_or(1)).sum();
        let dropped: u64 = figures.dropped.values().sum();
        assert!(told + dropped >= figures.emitted, "{told} events are told, {figures:?}");
    }

    /// Whether one of these incidents has happened.
    pub(crate) fn has_happened(&self, incidents: &[&str]) -> bool {
        let happened =
            |line: &String| incidents.iter().any(|incident| line.contains(&format!(" {incident}(")));
        self.world.trace().iter().any(happened)
    }
}

fn is_child_right(child: &Value, owner: &Value, wanted: &Value) -> Result<(), String> {
    if child["data"] != *wanted {
        return Err(format!("{} has {}, not {wanted}", name_of(child), child["data"]));
    }
    let owners = child["metadata"]["ownerReferences"].as_array().ok_or("a child of it has no owner")?;
    if owners.len() != 1 || owners[0]["uid"] != owner["uid"] {
        return Err(format!("{} belongs to {owners:?}", name_of(child)));
    }
    Ok(())
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
