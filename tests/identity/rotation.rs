//! Credentials that are replaced each second, under load.
//!
//! Answers "does anything fail that a server would have accepted with what is in the files at that moment?" The minute of
//! the issue: `INFORMER_ROTATION_SECONDS=60 cargo test --test identity --all-features -- rotated`.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_informer::client::{Client, Config};
use http::Method;
use informer_apiserver::ApiServer;
use informer_control_plane::ServingCertificate;
use rcgen::KeyPair;
use serde_json::{Value, json};

use crate::door::{Door, replace};
use crate::load::{seconds, under_load};
use crate::stage::Stage;

fn config_map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default" } })
}

#[actix::test]
async fn rest_26_authority_certificate_and_token_rotated_each_second_fail_no_request_and_lose_no_event() {
    let server = Arc::new(ApiServer::builder().start().await.expect("it starts"));
    let folder = Arc::new(tempfile::tempdir().expect("a folder"));
    let door = Arc::new(Door::open(server.addr(), folder.path()).await);
    let at = |name: &str| folder.path().join(name);
    let config = Config::new(door.url())
        .expect("a URL")
        .certificate_authority_file(at("ca.crt"))
        .client_certificate_files(at("client.pem"), at("client.pem"))
        .token_file(at("token"));
    let client = Client::new(config).expect("files");
    let create = {
        let server = Arc::clone(&server);
        move |name: String| drop(server.create(config_map(&name)).expect("a new name"))
    };
    let rotate = {
        let (door, folder) = (Arc::clone(&door), Arc::clone(&folder));
        move |_| door.rotate(folder.path())
    };
    under_load(std::slice::from_ref(&client), [client.clone(), client.clone()], create, rotate).await;
    assert!(door.refused() > 0 || seconds() < 10, "old credentials were refused meanwhile");
}

/// What is given out to clients of the real server, and how long it counts.
struct Rotated {
    stage: Stage,
    admin: Client,
    key: String,
    serving: Mutex<VecDeque<ServingCertificate>>,
}

/// How many successors a credential may have.
const KEPT: u32 = 5;

impl Rotated {
    fn new(stage: Stage) -> Self {
        let admin = Config::from_kubeconfig_text(&stage.plane.kubeconfig(), None).expect("its own");
        // The administrator of the test is not rotated.
        let admin = Client::new(admin.accept_invalid_certificates()).expect("its own");
        let key = KeyPair::generate().expect("a key").serialize_pem();
        let rotated = Self { stage, admin, key, serving: Mutex::default() };
        rotated.post(
            "/api/v1/namespaces/default/serviceaccounts",
            &json!({ "metadata": { "name": "rotated" } }),
        );
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": "rotated" },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": "rotated", "namespace": "default" }],
        });
        rotated.post(&format!("/apis/{group}/v1/clusterrolebindings"), &binding);
        rotated
    }

    fn at(&self, name: &str) -> PathBuf {
        self.stage.folder().join(name)
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let body = body.map(|body| ("application/json", body.to_string().into_bytes()));
        let answer = self.admin.request(method, path, body);
        let answer = block_on(answer).expect("an administrator may do it");
        serde_json::from_slice(answer.body()).expect("the server writes JSON")
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.request(Method::POST, path, Some(body))
    }

    /// Replaces token, certificate and authority in the files, and takes back what has had five successors.
    fn rotate(&self, second: u32) {
        replace(&self.at("rotated-token"), &self.token(second));
        let life = Duration::from_secs(u64::from(KEPT) + 1);
        let certificate =
            self.stage.plane.issue_certificate("certified", "system:masters", &self.key, Some(life));
        replace(&self.at("rotated.pem"), &format!("{}{}", certificate.expect("a certificate"), self.key));
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        serving.push_back(ServingCertificate::of_new_authority().expect("a key"));
        let first = self.stage.plane.ca_pem().to_owned();
        let authorities: Vec<_> = serving.iter().map(ServingCertificate::authority_pem).collect();
        replace(&self.at("rotated-ca.crt"), &format!("{first}{}", authorities.concat()));
        if second >= KEPT {
            self.request(
                Method::DELETE,
                &format!("/api/v1/namespaces/default/secrets/bound-{}", second - KEPT),
                None,
            );
            // The authority that is announced for longest now counts.
            self.stage.plane.present(serving.front().expect("one is there")).expect("its own files");
            if serving.len() > KEPT as usize {
                serving.pop_front();
            }
        }
    }

    /// A token that counts as long as a secret is there.
    fn token(&self, second: u32) -> String {
        let name = format!("bound-{second}");
        let secret =
            self.post("/api/v1/namespaces/default/secrets", &json!({ "metadata": { "name": name } }));
        let bound =
            json!({ "kind": "Secret", "apiVersion": "v1", "name": name, "uid": secret["metadata"]["uid"] });
        let spec = json!({ "spec": { "boundObjectRef": bound } });
        let token = self.post("/api/v1/namespaces/default/serviceaccounts/rotated/token", &spec);
        token["status"]["token"].as_str().expect("a token").to_owned()
    }
}

/// Waits on a thread that may block.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

#[actix::test]
async fn a_real_server_whose_credentials_are_rotated_each_second_refuses_no_request_and_loses_no_event() {
    let prepared = tokio::task::spawn_blocking(|| {
        let rotated = Rotated::new(Stage::start()?);
        rotated.rotate(0);
        Some(Arc::new(rotated))
    });
    let Some(rotated) = prepared.await.expect("it starts") else { return };
    let secure = || {
        Config::new(rotated.stage.plane.url())
            .expect("a URL")
            .certificate_authority_file(rotated.at("rotated-ca.crt"))
    };
    let pem = rotated.at("rotated.pem");
    let by_token = Client::new(secure().token_file(rotated.at("rotated-token"))).expect("files");
    let by_certificate = Client::new(secure().client_certificate_files(&pem, &pem)).expect("files");
    let create = {
        let rotated = Arc::clone(&rotated);
        move |name: String| drop(rotated.post("/api/v1/namespaces/default/configmaps", &config_map(&name)))
    };
    let rotate = {
        let rotated = Arc::clone(&rotated);
        move |second: u32| rotated.rotate(second + 1)
    };
    let clients = [by_token.clone(), by_certificate.clone()];
    under_load(&clients, [by_token, by_certificate], create, rotate).await;
}
