//! Proxies that refuse, fall silent, break off or answer nonsense.
//!
//! Answers "does every way in which a proxy can fail end in a typed error that names it and says what to do?"

use std::time::Duration;

use actix_informer::client::{Client, Config, Error, ProxyError, TransportError};
use http::Method;
use informer_core::list_watch_error::ListWatchError;
use k8s_openapi::api::core::v1::ConfigMap;

use crate::harness::*;
use crate::raw_server::*;
use crate::small_proxy::*;
use crate::tls::Authority;

/// Nothing listens there, and no proxy of these tests connects to it.
const SERVER: &str = "https://api.example:6443";

fn through(proxy: &str) -> Config {
    Config::new(SERVER).unwrap().certificate_authority("").proxy(proxy).unwrap()
}

/// Why no connection came through this proxy, and the text of the error.
async fn failure(config: Config) -> (ProxyError, String) {
    let client = Client::new(config).unwrap();
    let asked = client.request(Method::GET, "/version", None);
    let error = tokio::time::timeout(Duration::from_secs(60), asked).await.expect("it ends").unwrap_err();
    let text = error.to_string();
    match error {
        Error::Transport(TransportError::Proxy { source, .. }) => (source, text),
        error => panic!("{error:?}"),
    }
}

/// A proxy that answers each connection with these bytes once it has read something, and then closes or waits.
async fn answering(bytes: &'static [u8], closes: bool) -> RawServer {
    RawServer::start(move |mut connection: Connection| async move {
        connection.some().await;
        connection.write(bytes).await;
        match closes {
            true => connection.close().await,
            false => connection.gone().await,
        }
    })
    .await
}

#[tokio::test]
async fn rest_44_a_refusal_says_the_code_and_what_to_do_and_names_the_proxy_without_its_password() {
    for (kind, code, expected) in [
        (Kind::Http, 403, "answered 403 to CONNECT api.example:6443: its rules forbid it"),
        (Kind::Https, 502, "answered 502 to CONNECT api.example:6443: the proxy itself does not reach"),
        (Kind::Http, 407, "does not accept the user and the password of its URL"),
        (Kind::Socks5, 2, "does not connect to api.example:6443: its rules forbid it"),
        (Kind::Socks5, 5, "the host refuses the connection"),
    ] {
        let proxy = SmallProxy::start_with(kind, Settings { refuses: Some(code), ..Settings::default() });
        let config = through(&proxy.url_of("me:s3cret")).certificate_authority(proxy.certificate());
        let (error, text) = failure(config).await;
        let is_typed = match kind {
            Kind::Socks5 => {
                matches!(error, ProxyError::SocksRefused { reply, .. } if u16::from(reply) == code)
            }
            _ if code == 407 => matches!(error, ProxyError::Login { is_given: true }),
            _ => matches!(error, ProxyError::Refused { code: refused, .. } if refused == code),
        };
        assert!(is_typed, "{error:?}");
        let named = format!("cannot connect to api.example:6443 through the proxy {}: ", proxy.url());
        assert!(text.starts_with(&named) && text.contains(expected), "{text}");
        assert!(!text.contains("s3cret") && !text.contains("html"), "{text}");
    }
}

#[tokio::test]
async fn rest_44_an_answer_that_is_none_or_not_whole_is_typed() {
    for (bytes, closes, http, socks) in [
        (&b""[..], true, "Broken", "Broken"),
        (b"HTTP/1.1 200 Conn", true, "Broken", "Malformed"),
        (b"\x05\x00", true, "Malformed", "Broken"),
        (b"\x05\x00\x05\x00\x00\x01", true, "Malformed", "Broken"),
        (b"\x05\x01", false, "Malformed", "Malformed"),
        (b"SSH-2.0-sshd\r\n", false, "Malformed", "Malformed"),
        (b"HTTP/1.1 200 OK\r\n\r\nEARLY", false, "Malformed", "Malformed"),
        (b"HTTP/1.1 abc OK\r\n\r\n", false, "Malformed", "Malformed"),
    ] {
        for (scheme, expected) in [("http", http), ("socks5", socks)] {
            let proxy = answering(bytes, closes).await;
            let (error, text) = failure(through(&proxy.url().replace("http", scheme))).await;
            assert!(format!("{error:?}").starts_with(expected), "{scheme} {bytes:?}: {error:?}");
            assert!(!text.contains("EARLY") && !text.contains("SSH"), "{text}");
        }
    }
}

