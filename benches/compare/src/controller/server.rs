//! The server of the comparison of controllers, in a process of its own, which also changes and checks its objects.
//!
//! Answers "what happens to the websites, and is everything as it should be?". It is told by lines of JSON on its
//! standard input. The changes do not go over the network: only the clients' requests do. Invariants:
//! 1. A website is in order if each of its three children is there with it as the controller and with the content of its
//!    spec, and if its status has observed its generation; read from the store, not from what a client says.
//! 2. Nothing is said to be in order before all websites were read once more after the last one had become so.
//! 3. The process ends with the pipe that its parent holds.
//!
//! Read next: `drive.rs`, which tells it what to do.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use informer_apiserver::ApiServer;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Plan;
use crate::meter::{Meter, processor_time};

const SITES: &str = "websites.bench.example.com";
const CHILDREN: [&str; 3] = ["configmaps", "services", "deployments.apps"];
const NAMESPACES: usize = 10;
/// How many events a watch may be behind, and how many each resource remembers: no watch is ended but on purpose.
const EVENTS: usize = 1 << 18;

/// What the server is told to do.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// Change the specs of so many random websites, so many a second; 0 is as fast as possible.
    Change { count: u64, per_second: u64 },
    /// Delete so many random children.
    Delete { count: usize },
    /// Reset all connections, and meanwhile change an object of each kind and forget what a watch would need to resume: the
    /// next watches get 410 as an event.
    Expire,
    /// Reset all connections, and listen again after this time. The objects stay.
    Restart { down_ms: u64 },
    /// Wait until everything is in order, or for this time.
    Converge { limit_ms: u64 },
    /// Nothing: only the answer is wanted.
    Report,
}

/// The server's answer, when it has done what it was told.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Done {
    /// Seconds that it has checked after everything was in order.
    pub(super) checked: f64,
    /// Its processor seconds since its start.
    pub(super) cpu: f64,
}

/// The server's objects, and which of them are not known to be in order.
struct Sites {
    server: ApiServer,
    random: fastrand::Rng,
    count: usize,
    contents: u64,
    suspects: Vec<usize>,
    is_suspect: Vec<bool>,
}

/// Serves so many websites, prints the URL, and does what it is told until standard input ends.
pub(crate) fn serve(plan: &Plan) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let builder = ApiServer::builder().seed(plan.seed).event_window(EVENTS).watch_queue(EVENTS);
    let builder = builder.managed_fields(!plan.bare_server).workers(plan.server_workers);
    let server = runtime.block_on(builder.start())?;
    let create = |object| server.create(object).map(drop).map_err(|error| anyhow!("{error}"));
    for number in 0..NAMESPACES {
        create_namespace(&server, &format!("ns-{number}"))?;
    }
    create(definition())?;
    for number in 0..plan.objects {
        let (namespace, name) = place(number);
        create(json!({
            "apiVersion": "bench.example.com/v1", "kind": "Website",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"content": content(number, 0)},
        }))?;
    }
    let mut sites = Sites {
        random: fastrand::Rng::with_seed(plan.seed),
        count: plan.objects,
        contents: 0,
        suspects: (0..plan.objects).collect(),
        is_suspect: vec![true; plan.objects],
        server,
    };
    println!("{}", sites.server.url());
    for line in std::io::stdin().lines() {
        let checked = sites.obey(serde_json::from_str(&line?)?)?;
        println!("{}", serde_json::to_string(&Done { checked, cpu: processor_time().as_secs_f64() })?);
    }
    Ok(())
}

fn create_namespace(server: &ApiServer, name: &str) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    server.create(namespace).map(drop).map_err(|error| anyhow!("namespace {name}: {error}"))
}

fn place(number: usize) -> (String, String) {
    (format!("ns-{}", number % NAMESPACES), format!("site-{number}"))
}

/// A page of some 200 bytes.
fn content(number: usize, edition: u64) -> String {
    let text = "It is short, it has no pictures, and it is changed more often than it is read. ".repeat(2);
    format!("<h1>Page {number}, edition {edition}</h1>{text}")
}

fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({"type": "object", "properties": {"content": {"type": "string"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": SITES},
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced",
            "names": {"plural": "websites", "singular": "website", "kind": "Website"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": any}}},
            }],
        },
    })
}

#[expect(clippy::disallowed_methods, reason = "a thread of its own, and no arbiter")]
fn rest(time: Duration) {
    std::thread::sleep(time);
}

impl Sites {
    /// Gives how long it has checked after everything was in order.
    fn obey(&mut self, order: Order) -> anyhow::Result<f64> {
        match order {
            Order::Change { count, per_second } => self.change(count, per_second)?,
            Order::Delete { count } => self.delete(count)?,
            Order::Expire => {
                self.server.stop();
                self.touch()?;
                self.server.faults().compact();
                self.server.start_again()?;
            }
            Order::Restart { down_ms } => {
                self.server.stop();
                rest(Duration::from_millis(down_ms));
                self.server.start_again()?;
            }
            Order::Converge { limit_ms } => return Ok(self.converge(Duration::from_millis(limit_ms))),
            Order::Report => {}
        }
        Ok(0.0)
    }

