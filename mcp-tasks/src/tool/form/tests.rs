use mcp_tasks_core::form::FormSchema;
use serde::Deserialize;

use super::*;

/// How to publish
#[derive(Deserialize, JsonSchema, ElicitForm)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "only described")]
struct Publish {
    /// Shown above the video
    video_title: String,
    age_limit: Option<u8>,
    #[schemars(range(min = 0.5, max = 2.0))]
    speed: f32,
    #[serde(default)]
    public: bool,
    quality: Quality,
    /// Where else
    channels: Vec<Channel>,
    backup: Option<Channel>,
    #[serde(rename = "contact", default = "nobody")]
    #[schemars(email, length(max = 80))]
    mail: String,
    views: u64,
    #[serde(skip)]
    unseen: Unseen,
}

#[derive(Default)]
struct Unseen;

fn nobody() -> String {
    "nobody@example.org".to_owned()
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
#[serde(rename_all = "lowercase")]
enum Quality {
    Low,
    High,
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
enum Channel {
    /// The one for everybody
    Stable,
    Beta,
}

#[derive(Deserialize, JsonSchema, ElicitForm)]
struct Consent {}

use mcp_tasks_macros::ElicitForm;

#[test]
fn a_form_is_flat_and_has_standard_members_alone() {
    let titled = json!([{"const": "Beta", "title": "Beta"}, {"const": "Stable", "title": "The one for everybody"}]);
    assert_eq!(
        form_schema::<Publish>(),
        json!({
            "type": "object",
            "description": "How to publish",
            "properties": {
                "videoTitle": {"type": "string", "description": "Shown above the video"},
                "ageLimit": {"type": "integer", "minimum": 0, "maximum": 255},
                "speed": {"type": "number", "minimum": 0.5, "maximum": 2.0},
                "public": {"type": "boolean", "default": false},
                "quality": {"type": "string", "enum": ["low", "high"]},
                "channels": {"type": "array", "description": "Where else", "items": {"anyOf": titled}},
                "backup": {"type": "string", "oneOf": titled},
                "contact": {"type": "string", "format": "email", "maxLength": 80, "default": "nobody@example.org"},
                "views": {"type": "integer", "minimum": 0},
            },
            "required": ["videoTitle", "speed", "quality", "channels", "views"],
        })
    );
}

#[test]
fn the_order_of_the_fields_is_kept() {
    let text = form_schema_json::<Publish>();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), form_schema::<Publish>());
    let schema = FormSchema::parse(&text).unwrap();
    let names: Vec<_> = schema.field_names().collect();
    assert_eq!(
        names,
        [
            "videoTitle",
            "ageLimit",
            "speed",
            "public",
            "quality",
            "channels",
            "backup",
            "contact",
            "views"
        ]
    );
}

#[test]
fn a_value_and_the_text_have_one_order_where_values_have_an_order() {
    // The workspace turns `preserve_order` on; without it only the text is in order.
    let schema = form_schema::<Publish>();
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names[..3], ["videoTitle", "ageLimit", "speed"]);
}

#[test]
fn a_form_without_fields_asks_for_consent() {
    assert_eq!(form_schema::<Consent>(), json!({"type": "object", "properties": {}}));
    assert_eq!(form_schema_json::<Consent>(), r#"{"type":"object","properties":{}}"#);
}
