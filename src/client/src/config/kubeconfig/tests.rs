//! Checks which configuration or which error a kubeconfig gives.
//!
//! Answers "what does this text mean, and is anything in it silently left out?" The tests read and set no environment
//! variable and make no connection; their files are in temporary folders.

use std::path::PathBuf;

use secrecy::ExposeSecret as _;

use crate::config::{Login, PluginPolicy};
use crate::endpoint::Endpoint;
use crate::identity::material::{Material, Pem};
use crate::{Client, PluginError};

use super::*;

/// A kubeconfig of one context with these lines below its cluster and its user.
fn kubeconfig(name: &str, cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: {name}\n\
         clusters:\n- name: {name}\n  cluster:\n    server: https://{name}:6443\n{cluster}\
         contexts:\n- name: {name}\n  context: {{cluster: {name}, user: {name}, namespace: ns-{name}}}\n\
         users:\n- name: {name}\n  user:\n    extensions: []\n{user}"
    )
}

fn inline(pem: Option<&Pem>) -> &[u8] {
    let Some(Pem::Inline(pem)) = pem else { panic!("not written down") };
    pem.expose_secret()
}

fn load(cluster: &str, user: &str) -> Result<Config, Error> {
    Config::from_kubeconfig_text(&kubeconfig("a", cluster, user), None)
}

#[test]
fn a_plain_kubeconfig_is_read() {
    let config = load(
        "    certificate-authority-data: Y2E=\n    tls-server-name: other\n    disable-compression: true\n",
        "    client-certificate-data: Y2VydA==\n    client-key-data: a2V5\n    token: t\n",
    )
    .unwrap();
    assert_eq!((config.endpoint(), config.namespace()), ("https://a:6443", "ns-a"));
    assert_eq!(inline(config.authorities.as_ref()), b"ca");
    let (certificates, key) = config.certificate.as_ref().unwrap();
    assert_eq!((inline(Some(certificates)), inline(Some(key))), (&b"cert"[..], &b"key"[..]));
    assert_eq!(config.tls_server_name.as_deref(), Some("other"));
    assert!(!config.requests.accepts_compression);
    assert!(matches!(&config.login, Some(Login::Token(token)) if token.expose_secret() == "t"));
}

// REST-17: given config with secrets, when formatted, then no secret appears.
// - a no token and no key appears
#[test]
fn rest_17_debug_shows_no_secret() {
    let config = load(
        "",
        "    client-certificate-data: Y2VydA==\n    client-key-data: c2VjcmV0a2V5\n    token: s3cret\n",
    );
    let text = format!("{:?}", config.unwrap());
    assert!(!text.contains("s3cret") && !text.contains("secretkey") && !text.contains("c2Vj"), "{text}");
}

#[test]
fn the_error_for_an_unsupported_field_names_the_field() {
    match load("", "    auth-provider: {name: gcp}\n") {
        Err(Error::Unsupported(what)) => assert!(what.contains("\"gcp\""), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_proxy_url_is_used_and_one_that_cannot_be_used_is_refused_with_the_name_of_its_cluster() {
    let config = load("    proxy-url: socks5://u:s3cret@proxy:3128\n", "").unwrap();
    let text = format!("{config:?}");
    assert!(text.contains("socks5://proxy:3128") && !text.contains("s3cret"), "{text}");
    let error = load("    proxy-url: ftp://u:s3cret@proxy\n", "").unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Proxy { .. }) && text.contains("proxy-url of the cluster \"a\""),
        "{text}"
    );
    assert!(text.contains("ftp://proxy") && !text.contains("s3cret"), "{text}");
}

#[test]
fn a_token_for_this_machine_is_not_sent_over_plain_http_through_a_proxy() {
    let text = kubeconfig("a", "    proxy-url: http://proxy:3128\n", "    token: t\n");
    let text = text.replace("https://a:6443", "http://127.0.0.1:8080");
    let config = Config::from_kubeconfig_text(&text, None).unwrap();
    let [warning] = &config.warnings()[..] else { panic!("{:?}", config.warnings()) };
    assert!(warning.contains("through the proxy http://proxy:3128: the token of its user is not sent"));
    assert!(sent_by(config.clone()).login.is_none());
    assert!(sent_by(config.without_proxy()).login.is_some());
}

/// What of this configuration is sent to its server.
fn sent_by(config: Config) -> Config {
    let endpoint = Endpoint::parse(&config.endpoint).unwrap();
    let proxy = config.proxy.of(&endpoint).unwrap();
    sent(config, Way::to(&endpoint, proxy.as_deref())).unwrap().config
}

#[test]
fn half_a_client_certificate_and_broken_base64_are_refused_without_quoting_them() {
    for (user, reason) in [
        ("    client-certificate-data: Y2VydA==\n", "the client key cannot be used: it is missing"),
        (
            "    client-key-data: '%%%'\n",
            "users[0].user.client-key-data: invalid value: string, expected base64",
        ),
    ] {
        let error = load("", user).unwrap_err().to_string();
        assert!(error.contains(reason) && !error.contains("%%%"), "{error}");
    }
    let ignored = load("", "    client-key-data: a2V5\n").unwrap();
    assert!(ignored.certificate.is_none() && ignored.warnings()[0].contains("client key"));
}

#[test]
fn a_token_file_wins_over_a_token_and_paths_are_relative_to_the_kubeconfig() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ca.pem"), "ca").unwrap();
    let path = directory.path().join("config");
    let text = kubeconfig("a", "    certificate-authority: ca.pem\n", "    token: t\n    tokenFile: tok\n");
    std::fs::write(&path, text).unwrap();
    let config = Config::from_kubeconfig_file(&path, None).unwrap();
    let ca = directory.path().join("ca.pem");
    assert!(matches!(&config.authorities, Some(Pem::File(file)) if *file == ca), "it is read again later");
    let token = directory.path().join("tok");
    assert!(matches!(&config.login, Some(Login::TokenFile { path, .. }) if *path == token));
}

