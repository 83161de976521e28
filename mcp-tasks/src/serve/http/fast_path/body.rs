//! Reading a body once, for the fast path and for rmcp.

use axum::body::{Body, Bytes, HttpBody};
use futures::StreamExt;
use futures::stream::iter;

/// The body in one piece, if it has no more than `limit` bytes and nothing goes wrong with it. Otherwise a body that is just
/// what came in, for rmcp to refuse.
pub(super) async fn read(body: Body, limit: usize) -> Result<Bytes, Body> {
    let mut data = body.into_data_stream();
    let mut chunks = Vec::new();
    let mut length = 0_usize;
    while let Some(chunk) = data.next().await {
        // Ordinarily there is just one.
        if let Ok(chunk) = &chunk
            && chunks.is_empty()
            && chunk.len() <= limit
            && data.is_end_stream()
        {
            return Ok(chunk.clone());
        }
        length = length.saturating_add(chunk.as_ref().map_or(0, Bytes::len));
        let is_wrong = chunk.is_err() || length > limit;
        chunks.push(chunk);
        if is_wrong {
            return Err(Body::from_stream(iter(chunks).chain(data)));
        }
    }
    let chunks: Vec<Bytes> = chunks.into_iter().flatten().collect();
    Ok(chunks.concat().into())
}

#[cfg(test)]
mod tests {
    use std::io;

    use axum::body::to_bytes;

    use super::*;

    fn body(chunks: Vec<io::Result<&'static str>>) -> Body {
        Body::from_stream(iter(chunks))
    }

    #[tokio::test]
    async fn a_body_within_the_limit_is_read() {
        assert_eq!(read(body(vec![Ok("abc"), Ok("de")]), 5).await.unwrap(), "abcde");
        assert_eq!(read(body(vec![]), 0).await.unwrap(), "");
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_or_breaks_off_is_handed_on_as_it_came() {
        let rest = read(body(vec![Ok("abc"), Ok("def"), Ok("ghi")]), 5).await.unwrap_err();
        assert_eq!(to_bytes(rest, 100).await.unwrap(), "abcdefghi");
        let broken = vec![Ok("abc"), Err(io::Error::other("gone")), Ok("ghi")];
        let rest = read(body(broken), 100).await.unwrap_err();
        let error = to_bytes(rest, 100).await.unwrap_err();
        assert!(error.to_string().contains("gone"), "{error}");
    }
}
