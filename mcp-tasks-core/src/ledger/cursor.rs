//! The replay machine of one execution.

use std::collections::{BTreeMap, BTreeSet};

use super::{Divergence, Entry, EntryKind, Fingerprint, InputKind, Ledger, Mismatch, label};
use crate::record::InputRequest;
use crate::Json;

/// A question, as the body puts it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question<'a> {
    /// What it asks of the client.
    pub kind: InputKind,
    /// The author's key; without one the key is `elicit-<ordinal>`.
    pub key: Option<&'a str>,
    /// What is asked, in few words.
    pub label: &'a str,
    /// The request as it would go to the client: method and params.
    pub request: &'a Json,
    /// The hash of the request.
    pub fingerprint: Fingerprint,
    /// Why the client cannot be asked, as the refusal to record; absent if it can be.
    pub refusal: Option<&'a Json>,
}

impl<'a> Question<'a> {
    /// A question that the client can be asked, under the key the ordinal gives.
    #[must_use]
    pub const fn new(
        kind: InputKind,
        label: &'a str,
        request: &'a Json,
        fingerprint: Fingerprint,
    ) -> Self {
        Self {
            kind,
            key: None,
            label,
            request,
            fingerprint,
            refusal: None,
        }
    }
}

/// What became of a look into the ledger.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Looked {
    /// The recorded response, delivered with this look: the body goes on with it.
    Delivered {
        /// What kind of entry it was; [`EntryKind::Refusal`] where a question was not answered.
        kind: EntryKind,
        /// The response.
        response: Json,
    },
    /// There is an answer, but its turn has not come: the body waits.
    Held,
    /// Nothing is recorded at this place.
    Absent,
    /// Something else is recorded at this place: the run is over, see [`Cursor::mismatch`].
    Diverged,
}

/// What became of a question that was put.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Asked {
    /// The answer, or the refusal, delivered.
    Delivered {
        /// What kind of entry it was.
        kind: EntryKind,
        /// The response.
        response: Json,
    },
    /// The body waits: the question is open, or its answer's turn has not come, or the run is over.
    Pending,
}

/// A mistake in the body that no replay can mend; it fails the task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Two questions of one task under one key (Tasks extension, "Task Update Requests": a key must be unique over the
    /// lifetime of a task).
    #[error("the key {key:?} was used for two questions of this task; give each question a key of its own")]
    KeyUsedTwice {
        /// The key.
        key: Box<str>,
    },
    /// A key in the space the framework uses itself.
    #[error("the key {key:?} cannot be used: a key is not empty, has no `~` and does not start with `elicit-`")]
    KeyReserved {
        /// The key.
        key: Box<str>,
    },
}

/// What one write has to store when the body is parked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Suspension {
    /// The ledger as it stands.
    pub ledger: Ledger,
    /// The questions to publish, in the order of their ordinals.
    pub open: Vec<InputRequest>,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    /// In the ledger when the execution began.
    recorded: bool,
    /// In the store: a step's result reaches the body only then.
    durable: bool,
}

/// Replays a ledger to one run of a body, and records what the run adds.
///
/// The machine is synchronous: whoever polls the body calls it from within the `ctx` futures, and asks it between polls
/// what to do. The rules, in short:
///
/// * An ordinal is taken when the call is *made* ([`Cursor::take_ordinal`]); everything else happens when it is polled.
/// * A recorded answer is delivered when every earlier turn has been delivered and as many ordinals have been taken as
///   when it was delivered first, so that concurrent branches of a body meet in the order in which they met before.
/// * Answers without a turn come after all that have one.
/// * Once a question is open, nothing that this run adds is delivered any more: the run is about to end.
///
/// ```
/// use mcp_tasks_core::{Cursor, EntryKind, Fingerprint, Json, Ledger, Looked};
///
/// let print = Fingerprint::of("step", "fetch", None);
/// let mut run = Cursor::new(&Ledger::default());
/// let ordinal = run.take_ordinal();
/// assert_eq!(run.look(ordinal, EntryKind::Step, "fetch", print), Looked::Absent);
/// assert!(run.begin_step());
/// run.finish_step(ordinal, "fetch", print, Json::of("page")?);
/// let ledger = run.ledger();
/// run.saved(&ledger);
///
/// // The next run gets the result without doing the work.
/// let mut replay = Cursor::new(&ledger);
/// let ordinal = replay.take_ordinal();
/// assert!(matches!(replay.look(ordinal, EntryKind::Step, "fetch", print), Looked::Delivered { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Cursor {
    slots: BTreeMap<u32, Slot>,
    issued: u32,
    recorded_turns: u32,
    next_turn: u32,
    open: BTreeMap<u32, InputRequest>,
    running: u32,
    held: BTreeSet<u32>,
    /// Ordinals by the key their question was published under.
    keys: BTreeMap<Box<str>, u32>,
    unsaved: bool,
    mismatch: Option<Mismatch>,
    fault: Option<Fault>,
}

