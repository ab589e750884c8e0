//! URLs as requests carry them.
//!
//! Answers: what are the parts of this URL, or why is it not a URL? It is read as by Go's `net/url`, because rules see
//! its error texts: paths stay as they were written, hosts keep their brackets and ports.
/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    pub(super) scheme: String,
    /// The host with its port.
    pub(super) host: String,
    pub(super) escaped_path: String,
    raw_query: String,
    fragment: String,
    user: String,
}

impl Url {
    /// Reads an absolute URL, or an absolute path.
    ///
    /// # Errors
    /// The words of Go's parser.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let failed = |why: &str| format!("parse {text:?}: {why}");
        if text.is_empty() {
            return Err(failed("empty url"));
        }
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(failed("net/url: invalid control character in URL"));
        }
        let (scheme, rest) = scheme(text).map_err(failed)?;
        let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (rest, raw_query) = rest.split_once('?').unwrap_or((rest, ""));
        if !rest.starts_with('/') && scheme.is_empty() {
            return Err(failed("invalid URI for request"));
        }
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        check_host(host).map_err(|why| failed(&why))?;
        check_escapes(path).map_err(|why| failed(&why))?;
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_owned(),
            escaped_path: escaped(path),
            raw_query: raw_query.to_owned(),
            fragment: fragment.to_owned(),
            user: user.to_owned(),
        })
    }

    /// The host without port and brackets.
    pub(super) fn hostname(&self) -> &str {
        let bare = match self.port() {
            "" => self.host.strip_suffix(':').unwrap_or(&self.host),
            port => &self.host[..self.host.len() - port.len() - 1],
        };
        bare.strip_prefix('[').and_then(|bare| bare.strip_suffix(']')).unwrap_or(bare)
    }

    pub(super) fn port(&self) -> &str {
        let after = self.host.rsplit_once(']').map_or(self.host.as_str(), |(_, after)| after);
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }

    /// Names and values of the query, decoded; what cannot be decoded is left out.
    pub(super) fn query(&self) -> Vec<(String, String)> {
        let pairs = self.raw_query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode(name)?, decode(value)?))
        });
        decoded.flatten().collect()
    }
}

fn scheme(text: &str) -> Result<(&str, &str), &'static str> {
    for (at, letter) in text.char_indices() {
        match letter {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme"),
            ':' => return Ok((&text[..at], &text[at + 1..])),
            _ => return Ok(("", text)),
        }
    }
    Ok(("", text))
}

fn check_host(host: &str) -> Result<(), String> {
    let allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || byte >= 0x80 || b"-_.~!$&'()*+,;=:[]<>\"%".contains(&byte);
    if let Some(byte) = host.bytes().find(|byte| !allowed(*byte)) {
        return Err(format!("invalid character {:?} in host name", char::from(byte).to_string()));
    }
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    if host.starts_with('[') && !host.contains(']') {
        return Err("missing ']' in host".to_owned());
    }
    match after.rsplit_once(':') {
        Some((_, port)) if !port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("invalid port {:?} after host", format!(":{port}")))
        }
        _ => Ok(()),
    }
}

fn check_escapes(path: &str) -> Result<(), String> {
    let bytes = path.as_bytes();
    for at in 0..bytes.len() {
        let sound = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        if bytes[at] == b'%' && !(sound(at + 1) && sound(at + 2)) {
            let shown = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 3)]).into_owned();
            return Err(format!("invalid URL escape {shown:?}"));
        }
    }
    Ok(())
}

/// The path with what may not stand in one escaped.
fn escaped(path: &str) -> String {
    let mut escaped = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@/%[]".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}
