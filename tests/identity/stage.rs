//! A control plane, and the files that kubeconfigs of these tests name.
//!
//! Answers "what do the words with a dollar in a row stand for?" [`Stage::filled`] puts the values in. Invariants:
//! 1. All certificates of clients are of the server's authority and name the user `certified` of `system:masters`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use informer_control_plane::{Binaries, ControlPlane};
use rcgen::KeyPair;
use tempfile::TempDir;

use crate::issuer::{CLIENT, Issuer};
use crate::keys;
use crate::small_proxy::{Kind, Settings, SmallProxy};

pub(crate) struct Stage {
    pub(crate) plane: ControlPlane,
    pub(crate) kubectl: PathBuf,
    pub(crate) issuer: Issuer,
    proxies: Proxies,
    folder: TempDir,
    values: Vec<(&'static str, String)>,
}

/// The proxies that rows name.
struct Proxies {
    http: SmallProxy,
    https: SmallProxy,
    login: SmallProxy,
    refusing: SmallProxy,
    socks: SmallProxy,
    socks_login: SmallProxy,
}

impl Proxies {
    fn start() -> Self {
        let login = || Settings { login: Some(("me@home", "p:/")), ..Settings::default() };
        let refusing = Settings { refuses: Some(403), ..Settings::default() };
        Self {
            http: SmallProxy::start(Kind::Http),
            https: SmallProxy::start(Kind::Https),
            login: SmallProxy::start_with(Kind::Http, login()),
            refusing: SmallProxy::start_with(Kind::Http, refusing),
            socks: SmallProxy::start(Kind::Socks5),
            socks_login: SmallProxy::start_with(Kind::Socks5, login()),
        }
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        [
            ("$HTTP_PROXY", &self.http),
            ("$HTTPS_PROXY", &self.https),
            ("$LOGIN_PROXY", &self.login),
            ("$REFUSING_PROXY", &self.refusing),
            ("$SOCKS_PROXY", &self.socks),
            ("$SOCKS_LOGIN_PROXY", &self.socks_login),
        ]
        .map(|(name, proxy)| (name, proxy.address().to_string()))
        .into()
    }
}

impl Stage {
    /// Starts everything, or nothing after a printed line that says why not.
    pub(crate) fn start() -> Option<Self> {
        let binaries = Binaries::find_or_skip()?;
        let kubectl = binaries.kubectl().to_owned();
        let folder = TempDir::new().expect("a folder");
        let issuer = Issuer::start();
        let authority = folder.path().join("issuer.crt");
        std::fs::write(&authority, issuer.ca_pem()).expect("written");
        let plane = ControlPlane::builder(binaries)
            .with_client_ca()
            .apiserver_flag(format!("--oidc-issuer-url={}", issuer.url()))
            .apiserver_flag(format!("--oidc-client-id={CLIENT}"))
            .apiserver_flag(format!("--oidc-ca-file={}", authority.display()))
            .apiserver_flag("--oidc-signing-algs=ES256")
            .apiserver_flag("--oidc-username-prefix=oidc:")
            .start()
            .expect("the control plane starts");
        let mut stage =
            Self { plane, kubectl, issuer, proxies: Proxies::start(), folder, values: Vec::new() };
        stage.values = stage.write();
        Some(stage)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A text with the values of this stage in the place of their names.
    pub(crate) fn filled(&self, text: &str) -> String {
        self.values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Writes all files; returns the values by name, a longer name before one that it begins with.
    fn write(&self) -> Vec<(&'static str, String)> {
        let write = |name: &str, text: &str| std::fs::write(self.folder().join(name), text).expect("written");
        let key = KeyPair::generate().expect("a key");
        let (pkcs_8, sec_1) = (key.serialize_pem(), keys::in_sec_1(&key));
        let issue = |key: &str| {
            self.plane.issue_certificate("certified", "system:masters", key, None).expect("a certificate")
        };
        let (certificate, rsa_certificate) = (issue(&pkcs_8), issue(keys::RSA));
        let (ca, token) = (self.plane.ca_pem().to_owned(), self.plane.admin_token().to_owned());
        // One certificate is base64 of something else.
        for (name, text) in [
            ("ca.crt", &*ca),
            ("empty", ""),
            ("garbage", "this is no PEM\n"),
            ("broken.crt", &*section("bm90IG9uZQ==")),
            ("bundle.crt", &*format!("{}{ca}{}", section("bm90IG9uZQ=="), self.issuer.ca_pem())),
            ("other.crt", self.issuer.ca_pem()),
            ("token", &*format!("{token}\n")),
            ("wrong-token", "nobody's"),
            ("user.crt", &*certificate),
            ("user.key", &*pkcs_8),
            ("user-sec1.key", &*sec_1),
            ("rsa.crt", &*rsa_certificate),
            ("rsa-pkcs1.key", &*keys::rsa_in_pkcs_1()),
            ("both.pem", &*format!("{pkcs_8}{certificate}")),
            ("token.json", &*credential("v1", &format!(r#"{{"token":"{token}"}}"#))),
            ("token-v1beta1.json", &*credential("v1beta1", &format!(r#"{{"token":"{token}"}}"#))),
            ("certificate.json", &*certificate_credential(&certificate, &pkcs_8)),
            ("half.json", &*credential("v1", r#"{"clientCertificateData":"x"}"#)),
            ("nothing.json", &*credential("v1", "{}")),
            (
                "token.yaml",
                &*format!(
                    "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {{token: {token}}}\n"
                ),
            ),
            (
                "plugin.sh",
                &*format!("#!/bin/sh\nexec cat '{}'\n", self.folder().join("token.json").display()),
            ),
        ] {
            write(name, text);
        }
        executable(&self.folder().join("plugin.sh"));
        self.values_of(&[&ca, &token, &certificate, &pkcs_8, &sec_1, &rsa_certificate])
    }

    fn values_of(
        &self,
        [ca, token, certificate, pkcs_8, sec_1, rsa_certificate]: &[&str; 6],
    ) -> Vec<(&'static str, String)> {
        let encoded = |text: &str| STANDARD.encode(text);
        let broken_and_ca = format!("{}{ca}", section("bm90IG9uZQ=="));
        let ca_and_proxy = format!("{ca}{}", self.proxies.https.certificate());
        let mut values = vec![
            ("$SERVER", self.plane.url()),
            ("$ADDRESS", self.plane.url().replace("https://", "")),
            ("$PORT", self.plane.url().rsplit(':').next().unwrap_or_default().to_owned()),
            ("$CA_DATA", encoded(ca)),
            ("$CA_LINES", wrapped(&encoded(ca))),
            ("$BUNDLE_DATA", encoded(&broken_and_ca)),
            ("$OTHER_DATA", encoded(self.issuer.ca_pem())),
            ("$CERT_DATA", encoded(certificate)),
            ("$KEY_DATA", encoded(pkcs_8)),
            ("$SEC1_DATA", encoded(sec_1)),
            ("$RSA_CERT_DATA", encoded(rsa_certificate)),
            ("$PKCS8_DATA", encoded(keys::RSA)),
            ("$PKCS1_DATA", encoded(&keys::rsa_in_pkcs_1())),
            ("$TOKEN", (*token).to_owned()),
            ("$FOLDER", self.folder().display().to_string()),
            ("$ISSUER_CA_DATA", encoded(self.issuer.ca_pem())),
            ("$ISSUER", self.issuer.url()),
            ("$ID_TOKEN", self.issuer.id_token("somebody", 3600)),
            ("$EXPIRED_ID_TOKEN", self.issuer.id_token("somebody", -3600)),
            ("$PROXY_CA_DATA", encoded(&ca_and_proxy)),
        ];
        values.extend(self.proxies.values());
        values
    }
}

fn section(text: &str) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

/// What a plugin prints.
pub(crate) fn credential(version: &str, status: &str) -> String {
    format!(
        r#"{{"apiVersion":"client.authentication.k8s.io/{version}","kind":"ExecCredential","status":{status}}}"#
    )
}

pub(crate) fn certificate_credential(certificate: &str, key: &str) -> String {
    let status = serde_json::json!({ "clientCertificateData": certificate, "clientKeyData": key });
    credential("v1", &status.to_string())
}

/// Lines of 64 characters, as some tools write data, in the indentation of a cluster's field.
fn wrapped(text: &str) -> String {
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    lines.join("\n      ")
}

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its own file");
}
