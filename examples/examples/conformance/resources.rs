//! Resources and resource templates.

use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::json;

use crate::{changes::Changes, content::PNG};

/// The resource whose content changes when the tool `test_trigger_resource_update` is called.
pub(crate) const WATCHED: &str = "test://watched-resource";
const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";

/// `resources/list`.
pub(crate) fn list() -> ListResourcesResult {
    ListResourcesResult::with_all_items(vec![
        Resource::new(TEXT, "static-text")
            .with_description("A text that never changes")
            .with_mime_type("text/plain"),
        Resource::new(BINARY, "static-binary")
            .with_description("A PNG image of one pixel")
            .with_mime_type("image/png"),
        Resource::new(WATCHED, "watched-resource")
            .with_description("A text with a revision that a tool can raise")
            .with_mime_type("text/plain"),
    ])
}

/// `resources/templates/list`.
pub(crate) fn templates() -> ListResourceTemplatesResult {
    ListResourceTemplatesResult::with_all_items(vec![
        ResourceTemplate::new("test://template/{id}/data", "template-data")
            .with_description("Data for any id")
            .with_mime_type("application/json"),
    ])
}

/// `resources/read`.
pub(crate) fn read(uri: &str, changes: &Changes) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        TEXT => {
            ResourceContents::text("This is the content of the static text resource.", uri).with_mime_type("text/plain")
        }
        BINARY => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        WATCHED => ResourceContents::text(format!("revision {}", changes.revision()), uri).with_mime_type("text/plain"),
        _ => {
            let id = uri
                .strip_prefix("test://template/")
                .and_then(|rest| rest.strip_suffix("/data"))
                .filter(|id| !id.is_empty() && !id.contains('/'))
                .ok_or_else(|| ErrorData::resource_not_found("Resource not found", Some(json!({ "uri": uri }))))?;
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            ResourceContents::text(data.to_string(), uri).with_mime_type("application/json")
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}
