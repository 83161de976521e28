//! Clients that accept everything.

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, HeaderValue};

use super::gate::USUAL_ACCEPT;

/// Names both kinds of answers in the headers of a client that accepts everything, by `*/*` or by saying nothing (RFC 9110,
/// section 12.5.1): rmcp wants to read them by name.
pub(super) fn name_kinds(headers: &mut HeaderMap) {
    if accepts_all(headers) {
        headers.insert(ACCEPT, HeaderValue::from_static(USUAL_ACCEPT));
    }
}

fn accepts_all(headers: &HeaderMap) -> bool {
    if !headers.contains_key(ACCEPT) {
        return true;
    }
    let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut has_wildcard = false;
    for entry in values.flat_map(|value| value.split(',')) {
        let mut parts = entry.split(';').map(str::trim);
        has_wildcard |= parts.next() == Some("*/*");
        // A kind that is refused by its weight stays refused.
        if parts.any(|parameter| weight(parameter) == Some(0.0)) {
            return false;
        }
    }
    has_wildcard
}

fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    name.trim()
        .eq_ignore_ascii_case("q")
        .then(|| value.trim().parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_accepted_by_a_wildcard_or_by_silence() {
        let accepts = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(ACCEPT, HeaderValue::from_static(value));
            }
            accepts_all(&headers)
        };
        for good in [
            &[][..],
            &["*/*"],
            &["text/html, */*;q=0.8"],
            &["application/json", " */* ; q=1"],
        ] {
            assert!(accepts(good), "{good:?}");
        }
        for bad in [
            &["application/json"][..],
            &["application/json, text/*"],
            &["*/*;q=0"],
            &["application/json; Q=0.0, */*"],
            &[""],
        ] {
            assert!(!accepts(bad), "{bad:?}");
        }
    }
}
