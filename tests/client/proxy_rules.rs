//! Which proxy an environment asks for: a table that Go's own implementation judges.
//!
//! Answers "does `NO_PROXY` mean here what it means for kubectl?" Invariants:
//! 1. Where the Go clients of `tests/control-plane` are built, Go decides what is right: a row that states something else
//!    fails, and so does our answer.

use std::io::Write as _;
use std::process::{Command, Stdio};

use actix_informer::unstable::proxy_of_environment;
use informer_control_plane::Binaries;
use serde_json::{Value, json};

/// A list of `NO_PROXY`, and the endpoints that it excepts and does not.
const ROWS: &[(&str, &[&str], &[&str])] = &[
    ("", &[], &["https://a.example", "http://10.0.0.1", "https://[fd00::1]:6443", "https://Localhost"]),
    ("", &["https://localhost:6443", "http://127.0.0.1", "https://127.9.8.7", "https://[::1]:6443"], &[]),
    ("", &["https://[::ffff:127.0.0.1]"], &["https://0.0.0.0", "https://[::]", "https://127.0.0.1.example"]),
    ("*", &["https://a.example", "http://10.0.0.1"], &[]),
    ("x, *", &["https://a.example", "https://[fd00::1]"], &[]),
    ("**", &[], &["https://a.example"]),
    ("example", &["https://example", "https://a.example", "https://a.b.EXAMPLE:1"], &["https://aexample"]),
    (".example", &["https://a.example", "https://a.b.example"], &["https://example", "https://aexample"]),
    ("*.example", &["https://a.example", "https://a.b.example"], &["https://example", "https://aexample"]),
    ("a.*.example", &[], &["https://a.b.example"]),
    ("EXAMPLE", &["https://a.example"], &["https://example.org"]),
    (" a.example , b.example", &["https://a.example", "https://b.example"], &["https://c.example"]),
    ("a.example b.example", &[], &["https://a.example", "https://b.example"]),
    ("a.example;b.example", &[], &["https://a.example"]),
    (
        "example:6443",
        &["https://a.example:6443", "https://example:6443"],
        &["https://example", "https://a.example:1"],
    ),
    ("example:443", &["https://example"], &["http://example"]),
    ("example:80", &["http://example"], &["https://example"]),
    ("example:", &["https://example", "https://example:1"], &[]),
    ("example:x", &[], &["https://example"]),
    (":443", &[], &["https://example"]),
    (",,", &[], &["https://example"]),
    ("example.", &["https://example."], &["https://example"]),
    ("example", &[], &["https://example."]),
    (".", &["https://example."], &["https://example"]),
    ("https://example", &[], &["https://example"]),
    (
        "10.0.0.1",
        &["https://10.0.0.1", "https://10.0.0.1:6443"],
        &["https://10.0.0.11", "https://a.10.0.0.1"],
    ),
    ("10.0.0.1:6443", &["https://10.0.0.1:6443"], &["https://10.0.0.1"]),
    ("::ffff:10.0.0.1", &["https://10.0.0.1"], &["https://10.0.0.2"]),
    ("10.0.0.1", &["https://[::ffff:10.0.0.1]"], &["https://[::ffff:10.0.0.2]"]),
    ("10.0.0.01", &[], &["https://10.0.0.1"]),
    ("10.0", &[], &["https://10.0.0.1"]),
    (".0.0.1", &[], &["https://10.0.0.1"]),
    ("10.0.0.0/8", &["https://10.0.0.1", "https://10.255.255.255:6443"], &["https://11.0.0.1"]),
    ("10.9.8.7/8", &["https://10.0.0.1"], &["https://11.0.0.1"]),
    ("10.0.0.0/0", &["https://11.0.0.1"], &["https://a.example", "https://[fd00::1]"]),
    ("10.0.0.0/32", &["https://10.0.0.0"], &["https://10.0.0.1"]),
    ("10.0.0.0/9", &["https://10.127.0.1"], &["https://10.128.0.1"]),
    ("10.0.0.0/33", &[], &["https://10.0.0.1"]),
    ("10.0.0.0/08", &["https://10.0.0.1"], &[]),
    ("10.0.0.0/+8", &[], &["https://10.0.0.1"]),
    ("10.0.0.0/", &[], &["https://10.0.0.1"]),
    ("10.0.0.0/8:6443", &[], &["https://10.0.0.1:6443"]),
    ("example/8", &[], &["https://example", "https://10.0.0.1"]),
    (
        "fd00::/8",
        &["https://[fd00::1]:6443", "https://[fdff::1]"],
        &["https://[fe00::1]", "https://10.0.0.1"],
    ),
    ("fd00::/129", &[], &["https://[fd00::1]"]),
    ("::ffff:10.0.0.0/104", &["https://10.9.9.9"], &["https://11.0.0.1"]),
    ("::ffff:10.0.0.0/80", &[], &["https://10.0.0.1"]),
    ("::/0", &["https://[fd00::1]"], &["https://10.0.0.1"]),
    ("fd00::1", &["https://[fd00::1]:6443", "https://[fd00:0::1]"], &["https://[fd00::2]"]),
    ("[fd00::1]:6443", &["https://[fd00::1]:6443"], &["https://[fd00::1]"]),
    ("[fd00::1]", &[], &["https://[fd00::1]"]),
    ("fd00::1:6443", &[], &["https://[fd00::1]:6443"]),
    ("fd00::1%eth0", &[], &["https://[fd00::1]"]),
    ("FD00::1", &["https://[fd00::1]"], &[]),
];

