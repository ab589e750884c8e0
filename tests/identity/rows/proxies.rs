//! Rows of kubeconfigs whose cluster has a `proxy-url`.
//!
//! Answers "which proxies does kubectl take, and which ones do we?" The words with a dollar are proxies of `stage.rs`.

use super::Outcome::{self, Refused};
use super::{ADMIN, CA, Row, cluster, file, text};

pub(super) fn rows() -> Vec<Row> {
    let through =
        |name, url: &str, outcome: Outcome| cluster(name, &format!("{CA}\nproxy-url: {url}"), outcome);
    let secure = |name, url: &str, outcome: Outcome| {
        let authorities = "certificate-authority-data: $PROXY_CA_DATA";
        cluster(name, &format!("{authorities}\nproxy-url: {url}"), outcome)
    };
    vec![
        through("a proxy that is not there", "http://127.0.0.1:1", Refused),
        through("a proxy", "http://$HTTP_PROXY", ADMIN),
        through("a proxy with a path", "http://$HTTP_PROXY/path?query", ADMIN),
        through("a proxy whose scheme is in upper case", "HTTP://$HTTP_PROXY", ADMIN),
        through("a proxy with a login that nobody asks for", "http://u:p@$HTTP_PROXY", ADMIN),
        through("a proxy that asks for a login", "http://me%40home:p%3A%2F@$LOGIN_PROXY", ADMIN),
        through("a proxy that asks for another login", "http://me%40home:wrong@$LOGIN_PROXY", Refused),
        through("a proxy that asks for a login, without one", "http://$LOGIN_PROXY", Refused),
        through("a login with a percent sign that is none", "http://me:p%@$LOGIN_PROXY", Refused),
        through("a proxy that refuses", "http://$REFUSING_PROXY", Refused),
        through("a SOCKS5 proxy", "socks5://$SOCKS_PROXY", ADMIN),
        through("a SOCKS5 proxy that asks for a login", "socks5://me%40home:p%3A%2F@$SOCKS_LOGIN_PROXY", ADMIN),
        through("a SOCKS5 proxy that asks for another login", "socks5://me:wrong@$SOCKS_LOGIN_PROXY", Refused),
        through("a SOCKS5 proxy that asks for a login, without one", "socks5://$SOCKS_LOGIN_PROXY", Refused),
        through("a SOCKS5 proxy by its other name", "socks5h://$SOCKS_PROXY", Refused).but_ours(
            ADMIN,
            "socks5h is what curl and Go's own clients call a SOCKS5 proxy that resolves names, and kubectl's do",
        ),
        through("an HTTP proxy that is called SOCKS5", "socks5://$HTTP_PROXY", Refused),
        through("a SOCKS5 proxy that is called HTTP", "http://$SOCKS_PROXY", Refused),
        through("a proxy of a kind that nobody knows", "ftp://$HTTP_PROXY", Refused),
        through("a proxy without a scheme", "$HTTP_PROXY", Refused),
        through("a proxy that is no URL", "'http://[::1'", Refused),
        through("no proxy", "''", ADMIN),
        secure("an https proxy of a configured authority", "https://$HTTPS_PROXY", ADMIN),
        through("an https proxy of another authority", "https://$HTTPS_PROXY", Refused),
        text(
            "an https proxy that nobody checks",
            file("insecure-skip-tls-verify: true\nproxy-url: https://$HTTPS_PROXY", "token: $TOKEN"),
            ADMIN,
        ),
        secure(
            "an https proxy beside another name of the server",
            "https://$HTTPS_PROXY\ntls-server-name: kubernetes.default.svc",
            Refused,
        )
        .but_ours(ADMIN, "tls-server-name is the name of the API server, and kubectl expects it of the proxy too"),
        text(
            "a proxy and a client certificate",
            file(
                &format!("{CA}\nproxy-url: http://$HTTP_PROXY"),
                "client-certificate-data: $CERT_DATA\nclient-key-data: $KEY_DATA",
            ),
            super::CERTIFIED,
        ),
    ]
}
