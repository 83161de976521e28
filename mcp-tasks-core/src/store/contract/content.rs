//! What is in a record stays as it is, byte for byte.

use std::sync::Arc;

use super::records::{HOUR, at, content, raw, record};
use super::{Case, changing};
use crate::{
    ClientCapabilities, Cursor, EntryKind, Fingerprint, InputKind, Json, Principal, Question, StoreError, Suspension,
    TaskId, TaskRecord, TaskStatus, TaskStore, TraceContext,
};

/// JSON that a store which decodes, sorts, rounds, trims or escapes anew would change.
fn kinds() -> Vec<Json> {
    let deep = format!("{}{}", r#"{"a":["#.repeat(40), r"]}".repeat(40));
    let wide: Vec<String> = (0..500).map(|n| format!(r#""k{}":{n}"#, (n * 7) % 500)).collect();
    let texts = [
        "{}",
        r#"{"z":1,"a":2,"m":{"y":1,"b":2}}"#,
        r#"{"a":9007199254740993,"b":18446744073709551615,"c":-9223372036854775808}"#,
        r#"{"a":123456789012345678901234567890,"b":0.1000,"c":1.0,"d":1e300,"e":1E+2,"f":-0.0,"g":5e-324}"#,
        r#"{"a":3.141592653589793238462643383279,"b":31.245270191439438}"#,
        r#"{"nul":"a\u0000b","\u0000":"\u0000"}"#,
        r#"{"escapes":"\"\\\/\b\f\n\r\t\u001f\u007f\u00e9\ud83d\ude00"}"#,
        r#"{"unicode":"é ü 漢字 ☃ 😀 e\u0301 ‏עברית‏ \u2028"}"#,
        r#"{"a":1,"a":2,"":{},"  ":[]}"#,
        r#"{"empty":{},"none":null,"list":[],"text":"","no":false,"zero":0}"#,
        r#"{"mixed":[1,"1",1.0,true,null,[],{}],"nested":[[[[1],2],3],4]}"#,
        r#"{"like":"%_'\";--$1 ${a} {0} \\x00","key with . and : and *":1}"#,
        r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{"reason":{"b":1,"a":[1.0]}},"isError":true}"#,
    ];
    let mut kinds: Vec<Json> = texts.iter().map(|text| raw(text)).collect();
    kinds.push(raw(&deep));
    kinds.push(raw(&format!("{{{}}}", wide.join(","))));
    kinds
}

/// A form with every kind of field that the protocol knows (2026-07-28, `PrimitiveSchemaDefinition`).
const FORM: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"Go?","requestedSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"z":{"type":"string","title":"Name","description":"d","minLength":1,"maxLength":9007199254740993,"default":"a\u0000b"},"email":{"type":"string","format":"email"},"uri":{"type":"string","format":"uri"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},"ratio":{"type":"number","minimum":-1.0,"maximum":1e300,"default":0.5},"count":{"type":"integer","minimum":0,"maximum":18446744073709551615,"default":3},"yes":{"type":"boolean","default":false},"one":{"type":"string","enum":["b","a"],"default":"b"},"titled":{"type":"string","oneOf":[{"const":"b","title":"B"},{"const":"a","title":"A"}]},"legacy":{"type":"string","enum":["b"],"enumNames":["B"]},"some":{"type":"array","minItems":0,"maxItems":2,"items":{"type":"string","enum":["b","a"]},"default":[]},"several":{"type":"array","items":{"anyOf":[{"const":"b","title":"B"}]}}},"required":["z","count"]}}}"#;
const URL: &str = r#"{"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","message":"Pay?","url":"https://a.example/?b=1&a=2#%00"}}"#;

async fn assert_created(case: &Case<'_>, number: u32, record: TaskRecord) -> TaskRecord {
    let expected = content(&record);
    let created = case.create(record).await;
    assert_eq!(content(&created), expected, "create changed record {number}");
    let found = case.get(&created.task_id, at(1)).await.expect("the record is there");
    assert_eq!(content(&found), expected, "the store changed record {number}");
    (*found).clone()
}

/// The record becomes `next` by an update; what is stored then is what `next` says.
async fn assert_updated(case: &Case<'_>, write: u128, next: TaskRecord) {
    let expected = content(&next);
    let id = next.task_id.clone();
    let mutation = changing(move |record| {
        let stamps = (record.version, record.last_write);
        *record = next.clone();
        (record.version, record.last_write) = stamps;
    });
    let updated = case
        .update(&id, at(1), write, mutation)
        .await
        .expect("the record is there");
    assert_eq!(content(&updated.record), expected, "update changed write {write}");
    let found = case.get(&id, at(1)).await.expect("the record is there");
    assert_eq!(content(&found), expected, "the store changed write {write}");
    // An update that touches one member rewrites no other.
    let touch = changing(|record| record.poll_interval_ms += 1);
    let touched = case.update(&id, at(1), write + 1_000, touch).await;
    let mut touched = (*touched.expect("the record is there").record).clone();
    touched.poll_interval_ms -= 1;
    assert_eq!(content(&touched), expected, "another update changed write {write}");
}

/// Questions of every kind, parked, with something of every kind in the ledger.
fn suspension(answers: &[Json]) -> Suspension {
    let mut run = Cursor::new(&crate::Ledger::default());
    for (number, answer) in answers.iter().enumerate() {
        let name = format!("step {number} \u{0} é");
        let print = Fingerprint::of("step", &name, None);
        let ordinal = run.take_ordinal();
        let _ = run.begin_step();
        run.finish_step(ordinal, &name, print, answer.clone());
        let written = run.ledger();
        run.saved(&written);
        let _ = run.look(ordinal, EntryKind::Step, &name, print);
    }
    let requests = [
        (InputKind::Form, FORM),
        (InputKind::Url, URL),
        (
            InputKind::Sampling,
            r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":10,"temperature":1.0}}"#,
        ),
        (InputKind::Roots, r#"{"method":"roots/list"}"#),
    ];
    for (kind, text) in requests {
        let request = raw(text);
        let ordinal = run.take_ordinal();
        let print = Fingerprint::of(kind.entry_kind().as_str(), text, None);
        let _ = run.ask(ordinal, &Question::new(kind, "Go?\nOn", &request, print));
    }
    run.suspend()
}

/// Every member of a record, set.
fn full(id: &TaskId) -> TaskRecord {
    let mut record = record(id, Some(HOUR));
    record.body_version = Some(Arc::from("2"));
    record.input_schema = Some(Fingerprint::of("schema", "", None));
    let claims = raw(r#"{"groups":["b","a"],"n":18446744073709551615}"#);
    let principal = Principal::new("alice")
        .with_issuer("https://id.example")
        .with_claims(claims);
    record.principal = Some(Arc::new(principal));
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let trace = TraceContext::new(traceparent.into(), Some("b=1,a=2".into()));
    record.trace = Some(Box::new(trace));
    record.status_message = Some("3/10: é \u{0} \"words\"".into());
    record.progress = Some(31.245270191439438);
    record.execution.node = Some(Arc::from("node-a"));
    record.execution.lease_until = Some(at(30_000));
    record.execution.epoch = u64::MAX;
    record.last_updated_at = at(7);
    record
}

/// Every member comes back, in every status.
pub async fn every_member_is_kept(store: &dyn TaskStore) {
    let case = Case::new(store, "members");
    let id = case.id(0).await;
    let created = assert_created(&case, 0, full(&id)).await;
    let statuses = [
        (TaskStatus::InputRequired, None, None),
        (TaskStatus::Completed, Some(raw(r#"{"content":[]}"#)), None),
        (
            TaskStatus::Failed,
            None,
            Some(raw(r#"{"code":-32603,"message":"a\u0000b"}"#)),
        ),
        (TaskStatus::Cancelled, None, None),
        (TaskStatus::Working, None, None),
    ];
    for (write, (status, result, error)) in (2..).zip(statuses) {
        let mut next = created.clone();
        (next.status, next.result, next.error) = (status, result, error);
        assert_updated(&case, write, next).await;
    }
}

/// Arguments, capabilities and claims of every kind, as they were created.
pub async fn every_kind_of_json_is_kept_byte_for_byte(store: &dyn TaskStore) {
    let case = Case::new(store, "json");
    for (number, json) in (0..).zip(kinds()) {
        let id = case.id(number).await;
        let mut record = full(&id);
        record.arguments = json.clone();
        record.client_capabilities = ClientCapabilities::new(json.clone());
        record.principal = Some(Arc::new(Principal::new("alice").with_claims(json.clone())));
        let found = assert_created(&case, number, record).await;
        assert_eq!(found.arguments.get(), json.get());
    }
}

/// Results and errors of every kind, as an update brings them.
pub async fn content_that_an_update_brings_is_kept_byte_for_byte(store: &dyn TaskStore) {
    let case = Case::new(store, "results");
    for (number, json) in (0..).zip(kinds()) {
        let id = case.id(number).await;
        let mut next = assert_created(&case, number, record(&id, Some(HOUR))).await;
        next.status = TaskStatus::Completed;
        next.result = Some(json.clone());
        assert_updated(&case, 2, next.clone()).await;
        next.result = None;
        next.status = TaskStatus::Failed;
        next.error = Some(json);
        assert_updated(&case, 3, next).await;
    }
}

/// Questions of every kind and recorded answers of every kind.
pub async fn forms_and_answers_are_kept_byte_for_byte(store: &dyn TaskStore) {
    let case = Case::new(store, "forms");
    let id = case.id(0).await;
    let mut parked = assert_created(&case, 0, record(&id, Some(HOUR))).await;
    let suspension = suspension(&kinds());
    assert_eq!(suspension.open.len(), 4, "every kind of question is open");
    parked.status = TaskStatus::InputRequired;
    parked.ledger = suspension.ledger;
    parked.open = suspension.open;
    parked.open[0].original = Some(raw(FORM));
    parked.open[0].misfits = 1;
    assert_updated(&case, 2, parked.clone()).await;
    let other = case.id(1).await;
    parked.task_id = other;
    assert_created(&case, 1, parked).await;
}

/// An absent member is not an empty one.
pub async fn absent_and_empty_are_two_things(store: &dyn TaskStore) {
    let case = Case::new(store, "absent");
    let absent = record(&case.id(0).await, None);
    let mut empty = record(&case.id(1).await, Some(HOUR));
    empty.arguments = raw("{}");
    empty.client_capabilities = ClientCapabilities::new(raw("{}"));
    empty.principal = Some(Arc::new(Principal::new("").with_issuer("").with_claims(raw("{}"))));
    empty.body_version = Some(Arc::from(""));
    empty.status_message = Some("".into());
    empty.progress = Some(0.0);
    empty.result = Some(raw("{}"));
    empty.error = Some(raw("{}"));
    empty.execution.node = Some(Arc::from(""));
    for (number, given) in [(0, absent), (1, empty)] {
        let found = assert_created(&case, number, given.clone()).await;
        let stamped = TaskRecord { version: 1, ..given };
        assert_eq!(found, stamped);
    }
}

/// Ids are opaque, and tools are named by their authors.
pub async fn unusual_ids_and_names_are_kept(store: &dyn TaskStore) {
    let case = Case::new(store, "names");
    for (number, tool) in (0..).zip(["a/b.c-d_e", "tool with spaces", "é'\"\\%", "a\u{0}b"]) {
        let mut given = record(&case.id(number).await, Some(HOUR));
        given.tool = Arc::from(tool);
        assert_created(&case, number, given).await;
    }
    // What `TaskId::from_entropy` makes is what the runtime stores.
    let id = TaskId::from_entropy(*b"contract suite 1");
    store
        .delete(&id)
        .await
        .expect("delete removes what an earlier run left");
    assert_created(&case, 9, record(&id, Some(HOUR))).await;
    let upper = TaskId::new(&id.as_str().to_uppercase());
    assert!(
        !case.is_there(&upper, at(1)).await,
        "an id in other letters is another id"
    );
}

/// A mebibyte of text is kept, or refused for good with nothing stored; never cut, never an invitation to try again.
pub async fn a_large_record_is_kept_whole_or_refused(store: &dyn TaskStore) {
    let case = Case::new(store, "large");
    let id = case.id(0).await;
    let mut given = record(&id, Some(HOUR));
    given.arguments = raw(&format!(r#"{{"text":"{}é"}}"#, "0123456789abcdef".repeat(65_536)));
    match store.create(given.clone()).await {
        Ok(created) => {
            let found = case.get(&id, at(1)).await.expect("the record is there");
            assert!(content(&created) == content(&given) && content(&found) == content(&given));
        }
        Err(StoreError::Refused { .. }) => assert!(!case.is_there(&id, at(1)).await),
        Err(error) => panic!("a record that is too large is refused, not: {error}"),
    }
}
