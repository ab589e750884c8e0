//! Checks when an id token is renewed and what the issuer is sent, with an issuer on loopback that answers from a list.
//!
//! Answers "does a login renew itself, and does it keep its secrets?" Times are given by hand. Texts that are secrets
//! hold the word `marked-secret`, and no error may show it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use super::*;
use crate::Client;

/// A code, and a body that is made of the issuer's own URL.
type Canned = (u16, Box<dyn Fn(&str) -> String + Send>);

/// A token that expires then; its signature is the server's to check.
fn jwt(expires: i64, name: &str) -> String {
    let payload = URL_SAFE_NO_PAD.encode(format!(r#"{{"exp":{expires},"sub":"{name}"}}"#));
    format!("e30.{payload}.signature-{name}")
}

fn login(config: &[(&str, &str)]) -> Result<Oidc, OidcError> {
    let config = config.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Oidc::new(&config, |_| Ok(Vec::new()))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

/// An issuer that answers these bodies in turn, and passes on the heads and forms that it was sent.
fn issuer(answers: Vec<Canned>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (sender, received) = mpsc::channel();
    let own = url.clone();
    std::thread::spawn(move || {
        for (code, body) in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream.try_clone().expect("a reader"));
            let mut request = String::new();
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("a line");
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                if line.trim().is_empty() {
                    break;
                }
                request.push_str(&line);
            }
            let mut form = vec![0; length];
            reader.read_exact(&mut form).expect("a body");
            request.push_str(&String::from_utf8(form).expect("text"));
            let body = body(&own);
            let head =
                format!("HTTP/1.1 {code} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(format!("{head}{body}").as_bytes()).expect("an answer");
            let _ = sender.send(request);
        }
    });
    (url, received)
}

fn discovery() -> Canned {
    (200, Box::new(|own| format!(r#"{{"token_endpoint":"{own}/token?x=1"}}"#)))
}

fn says(code: u16, body: String) -> Canned {
    (code, Box::new(move |_| body.clone()))
}

#[tokio::test]
async fn a_token_that_lasts_is_used_without_asking_the_issuer() {
    let token = jwt(1000, "one");
    let oidc = login(&[("idp-issuer-url", "http://127.0.0.1:1"), ("client-id", "me"), ("id-token", &token)])
        .unwrap();
    let given = oidc.credentials(at(900), false, Client::to_issuer).await.expect("it lasts");
    assert_eq!((given.token.expect("a token").expose_secret(), given.expires), (&*token, Some(at(1000))));
    // Ten seconds before its end it counts as expired.
    let error = oidc.credentials(at(991), false, Client::to_issuer).await.expect_err("nothing can renew it");
    assert!(matches!(error, OidcError::Expired), "{error}");
}

#[tokio::test]
async fn an_expired_token_is_renewed_by_the_refresh_token_and_the_next_refresh_token_is_kept() {
    let (old, new) = (jwt(1000, "old"), jwt(5000, "new"));
    let body = format!(r#"{{"id_token":"{new}","refresh_token":"second"}}"#);
    let (url, requests) = issuer(vec![discovery(), says(200, body.clone()), discovery(), says(200, body)]);
    let oidc = login(&[
        ("idp-issuer-url", &url),
        ("client-id", "me&you"),
        ("client-secret", "marked-secret"),
        ("id-token", &old),
        ("refresh-token", "first"),
    ])
    .unwrap();
    let given = oidc.credentials(at(2000), false, Client::to_issuer).await.expect("renewed");
    assert_eq!((given.token.expect("a token").expose_secret(), given.expires), (&*new, Some(at(5000))));
    assert!(requests.recv().unwrap().starts_with("GET /.well-known/openid-configuration "));
    let asked = requests.recv().unwrap();
    assert!(asked.starts_with("POST /token?x=1 "), "{asked}");
    assert!(asked.ends_with("grant_type=refresh_token&refresh_token=first"), "{asked}");
    let basic = STANDARD.encode("me%26you:marked-secret");
    assert!(asked.contains(&basic), "{asked}");
    // Refused although it lasts: asked again, with the newer refresh token.
    oidc.credentials(at(2000), true, Client::to_issuer).await.expect("renewed");
    assert!(requests.iter().take(2).any(|asked| asked.contains("refresh_token=second")));
    assert!(!format!("{oidc:?}").contains("marked-secret"));
}

/// A login whose token has expired, with a secret of the client.
fn expired(url: &str) -> Oidc {
    login(&[
        ("idp-issuer-url", url),
        ("client-id", "me-._~"),
        ("client-secret", "s-._~ +/"),
        ("refresh-token", "first"),
    ])
    .unwrap()
}

#[tokio::test]
async fn client_p9_an_issuer_that_takes_the_secret_in_the_form_only_is_asked_so_and_first_the_next_time() {
    let renewed = || says(200, format!(r#"{{"id_token":"{}"}}"#, jwt(5000, "new")));
    let (url, requests) = issuer(vec![
        discovery(),
        says(401, r#"{"error":"invalid_client"}"#.to_owned()),
        renewed(),
        discovery(),
        renewed(),
    ]);
    let oidc = expired(&url);
    oidc.credentials(at(2000), false, Client::to_issuer).await.expect("renewed");
    let asked: Vec<_> = requests.iter().take(3).collect();
    let in_header = STANDARD.encode("me-._~:s-._~%20%2B%2F");
    assert!(asked[1].contains(&in_header) && !asked[1].contains("client_id"), "{}", asked[1]);
    let form = "grant_type=refresh_token&refresh_token=first&client_id=me-._~&client_secret=s-._~%20%2B%2F";
    assert!(asked[2].ends_with(form) && !asked[2].to_lowercase().contains("authorization"), "{}", asked[2]);
    oidc.credentials(at(2000), true, Client::to_issuer).await.expect("renewed");
    assert!(requests.iter().take(2).last().expect("a request").ends_with(form));
}

#[tokio::test]
async fn client_p9_a_refused_refresh_token_is_not_sent_a_second_time() {
    let (url, requests) = issuer(vec![discovery(), says(400, r#"{"error":"invalid_grant"}"#.to_owned())]);
    let error =
        expired(&url).credentials(at(2000), false, Client::to_issuer).await.expect_err("refused").to_string();
    assert!(error.contains("refuses the refresh-token"), "{error}");
    assert_eq!(requests.iter().count(), 2);
}

#[tokio::test]
async fn client_p10_tokens_and_secrets_go_to_no_host_in_plain_text() {
    for named in ["http://10.0.0.1/token", "http://issuer.example:80/token", "http://127.0.0.1.example/token"]
    {
        let (url, _requests) = issuer(vec![says(200, format!(r#"{{"token_endpoint":"{named}"}}"#))]);
        let error = expired(&url).credentials(at(2000), false, Client::to_issuer).await.expect_err(named);
        assert!(matches!(error, OidcError::Insecure { .. }), "{error}");
    }
    // Whoever answers in plain text could name any host: it is not even asked.
    let error = expired("http://issuer.example")
        .credentials(at(2000), false, Client::to_issuer)
        .await
        .expect_err("not asked");
    assert!(matches!(error, OidcError::Insecure { .. }) && error.to_string().contains("http"), "{error}");
}

#[tokio::test]
async fn an_issuer_that_refuses_or_answers_nonsense_is_an_error_without_a_word_of_the_answer() {
    for (answers, reason) in [
        (vec![says(200, "marked-secret".to_owned())], "not the JSON"),
        (vec![says(404, "marked-secret".to_owned())], "not a success"),
        (
            vec![discovery(), says(400, r#"{"error":"marked-secret"}"#.to_owned())],
            "refuses the refresh-token",
        ),
        (vec![discovery(), says(200, r#"{"access_token":"marked-secret"}"#.to_owned())], "no id_token"),
        (vec![says(200, r#"{"token_endpoint":"marked-secret"}"#.to_owned())], "a URL in it"),
    ] {
        let (url, _requests) = issuer(answers);
        let refresh = ("refresh-token", "marked-secret");
        let oidc = login(&[("idp-issuer-url", &url), ("client-id", "me"), refresh]).unwrap();
        let error = oidc.credentials(at(0), false, Client::to_issuer).await.expect_err(reason);
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!format!("{error} {error:?}").contains("marked-secret"), "{error:?}");
    }
}

#[test]
fn the_end_of_a_token_is_read_from_it_if_it_has_one() {
    assert_eq!(expires(&jwt(12, "a")), Some(at(12)));
    for token in ["", "a.b.c", "e30.e30.x", "e30"] {
        assert_eq!(expires(token), None, "{token}");
    }
}
