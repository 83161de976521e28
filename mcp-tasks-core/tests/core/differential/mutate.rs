//! What a random update does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_tasks_core::{Change, Claim, Cursor, Fingerprint, InputKind, Ledger, Mutation, Question, Report, Timestamp};

use super::super::body::Rng;
use super::json;

#[derive(Debug, Clone)]
pub(super) enum Mutate {
    Progress(u64, u32),
    Complete(u64),
    Cancel,
    Keep,
    Extend(u64, u64),
    Suspend(u64),
    Answer(u32),
}

impl Mutate {
    pub(super) fn random(rng: &mut Rng) -> Self {
        // The first epoch mostly, later ones and none at times.
        let epoch = [1, 1, 1, 2, 2, 7][rng.below(6) as usize];
        match rng.below(14) {
            0..=4 => Self::Progress(epoch, rng.below(50)),
            5 => Self::Complete(epoch),
            6 => Self::Cancel,
            7 => Self::Keep,
            8 | 9 => Self::Extend(epoch, u64::from(rng.below(60))),
            10 | 11 => Self::Suspend(epoch),
            _ => Self::Answer(rng.below(9)),
        }
    }

    pub(super) fn mutation(self, now: Timestamp) -> Mutation {
        Arc::new(move |record| match &self {
            Self::Progress(epoch, value) => {
                let report = Report::new(f64::from(*value), value.to_string().into());
                record.progressed(*epoch, now, &report)
            }
            Self::Complete(epoch) => record.completed(*epoch, now, &json(r#"{"content":[]}"#), None),
            Self::Cancel => record.cancelled(now),
            Self::Keep => Change::Keep,
            // Never shorter, as the runtime does it: repeating a write that ended its record finds no record.
            Self::Extend(epoch, millis) => match record.ttl_ms {
                Some(old) => {
                    let ttl = now.saturating_since(record.created_at) + Duration::from_millis(*millis);
                    record.extended(*epoch, now, Some(ttl.max(Duration::from_millis(old))))
                }
                None => Change::Keep,
            },
            Self::Suspend(epoch) => {
                let mut run = Cursor::new(&Ledger::default());
                let ordinal = run.take_ordinal();
                let request = json(r#"{"method":"roots/list"}"#);
                let print = Fingerprint::of("roots", "q", None);
                let mut question = Question::new(InputKind::Roots, "q", &request, print);
                question.key = Some("q");
                let _ = run.ask(ordinal, &question);
                record.suspended(*epoch, now, &run.suspend(), None)
            }
            Self::Answer(value) => {
                let responses = BTreeMap::from([("q".to_owned(), json(&format!(r#"{{"roots":[{value}]}}"#)))]);
                let claim = Claim::new("node".into(), now);
                record.answered(now, &responses, &record.client_capabilities, &claim)
            }
        })
    }
}
