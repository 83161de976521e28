//! Forms and the answers to them (2026-07-28, "Elicitation", "Requested Schema").

use serde_json::{Value, json};

use crate::carriers::lab::Lab;
use crate::harness::{Reply, Way, accept, done, no_user};

fn order(zeal: Value, amount: Value) -> Value {
    accept(json!({"zeal": zeal, "amount": amount, "size": "Small", "extras": ["Large", "Small"], "unknown": [1]}))
}

#[tokio::test(start_paused = true)]
async fn whole_numbers_may_be_written_with_a_fraction_of_nothing_and_members_that_were_not_asked_for_are_ignored() {
    for way in Way::ALL {
        for three in [json!(3), json!(3.0)] {
            let answer = order(three.clone(), three);
            let end = Lab::new()
                .run(way, "fill_in", json!({}), move |_| Ok(answer.clone()))
                .await;
            let form = "Order { zeal: 3, amount: 3.0, note: None, size: Small, extras: [Large, Small] }";
            assert_eq!(end, done(format!("Accept({form})")), "{way:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_of_a_fields_type_is_asked_for_again_with_the_field_named() {
    for way in [Way::Rounds, Way::Task] {
        let lab = Lab::new();
        let client = lab.client(way, no_user).await;
        for (zeal, amount) in [
            (json!(1.5), json!(1)),
            (json!("3"), json!(1)),
            (json!(true), json!(1)),
            (json!(-1), json!(1)),
            (json!(4_294_967_296_u64), json!(1)),
            (json!(null), json!(1)),
        ] {
            let answer = json!({"elicit-0": order(zeal.clone(), amount)});
            let questions = match way {
                Way::Rounds => {
                    let round = client.begin("fill_in", &json!({})).await.asked();
                    client
                        .retry("fill_in", &json!({}), &round, answer)
                        .await
                        .asked()
                        .questions
                }
                _ => {
                    let id = client.begin("fill_in", &json!({})).await.task();
                    client.settled(&id).await;
                    client.answer(&id, answer).await;
                    client.task(&id).await["inputRequests"].clone()
                }
            };
            let again = &questions["elicit-0~2"]["params"];
            let message = again["message"]
                .as_str()
                .unwrap_or_else(|| panic!("{zeal}: {questions}"));
            assert!(message.contains("zeal") && message.ends_with("order?"), "{message}");
            assert_eq!(again["mode"], "form");
        }
    }
}

/// What the framework lets through the SDK must be able to show; else a task could not be looked at any more.
#[tokio::test(start_paused = true)]
async fn every_schema_that_may_be_asked_can_be_shown() {
    let lab = Lab::new();
    let client = lab.client(Way::Rounds, no_user).await;
    for field in [
        json!({"type": "string"}),
        json!({"type": "string", "format": "email", "minLength": 1, "maxLength": 9, "default": "a@b"}),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "string", "pattern": "^a"}),
        json!({"type": "string", "title": "t", "description": "d", "default": ""}),
        json!({"type": "integer", "minimum": -3, "maximum": 9007199254740993_u64}),
        json!({"type": "integer", "minimum": 1.0, "default": 3}),
        json!({"type": "integer", "minimum": 1.5}),
        json!({"type": "integer", "default": 3.0}),
        json!({"type": "number", "minimum": 0.5, "maximum": 1e300, "default": 1}),
        json!({"type": "boolean", "default": true}),
        json!({"type": "string", "enum": ["a", "b"], "default": "a"}),
        json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]}),
        json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "minItems": 0, "maxItems": 1}),
        json!({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "default": ["a"]}),
        json!({"type": "object"}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "string", "format": "hostname"}),
        json!({"type": ["string", "null"]}),
        json!({"enum": ["a", "b"]}),
        json!({"const": "a"}),
        json!({}),
        json!(true),
    ] {
        let schema = json!({"type": "object", "properties": {"field": field}});
        match client.begin("free_form", &json!({"schema": schema})).await {
            Reply::Asked(round) => {
                let shown = &round.questions["elicit-0"]["params"]["requestedSchema"]["properties"]["field"];
                assert_eq!(shown["type"], field["type"], "{shown}");
            }
            reply => {
                let outcome = reply.done();
                let (text, _) = outcome.as_ref().unwrap_or_else(|_| panic!("{field}: {outcome:?}"));
                assert!(text.contains("the question cannot be asked"), "{field}: {text}");
            }
        }
    }
    for schema in [
        json!({}),
        json!({"type": "string"}),
        json!([]),
        json!(null),
        json!({"type": "object"}),
    ] {
        let (text, is_error) = client
            .begin("free_form", &json!({"schema": schema}))
            .await
            .done()
            .unwrap();
        assert!(
            is_error && text.contains("the question cannot be asked"),
            "{schema}: {text}"
        );
    }
}
