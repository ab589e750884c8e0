//! The rows of the table that are about users: certificates, tokens, passwords, plugins, OpenID Connect.
//!
//! Answers "which credentials of a kubeconfig does kubectl accept?" Read next: `../rows.rs`, which has the forms.

use super::Outcome::{Refused, User};
use super::{ADMIN, CA, CERTIFIED, Outcome, Row, TOKEN, user};

/// A user whose plugin has version, command and these fields.
fn plugin(name: &'static str, fields: &str, outcome: Outcome) -> Row {
    let fields: String = fields.lines().map(|line| format!("  {line}\n")).collect();
    user(name, &format!("exec:\n{fields}"), outcome)
}

fn v1(name: &'static str, command: &str, outcome: Outcome) -> Row {
    let fields = format!("apiVersion: client.authentication.k8s.io/v1\ninteractiveMode: Never\n{command}");
    plugin(name, &fields, outcome)
}

pub(super) fn certificates() -> Vec<Row> {
    let pair = |certificate: &str, key: &str| format!("client-certificate{certificate}\nclient-key{key}");
    let data = |key: &str| pair("-data: $CERT_DATA", &format!("-data: {key}"));
    vec![
        user("a certificate in the file, PKCS#8", &data("$KEY_DATA"), CERTIFIED),
        user("a certificate in the file, SEC 1", &data("$SEC1_DATA"), CERTIFIED),
        user(
            "a certificate with RSA, PKCS#1",
            &pair("-data: $RSA_CERT_DATA", "-data: $PKCS1_DATA"),
            CERTIFIED,
        ),
        user(
            "a certificate with RSA, PKCS#8",
            &pair("-data: $RSA_CERT_DATA", "-data: $PKCS8_DATA"),
            CERTIFIED,
        ),
        user("a certificate in files", &pair(": $FOLDER/user.crt", ": ../../user.key"), CERTIFIED),
        user(
            "a certificate in files, SEC 1",
            &pair(": $FOLDER/user.crt", ": $FOLDER/user-sec1.key"),
            CERTIFIED,
        ),
        user(
            "a certificate in files, PKCS#1",
            &pair(": $FOLDER/rsa.crt", ": $FOLDER/rsa-pkcs1.key"),
            CERTIFIED,
        ),
        user("certificate and key in one file", &pair(": $FOLDER/both.pem", ": $FOLDER/both.pem"), CERTIFIED),
        user(
            "a certificate in a file, its key here",
            &pair(": $FOLDER/user.crt", "-data: $KEY_DATA"),
            CERTIFIED,
        ),
        user("another's key", &data("$PKCS8_DATA"), Refused),
        user("a certificate without a key", "client-certificate-data: $CERT_DATA", Refused),
        user("a key without a certificate", &format!("{TOKEN}\nclient-key-data: $KEY_DATA"), ADMIN),
        user("a certificate that is missing", &pair(": $FOLDER/missing", ": $FOLDER/user.key"), Refused),
        user(
            "a certificate twice",
            &format!("{}\nclient-certificate: $FOLDER/user.crt", data("$KEY_DATA")),
            Refused,
        ),
        user("a certificate and a token", &format!("{}\n{TOKEN}", data("$KEY_DATA")), CERTIFIED),
    ]
}

pub(super) fn logins() -> Vec<Row> {
    let trims = "white space around a token is never part of it: a token file's is cut off too";
    vec![
        user("a token", TOKEN, ADMIN),
        user("a token with an end of line", "token: |\n  $TOKEN", Refused).but_ours(ADMIN, trims),
        user("a wrong token", "token: nobody's", Refused),
        user("a token file", "tokenFile: $FOLDER/token", ADMIN),
        user("a token file in a relative path", "tokenFile: ../../token", ADMIN),
        user("a token file beside a wrong token", "token: wrong\ntokenFile: $FOLDER/token", ADMIN),
        user(
            "a wrong token file beside a token",
            &format!("{TOKEN}\ntokenFile: $FOLDER/wrong-token"),
            Refused,
        ),
        user(
            "a token beside a token file that is missing",
            &format!("{TOKEN}\ntokenFile: $FOLDER/missing"),
            ADMIN,
        ),
        user("a token file that is missing", "tokenFile: $FOLDER/missing", Refused),
        user("an empty token file", "tokenFile: $FOLDER/empty", Refused),
        user("nothing", "token: ''", Refused),
        user("a password", "username: admin\npassword: x", Refused),
        user("a password beside a token", &format!("{TOKEN}\nusername: admin\npassword: x"), Refused),
        user("another user", &format!("{TOKEN}\nas: jane"), User("jane")),
        user(
            "another user with groups, uid and extra",
            &format!(
                "{TOKEN}\nas: jane\nas-uid: '7'\nas-groups: [a, b]\nas-user-extra: {{'example.com/x y': [p, q]}}"
            ),
            User("jane"),
        ),
        user("groups without a user", &format!("{TOKEN}\nas-groups: [a]"), Refused),
    ]
}

