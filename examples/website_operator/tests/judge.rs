//! What must be true of the cluster when everything is well again, and of how it came to that.
//!
//! Answers "has the operator made of each website what its author wants, and nothing else?" It reads what is stored and what
//! was asked, not what the operator says. Invariants:
//! 1. The first thing that is wrong is named, with what is there instead.

use std::collections::{BTreeMap, BTreeSet};

use actix_informer::testing::{Asked, World};
use serde_json::{Value, json};

use super::stage::{DEPLOYMENTS, MAPS, SERVICES, SITES};
use super::users::{OWN_HOSTS, Users};
use crate::operator::NAMESPACE;
use crate::operator::parts::MANAGER;
use crate::operator::reconcile::FINALIZER;

/// What is stored at one moment.
struct Stored {
    sites: Vec<Value>,
    /// The parts of sites, by resource and name.
    parts: BTreeMap<(&'static str, String), Value>,
    /// The claims of hosts, by host: the uid of who has it.
    claims: BTreeMap<String, String>,
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}

impl Stored {
    fn read(world: &World) -> Self {
        let list = |resource| world.server().list(resource).expect("it is served");
        let (mut parts, mut claims) = (BTreeMap::new(), BTreeMap::new());
        for resource in [MAPS, SERVICES, DEPLOYMENTS] {
            for object in list(resource) {
                let (namespace, name) = (text(&object, "namespace"), text(&object, "name"));
                let labels = &object["metadata"]["labels"];
                if let Some(uid) = labels["example.org/site-uid"].as_str().filter(|_| namespace == NAMESPACE)
                {
                    claims.insert(name.trim_start_matches("host-").to_owned(), uid.to_owned());
                } else if labels["app.kubernetes.io/managed-by"] == MANAGER {
                    parts.insert((resource, name), object);
                }
            }
        }
        Self { sites: list(SITES), parts, claims }
    }

    fn is_right(&self) -> Result<(), String> {
        for site in &self.sites {
            self.is_site_right(site).map_err(|wrong| format!("{}: {wrong}", text(site, "name")))?;
        }
        let uids: BTreeSet<String> = self.sites.iter().map(|site| text(site, "uid")).collect();
        if let Some((host, uid)) = self.claims.iter().find(|(_, uid)| !uids.contains(*uid)) {
            return Err(format!("{host} belongs to {uid}, which is gone"));
        }
        let owner = |part: &Value| part["metadata"]["ownerReferences"][0]["uid"].as_str().map(str::to_owned);
        let is_orphan = |part: &Value| owner(part).is_none_or(|uid| !uids.contains(&uid));
        match self.parts.iter().find(|(_, part)| is_orphan(part)) {
            Some(((resource, name), _)) => Err(format!("the site of {resource} {name} is gone")),
            None => Ok(()),
        }
    }

