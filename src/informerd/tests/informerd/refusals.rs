//! What is refused, and how: the message must show the user what would be right.
//!
//! Answers "does an error say where the mistake is and what is allowed?".

use crate::process::{Informerd, command};

fn refusal(arguments: &[&str], variable: (&str, &str)) -> String {
    let (status, lines, stderr) = Informerd::start_with(arguments, variable).end();
    assert_eq!(status.code(), Some(2), "{stderr}");
    assert_eq!(lines, Vec::<String>::new());
    stderr
}

#[test]
fn a_bad_config_file_names_the_key_the_line_and_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[output]\n# for people\nformat = \"yaml\"\n").unwrap();
    let error = refusal(&["--config", file.to_str().unwrap()], ("TZ", "UTC"));
    for part in ["bad.toml, line 3", "output.format", r#"allowed: "text" or "json""#, r#"default: "text""#] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[test]
fn a_misspelt_key_is_refused_with_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[probes]\nprt = 1\n").unwrap();
    let error = refusal(&["--config", file.to_str().unwrap()], ("TZ", "UTC"));
    assert!(error.contains("line 2: unknown key probes.prt (did you mean port?)"), "{error}");
}

#[test]
fn a_config_file_that_was_named_but_does_not_exist_is_refused() {
    let error = refusal(&["--config", "nowhere/at-all.toml"], ("TZ", "UTC"));
    assert!(error.contains("nowhere/at-all.toml cannot be read"), "{error}");
}

#[test]
fn with_a_named_cluster_that_does_not_exist_the_demo_is_not_started() {
    let error = refusal(&[], ("KUBECONFIG", "nowhere/at-all"));
    assert!(error.contains("none of the files in KUBECONFIG exists: nowhere/at-all"), "{error}");
    let error = refusal(&["--context", "prod"], ("TZ", "UTC"));
    assert!(error.contains("--context prod needs --kubeconfig FILE, KUBECONFIG, or --home"), "{error}");
}

#[test]
fn a_missing_or_broken_kubeconfig_is_refused_like_a_wrong_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let path = file.to_str().unwrap();
    let error = refusal(&["--kubeconfig", path], ("TZ", "UTC"));
    assert!(error.contains(path) && error.contains("cannot be read"), "{error}");
    for (text, written) in [
        ("{", "line "),
        ("apiVersion: v1\nkind: Config\n", "context"),
        ("apiVersion: v1\nkind: Config\ncurrent-context: nowhere\n", "nowhere"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = refusal(&["--kubeconfig", path], ("TZ", "UTC"));
        assert!(error.contains(path) && error.contains(written), "{error}");
    }
}

#[test]
fn a_namespace_that_is_listed_twice_is_refused_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "[[informer]]\nkind = \"Pod\"\nnamespaces = [\"a\", \"b\", \"a\"]\n").unwrap();
    let error = refusal(&["--config", file.to_str().unwrap()], ("TZ", "UTC"));
    assert!(error.contains("bad.toml, line 3: informer.namespaces") && error.contains(r#""a""#), "{error}");
}

#[test]
fn a_file_in_the_current_directory_is_not_read_unasked_and_the_one_that_is_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("config")).unwrap();
    let file = folder.path().join("config/informerd.toml");
    std::fs::write(&file, "[probes]\naddress = \"0.0.0.0\"\n").unwrap();
    let mut process = command(&["--for", "1s"]);
    process.current_dir(folder.path());
    let (_, _, stderr) = Informerd::run(process).end();
    assert!(stderr.contains("probes at http://127.0.0.1:") && !stderr.contains("0.0.0.0"), "{stderr}");
    assert!(stderr.contains("informerd: configuration: the built-in defaults"), "{stderr}");
    let mut process = command(&["--for", "1s", "--config", "config/informerd.toml"]);
    process.current_dir(folder.path());
    let (_, _, stderr) = Informerd::run(process).end();
    assert!(stderr.contains("informerd: configuration: config/informerd.toml"), "{stderr}");
    assert!(stderr.contains("probes at http://0.0.0.0:"), "{stderr}");
}

#[test]
fn logs_in_a_pipe_hold_no_colours_unless_they_are_asked_for() {
    for (arguments, coloured) in [
        (vec!["--for", "1s"], false),
        (vec!["--for", "1s", "--colour", "never"], false),
        (vec!["--for", "1s", "--colour", "always"], true),
    ] {
        let mut process = command(&arguments);
        process.env("RUST_LOG", "actix_informer=trace,mio=trace");
        let (_, _, stderr) = Informerd::run(process).end();
        assert!(stderr.contains("TRACE") || stderr.contains("DEBUG"), "something is logged: {stderr}");
        assert_eq!(stderr.contains('\u{1b}'), coloured, "{arguments:?}");
    }
}

