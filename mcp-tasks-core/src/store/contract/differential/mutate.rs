//! What a random update does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::{HALF_SLOT, SLOT};
use crate::store::contract::Dice;
use crate::store::contract::records::{asking, raw};
use crate::{Change, Claim, Mutation, Report, TaskRecord, TaskStatus, Timestamp};

#[derive(Debug, Clone)]
pub(super) enum Mutate {
    Progress(u64, u32),
    Complete(u64),
    Fail(u64),
    Cancel,
    Keep,
    Extend(u64, u32),
    Suspend(u64),
    Answer(u32),
    Claim(u32),
}

impl Mutate {
    pub(super) fn random(dice: &mut Dice) -> Self {
        // The first execution mostly, later ones and none at times.
        let epoch = [1, 1, 1, 2, 2, 7][dice.place(6)];
        match dice.below(17) {
            0..=4 => Self::Progress(epoch, dice.below(50)),
            5 => Self::Complete(epoch),
            6 => Self::Fail(epoch),
            7 => Self::Cancel,
            8 => Self::Keep,
            9 | 10 => Self::Extend(epoch, dice.below(8)),
            11 | 12 => Self::Suspend(epoch),
            13 | 14 => Self::Answer(dice.below(9)),
            _ => Self::Claim(dice.below(9)),
        }
    }

    /// Whether the record's fence is what stops it.
    pub(super) fn is_fenced(&self, record: &TaskRecord) -> bool {
        match self {
            Self::Progress(epoch, _) | Self::Complete(epoch) | Self::Fail(epoch) | Self::Suspend(epoch) => {
                record.status == TaskStatus::Working && !record.is_owned_by(*epoch)
            }
            _ => false,
        }
    }

    pub(super) fn mutation(self, now: Timestamp) -> Mutation {
        Arc::new(move |record| match &self {
            Self::Progress(epoch, value) => {
                let report = Report::new(f64::from(*value), value.to_string().into());
                record.progressed(*epoch, now, &report)
            }
            Self::Complete(epoch) => {
                let result = raw(r#"{"content":[],"big":18446744073709551616,"escaped":"\u0041","nul":"a\u0000b"}"#);
                record.completed(*epoch, now, &result, None)
            }
            Self::Fail(epoch) => record.failed(*epoch, now, &raw(r#"{"code":-32603,"message":"no"}"#), "no"),
            Self::Cancel => record.cancelled(now),
            Self::Keep => Change::Keep,
            // Never shorter, as the runtime does it: repeating a write that ended its record finds no record.
            Self::Extend(epoch, slots) => match record.ttl_ms {
                Some(old) => {
                    let ttl = now.saturating_since(record.created_at) + SLOT * *slots + HALF_SLOT;
                    record.extended(*epoch, now, Some(ttl.max(Duration::from_millis(old))))
                }
                None => Change::Keep,
            },
            Self::Suspend(epoch) => record.suspended(*epoch, now, &asking(), None),
            Self::Answer(value) => {
                let responses = BTreeMap::from([("q".to_owned(), raw(&format!(r#"{{"roots":[{value}]}}"#)))]);
                // Its lease is over at the next instant, so that it can be taken over.
                let claim = Claim::new("node".into(), now);
                record.answered(now, &responses, &record.client_capabilities, &claim)
            }
            Self::Claim(node) => record.claimed(now, &Claim::new(format!("node-{node}").into(), now)),
        })
    }
}