impl Cursor {
    /// A run of the body from the top against `ledger`.
    #[must_use]
    pub fn new(ledger: &Ledger) -> Self {
        let mut keys = BTreeMap::new();
        let mut recorded_turns = 0;
        let mut slots = BTreeMap::new();
        for entry in ledger.entries() {
            if let Some(key) = &entry.key {
                keys.insert(base_key(key).into(), entry.ordinal);
            }
            if let Some(turn) = entry.turn {
                recorded_turns = recorded_turns.max(turn.saturating_add(1));
            }
            slots.insert(
                entry.ordinal,
                Slot {
                    entry: entry.clone(),
                    recorded: true,
                    durable: true,
                },
            );
        }
        Self {
            slots,
            issued: 0,
            recorded_turns,
            next_turn: 0,
            open: BTreeMap::new(),
            running: 0,
            held: BTreeSet::new(),
            keys,
            unsaved: false,
            mismatch: None,
            fault: None,
        }
    }

    /// Takes the place of a call that the body makes now.
    pub fn take_ordinal(&mut self) -> u32 {
        let ordinal = self.issued;
        self.issued = self.issued.saturating_add(1);
        ordinal
    }

    /// Looks for the answer to the call at `ordinal`.
    pub fn look(
        &mut self,
        ordinal: u32,
        kind: EntryKind,
        what: &str,
        fingerprint: Fingerprint,
    ) -> Looked {
        if self.mismatch.is_some() {
            return Looked::Diverged;
        }
        let Some(slot) = self.slots.get_mut(&ordinal) else {
            return Looked::Absent;
        };
        // A refusal stands for the question it refused, so only the fingerprint tells what was asked.
        if slot.entry.fingerprint != fingerprint {
            self.mismatch = Some(Mismatch {
                ordinal,
                recorded: (slot.entry.kind, slot.entry.label.clone()),
                divergence: Divergence::Different {
                    attempted: (kind, label(what)),
                },
                schema_changed: None,
            });
            return Looked::Diverged;
        }
        let in_turn = match slot.entry.turn {
            Some(turn) => turn <= self.next_turn,
            None => self.next_turn >= self.recorded_turns,
        };
        let closing = !self.open.is_empty() && !slot.recorded;
        if closing || !slot.durable {
            return Looked::Held;
        }
        if !in_turn || self.issued < slot.entry.issued {
            self.held.insert(ordinal);
            return Looked::Held;
        }
        self.held.remove(&ordinal);
        match slot.entry.turn {
            None => {
                slot.entry.turn = Some(self.next_turn);
                slot.entry.issued = self.issued;
                self.next_turn = self.next_turn.saturating_add(1);
            }
            // A turn that was delivered in this run already is the same answer, looked at again.
            Some(turn) if turn == self.next_turn => {
                self.next_turn = self.next_turn.saturating_add(1);
            }
            Some(_) => {}
        }
        Looked::Delivered {
            kind: slot.entry.kind,
            response: slot.entry.response.clone(),
        }
    }

    /// Puts a question: delivers its answer, or opens it, or records that the client cannot be asked.
    pub fn ask(&mut self, ordinal: u32, question: &Question<'_>) -> Asked {
        let kind = question.kind.entry_kind();
        match self.look(ordinal, kind, question.label, question.fingerprint) {
            Looked::Delivered { kind, response } => return Asked::Delivered { kind, response },
            Looked::Held | Looked::Diverged => return Asked::Pending,
            Looked::Absent => {}
        }
        if self.fault.is_some() || self.open.contains_key(&ordinal) {
            return Asked::Pending;
        }
        if let Some(refusal) = question.refusal {
            self.insert(
                ordinal,
                EntryKind::Refusal,
                question.label,
                question.fingerprint,
                refusal.clone(),
                true,
            );
            return match self.look(ordinal, kind, question.label, question.fingerprint) {
                Looked::Delivered { kind, response } => Asked::Delivered { kind, response },
                _ => Asked::Pending,
            };
        }
        match self.claim_key(ordinal, question.key) {
            Ok(key) => {
                let request = InputRequest::new(
                    ordinal,
                    key,
                    question.kind,
                    question.fingerprint,
                    question.request.clone(),
                );
                self.open.insert(ordinal, request);
            }
            Err(fault) => self.fault = Some(fault),
        }
        Asked::Pending
    }

    fn claim_key(&mut self, ordinal: u32, key: Option<&str>) -> Result<Box<str>, Fault> {
        let key: Box<str> = match key {
            None => format!("{OWN_KEYS}{ordinal}").into(),
            Some(key) if key.is_empty() || key.contains('~') || key.starts_with(OWN_KEYS) => {
                return Err(Fault::KeyReserved { key: key.into() });
            }
            Some(key) => key.into(),
        };
        match self.keys.insert(key.clone(), ordinal) {
            Some(other) if other != ordinal => Err(Fault::KeyUsedTwice { key }),
            _ => Ok(key),
        }
    }

    /// Whether a step that nothing is recorded for may start now; if so it counts as running until it is finished or
    /// abandoned. No step starts once a question is open.
    #[must_use]
    pub fn begin_step(&mut self) -> bool {
        if !self.open.is_empty() || self.mismatch.is_some() {
            return false;
        }
        self.running += 1;
        true
    }

