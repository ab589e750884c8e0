//! What is refused, and how: the person must know what would be right.
//!
//! Answers "does a mistake say where it is and what is allowed?".

use crate::process::Informerd;

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
fn a_config_file_that_was_named_and_is_not_there_is_refused() {
    let error = refusal(&["--config", "nowhere/at-all.toml"], ("TZ", "UTC"));
    assert!(error.contains("nowhere/at-all.toml cannot be read"), "{error}");
}

#[test]
fn whoever_names_a_cluster_that_is_not_there_does_not_get_the_demo() {
    let error = refusal(&[], ("KUBECONFIG", "nowhere/at-all"));
    assert!(error.contains("KUBECONFIG names no file that exists: nowhere/at-all"), "{error}");
    let error = refusal(&["--context", "prod"], ("TZ", "UTC"));
    assert!(error.contains("--context prod needs --kubeconfig FILE or KUBECONFIG"), "{error}");
}
