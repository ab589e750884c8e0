//! The metrics of the website operator, read by a real Prometheus.
//!
//! Answers "do the dashboards of others, and ours, have their figures?" Without the binaries `prometheus` and
//! `promtool` (Debian's package `prometheus`) the part that needs them says so and passes, unless
//! `INFORMER_REQUIRE_PROMETHEUS=1`.

#![expect(clippy::unwrap_used, reason = "a Prometheus that fails has failed the test")]

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use actix_informer::metrics::Metrics;
use actix_informer::probes::ProbeSocket;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::stage::{LONG, LOOK, Stage};
use crate::website::{Sites, install};
use crate::website_operator::WebsiteOperator;

/// What kubebuilder's Grafana plugin asks (`controller-runtime-metrics.json`), without its variables.
const OF_KUBEBUILDER: [&str; 11] = [
    "controller_runtime_active_workers{job=\"operator\"}",
    "sum(rate(controller_runtime_reconcile_total{job=\"operator\"}[5m])) by (instance, pod)",
    "sum(rate(controller_runtime_reconcile_errors_total{job=\"operator\"}[5m])) by (instance, pod)",
    "histogram_quantile(0.99, sum(rate(controller_runtime_reconcile_time_seconds_bucket{job=\"operator\"}[5m])) by (instance, pod, le))",
    "histogram_quantile(0.99, sum(rate(workqueue_queue_duration_seconds_bucket{job=\"operator\"}[5m])) by (instance, name, le))",
    "histogram_quantile(0.99, sum(rate(workqueue_work_duration_seconds_bucket{job=\"operator\"}[5m])) by (instance, name, le))",
    "sum(rate(workqueue_adds_total{job=\"operator\"}[5m])) by (instance, name)",
    "sum(rate(workqueue_retries_total{job=\"operator\"}[5m])) by (instance, name)",
    "workqueue_depth{job=\"operator\"}",
    "rate(workqueue_unfinished_work_seconds{job=\"operator\"}[5m])",
    "sum(rate(rest_client_requests_total{job=\"operator\"}[5m])) by (method, code)",
];

/// The body of the answer 200; `None` if there is none yet.
async fn get(address: SocketAddr, target: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let request = format!("GET {target} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap();
    assert!(["200", "503"].contains(&code), "{target}: {answer}");
    (code == "200").then(|| body.to_owned())
}

/// A Prometheus that reads one target; it ends with this value.
struct Prometheus {
    address: SocketAddr,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Prometheus {
    fn start(binary: &Path, target: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prometheus.yml");
        let configuration = format!(
            "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\n\
             rule_files: [{:?}]\n\
             scrape_configs: [{{job_name: operator, static_configs: [{{targets: [\"{target}\"]}}]}}]\n",
            Path::new(env!("CARGO_MANIFEST_DIR")).join("config/metrics/rules.yaml")
        );
        std::fs::write(&file, configuration).unwrap();
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let process = Command::new(binary)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self { address, process: process.unwrap(), _folder: folder }
    }

    /// The result of a query, empty before it is ready; an error fails the test.
    async fn asked(&self, query: &str) -> Vec<Value> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = get(self.address, &format!("/api/v1/query?query={encoded}")).await;
        let Some(answer) = answer else { return Vec::new() };
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// Waits until the query has a result.
    async fn answers(&self, query: &str) -> Vec<Value> {
        let end = tokio::time::Instant::now() + LONG;
        loop {
            let result = self.asked(query).await;
            if !result.is_empty() {
                return result;
            }
            assert!(tokio::time::Instant::now() < end, "no result of {query}");
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop((self.process.kill(), self.process.wait()));
    }
}

fn binary(name: &str) -> Option<std::path::PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn judged_by_promtool(promtool: &Path, text: &str) {
    let mut judge = Command::new(promtool);
    judge.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut judge = judge.spawn().unwrap();
    judge.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let said = judge.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned();
    // Names that client-go chose keep their units.
    let ours: Vec<&str> = said.lines().filter(|line| !line.starts_with("rest_client_")).collect();
    assert!(ours.is_empty(), "{said}");
}

/// The queries of our dashboard, with every job.
fn ours() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(include_str!("../../config/metrics/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$job", ".*")).collect()
}

// MET-01: given the website operator with metrics beside its probes, when a real Prometheus scrapes it, then
// the queries of the dashboards that know controller-runtime have results, ours are valid, and promtool finds
// no fault.
// - a the queries of others have results
// - b ours are valid
// - c promtool finds no fault
pub(crate) async fn met_01_a_real_prometheus_scrapes_the_website_operator_and_dashboards_have_their_figures(
    stage: Stage,
) {
    let (client, runtime) = (stage.server.client(), &stage.runtime);
    install(&client).await;
    let sites = Sites::of(&client, &stage.namespace);
    let socket = ProbeSocket::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let socket = socket.metrics(Metrics::of(runtime).registry());
    let address = socket.address();
    let WebsiteOperator { builder, .. } = WebsiteOperator::new(&client, runtime, None).unwrap();
    let operator = builder.probes(socket).start().unwrap();
    sites.make("measured", "measured.example.org").await.unwrap();
    sites.reaches("measured", "Starting").await;
    let text = get(address, "/metrics").await.unwrap();
    assert!(text.contains("controller_runtime_reconcile_total{controller=\"website-operator\""), "{text}");

    match (binary("prometheus"), binary("promtool")) {
        (Some(prometheus), Some(promtool)) => {
            judged_by_promtool(&promtool, &text);
            let prometheus = Prometheus::start(&prometheus, address);
            assert_eq!(prometheus.answers("up == 1").await.len(), 1);
            for query in OF_KUBEBUILDER {
                prometheus.answers(query).await;
            }
            for query in ours() {
                prometheus.asked(&query).await;
            }
            let cached = prometheus.answers("sum(informer_objects{resource=\"websites\"})").await;
            assert_eq!(cached[0]["value"][1], "1", "{cached:?}");
        }
        _ if std::env::var_os("INFORMER_REQUIRE_PROMETHEUS").is_some() => {
            panic!("no prometheus, no promtool")
        }
        _ => println!("skipped: no prometheus here"),
    }
    sites.delete("measured").await;
    let gone = sites.sites.until("measured", actix_informer::client::api::conditions::absent(), LONG).await;
    gone.unwrap();
    assert!(operator.drain().await.is_clean());
}