    fn is_site_right(&self, site: &Value) -> Result<(), String> {
        let (meta, spec, uid) = (&site["metadata"], &site["spec"], text(site, "uid"));
        if !meta["deletionTimestamp"].is_null() {
            return Err("is not deleted yet".to_owned());
        }
        if meta["finalizers"] != json!([FINALIZER]) {
            return Err(format!("has the finalizers {}", meta["finalizers"]));
        }
        let condition = &site["status"]["conditions"][0];
        if condition["observedGeneration"] != meta["generation"] {
            return Err(format!("is in generation {}, and its status in {condition}", meta["generation"]));
        }
        let host = spec["host"].as_str().unwrap_or_default();
        let Some(holder) = self.claims.get(host) else { return Err(format!("nobody has {host}")) };
        if let Some((more, _)) = self.claims.iter().find(|(other, by)| **by == uid && *other != host) {
            return Err(format!("still has {more}"));
        }
        let parts = [MAPS, SERVICES, DEPLOYMENTS].map(|kind| self.parts.get(&(kind, text(site, "name"))));
        match parts {
            [Some(page), Some(service), Some(served)] if *holder == uid => {
                is_served(site, [page, service, served])
            }
            [None, None, None] if *holder != uid && condition["reason"] == "HostTaken" => Ok(()),
            parts => {
                let there = parts.map(|part| part.is_some());
                Err(format!(
                    "its parts {there:?} with {host} at {holder}, and it says {}",
                    condition["reason"]
                ))
            }
        }
    }
}

/// Whether the parts of a site that has its host are what its author wants, and its status says how far it is.
fn is_served(site: &Value, parts: [&Value; 3]) -> Result<(), String> {
    let ([page, _, served], spec) = (parts, &site["spec"]);
    for part in parts {
        let owners = &part["metadata"]["ownerReferences"];
        if owners.as_array().map(Vec::len) != Some(1) || owners[0]["uid"] != site["metadata"]["uid"] {
            return Err(format!("a part belongs to {owners}"));
        }
    }
    let (shown, replicas) = (&page["data"]["index.html"], &served["spec"]["replicas"]);
    if (shown, replicas) != (&spec["page"], &spec["replicas"]) {
        return Err(format!("{replicas} replicas show {shown}, and not {spec}"));
    }
    let ready = served["status"]["readyReplicas"].as_i64().unwrap_or(0);
    let wanted = if ready < replicas.as_i64().unwrap_or(0) { "Starting" } else { "Served" };
    let status = &site["status"];
    if status["conditions"][0]["reason"] != wanted || status["readyReplicas"].as_i64() != Some(ready) {
        return Err(format!("{ready} of {replicas} replicas are ready, and the status is {status}"));
    }
    Ok(())
}

/// Whether each website has what it should have, and nothing else is there; the first thing that is wrong.
pub(crate) fn is_converged(world: &World) -> Result<(), String> {
    Stored::read(world).is_right()
}

/// Panics if a part of a website was made again that nobody had deleted. A request that its sender had given up, as at the end
/// of its lease, may still arrive when the website is gone: it does not count, and the garbage collector deletes what it makes.
pub(crate) fn check_made_once(world: &World, users: &Users) {
    let mut made: BTreeMap<(String, String), usize> = BTreeMap::new();
    let requests = world.requests();
    for asked in &requests {
        if let Some(part) = applied(&asked.path)
            && let Some(uid) = users.life_at(part.rsplit('/').next().unwrap_or_default(), asked.at)
            && asked.method == "PATCH"
            && asked.outcome.starts_with("201")
            && !requests.iter().any(|other| has_given_up(other, asked))
        {
            *made.entry((uid, part.to_owned())).or_default() += 1;
        }
    }
    let mut again: BTreeMap<&str, usize> = BTreeMap::new();
    for ((uid, part), times) in &made {
        let site = part.rsplit_once("/site-").and_then(|(_, number)| number.parse::<usize>().ok());
        if site.is_some_and(|site| site < OWN_HOSTS) {
            *again.entry(uid).or_default() += times - 1;
        }
    }
    for (uid, again) in again {
        let taken = users.taken_from(uid);
        assert!(
            again <= taken,
            "of the site {uid} {again} parts were made again, and {taken} deleted: {made:#?}"
        );
    }
}

/// Whether this request shows that the sender of the other one had given it up before it arrived: the same process has sent
/// this one for the same website, and it works on a website once at a time, or another process has written the lease.
fn has_given_up(this: &Asked, other: &Asked) -> bool {
    let name = |path: &str| path.split(['/', '?']).find(|part| part.starts_with("site-")).map(str::to_owned);
    if this.process == other.process {
        let is_meanwhile = other.sent < this.sent && this.sent < other.at;
        return is_meanwhile && name(&this.path) == name(&other.path);
    }
    let is_lease = this.method == "PUT" && this.path.contains("/leases/") && this.outcome.starts_with("200");
    is_lease && other.sent < this.at && this.at < other.at
}

/// The path of a part that the operator applies, without its query.
fn applied(path: &str) -> Option<&str> {
    let (part, query) = path.split_once('?')?;
    let manager = query.split('&').find_map(|member| member.strip_prefix("fieldManager="))?;
    (manager == MANAGER && !part.ends_with("/status") && !part.contains("/websites/")).then_some(part)
}
