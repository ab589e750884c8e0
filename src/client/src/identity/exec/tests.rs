//! Checks what a credential plugin is asked and what its answer gives, with small shell scripts as plugins.
//!
//! Answers "does a plugin that hangs, fails or prints nonsense end in a clear error within its limit?" The scripts talk
//! to nobody. Texts that are secrets hold the word `marked-secret`, and no error may show it.

use std::path::PathBuf;

use secrecy::ExposeSecret as _;

use super::*;

fn config(script: &str) -> PluginConfig {
    PluginConfig {
        api_version: V1.to_owned(),
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        interactive_mode: "Never".to_owned(),
        ..PluginConfig::default()
    }
}

fn checked(config: &PluginConfig, policy: &PluginPolicy) -> Result<Plugin, PluginError> {
    Plugin::new(config, &ClusterInfo::default(), policy, LIMIT)
}

fn variable(name: &str, value: &str) -> Variable {
    Variable { name: name.to_owned(), value: value.to_owned() }
}

fn plugin(script: &str) -> Plugin {
    checked(&config(script), &PluginPolicy::AllowAll).expect("a valid description")
}

fn printing(status: &str) -> Plugin {
    plugin(&format!(r#"printf '%s' '{{"apiVersion":"{V1}","kind":"ExecCredential","status":{status}}}'"#))
}

#[test]
fn a_plugin_gives_a_token_and_says_when_it_expires() {
    let given = printing(r#"{"token":"secret","expirationTimestamp":"2030-01-01T00:00:00Z"}"#);
    let given = given.run().expect("credentials");
    assert_eq!(given.token.expect("a token").expose_secret(), "secret");
    assert_eq!(given.expires.expect("a time").to_string(), "2030-01-01T00:00:00Z");
    assert!(given.certificate.is_none());
}

#[test]
fn a_plugin_receives_its_version_whether_it_may_prompt_and_the_cluster_if_it_wants_it() {
    let asks = r#"test "$MINE" = yes || exit 9
printf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}' \
  "$(printf '%s' "$KUBERNETES_EXEC_INFO" | base64 | tr -d '\n')""#;
    let cluster = ClusterInfo {
        server: "https://api.example".to_owned(),
        certificate_authority_data: b"ca".to_vec(),
        config: json!({"audience": "x"}),
        ..ClusterInfo::default()
    };
    let described = json!({"server": "https://api.example", "certificate-authority-data": "Y2E=",
        "config": {"audience": "x"}});
    for (wants, expected) in
        [(false, json!({"interactive": false})), (true, json!({"interactive": false, "cluster": described}))]
    {
        let mut config = config(asks);
        config.provide_cluster_info = wants;
        config.env = vec![variable("MINE", "yes")];
        let plugin = Plugin::new(&config, &cluster, &PluginPolicy::AllowAll, LIMIT).expect("valid");
        let token = plugin.run().expect("credentials").token.expect("a token");
        let info = STANDARD.decode(token.expose_secret());
        let info: serde_json::Value = serde_json::from_slice(&info.expect("base64")).expect("JSON");
        assert_eq!(info["apiVersion"], V1);
        assert_eq!(info["kind"], "ExecCredential");
        assert_eq!(info["spec"], expected);
    }
}

#[test]
fn what_is_not_a_credential_is_refused_with_the_reason_and_without_its_text() {
    for (script, reason) in [
        ("printf marked-secret", "not an ExecCredential in JSON"),
        ("true", "not an ExecCredential in JSON"),
        (r#"printf '{"token": 7, "marked-secret"'"#, "not an ExecCredential in JSON"),
        (r#"printf '{"kind":"Secret"}'"#, "its kind is not ExecCredential"),
        (
            r#"printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"}'"#,
            "its apiVersion is not client.authentication.k8s.io/v1",
        ),
    ] {
        let error = plugin(script).run().expect_err(script).to_string();
        assert!(error.contains(reason), "{script}: {error}");
        assert!(!error.contains("marked-secret"), "{error}");
    }
    for (status, reason) in [
        ("{}", "neither a token nor a client certificate"),
        ("null", "it has no status"),
        (r#"{"clientCertificateData":"marked-secret"}"#, "no clientKeyData"),
        (r#"{"clientKeyData":"marked-secret","token":"marked-secret"}"#, "no clientCertificateData"),
        (r#"{"token":"marked-secret","expirationTimestamp":"soon"}"#, "not an ExecCredential in JSON"),
    ] {
        let error = printing(status).run().expect_err(status);
        assert!(error.to_string().contains(reason), "{status}: {error}");
        assert!(!format!("{error} {error:?}").contains("marked-secret"), "{error:?}");
    }
}

#[test]
fn an_answer_may_be_yaml_as_for_client_go() {
    let yaml = format!("apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: secret\n");
    let given = parse(yaml.as_bytes(), V1).expect("credentials");
    assert_eq!(given.token.expect("a token").expose_secret(), "secret");
}

#[test]
fn a_plugin_that_hangs_is_killed_with_its_children_at_the_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let pid_file: PathBuf = directory.path().join("pid");
    let mut plugin = plugin(&format!("sleep 1000 & echo $! > {}; wait", pid_file.display()));
    plugin.limit = Duration::from_millis(500);
    assert_eq!(plugin.run().expect_err("it hangs"), PluginError::TimedOut(Duration::from_millis(500)));
    let pid = std::fs::read_to_string(pid_file).expect("its child has started");
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    // A killed orphan is gone, or a zombie until its new parent looks.
    let is_running = || {
        std::fs::read_to_string(&stat)
            .is_ok_and(|text| !text.rsplit(')').next().unwrap_or("").starts_with(" Z"))
    };
    let mut looks = 0;
    while is_running() {
        looks += 1;
        assert!(looks < 10_000_000, "the plugin's child still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_plugin_that_prints_without_end_is_killed() {
    assert_eq!(plugin("yes marked-secret").run().expect_err("too much"), PluginError::TooLarge(1 << 20));
    let stderr = plugin("head -c 4000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo why >&2; exit 3");
    let error = stderr.run().expect_err("it fails").to_string();
    assert!(error.contains("exit status: 3") && error.ends_with("why") && error.len() < 700, "{error}");
}

#[test]
fn a_plugin_that_fails_is_quoted_by_the_end_of_its_stderr() {
    let error =
        plugin("echo first >&2; printf 'no \\033[31mlogin\\n' >&2; exit 255").run().expect_err("it fails");
    assert_eq!(error.to_string(), "it ended with exit status: 255: first; no  [31mlogin");
}

#[test]
fn a_plugin_that_is_not_installed_says_how_to_install_it() {
    let mut config = config("");
    config.command = "no-such-plugin".to_owned();
    config.install_hint = "install it with care".to_owned();
    let plugin = checked(&config, &PluginPolicy::AllowAll).expect("valid");
    let error = plugin.run().expect_err("absent").to_string();
    assert!(error.starts_with("it cannot be started") && error.ends_with("install it with care"), "{error}");
}

#[test]
fn a_plugin_that_always_asks_a_person_needs_a_terminal() {
    let mut always = plugin("true");
    always.mode = InteractiveMode::Always;
    assert_eq!(always.is_interactive(false), Err(PluginError::NotATerminal));
    assert_eq!(always.is_interactive(true), Ok(true));
    always.mode = InteractiveMode::IfAvailable;
    assert_eq!((always.is_interactive(false), always.is_interactive(true)), (Ok(false), Ok(true)));
    always.mode = InteractiveMode::Never;
    assert_eq!(always.is_interactive(true), Ok(false));
}

// REST-28: given a policy that allows no plugin or a list without this one, when a plugin is configured, then
// an error before it runs.
#[test]
fn rest_28_a_plugin_that_the_policy_does_not_allow_never_starts() {
    let directory = tempfile::tempdir().expect("a directory");
    let touched = directory.path().join("touched");
    let config = config(&format!("touch {}", touched.display()));
    for policy in [
        PluginPolicy::DenyAll,
        PluginPolicy::Allow(Vec::new()),
        PluginPolicy::Allow(vec!["bash".to_owned(), "/usr/bin/sh-".to_owned()]),
    ] {
        let refused = checked(&config, &policy).expect_err("not allowed");
        assert_eq!(refused, PluginError::NotAllowed, "{policy:?}");
    }
    assert!(!touched.exists());
    for allowed in ["sh", "/bin/sh"] {
        let policy = PluginPolicy::Allow(vec![allowed.to_owned()]);
        assert!(checked(&config, &policy).is_ok(), "{allowed}");
    }
}

#[test]
fn a_link_that_the_policy_allows_runs_the_file_that_was_checked_wherever_it_leads_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = program(folder.path(), "good", true);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&good, &link).expect("a link");
    let link = link.to_str().expect("text").to_owned();
    let policy = PluginPolicy::Allow(vec![link.clone()]);
    let program = policy.program(&link).expect("allowed");
    assert_eq!(program, Path::new(&good).canonicalize().expect("a file"));
}

/// A program of this name that does nothing, which may be run or not.
fn program(folder: &Path, name: &str, may_run: bool) -> String {
    let path = folder.join(name);
    std::fs::write(&path, "#!/bin/sh\n").expect("a file");
    let mode = if may_run { 0o755 } else { 0o644 };
    let rights = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(mode);
    std::fs::set_permissions(&path, rights).expect("its owner");
    path.to_str().expect("text").to_owned()
}

#[test]
fn client_p1_an_allowed_name_is_the_file_that_path_finds_and_no_other_file_of_that_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let other = program(directory.path(), "sh", true);
    let link = directory.path().join("link");
    std::os::unix::fs::symlink("/bin/sh", &link).expect("a link");
    let link = link.to_str().expect("text");
    for (command, allowed, may_start) in [
        ("sh", "sh", true),
        ("/bin/sh", "sh", true),
        ("sh", "/bin/sh", true),
        (link, "sh", true),
        (&other, &*other, true),
        (&other, "sh", false),
        (&other, "/bin/sh", false),
        ("sh", &*other, false),
        ("/bin/sh", "no-such-plugin", false),
        ("no-such-plugin", "no-such-plugin", false),
        ("./sh", "sh", false),
    ] {
        let mut config = config("true");
        config.command = command.to_owned();
        let found = checked(&config, &PluginPolicy::Allow(vec![allowed.to_owned()]));
        assert_eq!(found.is_ok(), may_start, "{command} where {allowed} is allowed: {found:?}");
    }
}

#[test]
fn client_p1_a_name_is_looked_up_in_absolute_folders_and_must_be_a_program() {
    let [first, second] = [0; 2].map(|_| tempfile::tempdir().expect("a directory"));
    program(first.path(), "plugin", false);
    let expected = program(second.path(), "plugin", true);
    let path = std::env::join_paths([Path::new("."), Path::new(""), first.path(), second.path()]);
    let path = path.expect("a path");
    assert_eq!(looked_up("plugin", &path), Some(expected.into()));
    for name in ["", "Cargo.toml", "src", "no-such-plugin"] {
        assert_eq!(looked_up(name, &path), None, "{name}");
    }
    let here = std::env::current_dir().expect("a folder");
    let root: PathBuf = here.ancestors().skip(1).map(|_| "..").collect();
    let relative = root.join(second.path().strip_prefix("/").expect("it is absolute"));
    assert!(is_program(&relative.join("plugin")), "it is the same folder");
    assert_eq!(looked_up("plugin", relative.as_os_str()), None);
}

#[test]
fn client_p5_what_a_plugin_leaves_running_when_it_succeeds_is_left_alone() {
    for keeps in ["2>/dev/null", ""] {
        let directory = tempfile::tempdir().expect("a directory");
        let [question, reply] = ["question", "reply"].map(|name| directory.path().join(name));
        assert!(Command::new("mkfifo").args([&question, &reply]).status().expect("it runs").success());
        let answer = format!(r#"{{"apiVersion":"{V1}","kind":"ExecCredential","status":{{"token":"t"}}}}"#);
        let plugin = plugin(&format!(
            "{{ read x < {}; echo $x > {}; }} >/dev/null {keeps} & printf '%s' '{answer}'",
            question.display(),
            reply.display()
        ));
        plugin.run().expect("credentials");
        let (heard, replies) = std::sync::mpsc::channel();
        std::thread::spawn(move || heard.send(std::fs::read_to_string(reply)));
        // Opened for both, so that nobody waits where nobody is left to read.
        let mut asked = std::fs::File::options().read(true).write(true).open(question).expect("a pipe");
        std::io::Write::write_all(&mut asked, b"alive\n").expect("it takes a line");
        let reply = replies.recv_timeout(LIMIT).expect("it was killed").expect("a pipe");
        assert_eq!(reply, "alive\n");
    }
}

/// What is set where this test runs itself, to have a standard error of its own.
const INSIDE: &str = "CLIENT_P6_INSIDE";

#[test]
fn client_p6_what_an_interactive_plugin_asks_on_stderr_is_shown_before_it_is_answered() {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;

    if std::env::var_os(INSIDE).is_some() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "printf 'Enter the code: ' >&2; read code; printf %s \"$code\""]);
        let printed = process::output(command, true, LIMIT).expect("it ends");
        assert_eq!(printed, b"1234");
        return;
    }
    let (_, name) = module_path!().split_once("::").expect("a crate");
    let name =
        format!("{name}::client_p6_what_an_interactive_plugin_asks_on_stderr_is_shown_before_it_is_answered");
    let mut child = Command::new(std::env::current_exe().expect("a program"))
        .args(["--exact", &name, "--nocapture"])
        .env(INSIDE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let (mut seen, mut shown) = (Vec::new(), child.stderr.take().expect("a pipe"));
    while !seen.ends_with(b"Enter the code: ") {
        let mut byte = [0];
        shown.read_exact(&mut byte).expect("the question is shown");
        seen.push(byte[0]);
    }
    child.stdin.take().expect("a pipe").write_all(b"1234\n").expect("it reads");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn an_incomplete_description_is_refused() {
    let broken = |change: fn(&mut PluginConfig)| {
        let mut config = config("true");
        change(&mut config);
        checked(&config, &PluginPolicy::AllowAll)
    };
    for (found, reason) in [
        (broken(|config| config.command.clear()), "no command"),
        (broken(|config| config.api_version.clear()), "no apiVersion"),
        (
            broken(|config| config.api_version = "client.authentication.k8s.io/v1alpha1".to_owned()),
            "v1alpha1",
        ),
        (broken(|config| config.interactive_mode.clear()), "interactiveMode is required"),
        (broken(|config| config.env = vec![variable("", "x")]), "an entry of env has no name"),
    ] {
        let error = found.expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let beta = broken(|config| {
        config.api_version = V1BETA1.to_owned();
        config.interactive_mode.clear();
    });
    assert_eq!(beta.expect("the mode is optional there").mode, InteractiveMode::IfAvailable);
}

#[test]
fn rest_17_no_debug_of_a_plugin_or_its_credentials_shows_a_secret() {
    let mut config = config("true marked-secret");
    config.env = vec![variable("A", "marked-secret")];
    let plugin = checked(&config, &PluginPolicy::AllowAll).expect("valid");
    let given =
        printing(r#"{"token":"marked-secret","clientCertificateData":"c","clientKeyData":"marked-secret"}"#);
    let given = given.run().expect("credentials");
    assert!(!format!("{plugin:?} {given:?}").contains("marked-secret"));
}
