//! Which requests are plainly in order, by their headers. Whatever is in doubt is forwarded to rmcp, which has the words for
//! what is wrong with it.

use axum::http::header::HeaderName;
use axum::http::{HeaderMap, Method};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;

use crate::config::authority::Authority;
use crate::serve::message::REVISION;

pub(super) static METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) static NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The hosts and origins that are served, as the configuration has them.
#[derive(Debug)]
pub(super) struct Gate {
    hosts: Vec<HostPort>,
    /// No host in the configuration lets all in, as rmcp has it.
    all_hosts: bool,
    origins: Vec<Origin>,
}

/// A host, and the port where that counts.
#[derive(Debug, PartialEq, Eq)]
struct HostPort {
    host: String,
    port: Option<u16>,
}

#[derive(Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: HostPort,
}

/// An entry of the configuration.
fn allowed_host(text: &str) -> Option<HostPort> {
    let authority = Authority::parse_setting(text.trim())?;
    let (host, port) = (authority.host.to_owned(), authority.port);
    Some(HostPort { host, port })
}

/// An entry of the configuration; `null` and what cannot be read let in nothing here.
fn allowed_origin(text: &str) -> Option<Origin> {
    let text = text.trim();
    let (scheme, host) = text.strip_suffix(":*").unwrap_or(text).split_once("://")?;
    let (scheme, host) = (scheme.to_owned(), allowed_host(host)?);
    Some(Origin { scheme, host })
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

impl Gate {
    pub(super) fn new(config: &StreamableHttpServerConfig) -> Self {
        Self {
            hosts: config
                .allowed_hosts
                .iter()
                .filter_map(|host| allowed_host(host))
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
        let read = RequestHeaders::read(headers)?;
        let in_order = read.version == Some(REVISION)
            && read.json
            && read.events
            && read.content_type.is_some_and(is_json)
            && self.allows_host(&read)
            && self.allows_origin(&read);
        if in_order { read.method } else { None }
    }

    fn allows_host(&self, headers: &RequestHeaders<'_>) -> bool {
        let Some(Authority { host, port }) = headers.host.and_then(Authority::parse) else {
            return false;
        };
        self.all_hosts
            || self.hosts.iter().any(|allowed| {
                allowed.host.eq_ignore_ascii_case(host) && (allowed.port.is_none() || allowed.port == port)
            })
    }

    fn allows_origin(&self, headers: &RequestHeaders<'_>) -> bool {
        let Some(origin) = headers.origin else {
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
                && allowed.host.host.eq_ignore_ascii_case(host)
                && allowed
                    .host
                    .port
                    .is_none_or(|wanted| port.or(default_port(&allowed.scheme)) == Some(wanted))
        })
    }
}

/// The headers that are looked at, gathered in one pass: to look each of them up costs twice as much.
#[derive(Debug, Default)]
struct RequestHeaders<'a> {
    version: Option<&'a str>,
    method: Option<&'a str>,
    host: Option<&'a str>,
    origin: Option<&'a str>,
    content_type: Option<&'a str>,
    /// Which kinds of answers are accepted.
    json: bool,
    events: bool,
}

impl<'a> RequestHeaders<'a> {
    /// `None` if one that may come once comes twice, or is not of plain text.
    fn read(headers: &'a HeaderMap) -> Option<Self> {
        let mut read = Self::default();
        for (name, value) in headers {
            let slot = match name.as_str() {
                "mcp-protocol-version" => &mut read.version,
                "mcp-method" => &mut read.method,
                "host" => &mut read.host,
                "origin" => &mut read.origin,
                "content-type" => &mut read.content_type,
                "accept" => {
                    read.accept(value.to_str().ok()?)?;
                    continue;
                }
                _ => continue,
            };
            if slot.replace(value.to_str().ok()?).is_some() {
                return None;
            }
        }
        Some(read)
    }

    /// Notes which kinds of answers are accepted in so many words. `None` for weights and quoted parameters, which are rare,
    /// and rmcp weighs them.
    fn accept(&mut self, value: &str) -> Option<()> {
        if value == USUAL_ACCEPT {
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
pub(super) const USUAL_ACCEPT: &str = "application/json, text/event-stream";

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

    fn gate(hosts: &[&str], origins: &[&str]) -> Gate {
        Gate::new(
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
        let gate = gate(&["localhost", "::1", "App.example:8443"], &[]);
        let host = |host: &str| gate.allows_host(&RequestHeaders::read(&headers(&[("host", host)])).unwrap());
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
        assert!(!gate.allows_host(&RequestHeaders::default()));
    }

    #[test]
    fn origins_are_let_in_by_scheme_host_and_port() {
        let gate = gate(
            &[],
            &[
                "http://localhost:*",
                "https://app.example:443",
                "https://any.example",
                "null",
            ],
        );
        let origin = |origin: &str| gate.allows_origin(&RequestHeaders::read(&headers(&[("origin", origin)])).unwrap());
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
        assert!(gate.allows_origin(&RequestHeaders::default()));
    }

    #[test]
    fn both_kinds_of_answers_have_to_be_accepted() {
        let accepts = |values: &[&str]| {
            let pairs: Vec<_> = values.iter().map(|value| ("accept", *value)).collect();
            RequestHeaders::read(&headers(&pairs)).is_some_and(|read| read.json && read.events)
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
            assert!(RequestHeaders::read(&headers(&[(name, "a")])).is_some(), "{name}");
            assert!(
                RequestHeaders::read(&headers(&[(name, "a"), (name, "a")])).is_none(),
                "{name}"
            );
        }
    }
}
