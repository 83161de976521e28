//! Which requests are plainly in order. Whatever is in doubt is left to rmcp, which has the words for what is wrong with it.

use axum::http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use axum::http::uri::{Authority, Uri};
use axum::http::{HeaderMap, Method};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;

use crate::serve::message::REVISION;

pub(super) static METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) static NAME: HeaderName = HeaderName::from_static("mcp-name");
static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// What the server was told to let in, read once.
#[derive(Debug)]
pub(super) struct Door {
    /// Empty lets all in, as rmcp has it.
    hosts: Vec<Place>,
    all_hosts: bool,
    origins: Vec<Origin>,
}

/// A host, and the port where that counts.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    host: String,
    port: Option<u16>,
}

#[derive(Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    place: Place,
}

/// A host and port as `Host` and `Origin` spell them, if it is an ordinary one: letters, digits, dots and dashes, or an
/// address in brackets.
fn place(text: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']')?;
            let is_address = host.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
            (host, (is_address && !host.is_empty()).then_some(port)?)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            let (host, port) = text.split_at(end);
            let is_name = host
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
            (host, (is_name && !host.is_empty()).then_some(port)?)
        }
    };
    match port.strip_prefix(':') {
        None if port.is_empty() => Some((host, None)),
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some((host, Some(digits.parse().ok()?)))
        }
        _ => None,
    }
}

/// An entry of the configuration, as rmcp reads it.
fn allowed_place(text: &str) -> Option<Place> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let (host, port) = match Authority::try_from(text) {
        Ok(authority) => (authority.host().to_owned(), authority.port_u16()),
        Err(_) => (text.to_owned(), None),
    };
    let host = host.trim_matches('[').trim_matches(']').to_ascii_lowercase();
    Some(Place { host, port })
}

/// An entry of the configuration; `null` and what cannot be read let in nothing here.
fn allowed_origin(text: &str) -> Option<Origin> {
    let text = text.trim();
    let text = text.strip_suffix(":*").unwrap_or(text);
    let uri = Uri::try_from(text).ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let place = allowed_place(uri.authority()?.as_str())?;
    Some(Origin { scheme, place })
}

const fn default_port(scheme: &str) -> Option<u16> {
    match scheme.as_bytes() {
        b"http" => Some(80),
        b"https" => Some(443),
        _ => None,
    }
}

/// The only value of a header.
fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    match values.next() {
        None => value.to_str().ok(),
        Some(_) => None,
    }
}

impl Door {
    pub(super) fn new(config: &StreamableHttpServerConfig) -> Self {
        Self {
            hosts: config
                .allowed_hosts
                .iter()
                .filter_map(|host| allowed_place(host))
                .collect(),
            all_hosts: config.allowed_hosts.is_empty(),
            origins: config
                .allowed_origins
                .iter()
                .filter_map(|origin| allowed_origin(origin))
                .collect(),
        }
    }

    /// The method of a request that is in order, as its headers name it.
    pub(super) fn method<'a>(&self, method: &Method, headers: &'a HeaderMap) -> Option<&'a str> {
        let in_order = *method == Method::POST
            && single(headers, &VERSION) == Some(REVISION)
            && self.host(headers)
            && self.origin(headers)
            && accepts(headers)
            && content_type(headers);
        if in_order { single(headers, &METHOD) } else { None }
    }

    fn host(&self, headers: &HeaderMap) -> bool {
        let Some((host, port)) = single(headers, &HOST).and_then(place) else {
            return false;
        };
        self.all_hosts
            || self.hosts.iter().any(|allowed| {
                allowed.host.eq_ignore_ascii_case(host) && (allowed.port.is_none() || allowed.port == port)
            })
    }

    fn origin(&self, headers: &HeaderMap) -> bool {
        if !headers.contains_key(ORIGIN) {
            return true;
        }
        let Some((scheme, rest)) = single(headers, &ORIGIN).and_then(|origin| origin.split_once("://")) else {
            return false;
        };
        let Some((host, port)) = place(rest) else {
            return false;
        };
        self.origins.iter().any(|allowed| {
            allowed.scheme.eq_ignore_ascii_case(scheme)
                && allowed.place.host.eq_ignore_ascii_case(host)
                && allowed
                    .place
                    .port
                    .is_none_or(|wanted| port.or(default_port(&allowed.scheme)) == Some(wanted))
        })
    }
}