const PROXY: &str = "http://proxy.example:3128";

/// The variables, the endpoint, and the proxy that is expected.
type Question = (Vec<(&'static str, &'static str)>, &'static str, Option<&'static str>);

fn questions() -> Vec<Question> {
    let mut questions = Vec::new();
    for (list, excepted, others) in ROWS {
        let variables = vec![("HTTPS_PROXY", PROXY), ("HTTP_PROXY", PROXY), ("NO_PROXY", *list)];
        questions.extend(excepted.iter().map(|endpoint| (variables.clone(), *endpoint, None)));
        questions.extend(others.iter().map(|endpoint| (variables.clone(), *endpoint, Some(PROXY))));
    }
    for (variables, endpoint, expected) in [
        (vec![("HTTPS_PROXY", "proxy:3128")], "https://a.example", Some("http://proxy:3128")),
        (vec![("HTTPS_PROXY", "127.0.0.1:3128")], "https://a.example", Some("http://127.0.0.1:3128")),
        (vec![("https_proxy", "socks5://p:1")], "https://a.example", Some("socks5://p:1")),
        (vec![("HTTPS_PROXY", "https://u:p@p:1")], "https://a.example", Some("https://p:1")),
        (vec![("HTTPS_PROXY", PROXY)], "http://a.example", None),
        (vec![("HTTP_PROXY", PROXY)], "https://a.example", None),
        (vec![("HTTP_PROXY", PROXY), ("http_proxy", "http://low:1")], "http://a.example", Some(PROXY)),
        (vec![("HTTP_PROXY", PROXY), ("no_proxy", "example")], "http://a.example", None),
        (
            vec![("HTTP_PROXY", PROXY), ("no_proxy", "example"), ("NO_PROXY", "x")],
            "http://a.example",
            Some(PROXY),
        ),
    ] {
        questions.push((variables, endpoint, expected));
    }
    questions
}

#[test]
fn rest_43_no_proxy_means_what_it_means_for_go() {
    for (variables, endpoint, expected) in questions() {
        let found = proxy_of_environment(&variables, endpoint).unwrap();
        assert_eq!(found.as_deref(), expected, "{variables:?} {endpoint}");
    }
}

// REST-43: given no proxy that is named, when a client is made, then the environment decides by Go's rules
// (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, upper case first, this machine never, an error in a CGI program),
// and `ALL_PROXY` counts where the other is not set; a value that cannot be read is an error that names the
// variable.
// - a the environment is asked: `rest_43_without_a_named_proxy_the_environment_is_asked`
// - b `NO_PROXY` means what it means for Go
// - c which variable counts: `the_variable_of_the_scheme_counts_first_in_upper_case_and_then_that_of_all`
// - d a CGI program: `in_a_cgi_program_http_proxy_is_an_error`
// - e a value that cannot be read: `a_value_that_cannot_be_read_is_an_error_that_names_the_variable`
#[test]
fn rest_43_go_gives_the_same_answers() {
    let Some(program) = Binaries::find_or_skip().and_then(|found| found.go_clients().map(ToOwned::to_owned))
    else {
        return;
    };
    let asked: Vec<Value> = questions()
        .iter()
        .map(|(variables, endpoint, _)| {
            let value = |name: &str| {
                let set = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
                set(&name.to_uppercase()).or_else(|| set(&name.to_lowercase())).unwrap_or_default()
            };
            json!({
                "HTTPSProxy": value("HTTPS_PROXY"), "HTTPProxy": value("HTTP_PROXY"), "NoProxy": value("NO_PROXY"),
                "URL": endpoint,
            })
        })
        .collect();
    let mut go =
        Command::new(program).arg("proxies").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    go.stdin.take().unwrap().write_all(Value::from(asked).to_string().as_bytes()).unwrap();
    let output = go.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Vec<String> = serde_json::from_slice(&output.stdout).unwrap();
    let wrong: Vec<_> = questions()
        .into_iter()
        .zip(&answers)
        .filter(|((_, _, expected), answer)| expected.unwrap_or_default() != **answer)
        .collect();
    assert!(wrong.is_empty() && answers.len() == questions().len(), "Go says otherwise: {wrong:#?}");
}