// REST-44: given a proxy that refuses, asks for a login, is not there or not trusted, falls silent, breaks
// off or answers nonsense, when a connection is needed, then a typed error names it without user and password
// and says what to do; at most 8 KiB are read, and a proxy that falls silent is given up.
// - a refusals, with what to do:
//   `rest_44_a_refusal_says_the_code_and_what_to_do_and_names_the_proxy_without_its_password`
// - b answers that are none or not whole: `rest_44_an_answer_that_is_none_or_not_whole_is_typed`
// - c at most 8 KiB are read
// - d one that falls silent is given up: `rest_44_a_proxy_that_falls_silent_is_given_up_as_late`
// - e one that is not there or not trusted: `rest_44_a_proxy_that_is_not_there_or_not_trusted_is_named`
// - f what is wrong behind it names both: `rest_44_what_is_wrong_behind_a_proxy_names_both`
// - g no error, Debug or log holds its password:
//   `no_error_debug_or_log_of_a_proxy_holds_its_user_or_its_password`
#[tokio::test]
async fn rest_44_a_head_without_an_end_is_refused_at_8_kib() {
    let proxy = RawServer::start(|mut connection: Connection| async move {
        connection.some().await;
        connection.write("HTTP/1.1 200 OK\r\n").await;
        for _ in 0..4 {
            connection.write(format!("X-Long: {}\r\n", "x".repeat(4 << 10))).await;
        }
        connection.gone().await;
    })
    .await;
    let (error, _) = failure(through(&proxy.url())).await;
    assert!(matches!(error, ProxyError::Malformed(why) if why.contains("8 KiB")), "{error:?}");
}

#[tokio::test]
async fn rest_44_a_proxy_that_falls_silent_is_given_up_as_late() {
    for url in ["http", "https", "socks5"] {
        let proxy = RawServer::start(|connection: Connection| connection.gone()).await;
        let source = Client::new(through(&proxy.url().replace("http", url))).unwrap().resource::<ConfigMap>();
        tokio::time::pause();
        let error = local(async { list(&made(source), latest()).await.unwrap_err() }).await;
        assert!(matches!(&error, ListWatchError::Timeout(_)), "{error}");
        assert!(error.to_string().contains("the answer of the proxy took longer than 10s"), "{error}");
        tokio::time::resume();
    }
}

#[tokio::test]
async fn client_p7_a_connection_through_a_proxy_that_takes_nine_seconds_is_made_since_the_proxy_has_its_own_limit()
 {
    let proxy = RawServer::start(|mut connection: Connection| async move {
        connection.request().await.unwrap();
        tokio::time::sleep(Duration::from_secs(9)).await;
        connection.write("HTTP/1.1 200 OK\r\n\r\n").await;
        connection.request().await.unwrap();
        connection.write(answer("200 OK", "", &list_of(&[], "9"))).await;
    })
    .await;
    let config = Config::new("http://api.example").unwrap().proxy(proxy.url()).unwrap();
    let source = Client::new(config).unwrap().resource::<ConfigMap>();
    tokio::time::pause();
    local(async { list(&made(source), latest()).await }).await.unwrap();
}

#[tokio::test]
async fn rest_44_a_proxy_that_is_not_there_or_not_trusted_is_named() {
    let (error, text) = failure(through("http://127.0.0.1:1")).await;
    assert!(matches!(error, ProxyError::Unreachable(_)), "{error:?}");
    assert!(text.contains("through the proxy http://127.0.0.1:1: the proxy cannot be reached"), "{text}");

    let proxy = SmallProxy::start(Kind::Https);
    let stranger = Authority::new();
    let (error, text) = failure(through(&proxy.url()).certificate_authority(stranger.pem())).await;
    assert!(matches!(error, ProxyError::Tls(_)) && text.contains("certificate"), "{text}");
    let careless = Config::new(SERVER).unwrap().accept_invalid_certificates().proxy(proxy.url()).unwrap();
    let (error, _) = failure(careless).await;
    assert!(matches!(error, ProxyError::Refused { code: 502, .. }), "it passes: {error:?}");

    // Each other's protocol.
    let (error, _) = failure(through(&proxy.url().replace("https", "http"))).await;
    assert!(matches!(error, ProxyError::Malformed(_) | ProxyError::Broken(_)), "{error:?}");
    let plain = SmallProxy::start(Kind::Http);
    let config = through(&plain.url().replace("http", "https"));
    let (error, _) = failure(config).await;
    assert!(matches!(error, ProxyError::Tls(_)), "{error:?}");
}

#[tokio::test]
async fn rest_44_what_is_wrong_behind_a_proxy_names_both() {
    let server = RawServer::start(|mut connection: Connection| async move {
        connection.some().await; // an answer before any question would be the proxy's fault
        connection.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        connection.gone().await;
    })
    .await;
    let proxy = SmallProxy::start(Kind::Http);
    let url = server.url().replace("http", "https");
    let config = Config::new(&*url).unwrap().certificate_authority("").proxy(proxy.url()).unwrap();
    let error = Client::new(config).unwrap().request(Method::GET, "/version", None).await.unwrap_err();
    let named = format!("{} (through the proxy {}): ", url.replace("https://", ""), proxy.url());
    let text = error.to_string();
    assert!(text.contains(&named) && text.contains("does not speak TLS"), "{text}");
}