pub(super) fn plugins() -> Vec<Row> {
    let beta = "apiVersion: client.authentication.k8s.io/v1beta1\n";
    let cat = |file: &str| format!("command: cat\nargs: [$FOLDER/{file}]");
    let shell = |script: &str| format!("command: sh\nargs: [-c, '{script}']");
    let checks = "case $KUBERNETES_EXEC_INFO in *certificate-authority-data*ask-me*) cat $FOLDER/token.json;; *) exit 3;; esac";
    let checks = format!("provideClusterInfo: true\n{}", shell(checks));
    let extension =
        "\nextensions:\n- name: client.authentication.k8s.io/exec\n  extension: {audience: ask-me}";
    let informed = v1("a plugin that is told of the cluster", &checks, ADMIN);
    let informed = Row {
        files: vec![(
            "config",
            informed.files[0].1.replace(CA, &format!("{CA}{}", extension.replace('\n', "\n    "))),
        )],
        ..informed
    };
    vec![
        v1("a plugin", &cat("token.json"), ADMIN),
        v1("a plugin that gives a certificate", &cat("certificate.json"), CERTIFIED),
        v1("a plugin that answers in YAML", &cat("token.yaml"), ADMIN),
        plugin("a plugin of v1beta1", &format!("{beta}{}", cat("token-v1beta1.json")), ADMIN),
        v1("a plugin that answers another version", &cat("token-v1beta1.json"), Refused),
        plugin(
            "a plugin of v1alpha1",
            &format!("apiVersion: client.authentication.k8s.io/v1alpha1\n{}", cat("token.json")),
            Refused,
        ),
        plugin(
            "a plugin without a mode",
            &format!("apiVersion: client.authentication.k8s.io/v1\n{}", cat("token.json")),
            Refused,
        ),
        plugin("a plugin without a version", &cat("token.json"), Refused),
        v1("a plugin without a command", "args: [x]", Refused),
        v1(
            "a plugin with variables",
            &format!("{}\nenv:\n- {{name: FILE, value: $FOLDER/token.json}}", shell("cat $FILE")),
            ADMIN,
        ),
        v1("a variable without a name", &format!("{}\nenv: [{{value: x}}]", cat("token.json")), Refused),
        v1("a plugin in a relative path", "command: ../../plugin.sh", ADMIN),
        v1("a plugin that is not installed", "command: no-such-plugin\ninstallHint: install it", Refused),
        informed,
        v1("a plugin that prints garbage", &shell("echo garbage"), Refused),
        v1("a plugin that prints nothing of use", &cat("nothing.json"), Refused),
        v1("a plugin that prints half a certificate", &cat("half.json"), Refused),
        v1("a plugin that fails", &shell("cat $FOLDER/token.json; exit 1"), Refused),
        v1("a plugin that hangs", &shell("sleep 4; exit 1"), Refused),
        v1("a plugin that needs a terminal", &cat("token.json"), Refused).replaced("Never", "Always"),
        v1("a plugin with an unknown mode", &cat("token.json"), Refused).replaced("Never", "Sometimes"),
        v1("a plugin beside a token", &shell("exit 1"), ADMIN)
            .replaced("    exec:", "    token: $TOKEN\n    exec:"),
        v1("a plugin beside a certificate", &shell("exit 1"), CERTIFIED).replaced(
            "    exec:",
            "    client-certificate-data: $CERT_DATA\n    client-key-data: $KEY_DATA\n    exec:",
        ),
    ]
}

pub(super) fn providers() -> Vec<Row> {
    let oidc = |tokens: &str| {
        format!(
            "auth-provider:\n  name: oidc\n  config:\n    idp-issuer-url: $ISSUER\n    client-id: kubernetes\n    \
             idp-certificate-authority-data: $ISSUER_CA_DATA\n{tokens}"
        )
    };
    vec![
        user("an id token", &oidc("    id-token: $ID_TOKEN"), User("oidc:somebody")),
        user(
            "an id token that has expired, and a refresh token",
            &oidc("    id-token: $EXPIRED_ID_TOKEN\n    refresh-token: refresh-me"),
            User("oidc:refreshed"),
        ),
        user("an id token that has expired", &oidc("    id-token: $EXPIRED_ID_TOKEN"), Refused),
        user("a refresh token that is refused", &oidc("    refresh-token: wrong"), Refused),
        user(
            "a login without an issuer",
            "auth-provider: {name: oidc, config: {client-id: a, id-token: $ID_TOKEN}}",
            Refused,
        ),
        user("a login that is gone", "auth-provider: {name: gcp, config: {access-token: x}}", Refused),
        user(
            "a login beside a plugin",
            "auth-provider: {name: oidc, config: {}}\nexec: {apiVersion: client.authentication.k8s.io/v1, command: cat, interactiveMode: Never}",
            Refused,
        ),
    ]
}
