//! Host and port, as the headers `Host` and `Origin` spell them.

use std::net::Ipv6Addr;

/// A host and, where it is written, its port (RFC 3986, section 3.2, without user information).
///
/// A host is a name of letters, digits, dots, dashes and underscores, an IPv4 address, or an IPv6 address in brackets. Not
/// `http::uri::Authority`, which takes more than a browser sends, such as a user before an `@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Authority<'a> {
    /// Without brackets.
    pub(crate) host: &'a str,
    pub(crate) port: Option<u16>,
}

impl<'a> Authority<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                (address, port)
            }
            None => {
                let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
                (!name.is_empty() && name.bytes().all(is_name)).then_some((name, port))?
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            // `parse` alone would take a sign.
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().ok()?),
            _ => return None,
        };
        Some(Self { host, port })
    }

    /// As [`parse`](Self::parse), and an IPv6 address without brackets, as people write it in a configuration.
    pub(crate) fn parse_setting(text: &'a str) -> Option<Self> {
        if text.parse::<Ipv6Addr>().is_ok() {
            return Some(Self { host: text, port: None });
        }
        Self::parse(text)
    }
}
