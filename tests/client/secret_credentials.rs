//! What no error, Debug or log may hold of credentials: kubeconfigs, plugins, OpenID Connect, impersonation.
//!
//! Answers "can a reader of the errors or the logs log in afterwards?" Each secret has the mark of `secrets.rs`,
//! every path to an error is taken, and everything that can be read afterwards is searched.

use std::time::Duration;

use actix_informer::client::{Client, Config};
use actix_informer::unstable::proxy_of_environment;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;

use crate::logs;
use crate::paths::kubeconfig;
use crate::raw_server::*;
use crate::secrets::{is_unmarked, shown};
use crate::small_proxy::{Kind, Settings, SmallProxy};

/// A kubeconfig in which every secret is marked.
fn marked() -> String {
    let key = STANDARD.encode("MARK-key");
    kubeconfig(
        "https://127.0.0.1:1",
        &format!(
            "    token: MARK-token\n    username: u\n    password: MARK-password\n    client-key-data: {key}\n    \
             exec:\n      apiVersion: client.authentication.k8s.io/v1\n      command: aws\n      \
             interactiveMode: Never\n      env:\n      - name: KEY\n        value: MARK-env\n"
        ),
    )
}

/// The kubeconfig with one typical mistake each.
fn mistakes() -> Vec<(&'static str, String)> {
    let good = marked();
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1)
    };
    vec![
        ("a wrong indent", with("    username: u", "  username: u")),
        ("a tab", with("    username: u", "\tusername: u")),
        ("a list for a text", with("token: MARK-token", "token: [MARK-token]")),
        ("a map for a text", with("token: MARK-token", "token: {a: MARK-token}")),
        ("a list for a name", with("username: u", "username: [u]")),
        ("a key twice", with("    username: u", "    token: MARK-again")),
        ("an open quote", with("token: MARK-token", "token: \"MARK-token")),
        ("no name", with("users:\n- name: a", "users:\n- nme: a")),
        ("a text for a map", with("  user:\n", "  user: MARK-token\n  xuser:\n")),
        ("a wrong enum", with("interactiveMode: Never", "interactiveMode: MARK-mode")),
        ("an unknown anchor", with("token: MARK-token", "token: *MARK-token")),
        ("a tag", with("token: MARK-token", "token: !!int MARK-token")),
    ]
}

#[test]
fn a_kubeconfig_with_a_mistake_is_refused_with_its_file_line_and_column_and_without_a_word_of_it() {
    let folder = tempfile::tempdir().unwrap();
    for (what, text) in mistakes() {
        let file = folder.path().join("the-kubeconfig");
        std::fs::write(&file, &text).unwrap();
        for loaded in [
            Config::from_kubeconfig_file(&file, None),
            Config::from_kubeconfig_files(std::slice::from_ref(&file), None),
            Config::from_kubeconfig_text(&text, None),
        ] {
            let error = loaded.unwrap_err();
            is_unmarked(&shown(&error), what);
        }
        let error = Config::from_kubeconfig_file(&file, None).unwrap_err().to_string();
        assert!(error.contains("the-kubeconfig"), "{what}: {error}");
        // These are no mistakes of YAML or of a type: the error names the entry instead.
        if !matches!(what, "a wrong indent" | "a key twice" | "no name" | "a wrong enum") {
            assert!(error.contains("line ") && error.contains("column "), "{what}: {error}");
        }
    }
}

#[test]
fn a_kubeconfig_that_asks_for_too_much_is_refused_without_its_secrets() {
    let good = marked();
    let without =
        |from: &str| good.lines().filter(|line| !line.contains(from)).collect::<Vec<_>>().join("\n");
    let exec_gone: String = good.split("    exec:").next().unwrap().to_owned();
    for (what, text) in [
        ("exec without a version", good.replace("apiVersion: client", "xapiVersion: client")),
        ("exec without a mode", good.replace("interactiveMode: Never", "xinteractiveMode: Never")),
        ("an auth provider", exec_gone.clone() + "    auth-provider: {name: gcp, config: {a: MARK-a}}\n"),
        ("an incomplete login", exec_gone.clone() + "    auth-provider: {name: oidc, config: {a: MARK-a}}\n"),
        ("an unknown context", good.replace("current-context: a", "current-context: b")),
        (
            "a server with a password",
            good.replace("https://127.0.0.1:1", "https://u:MARK-pw@127.0.0.1:1/?a=MARK-q"),
        ),
        ("a server without a URL", good.replace("https://127.0.0.1:1", "'https://u:MARK-pw@[/?a=MARK-q'")),
        (
            "half a certificate",
            without("password")
                .replace("username: u", "as-uid: ''")
                .replace("client-key-data", "client-certificate-data")
                .split("    exec:")
                .next()
                .unwrap()
                .to_owned(),
        ),
        ("a key that is not base64", exec_gone.replace(&STANDARD.encode("MARK-key"), "'MARK-%%%'")),
        (
            "a token that is not a valid header value",
            kubeconfig("https://127.0.0.1:1", "    token: \"MARK-a\\u0007b\"\n"),
        ),
    ] {
        let error = match Config::from_kubeconfig_text(&text, None) {
            Err(error) => error,
            Ok(config) => {
                is_unmarked(&format!("{config:?}"), what);
                Client::new(config).unwrap_err()
            }
        };
        is_unmarked(&shown(&error), what);
    }
}