    fn change(&mut self, count: u64, per_second: u64) -> anyhow::Result<()> {
        let meter = Meter::start();
        for done in 0..count {
            while per_second > 0 && done as f64 > meter.cost().wall * per_second as f64 {
                rest(Duration::from_millis(1));
            }
            let number = self.random.usize(..self.count);
            self.contents += 1;
            let (namespace, name) = place(number);
            let patch = json!({"spec": {"content": content(number, self.contents)}});
            self.server
                .merge_patch(SITES, &namespace, &name, &patch)
                .map_err(|error| anyhow!("{name} is not changed: {error}"))?;
            self.suspect(number);
        }
        Ok(())
    }

    /// Changes one object of each kind in a way that nobody minds.
    fn touch(&mut self) -> anyhow::Result<()> {
        let (namespace, name) = place(0);
        self.contents += 1;
        let patch = json!({"metadata": {"annotations": {"touched": self.contents.to_string()}}});
        for resource in CHILDREN.into_iter().chain([SITES]) {
            let touched = self.server.merge_patch(resource, &namespace, &name, &patch);
            touched.map_err(|error| anyhow!("{resource} {name} is not touched: {error}"))?;
        }
        Ok(())
    }

    fn delete(&mut self, count: usize) -> anyhow::Result<()> {
        let mut numbers: Vec<usize> = (0..self.count).collect();
        self.random.shuffle(&mut numbers);
        for (at, &number) in numbers.iter().take(count).enumerate() {
            let (namespace, name) = place(number);
            let deleted = self.server.delete(CHILDREN[at % CHILDREN.len()], &namespace, &name);
            deleted.map_err(|error| anyhow!("a child of {name} is not deleted: {error}"))?;
            self.suspect(number);
        }
        Ok(())
    }

    fn suspect(&mut self, number: usize) {
        if !std::mem::replace(&mut self.is_suspect[number], true) {
            self.suspects.push(number);
        }
    }

    fn converge(&mut self, limit: Duration) -> f64 {
        let waiting = Meter::start();
        loop {
            while let Some(&number) = self.suspects.last() {
                if self.is_in_order(number).is_none() {
                    if waiting.cost().wall > limit.as_secs_f64() {
                        return 0.0;
                    }
                    rest(Duration::from_millis(2));
                    continue;
                }
                self.suspects.pop();
                self.is_suspect[number] = false;
            }
            // What was in order once may have been undone, by a client whose cache was late.
            let meter = Meter::start();
            for number in 0..self.count {
                if self.is_in_order(number).is_none() {
                    self.suspect(number);
                }
            }
            if self.suspects.is_empty() {
                return meter.cost().wall;
            }
        }
    }

    fn is_in_order(&self, number: usize) -> Option<()> {
        let (namespace, name) = place(number);
        let get = |resource| self.server.get(resource, &namespace, &name).ok();
        let site = get(SITES)?;
        let (content, uid) = (&site["spec"]["content"], &site["metadata"]["uid"]);
        let holds = |is_so: bool| is_so.then_some(());
        holds(site["status"]["observedGeneration"] == site["metadata"]["generation"])?;
        let [map, service, deployment] = CHILDREN;
        let (map, service, deployment) = (get(map)?, get(service)?, get(deployment)?);
        for child in [&map, &service, &deployment] {
            let owner = &child["metadata"]["ownerReferences"][0];
            holds(owner["uid"] == *uid && owner["controller"] == true)?;
        }
        holds(map["data"]["content"] == *content)?;
        holds(service["spec"]["selector"]["app"] == *name)?;
        holds(deployment["spec"]["template"]["metadata"]["annotations"]["content"] == *content)
    }
}

/// A server that ends when this is dropped.
pub(super) struct Serving {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    url: String,
}

impl Serving {
    pub(super) fn start(plan: &Plan) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("controller-serve").args(plan.arguments());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the server's output is piped")?;
        let mut serving = Self { child, input, output: BufReader::new(output), url: String::new() };
        serving.url = serving.line()?.trim().to_owned();
        Ok(serving)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns when it is done.
    pub(super) fn order(&mut self, order: Order) -> anyhow::Result<Done> {
        let input = self.input.as_mut().context("the server's input is piped")?;
        writeln!(input, "{}", serde_json::to_string(&order)?)?;
        input.flush()?;
        serde_json::from_str(&self.line()?).context("the server's answer")
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the server has ended");
        Ok(line)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends by itself now; if it is gone already, there is nothing to wait for.
        let _gone = self.child.wait();
    }
}