#[test]
fn the_banner_says_what_is_selected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    let text = "[[informer]]\nkind = \"Pod\"\nlabels = \"app=x\"\nfields = \"spec.nodeName=n\"\n\
                namespaces = [\"a\", \"b\"]\n[[informer]]\nkind = \"Node\"\n";
    std::fs::write(&file, text).unwrap();
    let (_, _, stderr) = Informerd::start(&["--for", "1s", "--config", file.to_str().unwrap()]).end();
    let banner = "informerd: watching pods in a, b with labels app=x and fields spec.nodeName=n\n";
    assert!(stderr.contains(banner) && stderr.contains("informerd: watching nodes\n"), "{stderr}");
}

#[test]
fn a_kind_with_a_plural_of_its_own_is_asked_for_by_that_plural() {
    let server = informer_apiserver::ApiServer::builder().start_blocking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    server.write_kubeconfig(&kubeconfig).unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "[[informer]]\nkind = \"Pod\"\nplural = \"widgets\"\n").unwrap();
    let (file, kubeconfig) = (file.to_str().unwrap(), kubeconfig.to_str().unwrap());
    let (_, _, stderr) =
        Informerd::start(&["--kubeconfig", kubeconfig, "--config", file, "--for", "1s"]).end();
    assert!(stderr.contains("watching widgets in all namespaces"), "{stderr}");
    let asked: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert!(asked.iter().any(|path| path.contains("/widgets")), "{asked:?}");
    assert!(!asked.iter().any(|path| path.contains("/pods")), "{asked:?}");
}

/// The same with the cluster of a server in memory.
fn refused_over_a_server(config: &str, arguments: &[&str]) -> String {
    let server = informer_apiserver::ApiServer::builder().start_blocking().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (kubeconfig, file) = (path("kubeconfig"), path("c.toml"));
    server.write_kubeconfig(&kubeconfig).unwrap();
    std::fs::write(&file, config).unwrap();
    let mut all = vec!["--kubeconfig", &kubeconfig, "--config", &file];
    all.extend(arguments);
    refusal(&all, ("TZ", "UTC"))
}

#[test]
fn client_informerd_a_category_is_refused_with_the_kinds_that_it_stands_for() {
    let error = refused_over_a_server("[[informer]]\nkind = \"all\"\n", &[]);
    for part in
        ["\"all\" is a category of several resources: ", "pods", "deployments.apps", "one [[informer]]"]
    {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[test]
fn client_informerd_a_port_for_probes_that_are_off_is_refused() {
    let error = refused_over_a_server("[probes]\nenabled = false\n", &["--probe-port", "8080"]);
    assert!(error.contains("--probe-port is given, but the probes are off"), "{error}");
}

#[test]
fn client_informerd_the_version_names_the_program_and_the_help_the_filter_that_shows_its_logs() {
    let (status, lines, _) = Informerd::start(&["--version"]).end();
    assert_eq!((status.code(), lines), (Some(0), vec![format!("informerd {}", env!("CARGO_PKG_VERSION"))]));
    let (_, lines, _) = Informerd::start(&["--help"]).end();
    let help = lines.join(" ");
    for part in ["actix_informer=debug", "--home", "Exit codes: 0 all is well", "3 a kind was not followed"] {
        assert!(help.contains(part), "{part} is not in: {help}");
    }
}

#[test]
fn newcomer_5_the_kubeconfig_in_the_home_directory_is_read_with_home_and_not_without() {
    let server = informer_apiserver::ApiServer::builder().start_blocking().unwrap();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_str().unwrap();
    let error = refusal(&["--home"], ("HOME", path));
    assert!(error.contains(".kube/config") && error.contains("cannot be read"), "{error}");
    std::fs::create_dir(home.path().join(".kube")).unwrap();
    server.write_kubeconfig(home.path().join(".kube/config")).unwrap();
    for (arguments, reads_it) in [(vec!["--home", "--for", "1s"], true), (vec!["--for", "1s"], false)] {
        let (_, _, stderr) = Informerd::start_with(&arguments, ("HOME", path)).end();
        assert_eq!(
            stderr.contains(&format!("reading {}, never writing", server.url())),
            reads_it,
            "{stderr}"
        );
    }
    let error = refusal(&["--home", "--kubeconfig", "x"], ("HOME", path));
    assert!(error.contains("cannot be used with"), "{error}");
}
