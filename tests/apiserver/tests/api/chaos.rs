//! A client under chaos: it lists, watches and resumes correctly, while seeded faults break things.
//!
//! They answer: whatever fails meanwhile, does the client have the server's state at the end, and never see a version
//! go back? A failing run is repeated by its seed, which is in the message.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use informer_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::client::{Incoming, config_map, get, try_get};

const MAPS: &str = "/api/v1/configmaps";
const HURRIED: Duration = Duration::from_millis(150);
const PATIENT: Duration = Duration::from_secs(60);

type View = BTreeMap<String, String>;

/// A client with the state of one list and the events after it.
#[derive(Default)]
struct Client {
    seed: u64,
    view: View,
    version: Option<u64>,
    stream: Option<Incoming>,
}

fn text(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn number(value: &Value, at: &str) -> u64 {
    text(value, at).parse().unwrap()
}

impl Client {
    /// Continues as far as it can; after an error it tries again later.
    fn go_on(&mut self, server: &ApiServer, patience: Duration) -> io::Result<()> {
        if self.version.is_none() {
            self.list(server, patience)?;
        }
        if self.stream.is_none() {
            self.watch(server, patience)?;
        }
        while let Some(stream) = &mut self.stream {
            if stream.is_silent_for(Duration::from_millis(10)) {
                return Ok(());
            }
            match stream.event() {
                Ok(Some(event)) => self.take(&event),
                Ok(None) | Err(_) => self.stream = None,
            }
        }
        Ok(())
    }

    fn list(&mut self, server: &ApiServer, patience: Duration) -> io::Result<()> {
        let (mut view, mut token) = (View::new(), String::new());
        loop {
            let path = format!("{MAPS}?limit=3&continue={token}");
            let mut answer = try_get(server.addr(), &path, patience)?;
            let body = answer.rest()?;
            if answer.head.code != 200 {
                return Err(io::ErrorKind::Other.into());
            }
            let page: Value = serde_json::from_slice(&body)?;
            for item in page["items"].as_array().unwrap() {
                view.insert(text(item, "/metadata/name"), text(item, "/metadata/resourceVersion"));
            }
            token = text(&page, "/metadata/continue");
            if token.is_empty() {
                (self.view, self.version) = (view, Some(number(&page, "/metadata/resourceVersion")));
                return Ok(());
            }
        }
    }

    fn watch(&mut self, server: &ApiServer, patience: Duration) -> io::Result<()> {
        let version = self.version.unwrap();
        let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={version}");
        let stream = try_get(server.addr(), &path, patience)?;
        match stream.head.code {
            200 => self.stream = Some(stream),
            410 => self.version = None,
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, event: &Value) {
        let seed = self.seed;
        let event_type = text(event, "/type");
        if event_type == "ERROR" {
            assert_eq!(event["object"]["code"], 410, "seed {seed}");
            (self.version, self.stream) = (None, None);
            return;
        }
        let version = number(event, "/object/metadata/resourceVersion");
        assert!(Some(version) >= self.version, "seed {seed}: {version} after {:?}", self.version);
        let name = text(event, "/object/metadata/name");
        match event_type.as_str() {
            "ADDED" => assert!(self.view.insert(name, version.to_string()).is_none(), "seed {seed}"),
            "MODIFIED" => assert!(self.view.insert(name, version.to_string()).is_some(), "seed {seed}"),
            "DELETED" => assert!(self.view.remove(&name).is_some(), "seed {seed}"),
            other => assert_eq!(other, "BOOKMARK", "seed {seed}"),
        }
        self.version = Some(version);
    }
}

/// A write that depends on nothing but the number of the step.
fn write(server: &ApiServer, step: u64) {
    let name = format!("m{}", step.wrapping_mul(7) % 11);
    let there = server.get("configmaps", "default", &name).is_ok();
    if !there {
        server.create(config_map(&name, "x")).unwrap();
    } else if step.is_multiple_of(3) {
        server.delete("configmaps", "default", &name).unwrap();
    } else {
        let patch = json!({"data": {"step": step.to_string()}});
        server.merge_patch("configmaps", "default", &name, &patch).unwrap();
    }
}

fn truth(server: &ApiServer) -> View {
    let all = server.list("configmaps").unwrap();
    all.iter().map(|map| (text(map, "/metadata/name"), text(map, "/metadata/resourceVersion"))).collect()
}

fn survive(seed: u64) {
    let server = ApiServer::builder().seed(seed).start_blocking().unwrap();
    let mut chaos = server.chaos(seed, &["configmaps"]);
    let mut client = Client { seed, ..Client::default() };
    for step in 0..40 {
        chaos.step().unwrap();
        write(&server, step);
        // Failing is what chaos is for; the client tries again at the next step.
        let _later = client.go_on(&server, HURRIED);
        write(&server, step + 1_000);
        let _later = client.go_on(&server, HURRIED);
    }
    chaos.rest().unwrap();
    server.faults().clear();
    // No new faults come from now on; a few steps may still be needed: resume, get 410, list, watch. Each
    // takes ten milliseconds, so a loaded machine is given a minute.
    for _ in 0..6_000 {
        client.go_on(&server, PATIENT).unwrap();
        if client.view == truth(&server) {
            return;
        }
    }
    panic!("seed {seed}: {:?} is not {:?} after {:?}", client.view, truth(&server), chaos.trail());
}

#[test]
fn a_client_has_the_state_of_the_server_after_chaos() {
    for seed in 0..4 {
        survive(seed);
    }
}

#[test]
fn equal_seeds_break_the_same_things_in_the_same_order() {
    let trail = |seed| {
        let server = ApiServer::builder().start_blocking().unwrap();
        let mut chaos = server.chaos(seed, &["pods", "nodes"]);
        for _ in 0..60 {
            chaos.step().unwrap();
        }
        chaos.rest().unwrap();
        let answer = get(&server, "/api/v1/pods");
        assert_eq!(answer.code, 200, "a rest leaves nothing standing");
        chaos.trail().to_vec()
    };
    let first = trail(9);
    assert_eq!(first, trail(9));
    assert_ne!(first, trail(10));
    let ends = first.iter().filter(|told| told.starts_with("end of ")).count();
    let standing = ["gone", "fail", "too", "freeze", "short", "drop", "refuse", "deny", "delay"];
    let begun = first.iter().filter(|told| standing.iter().any(|name| told.starts_with(name))).count();
    assert_eq!(ends, begun, "each fault that stands is ended: {first:?}");
}