// REST-29: given KUBECONFIG a:b:missing, when loading, then first definition wins, missing is skipped; an
// explicit missing path is an error.
// - a the first definition wins
// - b missing is skipped
// - c an explicit missing path is an error
// - d and everything else is as for kubectl: `a_kubeconfig_works_as_for_kubectl_or_is_refused_as_by_kubectl`
#[test]
fn rest_29_the_first_definition_wins_missing_files_are_skipped_and_an_explicit_missing_one_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("one"), kubeconfig("a", "", "    token: first\n")).unwrap();
    let second = kubeconfig("a", "", "    token: second\n").replace("https://a:", "https://other:");
    std::fs::write(path("two"), second).unwrap();
    std::fs::write(path("three"), kubeconfig("b", "", "")).unwrap();
    let paths: Vec<PathBuf> = ["missing", "one", "two", "three"].map(path).into();
    let config = Config::from_kubeconfig_files(&paths, None).unwrap();
    assert_eq!(config.endpoint(), "https://a:6443");
    assert!(matches!(&config.login, Some(Login::Token(token)) if token.expose_secret() == "first"));
    assert_eq!(Config::from_kubeconfig_files(&paths, Some("b")).unwrap().namespace(), "ns-b");
    assert!(matches!(Config::from_kubeconfig_file(path("missing"), None), Err(Error::File { .. })));
    assert!(matches!(Config::from_kubeconfig_files(&paths, Some("c")), Err(Error::Kubeconfig { .. })));
}

#[test]
fn rest_30_an_empty_kubeconfig_leaves_the_choice_to_the_pod_and_any_other_one_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("no_clusters"), "apiVersion: v1\nkind: Config\nclusters: []\n").unwrap();
    std::fs::write(path("complete"), kubeconfig("a", "", "")).unwrap();
    let load = |names: &[&str], context| {
        from_nonempty_files(&names.iter().map(|name| path(name)).collect::<Vec<_>>(), context)
    };
    assert!(load(&[], None).unwrap().is_none());
    assert!(load(&["missing", "empty", "no_clusters"], None).unwrap().is_none());
    assert!(load(&["empty"], Some("a")).is_err(), "the named context does not exist");
    assert_eq!(load(&["empty", "complete"], None).unwrap().unwrap().endpoint(), "https://a:6443");
}

#[test]
fn over_plain_http_credentials_are_left_out_with_a_warning_that_names_the_cluster() {
    let user = "    client-certificate-data: Y2VydA==\n    client-key-data: a2V5\n    token: s3cret-token\n";
    let load = |server: &str, user: &str| {
        let text = kubeconfig("a", "", user).replace("https://a:6443", server);
        Config::from_kubeconfig_text(&text, None).unwrap()
    };
    let config = load("http://api.example:8080", user);
    let kept = sent_by(config.clone());
    assert!(kept.login.is_none() && kept.certificate.is_none());
    let [warning] = &config.warnings()[..] else { panic!("{:?}", config.warnings()) };
    for named in [r#"cluster "a""#, "api.example:8080", "the token and the client certificate", "https"] {
        assert!(warning.contains(named), "{named} is not in: {warning}");
    }
    assert!(!warning.contains("s3cret"), "{warning}");
    let config = load("http://127.0.0.1:8080", user);
    let kept = sent_by(config.clone());
    assert!(kept.login.is_some() && kept.certificate.is_none(), "a token stays on this machine");
    assert!(config.warnings()[0].contains("the client certificate of its user is not sent"));
    for plugin in ["    as: someone\n", "    username: u\n    password: p\n", "    tokenFile: t\n"] {
        assert_eq!(load("http://api.example", plugin).warnings().len(), 1, "{plugin}");
    }
    assert_eq!(load("http://api.example", "").warnings(), Vec::<String>::new());
    assert_eq!(load("https://api.example", user).warnings(), Vec::<String>::new());
}

