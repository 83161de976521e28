//! Tools that answer at once: every kind of content, progress, log messages and errors.

#![expect(
    deprecated,
    reason = "logging is deprecated, and still part of both protocol revisions"
)]

use std::time::Duration;

use rmcp::model::{
    CallToolResult, ContentBlock, LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam,
    ResourceContents,
};
use serde_json::json;

use crate::questions::{Call, Stop};

/// A PNG image of one red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV file without a single sample.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const PAUSE: Duration = Duration::from_millis(50);

/// A result of one text.
pub(crate) fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// `test_simple_text`.
pub(crate) fn simple_text() -> CallToolResult {
    text("This is a simple text response for testing.")
}

/// `test_image_content`.
pub(crate) fn image() -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::image(PNG, "image/png")])
}

/// `test_audio_content`.
pub(crate) fn audio() -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::audio(WAV, "audio/wav")])
}

/// `test_embedded_resource`.
pub(crate) fn embedded_resource() -> CallToolResult {
    let resource = ResourceContents::text("This is an embedded resource content.", "test://embedded-resource")
        .with_mime_type("text/plain");
    CallToolResult::success(vec![ContentBlock::resource(resource)])
}

/// `test_multiple_content_types`.
pub(crate) fn multiple_content_types() -> CallToolResult {
    let data = json!({ "test": "data", "value": 123 });
    let resource =
        ResourceContents::text(data.to_string(), "test://mixed-content-resource").with_mime_type("application/json");
    CallToolResult::success(vec![
        ContentBlock::text("Multiple content types test:"),
        ContentBlock::image(PNG, "image/png"),
        ContentBlock::resource(resource),
    ])
}

/// `test_error_handling`.
pub(crate) fn error() -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(
        "This tool intentionally returns an error for testing",
    )])
}

/// `test_tool_with_progress`.
pub(crate) async fn progress(call: &Call<'_>) -> Result<CallToolResult, Stop> {
    let token = call.context.meta.get_progress_token();
    for progress in [0.0, 50.0, 100.0] {
        if progress > 0.0 {
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(token) = &token {
            let params = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
            call.context.peer.notify_progress(params).await?;
        }
    }
    Ok(text("Progress went from 0 to 100."))
}

/// `test_reconnection`: rmcp leaves it to the client to drop the stream. One that does fetches the answer with
/// `Last-Event-ID`.
pub(crate) async fn reconnection() -> CallToolResult {
    tokio::time::sleep(2 * PAUSE).await;
    text("This answer waits for a client that lost the stream.")
}

/// `test_tool_with_logging` and `test_logging_tool`.
pub(crate) async fn logging(call: &Call<'_>) -> Result<CallToolResult, Stop> {
    for message in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        if message != "Tool execution started" {
            tokio::time::sleep(PAUSE).await;
        }
        if call.logs(LoggingLevel::Info) {
            let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
            call.context.peer.notify_logging_message(params).await?;
        }
    }
    Ok(text("Three messages were logged."))
}
