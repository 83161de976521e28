//! Values of `Host` and `Origin` that are served. rmcp accepts any text, and one that no request can have makes a server that
//! refuses everything; here such a text is refused at the start.

use crate::config::authority::Authority;

/// A host that is served, as `Host` spells it. A name without a port is served at every port.
pub(crate) fn host(text: &str) -> Result<String, String> {
    let text = text.trim();
    if Authority::parse_setting(text).is_some() {
        return Ok(text.to_owned());
    }
    let name = host_in(text);
    Err(if text.contains(['/', '?', '#', '@']) {
        format!("`{text}`: a host has no scheme or path: write `{name}`")
    } else if text.ends_with(":*") {
        format!("`{text}`: a host without a port is served at any: write `{name}`")
    } else if text.contains('*') {
        format!("`{text}`: a host has no wildcards: write each, as in `{EXAMPLE}`")
    } else {
        format!("`{text}` is not a host: write it as `Host` headers have it, `{EXAMPLE}` or `{EXAMPLE}:8443`")
    })
}

/// An origin that is served, as `Origin` spells it, with its port: a missing port is written in as the default of the scheme,
/// because rmcp reads an origin without a port as any port, and warns that this will change. A scheme without a default port,
/// such as that of browser extensions, gets any.
pub(crate) fn origin(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("null") {
        return Ok("null".to_owned());
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(if text == "*" {
            format!("`*`: an origin has a scheme and no wildcards: write each, as in `https://{EXAMPLE}`")
        } else {
            format!("`{text}`: an origin has a scheme: write `https://{}`", host_in(text))
        });
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    if !is_scheme {
        return Err(format!(
            "`{text}`: `{scheme}` is not a scheme: write `https://{}`",
            host_in(text)
        ));
    }
    // Browsers show the address of a page with this slash; it is not a path.
    let place = rest.strip_suffix('/').unwrap_or(rest);
    if let Some(name) = place.strip_suffix(":*")
        && Authority::parse(name).is_some_and(|authority| authority.port.is_none())
    {
        return Ok(format!("{scheme}://{name}:*"));
    }
    match Authority::parse(place).map(|authority| authority.port) {
        Some(Some(_)) => Ok(format!("{scheme}://{place}")),
        Some(None) => Ok(match scheme.to_ascii_lowercase().as_str() {
            "https" => format!("{scheme}://{place}:443"),
            "http" => format!("{scheme}://{place}:80"),
            _ => format!("{scheme}://{place}:*"),
        }),
        None if place.contains(['/', '?', '#', '@']) => Err(format!(
            "`{text}`: an origin has no path: write `{scheme}://{}`",
            host_in(text)
        )),
        None if place.contains('*') => Err(format!(
            "`{text}`: an origin has no wildcards but for its port: write each, as in `{scheme}://{EXAMPLE}` or \
             `{scheme}://{EXAMPLE}:*`"
        )),
        None => Err(format!(
            "`{text}` is not an origin: write it as `Origin` headers have it, `https://{EXAMPLE}` or `https://{EXAMPLE}:8443`"
        )),
    }
}

const EXAMPLE: &str = "app.example.com";

/// The host and port in a URL or something like one, to be shown as what to write.
fn host_in(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let rest = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let rest = rest.rsplit('@').next().unwrap_or_default();
    let rest = rest.strip_suffix(":*").unwrap_or(rest);
    if Authority::parse(rest).is_some() {
        rest
    } else {
        EXAMPLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_no_request_can_have_is_refused_with_what_to_write() {
        for good in [
            "x.com",
            "X.com:8443",
            "localhost",
            "127.0.0.1:80",
            "::1",
            "[::1]",
            "[::1]:8080",
            "my_host.",
        ] {
            assert_eq!(host(good).as_deref(), Ok(good));
        }
        for (bad, words) in [
            ("https://x.com", "a host has no scheme or path: write `x.com`"),
            (
                "https://me@x.com:8443/mcp?a",
                "a host has no scheme or path: write `x.com:8443`",
            ),
            ("x.com/mcp", "a host has no scheme or path: write `x.com`"),
            ("x.com/", "write `x.com`"),
            ("x.com:*", "served at any: write `x.com`"),
            ("*", "no wildcards: write each, as in `app.example.com`"),
            ("*.x.com", "no wildcards"),
            ("https://", "write `app.example.com`"),
            ("x.com:", "is not a host"),
            ("x.com:99999", "is not a host"),
            ("x.com:+80", "is not a host"),
            ("x com", "is not a host"),
            ("bücher.example", "is not a host"),
            ("[::1", "is not a host"),
            ("", "is not a host"),
        ] {
            let error = host(bad).unwrap_err();
            assert!(error.contains(words) && error.contains(&format!("`{bad}`")), "{error}");
        }
    }

    #[test]
    fn an_origin_gets_the_port_of_its_scheme_and_what_is_none_is_refused_with_what_to_write() {
        for (written, meant) in [
            ("https://app.example.com", "https://app.example.com:443"),
            ("https://app.example.com/", "https://app.example.com:443"),
            ("http://app.example.com", "http://app.example.com:80"),
            ("HTTPS://app.example.com", "HTTPS://app.example.com:443"),
            ("https://app.example.com:8443", "https://app.example.com:8443"),
            ("http://[::1]", "http://[::1]:80"),
            ("http://[::1]:*", "http://[::1]:*"),
            ("http://localhost:*", "http://localhost:*"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef:*"),
            ("NULL", "null"),
        ] {
            assert_eq!(origin(written).as_deref(), Ok(meant));
        }
        for (bad, words) in [
            (
                "app.example.com",
                "an origin has a scheme: write `https://app.example.com`",
            ),
            ("x.com:8443/mcp", "an origin has a scheme: write `https://x.com:8443`"),
            (
                "*",
                "an origin has a scheme and no wildcards: write each, as in `https://app.example.com`",
            ),
            ("https://*.x.com", "no wildcards but for its port"),
            ("https://x.com/mcp", "an origin has no path: write `https://x.com`"),
            ("https://me@x.com", "an origin has no path: write `https://x.com`"),
            ("https://x.com:80:*", "no wildcards but for its port"),
            ("https://", "is not an origin"),
            ("https://x.com:99999", "is not an origin"),
            ("://x.com", "is not a scheme: write `https://x.com`"),
            ("", "an origin has a scheme"),
        ] {
            let error = origin(bad).unwrap_err();
            assert!(error.contains(words) && error.contains(&format!("`{bad}`")), "{error}");
        }
    }
}
