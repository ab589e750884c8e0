//! Every kind of credential, end to end over HTTPS, on both servers.
//!
//! Answers "does each way to log in serve a single request and an informer, as the user whom it names?" A kubeconfig
//! is how they are given. What one server does not have is said at its place: no server takes passwords any more, the
//! in-memory one knows no OpenID Connect and signs no RSA keys.

use std::path::Path;
use std::time::Duration;

use actix_informer::client::{Client, Config, Error};
use actix_informer::prelude::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use informer_apiserver::{ApiServer, Credential, User};
use k8s_openapi::api::core::v1::Namespace;
use rcgen::KeyPair;

use crate::keys;
use crate::kubeconfigs::who_am_i;
use crate::rows::file;
use crate::stage::{Stage, certificate_credential, credential};

/// A limit that a healthy wait never comes near.
const LIMIT: Duration = Duration::from_secs(30);

/// Name, fields of the user, and as whom it works; nobody where the server refuses it.
type Kind = (&'static str, &'static str, Option<&'static str>);

const ON_BOTH: [Kind; 12] = [
    ("a token", "token: $TOKEN", Some("admin")),
    ("a token file", "tokenFile: $FOLDER/token", Some("admin")),
    (
        "a certificate, PKCS#8",
        "client-certificate-data: $CERT_DATA\nclient-key-data: $KEY_DATA",
        Some("certified"),
    ),
    (
        "a certificate, SEC 1",
        "client-certificate-data: $CERT_DATA\nclient-key-data: $SEC1_DATA",
        Some("certified"),
    ),
    (
        "certificate files, PKCS#8",
        "client-certificate: $FOLDER/user.crt\nclient-key: $FOLDER/user.key",
        Some("certified"),
    ),
    (
        "certificate files, SEC 1",
        "client-certificate: $FOLDER/user.crt\nclient-key: $FOLDER/user-sec1.key",
        Some("certified"),
    ),
    (
        "a plugin's token",
        "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: cat, args: [$FOLDER/token.json]}",
        Some("admin"),
    ),
    (
        "a plugin's certificate",
        "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: cat, args: [$FOLDER/certificate.json]}",
        Some("certified"),
    ),
    ("another user", "token: $TOKEN\nas: jane\nas-groups: [system:masters]", Some("jane")),
    (
        "another user by certificate",
        "client-certificate-data: $CERT_DATA\nclient-key-data: $KEY_DATA\nas: jane\nas-groups: [system:masters]",
        Some("jane"),
    ),
    ("a password", "username: admin\npassword: x", None),
    ("a wrong token", "token: wrong", None),
];

const ON_A_REAL_SERVER: [Kind; 4] = [
    (
        "a certificate, PKCS#1",
        "client-certificate-data: $RSA_CERT_DATA\nclient-key-data: $PKCS1_DATA",
        Some("certified"),
    ),
    (
        "certificate files, PKCS#1",
        "client-certificate: $FOLDER/rsa.crt\nclient-key: $FOLDER/rsa-pkcs1.key",
        Some("certified"),
    ),
    (
        "an id token",
        "auth-provider: {name: oidc, config: {idp-issuer-url: $ISSUER, client-id: kubernetes, idp-certificate-authority-data: $ISSUER_CA_DATA, id-token: $ID_TOKEN}}\nas: jane\nas-groups: [system:masters]",
        Some("jane"),
    ),
    (
        "an id token that is renewed",
        "auth-provider: {name: oidc, config: {idp-issuer-url: $ISSUER, client-id: kubernetes, idp-certificate-authority-data: $ISSUER_CA_DATA, id-token: $EXPIRED_ID_TOKEN, refresh-token: refresh-me}}\nas: jane\nas-groups: [system:masters]",
        Some("jane"),
    ),
];

/// Asks the server who this is, and follows its namespaces.
fn works_as(folder: &Path, text: &str, (name, _, user): &Kind) {
    let path = folder.join("kubeconfig");
    std::fs::write(&path, text).expect("written");
    let client = Client::new(Config::from_kubeconfig_file(&path, None).expect(name)).expect(name);
    let found = who_am_i(&client);
    let Some(user) = user else {
        // A header that a server does not understand makes nobody of its sender, who may do nothing.
        let error = found.expect_err(name);
        assert!(
            matches!(&error, Error::Refused(status) if matches!(status.code, 401 | 403)),
            "{name}: {error}"
        );
        return;
    };
    assert_eq!(found.unwrap_or_else(|error| panic!("{name}: {error}"))["username"], *user, "{name}");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio.block_on(async {
        let runtime = Runtime::threads().start().expect("threads");
        let namespaces = client.resource::<Namespace>().informer(&runtime).expect("no namespace").start();
        let namespaces = namespaces.expect("a description");
        namespaces.synced_within(LIMIT).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(namespaces.lister().get(&"default".parse().expect("a key")).is_some(), "{name}");
        runtime.shutdown(LIMIT).await.expect("it ends");
    });
}

#[test]
fn every_kind_of_credential_works_end_to_end_over_https_on_a_real_server() {
    let Some(stage) = Stage::start() else { return };
    // Whom an id token names may act as somebody else here, and nothing more.
    let manifest = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: acts}\n\
                    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects:\n\
                    - {apiGroup: rbac.authorization.k8s.io, kind: User, name: 'oidc:somebody'}\n\
                    - {apiGroup: rbac.authorization.k8s.io, kind: User, name: 'oidc:refreshed'}\n";
    stage.plane.apply(manifest).expect("an administrator may do it");
    for kind in ON_BOTH.iter().chain(&ON_A_REAL_SERVER) {
        let text = file("certificate-authority-data: $CA_DATA", kind.1);
        works_as(stage.folder(), &stage.filled(&text), kind);
    }
}

#[test]
fn every_kind_of_credential_works_end_to_end_over_https_on_the_in_memory_server() {
    let server = ApiServer::builder().tls().token("s3cret").start_blocking().expect("it starts");
    let user = User::new("certified").group("system:masters");
    let issued = server.issue_certificate(&user).expect("it signs");
    let Credential::Certificate { certificate_pem, key_pem } = issued else { panic!("it is a certificate") };
    let sec_1 = keys::in_sec_1(&KeyPair::from_pem(&key_pem).expect("its own key"));
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("token", "s3cret\n"),
        ("user.crt", &certificate_pem),
        ("user.key", &key_pem),
        ("user-sec1.key", &sec_1),
        ("token.json", &credential("v1", r#"{"token":"s3cret"}"#)),
        ("certificate.json", &certificate_credential(&certificate_pem, &key_pem)),
    ] {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let place = folder.path().display().to_string();
    let encoded = |text: &str| STANDARD.encode(text);
    let values = [
        ("$SERVER", server.url()),
        ("$CA_DATA", encoded(server.ca_pem().expect("it has TLS"))),
        ("$TOKEN", "s3cret".to_owned()),
        ("$FOLDER", place),
        ("$CERT_DATA", encoded(&certificate_pem)),
        ("$KEY_DATA", encoded(&key_pem)),
        ("$SEC1_DATA", encoded(&sec_1)),
    ];
    for kind in &ON_BOTH {
        let text = file("certificate-authority-data: $CA_DATA", kind.1);
        let text = values.iter().fold(text, |text, (name, value)| text.replace(name, value));
        works_as(folder.path(), &text, kind);
    }
}