/// Answers that a plugin may print, all of them wrong.
fn wrong_answers() -> Vec<String> {
    let credential = |status: &str| {
        format!(
            r#"printf '%s' '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{status}}}'"#
        )
    };
    vec![
        "echo MARK-garbage".to_owned(),
        r#"printf '%s' '{"kind":["MARK-kind"]}'"#.to_owned(),
        r#"printf '%s' '{"kind":"MARK-kind","apiVersion":"MARK-version"}'"#.to_owned(),
        "yes MARK-megabytes".to_owned(),
        "echo MARK-stdout; exit 3".to_owned(),
        "echo MARK-stdout; sleep 1000".to_owned(),
        credential(r#"{"token":["MARK-token"]}"#),
        credential(r#"{"token":"MARK-token","expirationTimestamp":"MARK-time"}"#),
        credential(r#"{"token":"MARK-\u0007-token"}"#),
        credential(r#"{"clientKeyData":"MARK-key"}"#),
        credential(r#"{"clientCertificateData":"MARK-certificate"}"#),
        credential(r#"{"clientCertificateData":"MARK-certificate","clientKeyData":"MARK-key"}"#),
        credential(r#"{"token":"MARK-token-that-is-refused"}"#),
    ]
}

/// A server that refuses everything and repeats what it was sent.
async fn repeating() -> RawServer {
    RawServer::start(|mut connection: Connection| async move {
        while let Some(head) = connection.request().await {
            connection.write(answer("401 Unauthorized", "", &head)).await;
        }
    })
    .await
}

async fn is_refused_unmarked(config: Config, what: &str) {
    is_unmarked(&format!("{config:?} {config:#?} {:?}", config.warnings()), what);
    let error = match Client::new(config) {
        Ok(client) => {
            is_unmarked(&format!("{client:?}"), what);
            client.request(Method::GET, "/version", None).await.unwrap_err()
        }
        Err(error) => error,
    };
    is_unmarked(&shown(&error), what);
}

#[tokio::test]
async fn no_error_debug_or_log_of_a_plugin_holds_what_it_printed_its_arguments_or_its_variables() {
    logs::keep();
    let server = repeating().await;
    let secure = server.url().replace("http://", "https://");
    for (url, answer) in [&server.url(), &secure]
        .into_iter()
        .flat_map(|url| wrong_answers().into_iter().map(move |answer| (url, answer)))
    {
        let exec = serde_json::json!({
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "command": "/bin/sh",
            "args": ["-c", answer, "MARK-argument"], "env": [{ "name": "KEY", "value": "MARK-variable" }],
            "provideClusterInfo": true,
        });
        let text = kubeconfig(url, &format!("    exec: {exec}\n"));
        let config = Config::from_kubeconfig_text(&text, None).unwrap();
        let config = config.certificate_authority("").plugin_limit(Duration::from_millis(300));
        is_refused_unmarked(config, &answer).await;
    }
    is_unmarked(&logs::kept(), "a log line");
}

#[tokio::test]
async fn no_error_debug_or_log_of_a_password_or_an_impersonation_holds_a_value() {
    logs::keep();
    let server = repeating().await;
    for user in [
        // Three bytes before the mark: its base64 is the one that is looked for.
        "    username: ab\n    password: MARK-password\n",
        "    username: ab\n    password: \"MARK-\\u0007\"\n",
        "    token: t\n    as: jane\n    as-user-extra: {scopes: [\"MARK-\\u0007\"]}\n",
        "    token: t\n    as-user-extra: {scopes: [MARK-value]}\n",
        "    token: t\n    as: jane\n    as-user-extra: {scopes: MARK-value}\n",
        "    token: MARK-token\n    username: u\n    password: MARK-password\n",
    ] {
        match Config::from_kubeconfig_text(&kubeconfig(&server.url(), user), None) {
            Ok(config) => is_refused_unmarked(config, user).await,
            Err(error) => is_unmarked(&shown(&error), user),
        }
    }
    is_unmarked(&logs::kept(), "a log line");
}

/// An issuer that answers the second question with this; the first one it answers well unless the answer is for it.
async fn issuer(first: Option<String>, second: String) -> RawServer {
    RawServer::start(move |mut connection: Connection| {
        let (first, second) = (first.clone(), second.clone());
        async move {
            while let Some(head) = connection.request().await {
                let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
                let found = format!(r#"{{"token_endpoint":"http://{host}/token"}}"#);
                let body = match head.starts_with("GET") {
                    true => answer("200 OK", "", first.as_ref().unwrap_or(&found)),
                    false => second.clone(),
                };
                connection.write(body).await;
                if !head.starts_with("GET") {
                    return;
                }
            }
        }
    })
    .await
}

#[tokio::test]
async fn no_error_debug_or_log_of_an_openid_login_holds_a_token_or_a_word_of_the_issuer() {
    logs::keep();
    let server = repeating().await;
    let good = answer("200 OK", "", r#"{"id_token":"MARK-id-token"}"#);
    for (first, second) in [
        (Some("MARK-garbage".to_owned()), good.clone()),
        (Some(r#"{"token_endpoint":"MARK-endpoint"}"#.to_owned()), good.clone()),
        (
            Some(r#"{"token_endpoint":"http://u:MARK-password@127.0.0.1:1/?MARK-query"}"#.to_owned()),
            good.clone(),
        ),
        (Some(r#"{"token_endpoint":["MARK-endpoint"]}"#.to_owned()), good.clone()),
        (None, good),
        (None, answer("200 OK", "", r#"{"id_token":"MARK-\u0007"}"#)),
        (None, answer("200 OK", "", r#"{"access_token":"MARK-access"}"#)),
        (None, answer("200 OK", "", "MARK-garbage")),
        (None, answer("400 Bad Request", "", r#"{"error":"MARK-error","error_description":"MARK-text"}"#)),
        (None, answer("500 Internal Server Error", "", "MARK-garbage")),
        (None, "HTTP/9.9 MARK-line\r\n\r\n".to_owned()),
    ] {
        let what = format!("{first:?} {second}");
        let issuer = issuer(first, second).await;
        let login = serde_json::json!({ "name": "oidc", "config": {
            "idp-issuer-url": issuer.url(), "client-id": "me", "client-secret": "MARK-client-secret",
            "refresh-token": "MARK-refresh-token", "id-token": "MARK-expired-id-token",
        }});
        let text = kubeconfig(&server.url(), &format!("    auth-provider: {login}\n"));
        is_refused_unmarked(Config::from_kubeconfig_text(&text, None).unwrap(), &what).await;
    }
    is_unmarked(&logs::kept(), "a log line");
}

#[tokio::test]
async fn a_kubeconfig_that_breaks_while_its_client_lives_is_logged_without_a_word_of_it() {
    logs::keep();
    let server = repeating().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("the-broken-kubeconfig");
    for (what, broken) in mistakes() {
        std::fs::write(&file, kubeconfig(&server.url(), "    token: MARK-token\n")).unwrap();
        let client = Client::new(Config::from_kubeconfig_file(&file, None).unwrap()).unwrap();
        std::fs::write(&file, broken).unwrap();
        let error = client.request(Method::GET, "/version", None).await.unwrap_err();
        is_unmarked(&shown(&error), what);
    }
    let logged = logs::kept();
    assert!(logged.contains("the-broken-kubeconfig"), "the failed renewal is logged");
    is_unmarked(&logged, "a log line");
}

#[tokio::test]
async fn no_error_debug_or_log_of_a_proxy_holds_its_user_or_its_password() {
    logs::keep();
    let server = repeating().await;
    // A proxy that repeats what it was sent, and a real one that lets nobody in.
    let login = Some(("nobody", "else"));
    let strict = |kind| SmallProxy::start_with(kind, Settings { login, ..Settings::default() });
    let (http, secure, socks) = (strict(Kind::Http), strict(Kind::Https), strict(Kind::Socks5));
    let userinfo = "MARK-user:MARK-password";
    let of = |proxy: &SmallProxy| proxy.url_of(userinfo);
    let repeats = server.url().replace("//", &format!("//{userinfo}@"));
    for url in [
        of(&http),
        of(&secure),
        of(&socks),
        of(&http).replace("http", "https"),
        of(&http).replace("http", "socks5"),
        repeats.clone(),
        format!("http://{userinfo}@127.0.0.1:1"),
        format!("ftp://{userinfo}@127.0.0.1:1"),
        format!("{userinfo}@127.0.0.1:1"),
        format!("http://{userinfo}@"),
        format!("http://{userinfo}@127.0.0.1:MARK-port"),
        format!("http://{userinfo}/MARK@127.0.0.1:1"),
        format!("http://{userinfo}%@127.0.0.1:1"),
        format!("socks5://{userinfo}{}@127.0.0.1:1", "x".repeat(300)),
    ] {
        let config =
            || Config::new("https://api.example").unwrap().certificate_authority(secure.certificate());
        match config().proxy(&url) {
            Ok(config) => is_refused_unmarked(config, &url).await,
            Err(error) => is_unmarked(&shown(&error), &url),
        }
        let text = kubeconfig("https://api.example", "    token: t\n");
        let text = text.replace("    server:", &format!("    proxy-url: '{url}'\n    server:"));
        match Config::from_kubeconfig_text(&text, None) {
            Ok(config) => is_refused_unmarked(config.certificate_authority(""), &url).await,
            Err(error) => is_unmarked(&shown(&error), &url),
        }
        if let Err(error) = proxy_of_environment(&[("ALL_PROXY", &url)], "https://api.example") {
            is_unmarked(&shown(&error), &url);
        }
    }
    let logged = logs::kept();
    assert!(logged.contains("reached through a proxy"), "the proxy is logged");
    is_unmarked(&logged, "a log line");
}
