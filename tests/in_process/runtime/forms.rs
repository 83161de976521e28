//! Forms, and answers that do not fit them.

use mcp_tasks::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Mode, Node, in_both_modes, keys, status, text};

#[derive(Debug, Deserialize, JsonSchema, ElicitForm)]
enum Channel {
    Beta,
    Stable,
}

#[derive(Debug, Deserialize, JsonSchema, ElicitForm)]
#[expect(dead_code, reason = "what is in it is read through Debug")]
struct Order {
    zeal: u32,
    ratio: f64,
    note: Option<String>,
    channel: Channel,
    also: Vec<Channel>,
}

/// Takes an order.
#[mcp_task]
async fn order(ctx: ToolContext) -> Result<String, ToolError> {
    match ctx.elicit::<Order>("What will it be?").await {
        Ok(Elicited::Accept(order)) => Ok(format!("{order:?}")),
        Ok(_) => Ok("no order".to_owned()),
        Err(error @ ElicitError::InvalidAnswers { .. }) => Ok(format!("gave up: {error}")),
        Err(error) => Err(error.into()),
    }
}

fn content() -> Value {
    json!({"zeal": 3, "ratio": 1.5, "channel": "Beta", "also": ["Stable", "Beta"]})
}

fn with(name: &str, value: Value) -> Value {
    let mut content = content();
    content[name] = value;
    content
}

async fn asked(mode: Mode) -> (Node, crate::harness::Client, String, Value) {
    let (node, client) = Node::start(mode, |b| b.register::<order>()).await;
    let id = client.start("order", json!({})).await;
    let task = client.settled(&id).await;
    (node, client, id, task)
}

/// Elicitation, "Requested Schema": primitives in their standard forms, in the order of the fields.
#[tokio::test(start_paused = true)]
async fn a_form_is_shown_as_the_protocol_has_it() {
    let (node, client, id, task) = asked(Mode::Straight).await;
    assert_eq!(keys(&task), ["elicit-0"]);
    let schema = &task["inputRequests"]["elicit-0"]["params"]["requestedSchema"];
    let expected = json!({
        "type": "object",
        "properties": {
            "zeal": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32},
            "ratio": {"type": "number"},
            "note": {"type": "string"},
            "channel": {"type": "string", "enum": ["Beta", "Stable"]},
            "also": {"type": "array", "items": {"type": "string", "enum": ["Beta", "Stable"]}},
        },
        "required": ["zeal", "ratio", "channel", "also"],
    });
    let mut seen = schema.clone();
    // Limits that the type gives are kept where schemars states them.
    if seen["properties"]["zeal"].get("maximum").is_none() {
        seen["properties"]["zeal"]["maximum"] = json!(4_294_967_295_u32);
    }
    assert_eq!(seen, expected, "{schema}");
    let stored = node.store.record(&id).await.open[0].request.get().to_owned();
    for text in [stored, schema.to_string()] {
        let places: Vec<_> = ["\"zeal\":", "\"ratio\":", "\"note\":", "\"channel\":", "\"also\":"]
            .map(|name| text.find(name).expect(name))
            .to_vec();
        assert!(places.is_sorted(), "the order a person fills it in: {text}");
    }
    client.accept(&id, "elicit-0", content()).await;
    let end = client.settled(&id).await;
    assert_eq!(
        text(&end),
        "Order { zeal: 3, ratio: 1.5, note: None, channel: Beta, also: [Stable, Beta] }"
    );
}

