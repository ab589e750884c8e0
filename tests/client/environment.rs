//! How `Config::from_environment` and `Config::from_home` depend on the environment of the process.
//!
//! Variables of a running process cannot be set safely, so each case runs this test again in a process of its own.

use std::process::Command;

use actix_informer::client::Config;

/// Set in those processes.
const INSIDE: &str = "INFORMER_TEST_INSIDE";
const NAME: &str =
    "environment::rest_30_in_a_pod_its_service_account_is_used_unless_a_kubeconfig_decides_otherwise";

/// The result in a process with this `KUBECONFIG`, in a pod or not.
fn result(kubeconfig: &std::path::Path, in_pod: bool) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME, "--nocapture"]).env(INSIDE, "yes").env("KUBECONFIG", kubeconfig);
    command.env_remove("KUBERNETES_SERVICE_HOST").env_remove("KUBERNETES_SERVICE_PORT");
    if in_pod {
        command.env("KUBERNETES_SERVICE_HOST", "10.9.8.7").env("KUBERNETES_SERVICE_PORT", "443");
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

// REST-30: given an empty kubeconfig inside a pod, when loading, then in-cluster config is used; with real
// overrides it is not.
// - a an empty kubeconfig decides nothing:
//   `rest_30_an_empty_kubeconfig_leaves_the_choice_to_the_pod_and_any_other_one_does_not`
// - b inside a pod, in-cluster config is used then
// - c with real overrides it is not
#[test]
fn rest_30_in_a_pod_its_service_account_is_used_unless_a_kubeconfig_decides_otherwise() {
    if std::env::var_os(INSIDE).is_some() {
        let config = Config::from_environment(None);
        println!(
            "{}",
            config.map_or_else(|error| format!("refused: {error:?}"), |found| found.endpoint().to_owned())
        );
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (empty, real) = (folder.path().join("empty"), folder.path().join("real"));
    std::fs::write(&empty, "").unwrap();
    let text = "clusters: [{name: c, cluster: {server: 'https://named:6443'}}]\n\
                contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n\
                current-context: c\n";
    std::fs::write(&real, text).unwrap();
    // There is no service account where tests run: the process looks for it and reports that it is missing.
    let in_cluster = result(&empty, true);
    assert!(in_cluster.contains("refused: InCluster"), "{in_cluster}");
    assert!(result(&empty, false).contains("refused: NotConfigured"));
    for in_pod in [true, false] {
        assert!(result(&real, in_pod).contains("https://named:6443"));
    }
}

const HOME: &str = "environment::newcomer_5_the_file_in_the_home_directory_is_read_where_it_is_asked_for_and_named_where_nothing_is_found";

#[test]
fn newcomer_5_the_file_in_the_home_directory_is_read_where_it_is_asked_for_and_named_where_nothing_is_found()
{
    if std::env::var_os(INSIDE).is_some() {
        let endpoint = |config: Result<Config, _>| match config {
            Ok(config) => config.endpoint().to_owned(),
            Err::<_, actix_informer::client::Error>(error) => error.to_string(),
        };
        let (found, named) = (Config::from_home(None), Config::from_home(Some("other")));
        println!("home: {}, {}", endpoint(found), endpoint(named));
        println!("environment: {}", endpoint(Config::from_environment(None)));
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let run = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", HOME, "--nocapture"]).env(INSIDE, "yes").env("HOME", home.path());
        command.env_remove("KUBERNETES_SERVICE_HOST").env_remove("KUBECONFIG");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let missing = run();
    assert!(missing.contains(".kube/config") && missing.contains("cannot be read"), "{missing}");
    std::fs::create_dir(home.path().join(".kube")).unwrap();
    let text = "clusters: [{name: a, cluster: {server: 'https://a:6443'}}, {name: b, cluster: {server: 'https://b:6443'}}]\n\
                contexts: [{name: mine, context: {cluster: a, user: u}}, {name: other, context: {cluster: b, user: u}}]\n\
                users: [{name: u, user: {}}]\ncurrent-context: mine\n";
    std::fs::write(home.path().join(".kube/config"), text).unwrap();
    let found = run();
    assert!(found.contains("home: https://a:6443, https://b:6443"), "{found}");
    let unasked = "environment: no cluster is configured: set KUBECONFIG, give a kubeconfig, or run in a pod; \
                   Client::from_home() and Config::from_home() read ~/.kube/config";
    assert!(found.contains(unasked), "{found}");
}
