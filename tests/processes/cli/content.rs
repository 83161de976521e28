//! Results as text.

use serde_json::{Value, json};

use crate::cli::exits::scripted;
use crate::cli::harness::{Reply, User};

async fn shown(result: Value) -> String {
    let script = scripted(move |asked| match asked.method.as_str() {
        "tools/call" => Reply::Result(result.clone()),
        _ => Reply::Error(-32601, "unknown method"),
    });
    let ran = User::new().run(&["call", &script.listen().await, "t"]).await;
    assert_eq!(ran.code, 0);
    ran.out
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_shown_and_everything_else_described() {
    let out = shown(json!({"resultType": "complete", "content": [
        {"type": "text", "text": "two\nlines"},
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "audio", "mimeType": "audio/wav", "data": "AA=="},
        {"type": "resource_link", "uri": "file:///a", "name": "A", "mimeType": "text/plain"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///c", "blob": "AAAA"}},
    ]}))
    .await;
    assert_eq!(
        out,
        "two\nlines\n[image: image/png, 3 bytes]\n[audio: audio/wav, 1 bytes]\n[resource: file:///a, A, text/plain]\n\
         [resource: file:///b]\ninside\n[resource: file:///c, 3 bytes]\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_content_is_shown_once() {
    let once = "{\n  \"rows\": 2\n}\n";
    let text = json!({"type": "text", "text": "{\"rows\":2}"});
    for content in [json!([]), json!([text])] {
        let out = shown(json!({"resultType": "complete", "content": content, "structuredContent": {"rows": 2}})).await;
        assert_eq!(out, once);
    }
    let other = json!([{"type": "text", "text": "two rows"}]);
    let out = shown(json!({"resultType": "complete", "content": other, "structuredContent": {"rows": 2}})).await;
    assert_eq!(out, format!("two rows\n{once}"));
}
