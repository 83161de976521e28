//! Which requests are plainly in order. Whatever is in doubt is left to rmcp, which has the words for what is wrong with it.

use axum::http::header::HeaderName;
use axum::http::{HeaderMap, Method};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;

use crate::config::authority::Authority;
use crate::serve::message::REVISION;

pub(super) static METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) static NAME: HeaderName = HeaderName::from_static("mcp-name");

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

/// An entry of the configuration.
fn allowed_place(text: &str) -> Option<Place> {
    let authority = Authority::parse_setting(text.trim())?;
    let (host, port) = (authority.host.to_owned(), authority.port);
    Some(Place { host, port })
}

/// An entry of the configuration; `null` and what cannot be read let in nothing here.
fn allowed_origin(text: &str) -> Option<Origin> {
    let text = text.trim();
    let (scheme, place) = text.strip_suffix(":*").unwrap_or(text).split_once("://")?;
    let (scheme, place) = (scheme.to_owned(), allowed_place(place)?);
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
        if *method != Method::POST {
            return None;
        }
        let head = Head::read(headers)?;
        let in_order = head.version == Some(REVISION)
            && head.json
            && head.events
            && head.content_type.is_some_and(is_json)
            && self.host(&head)
            && self.origin(&head);
        if in_order { head.method } else { None }
    }

    fn host(&self, head: &Head<'_>) -> bool {
        let Some(Authority { host, port }) = head.host.and_then(Authority::parse) else {
            return false;
        };
        self.all_hosts
            || self.hosts.iter().any(|allowed| {
                allowed.host.eq_ignore_ascii_case(host) && (allowed.port.is_none() || allowed.port == port)
            })
    }

    fn origin(&self, head: &Head<'_>) -> bool {
        let Some(origin) = head.origin else {
            return true;
        };
        let Some((scheme, rest)) = origin.split_once("://") else {
            return false;
        };
        let Some(Authority { host, port }) = Authority::parse(rest) else {
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

/// What the headers of a request say that are looked at, gathered in one pass: to look each of them up costs twice as much.
#[derive(Debug, Default)]
struct Head<'a> {
    version: Option<&'a str>,
    method: Option<&'a str>,
    host: Option<&'a str>,
    origin: Option<&'a str>,
    content_type: Option<&'a str>,
    /// Which kinds of answers are accepted.
    json: bool,
    events: bool,
}

impl<'a> Head<'a> {
    /// `None` if one that may come once comes twice, or is not of plain text.
    fn read(headers: &'a HeaderMap) -> Option<Self> {
        let mut head = Self::default();
        for (name, value) in headers {
            let place = match name.as_str() {
                "mcp-protocol-version" => &mut head.version,
                "mcp-method" => &mut head.method,
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "content-type" => &mut head.content_type,
                "accept" => {
                    head.accept(value.to_str().ok()?)?;
                    continue;
                }
                _ => continue,
            };
            if place.replace(value.to_str().ok()?).is_some() {
                return None;
            }
        }
        Some(head)
    }

    /// Notes which kinds of answers are accepted in so many words. `None` for weights and quoted parameters, which are rare,
    /// and rmcp weighs them.
    fn accept(&mut self, value: &str) -> Option<()> {
        if value == USUAL {
            (self.json, self.events) = (true, true);
            return Some(());
        }
        if value.bytes().any(|b| matches!(b, b'"' | b'=' | b'\\')) {
            return None;
        }
        for entry in value.split(',') {
            let kind = entry.split_once(';').map_or(entry, |(kind, _)| kind).trim();
            self.json |= kind.eq_ignore_ascii_case("application/json");
            self.events |= kind.eq_ignore_ascii_case("text/event-stream");
        }
        Some(())
    }
}

/// What published clients accept, letter by letter.
const USUAL: &str = "application/json, text/event-stream";

fn is_json(kind: &str) -> bool {
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind);
    kind.trim().eq_ignore_ascii_case("application/json")
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
        let host = |host: &str| door.host(&Head::read(&headers(&[("host", host)])).unwrap());
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
        assert!(!door.host(&Head::default()));
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
        let origin = |origin: &str| door.origin(&Head::read(&headers(&[("origin", origin)])).unwrap());
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
        assert!(door.origin(&Head::default()));
    }

    #[test]
    fn both_kinds_of_answers_have_to_be_accepted() {
        let accepts = |values: &[&str]| {
            let pairs: Vec<_> = values.iter().map(|value| ("accept", *value)).collect();
            Head::read(&headers(&pairs)).is_some_and(|head| head.json && head.events)
        };
        let accept = |value: &str| accepts(&[value]);
        assert!(accept("application/json, text/event-stream"));
        assert!(accepts(&["text/event-stream", "application/json"]));
        assert!(!accepts(&["application/json, text/event-stream", "*/*;q=0.1"]));
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

    #[test]
    fn what_may_come_once_is_in_doubt_when_it_comes_twice() {
        for name in ["mcp-protocol-version", "mcp-method", "host", "origin", "content-type"] {
            assert!(Head::read(&headers(&[(name, "a")])).is_some(), "{name}");
            assert!(Head::read(&headers(&[(name, "a"), (name, "a")])).is_none(), "{name}");
        }
    }
}