#[test]
fn a_user_may_log_in_by_a_password_a_plugin_or_oidc_and_act_as_somebody_else() {
    let config = load("", "    username: u\n    password: p\n    as: jane\n    as-groups: [a, b]\n").unwrap();
    assert!(matches!(&config.login, Some(Login::Basic { user, password })
        if user == "u" && password.expose_secret() == "p"));
    assert_eq!(config.impersonation.user.as_deref(), Some("jane"));
    assert_eq!(config.impersonation.groups, ["a", "b"]);
    let plugin = "    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never,\n      \
                  provideClusterInfo: true}\n";
    let config = load("    certificate-authority-data: Y2E=\n", plugin).unwrap();
    let (exec, cluster) = config.exec.as_deref().unwrap();
    assert_eq!(exec.command, "aws");
    assert_eq!(cluster.certificate_authority_data, b"ca");
    let refused = Client::new(config.certificate_authority("").plugin_policy(PluginPolicy::DenyAll));
    assert!(
        matches!(refused, Err(Error::Plugin { command, source: PluginError::NotAllowed }) if command == "aws")
    );
    let oidc = "    auth-provider: {name: oidc, config: {idp-issuer-url: 'https://issuer', client-id: me}}\n";
    assert!(load("", oidc).unwrap().oidc.is_some());
    let incomplete = load("", "    auth-provider: {name: oidc, config: {client-id: me}}\n").unwrap_err();
    assert!(incomplete.to_string().contains("idp-issuer-url is missing"), "{incomplete}");
}

/// What a client says that was made with the kubeconfig `before`, and reads it again when it is `after`.
fn read_again(before: &str, after: &str) -> Result<Material, String> {
    // What the program sets itself is no change of the file.
    read_again_as(before, after, |config| config.tls_server_name("set.by.the.program"))
}

fn read_again_as(before: &str, after: &str, set: impl FnOnce(Config) -> Config) -> Result<Material, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, before).unwrap();
    let config = set(Config::from_kubeconfig_file(&path, None).unwrap());
    let (limit, issuers) = (config.plugin_limit, Client::to_issuer);
    let provider = config.oidc.clone().map(|login| Provider::Oidc { login, limit, issuers });
    let login = config.login.clone();
    let provider = provider.map(Arc::new);
    let (has_read_token, origin) = (Arc::default(), config.origin.clone().unwrap());
    let material = Material { tls: None, proxy_tls: None, login, provider, again: None, has_read_token };
    std::fs::write(&path, after).unwrap();
    origin.read_again(Way::Tls, material).map_err(|error| error.to_string())
}

#[test]
fn new_credentials_are_taken_only_where_server_and_way_to_it_are_the_old_ones() {
    let cluster = "    tls-server-name: one\n    proxy-url: http://u:p@proxy:1\n";
    let before = kubeconfig("a", cluster, "    token: t\n");
    let now = read_again(&before, &before.replace("token: t", "token: new")).unwrap();
    assert!(matches!(now.login, Some(Login::Token(token)) if token.expose_secret() == "new"));
    for (from, to, what) in [
        ("https://a:6443", "https://b:6443", "the server of"),
        ("tls-server-name: one", "tls-server-name: two", "the tls-server-name of"),
        ("tls-server-name: one", "insecure-skip-tls-verify: true\n    tls-server-name: one", "insecure-skip"),
        ("@proxy:1", "@other:1", "the proxy-url of"),
        ("    token: t", "    as: jane\n    token: t", "the user to act as of"),
    ] {
        let said = read_again(&before, &before.replace(from, to)).err().unwrap_or_default();
        assert!(said.contains(what) && said.contains("takes a new client"), "{to}: {said}");
    }
}

#[test]
fn another_plugin_takes_a_new_client_and_the_same_one_does_not() {
    let user = "    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, args: [a], env: [{name: PROFILE, value: v}], \
                interactiveMode: Never}\n";
    let before = kubeconfig("a", "", user);
    assert!(read_again(&before, &before).is_ok());
    for (from, to) in
        [("aws", "gcloud"), ("args: [a]", "args: [b]"), ("value: v", "value: w"), (user, "    token: t\n")]
    {
        let said = read_again(&before, &before.replace(from, to)).err().unwrap_or_default();
        assert!(said.contains("the way to log in"), "{to}: {said}");
    }
    let before = kubeconfig("a", "", user);
    let read =
        read_again_as(&before, &before.replace("aws", "gcloud"), |config| config.token("of the program"));
    assert_eq!(read.err(), None, "the program gives the login");
}

#[test]
fn a_refresh_token_of_another_issuer_or_client_is_not_taken_over() {
    let user = "    auth-provider: {name: oidc, config: {idp-issuer-url: 'https://one', client-id: me, client-secret: s, \
                refresh-token: first, idp-certificate-authority-data: Y2E=}}\n";
    let before = kubeconfig("a", "", user);
    let after = before.replace("first", "second");
    assert!(read_again(&before, &after).is_ok());
    for (from, to) in [
        ("https://one", "https://two"),
        ("client-id: me", "client-id: you"),
        ("client-secret: s", "client-secret: t"),
        ("Y2E=", "Y2I="),
        (
            user.trim_start(),
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}\n",
        ),
    ] {
        let said = read_again(
            &before,
            &before.replace("first", "second").replace(&from.replace("first", "second"), to),
        );
        let said = said.err().unwrap_or_default();
        assert!(said.contains("the way to log in"), "{to}: {said}");
    }
}
