//! The proxy that the environment names, by the rules of Go's `golang.org/x/net/http/httpproxy` and so of
//! kubectl.
//!
//! 1. This machine (`localhost`, loopback addresses) and a unix socket are reached without a proxy.
//! 2. If `REQUEST_METHOD` is set, `HTTP_PROXY` is an error: a web server sets it from a header of the CGI
//!    client.
//! 3. Two rules differ from Go. `ALL_PROXY` is used if the other is not set, as in curl. An unreadable value
//!    is an error: Go ignores it and would bypass the proxy.

use super::Proxy;
use crate::endpoint::Endpoint;
use crate::error::Error;
use exceptions::Exceptions;

mod exceptions;

#[derive(Default)]
pub(crate) struct Environment {
    https: Option<Variable>,
    http: Option<Variable>,
    all: Option<Variable>,
    no_proxy: Option<Variable>,
    is_cgi: bool,
}

/// Not empty. The value may hold a password.
struct Variable {
    name: &'static str,
    value: String,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self::of(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    pub(crate) fn of(value_of: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&'static str; 2]| {
            let set =
                |name| Some(Variable { name, value: value_of(name).filter(|value| !value.is_empty())? });
            names.into_iter().find_map(set)
        };
        Self {
            https: first(["HTTPS_PROXY", "https_proxy"]),
            http: first(["HTTP_PROXY", "http_proxy"]),
            all: first(["ALL_PROXY", "all_proxy"]),
            no_proxy: first(["NO_PROXY", "no_proxy"]),
            is_cgi: value_of("REQUEST_METHOD").is_some_and(|value| !value.is_empty()),
        }
    }

    pub(crate) fn proxy_for(&self, endpoint: &Endpoint) -> Result<Option<Proxy>, Error> {
        let of_scheme = if endpoint.tls { &self.https } else { &self.http };
        let Some(variable) = of_scheme.as_ref().or(self.all.as_ref()) else { return Ok(None) };
        if endpoint.socket.is_some() || endpoint.host == "localhost" {
            return Ok(None);
        }
        let exceptions = self.no_proxy.as_ref().map(|list| Exceptions::read(&list.value)).unwrap_or_default();
        if exceptions.hold(&endpoint.host, endpoint.port) {
            return Ok(None);
        }
        let of_variable = |error| match error {
            Error::Proxy { proxy, reason } => {
                Error::Proxy { proxy, reason: format!("{reason} (the variable {})", variable.name) }
            }
            error => error,
        };
        // Go reads a value without a scheme as host and port of an HTTP proxy.
        let proxy = match variable.value.contains("://") {
            true => Proxy::parse(&variable.value),
            false => Proxy::parse(&format!("http://{}", variable.value.trim())),
        };
        let proxy = proxy.map_err(of_variable)?;
        if self.is_cgi && variable.name.eq_ignore_ascii_case("HTTP_PROXY") {
            let reason = "REQUEST_METHOD is set: in a CGI program, HTTP_PROXY may come from anybody; unset one of them, \
                          or name the proxy by Config::proxy";
            return Err(Error::Proxy { proxy: proxy.name().to_owned(), reason: reason.to_owned() });
        }
        Ok(Some(proxy))
    }
}

#[cfg(any(test, feature = "unstable"))]
pub(crate) fn proxy_of(variables: &[(&str, &str)], endpoint: &str) -> Result<Option<String>, Error> {
    let value_of =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let proxy = Environment::of(value_of).proxy_for(&Endpoint::parse(endpoint)?)?;
    Ok(proxy.map(|proxy| proxy.name().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::proxy_of as found;

    #[test]
    fn the_variable_of_the_scheme_counts_first_in_upper_case_and_then_that_of_all() {
        let (secure, plain) = ("https://api.example:6443", "http://api.example");
        for (variables, endpoint, expected) in [
            (&[("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://p:1")][..], secure, Some("http://s:1")),
            (&[("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://p:1")], plain, Some("http://p:1")),
            (&[("HTTPS_PROXY", "http://s:1")], plain, None),
            (&[("https_proxy", "http://low:1")], secure, Some("http://low:1")),
            (&[("https_proxy", "http://low:1"), ("HTTPS_PROXY", "up:1")], secure, Some("http://up:1")),
            (&[("https_proxy", "http://low:1"), ("HTTPS_PROXY", "")], secure, Some("http://low:1")),
            (&[("ALL_PROXY", "socks5://a:1")], plain, Some("socks5://a:1")),
            (&[("all_proxy", "a:1"), ("HTTP_PROXY", "http://p:1")], plain, Some("http://p:1")),
            (&[("HTTPS_PROXY", "u:p@s:1")], secure, Some("http://s:1")),
            (&[("ALL_PROXY", "a:1"), ("NO_PROXY", "api.example")], secure, None),
            (&[("ALL_PROXY", "a:1")], "https://localhost:6443", None),
            (&[("ALL_PROXY", "a:1")], "https://127.9.9.9:6443", None),
            (&[("ALL_PROXY", "a:1")], "https://[::1]", None),
            (&[("ALL_PROXY", "a:1")], "unix:///run/api.sock", None),
            (&[], secure, None),
        ] {
            assert_eq!(
                found(variables, endpoint).expect("valid").as_deref(),
                expected,
                "{variables:?} {endpoint}"
            );
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_an_error_that_names_the_variable() {
        for value in ["ftp://u:s3cret@p", "http://u:s3cret@", "u:s3cret@p:x"] {
            let error = found(&[("https_proxy", value)], "https://api.example").expect_err(value).to_string();
            assert!(error.contains("the variable https_proxy") && !error.contains("s3cret"), "{error}");
            assert!(found(&[("https_proxy", value)], "https://127.0.0.1").is_ok(), "it is not used");
        }
    }

    #[test]
    fn in_a_cgi_program_http_proxy_is_an_error() {
        let variables = |name| [(name, "http://u:s3cret@p:1"), ("REQUEST_METHOD", "GET")];
        for name in ["HTTP_PROXY", "http_proxy"] {
            let error = found(&variables(name), "http://api.example").expect_err("refused").to_string();
            assert!(error.contains("REQUEST_METHOD") && !error.contains("s3cret"), "{error}");
        }
        let secure =
            found(&variables("HTTPS_PROXY"), "https://api.example").expect("no header has that name");
        assert_eq!(secure.as_deref(), Some("http://p:1"));
    }
}
