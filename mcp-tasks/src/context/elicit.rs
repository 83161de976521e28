//! What can be asked: forms, URLs, the client's model, the client's roots.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mcp_tasks_core::form::FormSchema;
use mcp_tasks_core::{ElicitAnswer, Elicited, InputKind, Json};
use rmcp::model::{ElicitationSchema, InputRequest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::context::ask::Asking;
use crate::run::Run;
use crate::tool::elicit_error::ElicitError;
use crate::tool::form::{self, ElicitForm};

/// A form on the wire. The schema is text, so that its fields stay in the order in which the form has them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FormParams<'a> {
    mode: &'static str,
    message: &'a str,
    requested_schema: &'a Json,
}

fn request<P: Serialize>(kind: InputKind, params: &P) -> Result<Json, ElicitError> {
    #[derive(Serialize)]
    struct Request<'a, P> {
        method: &'static str,
        params: &'a P,
    }
    Json::of(&Request {
        method: kind.method(),
        params,
    })
    .map_err(ElicitError::invalid)
}

/// As [`request`], for params that the author wrote: rmcp must be able to put them on the wire, or no client could read the
/// task any more.
fn checked_request<P: Serialize>(kind: InputKind, params: &P) -> Result<Json, ElicitError> {
    let request = request(kind, params)?;
    match request.decode::<InputRequest>() {
        Ok(_) => Ok(request),
        Err(_) => Err(ElicitError::invalid(format_args!(
            "its params are not those of {}",
            kind.method()
        ))),
    }
}

fn form_request(message: &str, schema: Result<Json, ElicitError>) -> Result<Json, ElicitError> {
    request(
        InputKind::Form,
        &FormParams {
            mode: "form",
            message,
            requested_schema: &schema?,
        },
    )
}

pub(super) fn form<T: ElicitForm>(run: Arc<Run>, message: String) -> Asking<Elicited<T>> {
    let request = form_request(&message, checked_schema::<T>());
    Asking::new(run, InputKind::Form, message, request, |answer| {
        elicited(answer, |content| {
            serde_json::from_value(Value::Object(content)).map_err(|error| ElicitError::undecodable(&error))
        })
    })
}

pub(super) fn free_form(run: Arc<Run>, message: String, schema: &Value) -> Asking<Elicited<Map<String, Value>>> {
    let request = form_request(&message, check_schema(&schema.to_string()));
    Asking::new(run, InputKind::Form, message, request, |answer| elicited(answer, Ok))
}

pub(super) fn url(run: Arc<Run>, message: String, url: &str) -> Asking<Elicited<()>> {
    let params = json!({"mode": "url", "message": message, "url": url});
    let request = checked_request(InputKind::Url, &params);
    Asking::new(run, InputKind::Url, message, request, |answer| {
        elicited(answer, |_| Ok(()))
    })
}

pub(super) fn sampling<R: DeserializeOwned>(run: Arc<Run>, params: &impl Serialize) -> Asking<R> {
    let request = checked_request(InputKind::Sampling, params);
    Asking::new(run, InputKind::Sampling, "a completion".to_owned(), request, decoded)
}

pub(super) fn roots<R: DeserializeOwned>(run: Arc<Run>) -> Asking<R> {
    let request = request(InputKind::Roots, &json!({}));
    Asking::new(run, InputKind::Roots, "the client's roots".to_owned(), request, decoded)
}

fn decoded<R: DeserializeOwned>(answer: &Json) -> Result<R, ElicitError> {
    answer.decode().map_err(|error| ElicitError::undecodable(&error))
}

fn elicited<T>(
    answer: &Json,
    accept: impl FnOnce(Map<String, Value>) -> Result<T, ElicitError>,
) -> Result<Elicited<T>, ElicitError> {
    Ok(match decoded(answer)? {
        ElicitAnswer::Accept { content, .. } => Elicited::Accept(accept(content)?),
        ElicitAnswer::Decline => Elicited::Decline,
        _ => Elicited::Cancel,
    })
}

/// A form's schema, if it is one the protocol allows.
fn check_schema(schema: &str) -> Result<Json, ElicitError> {
    FormSchema::parse(schema).map_err(ElicitError::invalid)?;
    // A schema that rmcp cannot put on the wire would be a task that no client can read any more.
    serde_json::from_str::<ElicitationSchema>(schema).map_err(|error| {
        ElicitError::invalid(format_args!(
            "the schema is not one the protocol's own types can hold: {error}"
        ))
    })?;
    serde_json::from_str(schema).map_err(ElicitError::invalid)
}

/// The schema of `T`, made and checked once in a process, because every replay needs it.
fn checked_schema<T: ElicitForm>() -> Result<Json, ElicitError> {
    type Forms = Mutex<HashMap<TypeId, Result<Json, ElicitError>>>;
    static FORMS: OnceLock<Forms> = OnceLock::new();

    let forms = FORMS.get_or_init(Forms::default);
    let known = forms.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = known.get(&TypeId::of::<T>()) {
        return schema.clone();
    }
    drop(known);
    let checked = check_schema(&form::form_schema_json::<T>());
    forms
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(TypeId::of::<T>(), checked.clone());
    checked
}
