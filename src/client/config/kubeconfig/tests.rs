//! Kubeconfigs in, configurations or typed refusals out.
//!
//! Answers "what does this text mean, and is anything in it silently left out?" No variable of the process is read or
//! set, nothing is connected to; files lie in temporary folders.

use std::path::PathBuf;

use crate::client::config::Token;

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

fn load(cluster: &str, user: &str) -> Result<Config, Error> {
    Config::from_kubeconfig_text(&kubeconfig("a", cluster, user), None)
}

#[test]
fn a_plain_kubeconfig_is_read() {
    let config = load(
        "    certificate-authority-data: Y2E=\n    tls-server-name: other\n",
        "    client-certificate-data: Y2VydA==\n    client-key-data: a2V5\n    token: t\n",
    )
    .unwrap();
    assert_eq!((config.endpoint(), config.namespace()), ("https://a:6443/", "ns-a"));
    assert_eq!(config.certificate_authorities.as_deref(), Some(&b"ca"[..]));
    let identity = config.identity.as_ref().unwrap();
    assert_eq!((&identity.certificates[..], identity.key.expose_secret()), (&b"cert"[..], &b"key"[..]));
    assert_eq!(config.tls_server_name.as_deref(), Some("other"));
    assert!(matches!(&config.token, Some(Token::Fixed(token)) if token.expose_secret() == "t"));
}

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
fn what_this_client_does_not_do_is_refused_by_name() {
    let exec =
        "    exec: {apiVersion: client.authentication.k8s.io/v1, command: aws, interactiveMode: Never}\n";
    for (cluster, user, named) in [
        ("", exec, "\"aws\""),
        ("", "    auth-provider: {name: gcp}\n", "\"gcp\""),
        ("", "    as: someone\n", "impersonation"),
        ("", "    username: u\n    password: p\n", "basic authentication"),
        ("    proxy-url: http://proxy:3128\n", "", "proxy-url"),
    ] {
        match load(cluster, user) {
            Err(Error::Unsupported(what)) => assert!(what.contains(named), "{what}"),
            other => panic!("{named}: {other:?}"),
        }
    }
}

#[test]
fn half_a_client_certificate_and_broken_base64_are_refused_without_quoting_them() {
    for user in [
        "    client-key-data: a2V5\n",
        "    client-certificate-data: Y2VydA==\n",
        "    client-key-data: '%%%'\n",
    ] {
        let error = load("", user).unwrap_err();
        assert!(matches!(error, Error::Unusable { .. }) && !error.to_string().contains("%%%"), "{error}");
    }
}

#[test]
fn a_token_file_wins_over_a_token_and_paths_are_relative_to_the_kubeconfig() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ca.pem"), "ca").unwrap();
    let path = directory.path().join("config");
    let text = kubeconfig("a", "    certificate-authority: ca.pem\n", "    token: t\n    tokenFile: tok\n");
    std::fs::write(&path, text).unwrap();
    let config = Config::from_kubeconfig_file(&path, None).unwrap();
    assert_eq!(config.certificate_authorities.as_deref(), Some(&b"ca"[..]));
    assert!(matches!(&config.token, Some(Token::File(file)) if *file == directory.path().join("tok")));
}

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
    assert_eq!(config.endpoint(), "https://a:6443/");
    assert!(matches!(&config.token, Some(Token::Fixed(token)) if token.expose_secret() == "first"));
    assert_eq!(Config::from_kubeconfig_files(&paths, Some("b")).unwrap().namespace(), "ns-b");
    assert!(matches!(Config::from_kubeconfig_file(path("missing"), None), Err(Error::File { .. })));
    assert!(matches!(Config::from_kubeconfig_files(&paths, Some("c")), Err(Error::Kubeconfig { .. })));
}

#[test]
fn rest_30_an_empty_kubeconfig_leaves_the_word_to_the_pod_and_one_that_says_anything_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("empty"), "").unwrap();
    std::fs::write(path("shell"), "apiVersion: v1\nkind: Config\nclusters: []\n").unwrap();
    std::fs::write(path("real"), kubeconfig("a", "", "")).unwrap();
    let load = |names: &[&str], context| {
        from_files_that_say_something(&names.iter().map(|name| path(name)).collect::<Vec<_>>(), context)
    };
    assert!(load(&[], None).unwrap().is_none());
    assert!(load(&["missing", "empty", "shell"], None).unwrap().is_none());
    assert!(load(&["empty"], Some("a")).is_err(), "a context was asked for and is not there");
    assert_eq!(load(&["empty", "real"], None).unwrap().unwrap().endpoint(), "https://a:6443/");
}

#[test]
fn over_plain_http_credentials_are_left_out_with_a_warning_that_names_the_cluster() {
    let user = "    client-certificate-data: Y2VydA==\n    client-key-data: a2V5\n    token: s3cret-token\n";
    let load = |server: &str, user: &str| {
        let text = kubeconfig("a", "", user).replace("https://a:6443", server);
        Config::from_kubeconfig_text(&text, None).unwrap()
    };
    let config = load("http://api.example:8080", user);
    assert!(config.token.is_none() && config.identity.is_none());
    let [warning] = config.warnings() else { panic!("{:?}", config.warnings()) };
    for named in [r#"cluster "a""#, "api.example:8080", "the token and the client certificate", "https"] {
        assert!(warning.contains(named), "{named} is not in: {warning}");
    }
    assert!(!warning.contains("s3cret"), "{warning}");
    let config = load("http://127.0.0.1:8080", user);
    assert!(config.token.is_some() && config.identity.is_none(), "a token stays on this machine");
    assert!(config.warnings()[0].contains("the client certificate of its user is not sent"));
    for plugin in ["    as: someone\n", "    username: u\n    password: p\n", "    tokenFile: t\n"] {
        assert_eq!(load("http://api.example", plugin).warnings().len(), 1, "{plugin}");
    }
    assert_eq!(load("http://api.example", "").warnings(), <[String; 0]>::default());
    assert_eq!(load("https://api.example", user).warnings(), <[String; 0]>::default());
}
