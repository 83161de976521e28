//! Applies responses to open questions: of a task, of a round of a call, of a live session.

use std::collections::BTreeMap;

use crate::answer::{CheckedResponse, Refusal, check_response, with_problem};
use crate::ledger::{base_key, label};
use crate::{Entry, EntryKind, InputRequest, Json, Ledger};

/// How often one question is asked before the body gets an error: once and two more times, because a person who failed three
/// times needs other words, not the same form again.
const MAX_ASKED: u32 = 3;

/// The state of a run's questions after responses came: what `tasks/update` does to a record, and what a retried call or
/// the answer to a server's request does to a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Answers {
    /// The ledger with the answers.
    pub ledger: Ledger,
    /// The questions that are still open, those asked again because an answer did not fit included.
    pub open: Vec<InputRequest>,
    /// Whether there was an answer to any open question.
    pub changed: bool,
}

impl Answers {
    /// Applies `responses` to the questions that are `open`. Responses to keys that are not open are ignored, and a
    /// response that is no answer at all leaves its question open.
    ///
    /// An accepted form that does not fit its schema is asked again under `<key>~2`, `<key>~3`, with the reason in front
    /// of the question; then its entry is a [`Refusal`], and the body is told.
    #[must_use]
    pub fn apply(ledger: &Ledger, open: &[InputRequest], responses: &BTreeMap<String, Json>) -> Self {
        let mut answers = Self {
            ledger: ledger.clone(),
            open: Vec::with_capacity(open.len()),
            changed: false,
        };
        for request in open {
            let response = responses.get(&*request.key);
            match response.map_or(CheckedResponse::NoAnswer, |response| check_response(request, response)) {
                CheckedResponse::NoAnswer => answers.open.push(request.clone()),
                CheckedResponse::Answer(response) => {
                    answers.changed = true;
                    let kind = request.kind.entry_kind();
                    answers.ledger.insert(entry(request, kind, response));
                }
                CheckedResponse::Misfit(problem) => {
                    answers.changed = true;
                    match ask_again(request, &problem) {
                        Some(again) => answers.open.push(again),
                        None => {
                            let refusal = Refusal::InvalidAnswers { detail: problem };
                            answers
                                .ledger
                                .insert(entry(request, EntryKind::Refusal, refusal.to_json()));
                        }
                    }
                }
            }
        }
        answers
    }

    /// Ends the question under `key` without an answer: the body gets the reason.
    #[must_use]
    pub fn refuse(ledger: &Ledger, open: &[InputRequest], key: &str, refusal: &Refusal) -> Self {
        let mut answers = Self {
            ledger: ledger.clone(),
            open: Vec::new(),
            changed: false,
        };
        for request in open {
            if &*request.key == key {
                answers.changed = true;
                answers
                    .ledger
                    .insert(entry(request, EntryKind::Refusal, refusal.to_json()));
            } else {
                answers.open.push(request.clone());
            }
        }
        answers
    }
}

fn entry(request: &InputRequest, kind: EntryKind, response: Json) -> Entry {
    Entry {
        ordinal: request.ordinal,
        kind,
        key: Some(request.key.clone()),
        label: label(&request.message()),
        fingerprint: request.fingerprint,
        response,
        turn: None,
        issued: request.issued,
    }
}

/// The question asked again under the next key; `None` when it was asked often enough.
fn ask_again(request: &InputRequest, problem: &str) -> Option<InputRequest> {
    let misfits = request.misfits + 1;
    if misfits >= MAX_ASKED {
        return None;
    }
    let original = request.original.as_ref().unwrap_or(&request.request);
    Some(InputRequest {
        key: format!("{}~{}", base_key(&request.key), misfits + 1).into(),
        request: with_problem(original, problem),
        original: Some(original.clone()),
        misfits,
        ..request.clone()
    })
}