    /// A running step was dropped by the body before it ended.
    pub fn abandon_step(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    /// A running step ended: its result is recorded, and reaches the body once it is stored.
    pub fn finish_step(
        &mut self,
        ordinal: u32,
        name: &str,
        fingerprint: Fingerprint,
        response: Json,
    ) {
        self.running = self.running.saturating_sub(1);
        self.insert(ordinal, EntryKind::Step, name, fingerprint, response, false);
        self.unsaved = true;
    }

    fn insert(
        &mut self,
        ordinal: u32,
        kind: EntryKind,
        what: &str,
        fingerprint: Fingerprint,
        response: Json,
        durable: bool,
    ) {
        let entry = Entry {
            ordinal,
            kind,
            key: None,
            label: label(what),
            fingerprint,
            response,
            turn: None,
            issued: self.issued,
        };
        self.slots.insert(
            ordinal,
            Slot {
                entry,
                recorded: false,
                durable,
            },
        );
    }

    /// Whether a step's result waits to be stored.
    #[must_use]
    pub const fn is_unsaved(&self) -> bool {
        self.unsaved
    }

    /// The ledger as it stands, for a write: what is not delivered yet is marked as known not to have been delivered
    /// with this many calls made.
    #[must_use]
    pub fn ledger(&mut self) -> Ledger {
        let issued = self.issued;
        for slot in self.slots.values_mut() {
            if slot.entry.turn.is_none() {
                slot.entry.issued = slot.entry.issued.max(issued);
            }
        }
        self.unsaved = false;
        Ledger::new(self.slots.values().map(|slot| slot.entry.clone()).collect())
    }

    /// `ledger`, taken earlier with [`Cursor::ledger`], is stored: the steps in it may reach the body.
    pub fn saved(&mut self, ledger: &Ledger) {
        for entry in ledger.entries() {
            if let Some(slot) = self.slots.get_mut(&entry.ordinal) {
                slot.durable = true;
            }
        }
    }

    /// Whether a question is open: the run's result no longer counts, and it ends in a suspension.
    #[must_use]
    pub fn is_asking(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the run can be parked now: a question is open, no step runs, and every answer that was delivered before
    /// has been delivered again.
    #[must_use]
    pub fn can_suspend(&self) -> bool {
        self.is_asking() && self.running == 0 && self.next_turn >= self.recorded_turns
    }

    /// Parks the run: what the one write has to store.
    #[must_use]
    pub fn suspend(&mut self) -> Suspension {
        let ledger = self.ledger();
        let issued = self.issued;
        let open = std::mem::take(&mut self.open)
            .into_values()
            .map(|mut request| {
                request.issued = issued;
                request
            })
            .collect();
        Suspension { ledger, open }
    }

    /// Whether the run waits for answers whose turn has not come, and for nothing else that the machine knows of. If
    /// nothing outside can wake the body either, their turn never comes: see [`Cursor::stalled`].
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        let asks_too_early = self.is_asking() && self.next_turn < self.recorded_turns;
        self.running == 0 && !self.unsaved && (!self.held.is_empty() || asks_too_early)
    }

    /// Declares the run stalled: the body waits for recorded answers out of their order, and nothing can wake it.
    pub fn stalled(&mut self) {
        let due = Some(self.next_turn);
        let blocking = self
            .slots
            .values()
            .find(|slot| slot.recorded && slot.entry.turn == due)
            .or_else(|| self.held.first().and_then(|ordinal| self.slots.get(ordinal)));
        if let Some(slot) = blocking
            && self.mismatch.is_none()
        {
            self.mismatch = Some(Mismatch {
                ordinal: slot.entry.ordinal,
                recorded: (slot.entry.kind, slot.entry.label.clone()),
                divergence: Divergence::OutOfOrder,
                schema_changed: None,
            });
        }
    }

    /// The body ended: a recorded call that it did not make this time is a mismatch.
    pub fn finish(&mut self) {
        let missed = self
            .slots
            .range(self.issued..)
            .map(|(_, slot)| slot)
            .find(|slot| slot.recorded);
        if let Some(slot) = missed
            && self.mismatch.is_none()
        {
            self.mismatch = Some(Mismatch {
                ordinal: slot.entry.ordinal,
                recorded: (slot.entry.kind, slot.entry.label.clone()),
                divergence: Divergence::NotReached,
                schema_changed: None,
            });
        }
    }

    /// The report, if the run left the recorded path. Nothing is delivered any more then.
    #[must_use]
    pub const fn mismatch(&self) -> Option<&Mismatch> {
        self.mismatch.as_ref()
    }

    /// The mistake that fails the task, if the body made one.
    #[must_use]
    pub const fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }
}

/// The keys the framework gives to questions whose author gave none.
const OWN_KEYS: &str = "elicit-";

/// The key of a question's first asking: `confirm` for `confirm~2`.
fn base_key(key: &str) -> &str {
    key.split_once('~').map_or(key, |(base, _)| base)
}