in_both_modes! {
    /// Numbers are what JSON Schema says they are: `3.0` is an integer, `1.5`, `"3"` and `true` are none.
    async fn an_answer_fits_as_json_schema_says(mode: Mode) {
        for (name, value, fits) in [
            ("zeal", json!(3), true),
            ("zeal", json!(3.0), true),
            ("zeal", json!(1.5), false),
            ("zeal", json!("3"), false),
            ("zeal", json!(true), false),
            ("zeal", json!(-1), false),
            ("zeal", json!(null), false),
            ("ratio", json!(2), true),
            ("ratio", json!("2"), false),
            ("note", json!("n"), true),
            ("note", json!(1), false),
            ("channel", json!("Gamma"), false),
            ("channel", json!(["Beta"]), false),
            ("also", json!([]), true),
            ("also", json!("Beta"), false),
            ("also", json!(["Gamma"]), false),
            ("unknown", json!({"deep": [1]}), true),
        ] {
            let (_node, client, id, _) = asked(mode).await;
            client.accept(&id, "elicit-0", with(name, value.clone())).await;
            let task = client.settled(&id).await;
            if fits {
                assert!(text(&task).starts_with("Order {"), "{name}={value}: {task}");
                continue;
            }
            assert_eq!(keys(&task), ["elicit-0~2"], "{name}={value}: {task}");
            let words = task["inputRequests"]["elicit-0~2"]["params"]["message"].as_str().expect("words");
            assert!(words.contains(name) && words.ends_with("What will it be?"), "{name}={value}: {words}");
        }
    }

    /// An answer that does not fit is asked for again under another key, as a client remembers the keys it answered;
    /// after the third the body is told.
    async fn a_misfit_is_asked_again_twice_and_then_reported_to_the_body(mode: Mode) {
        let (_node, client, id, first) = asked(mode).await;
        let schema = |task: &Value, key: &str| task["inputRequests"][key]["params"]["requestedSchema"].clone();
        client.accept(&id, "elicit-0", with("zeal", json!("3"))).await;
        let second = client.settled(&id).await;
        assert_eq!((status(&second), keys(&second)), ("input_required", vec!["elicit-0~2"]));
        assert_eq!(schema(&second, "elicit-0~2"), schema(&first, "elicit-0"));
        client.accept(&id, "elicit-0", content()).await;
        assert_eq!(client.settled(&id).await, second, "the first key is gone for good");
        client.accept(&id, "elicit-0~2", with("ratio", json!("x"))).await;
        let third = client.settled(&id).await;
        assert_eq!(keys(&third), ["elicit-0~3"]);
        let words = third["inputRequests"]["elicit-0~3"]["params"]["message"].as_str().expect("words");
        assert!(words.contains("ratio") && !words.contains("zeal"), "the latest reason alone: {words}");
        client.accept(&id, "elicit-0~3", with("channel", json!("Gamma"))).await;
        let end = client.settled(&id).await;
        assert!(text(&end).starts_with("gave up: ") && text(&end).contains("channel"), "{end}");
    }

    /// Asked again and answered well, it is as if it had been answered well at once; a "no" counts at any time.
    async fn a_second_answer_that_fits_is_the_answer(mode: Mode) {
        for (response, end) in [
            (json!({"action": "accept", "content": content()}), "Order {"),
            (json!({"action": "decline"}), "no order"),
        ] {
            let (_node, client, id, _) = asked(mode).await;
            client.accept(&id, "elicit-0", json!({})).await;
            client.settled(&id).await;
            client.update(&id, json!({"elicit-0~2": response})).await.expect("acknowledged");
            assert!(text(&client.settled(&id).await).starts_with(end));
        }
    }
}

/// A step and a question come after a question that was given up on: its place in the ledger is a refusal.
#[tokio::test(start_paused = true)]
async fn a_question_given_up_on_replays_as_an_error() {
    /// Asks twice.
    #[mcp_task]
    async fn twice(ctx: ToolContext) -> Result<String, ToolError> {
        let first = ctx
            .elicit::<Order>("First?")
            .await
            .map(|_| ())
            .map_err(|error| error.to_string());
        let second = ctx.elicit::<Order>("Second?").await?;
        Ok(format!("{first:?} {}", second.accepted().is_some()))
    }
    let (_node, client) = Node::start(Mode::Straight, |b| b.register::<twice>()).await;
    let id = client.start("twice", json!({})).await;
    for key in ["elicit-0", "elicit-0~2", "elicit-0~3"] {
        assert_eq!(keys(&client.settled(&id).await), [key]);
        client.accept(&id, key, json!({})).await;
    }
    assert_eq!(keys(&client.settled(&id).await), ["elicit-1"]);
    client.accept(&id, "elicit-1", content()).await;
    let end = client.settled(&id).await;
    assert!(text(&end).starts_with("Err(") && text(&end).ends_with(" true"), "{end}");
}