/// Whether both kinds of answers are accepted, in so many words.
fn accepts(headers: &HeaderMap) -> bool {
    let (mut json, mut events) = (false, false);
    for value in headers.get_all(ACCEPT) {
        let Ok(value) = value.to_str() else { return false };
        // Weights and quoted parameters are rare, and rmcp weighs them.
        if value.bytes().any(|b| matches!(b, b'"' | b'=' | b'\\')) {
            return false;
        }
        for entry in value.split(',') {
            let kind = entry.split_once(';').map_or(entry, |(kind, _)| kind).trim();
            json |= kind.eq_ignore_ascii_case("application/json");
            events |= kind.eq_ignore_ascii_case("text/event-stream");
        }
    }
    json && events
}

fn content_type(headers: &HeaderMap) -> bool {
    single(headers, &CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind);
        kind.trim().eq_ignore_ascii_case("application/json")
    })
}

/// Whether `Mcp-Name` says `name`, in plain text.
pub(super) fn is_named(headers: &HeaderMap, name: &str) -> bool {
    single(headers, &NAME).is_some_and(|value| value == name && !value.starts_with("=?"))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn door(hosts: &[&str], origins: &[&str]) -> Door {
        Door::new(
            &StreamableHttpServerConfig::default()
                .with_allowed_hosts(hosts.iter().copied())
                .with_allowed_origins(origins.iter().copied()),
        )
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()));
        pairs.collect()
    }

    #[test]
    fn hosts_are_let_in_by_name_and_where_it_is_said_by_port() {
        let door = door(&["localhost", "::1", "App.example:8443"], &[]);
        let host = |host: &str| door.host(&headers(&[("host", host)]));
        for good in ["localhost", "LOCALHOST:80", "[::1]", "[::1]:80", "app.example:8443"] {
            assert!(host(good), "{good}");
        }
        for bad in [
            "",
            "localhost.evil.example",
            "app.example",
            "app.example:80",
            "localhost:",
            "localhost:99999",
            "localhost:80:80",
            "me@localhost",
            "localhost/",
            "[::1",
            "[]",
            "::1",
        ] {
            assert!(!host(bad), "{bad}");
        }
        assert!(!door.host(&HeaderMap::new()));
    }

    #[test]
    fn origins_are_let_in_by_scheme_host_and_port() {
        let door = door(
            &[],
            &[
                "http://localhost:*",
                "https://app.example:443",
                "https://any.example",
                "null",
            ],
        );
        let origin = |origin: &str| door.origin(&headers(&[("origin", origin)]));
        for good in [
            "http://localhost",
            "http://localhost:6274",
            "https://app.example",
            "https://APP.example:443",
            "https://any.example:1",
        ] {
            assert!(origin(good), "{good}");
        }
        for bad in [
            "https://localhost",
            "https://app.example:8443",
            "http://app.example:443",
            "http://localhost.evil.example",
            "http://localhost@evil.example",
            "null",
            "",
        ] {
            assert!(!origin(bad), "{bad}");
        }
        assert!(door.origin(&HeaderMap::new()));
    }

    #[test]
    fn both_kinds_of_answers_have_to_be_accepted() {
        let accept = |value: &str| accepts(&headers(&[("accept", value)]));
        assert!(accept("application/json, text/event-stream"));
        assert!(accept("text/event-stream,APPLICATION/JSON , */*"));
        for doubtful in [
            "application/json",
            "*/*",
            "",
            "application/json;q=0, text/event-stream",
            "text/event-stream",
        ] {
            assert!(!accept(doubtful), "{doubtful}");
        }
    }
}
