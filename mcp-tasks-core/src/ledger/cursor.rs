//! The replay machine of one execution.

use std::collections::BTreeMap;

use super::question::{Asked, Fault, Looked, MAX_BYTES, MAX_ENTRIES, Question, Slept, base_key, first_key};
use super::{Divergence, Entry, EntryKind, Fingerprint, Ledger, Mismatch, label};
use crate::ledger::InputRequest;
use crate::{Json, Timestamp};

mod between_polls;

#[derive(Debug)]
struct Slot {
    entry: Entry,
    /// In the ledger when the execution began.
    recorded: bool,
    /// In the store: a step's result reaches the body only then.
    durable: bool,
    /// The body got it in this run.
    delivered: bool,
}

/// Whether a run is held where it adds to the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Never,
    AfterEntry,
    /// It added an entry.
    Held,
}

/// Replays a ledger to one run of a body, and records what the run adds.
///
/// The machine is synchronous: whoever polls the body calls it from within the `ctx` futures, and asks it between polls
/// what to do. The rules:
///
/// * **Ordinals.** A call takes its place when it is *made* ([`Cursor::take_ordinal`]); everything else happens when it
///   is polled. A place can stay without an entry.
/// * **Turns.** A recorded answer is delivered when every earlier turn has been delivered and as many ordinals have been
///   taken as when it was delivered first, so that concurrent branches of a body meet in the order in which they met
///   before. Answers without a turn come after all that have one.
/// * **Catching up.** Nothing new starts (no step, no question, no wait, no reading of the clock) until the body is
///   where it was when the ledger was written: every turn delivered, as many ordinals taken, and a poll gone by in which
///   no further recorded answer reached it. So the loser of a recorded race is not started again, and no question is
///   asked by a branch that is about to be dropped. [`Cursor::settle`] tells when.
/// * **Closing.** Once a question is open, no step and no wait starts, further questions join it, and nothing that this
///   run adds is delivered any more: the run is about to end.
///
/// # Between polls
///
/// After every poll that left the body pending, in this order: [`fault`](Cursor::fault) and
/// [`mismatch`](Cursor::mismatch) end the run; [`settle`](Cursor::settle) may want another poll at once;
/// [`can_suspend`](Cursor::can_suspend) parks the run; [`is_blocked`](Cursor::is_blocked) means that only something outside
/// can help; [`can_rest`](Cursor::can_rest) puts it to sleep, if its body waits for time alone;
/// [`is_unsaved`](Cursor::is_unsaved) asks for a write.
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
    /// How many turns the ledger holds, and how many calls the body had made when it was written.
    recorded_turns: u32,
    floor: u32,
    /// Recorded entries that this run has not delivered.
    undelivered: usize,
    next_turn: u32,
    /// Whether the replay has caught up.
    live: bool,
    /// Since [`Cursor::settle`] was asked last: whether the body got on, and whether a call was told to wait for the
    /// replay.
    moved: bool,
    waiting: bool,
    open: BTreeMap<u32, InputRequest>,
    running: u32,
    /// Ordinals by the key their question was published under.
    keys: BTreeMap<Box<str>, u32>,
    unsaved: bool,
    hold: Hold,
    /// The bytes of all responses.
    bytes: usize,
    mismatch: Option<Mismatch>,
    fault: Option<Fault>,
}

impl Cursor {
    /// A run of the body from the top against `ledger`.
    #[must_use]
    pub fn new(ledger: &Ledger) -> Self {
        let mut keys = BTreeMap::new();
        let mut recorded_turns = 0;
        let mut floor = 0;
        let mut slots = BTreeMap::new();
        for entry in ledger.entries() {
            if let Some(key) = &entry.key {
                keys.insert(base_key(key).into(), entry.ordinal);
            }
            if let Some(turn) = entry.turn {
                recorded_turns = recorded_turns.max(turn.saturating_add(1));
            }
            floor = floor.max(entry.issued);
            let slot = Slot {
                entry: entry.clone(),
                recorded: true,
                durable: true,
                delivered: false,
            };
            slots.insert(entry.ordinal, slot);
        }
        Self {
            undelivered: slots.len(),
            slots,
            issued: 0,
            recorded_turns,
            floor,
            next_turn: 0,
            live: false,
            moved: false,
            waiting: false,
            open: BTreeMap::new(),
            running: 0,
            keys,
            unsaved: false,
            hold: Hold::Never,
            bytes: ledger.entries().iter().map(|entry| entry.response.get().len()).sum(),
            mismatch: None,
            fault: None,
        }
    }

    /// Takes the place of a call that the body makes now.
    #[must_use = "the call needs its place whenever it is polled"]
    pub fn take_ordinal(&mut self) -> u32 {
        let ordinal = self.issued;
        self.issued = self.issued.saturating_add(1);
        self.moved = true;
        ordinal
    }

    /// Looks for the answer to the call at `ordinal`. `kind` and `what` are for the report, the fingerprint decides.
    pub fn look(&mut self, ordinal: u32, kind: EntryKind, what: &str, fingerprint: Fingerprint) -> Looked {
        if self.mismatch.is_some() {
            return Looked::Diverged;
        }
        let Some(slot) = self.slots.get_mut(&ordinal) else {
            return Looked::Absent;
        };
        // A refusal stands for the question it refused, so only the fingerprint tells what was asked.
        if slot.entry.fingerprint != fingerprint {
            let attempted = (kind, label(what));
            let divergence = Divergence::Different { attempted };
            self.mismatch = Some(Mismatch::at(&slot.entry, divergence));
            return Looked::Diverged;
        }
        if !slot.delivered {
            let closing = !self.open.is_empty() && !slot.recorded;
            if closing || !slot.durable {
                return Looked::Held;
            }
            let in_turn = match slot.entry.turn {
                Some(turn) => turn <= self.next_turn,
                None => self.next_turn >= self.recorded_turns,
            };
            if !in_turn || self.issued < slot.entry.issued {
                self.waiting = true;
                return Looked::Held;
            }
            if slot.entry.turn.is_none() {
                slot.entry.turn = Some(self.next_turn);
                slot.entry.issued = self.issued;
            }
            slot.delivered = true;
            self.next_turn = self.next_turn.saturating_add(1);
            self.undelivered -= usize::from(slot.recorded);
            self.moved = true;
        }
        Looked::Delivered {
            kind: slot.entry.kind,
            response: slot.entry.response.clone(),
        }
    }

    /// Answers a call that needs nobody to answer it: the clock, random bytes, facts about the client, the point of
    /// deferral. `response` is called when nothing is recorded and something new may start. The time and random bytes are
    /// delivered once they are stored, the rest is stored with whatever is stored next.
    pub fn record(
        &mut self,
        ordinal: u32,
        kind: EntryKind,
        what: &str,
        fingerprint: Fingerprint,
        response: impl FnOnce() -> Json,
    ) -> Looked {
        match self.look(ordinal, kind, what, fingerprint) {
            Looked::Absent => {}
            looked => return looked,
        }
        if self.is_asking() || !self.may_start() {
            return Looked::Held;
        }
        // What another run would not come upon again has to be stored before anybody acts on it: a step that pays under a
        // random key must find the same key after a crash.
        let is_chance = matches!(kind, EntryKind::Now | EntryKind::Random);
        self.insert(ordinal, kind, what, fingerprint, response(), !is_chance);
        self.unsaved |= is_chance;
        self.look(ordinal, kind, what, fingerprint)
    }

    /// A wait: until the recorded instant, or, if none is recorded, until `wake`, which is recorded and has to be
    /// stored, so that the wait does not begin anew on another node.
    pub fn sleep(&mut self, ordinal: u32, fingerprint: Fingerprint, wake: Timestamp, now: Timestamp) -> Slept {
        const KIND: EntryKind = EntryKind::Sleep;
        let is_new = !self.slots.contains_key(&ordinal) && self.mismatch.is_none();
        if is_new {
            if self.is_asking() || !self.may_start() {
                return Slept::Held;
            }
            self.insert(ordinal, KIND, "", fingerprint, wake.to_json(), true);
            self.unsaved = true;
        }
        if let Some(Slot { entry, .. }) = self.slots.get(&ordinal)
            && entry.fingerprint == fingerprint
            && entry.turn.is_none()
            && let Ok(wake) = entry.response.decode::<Timestamp>()
            && now < wake
        {
            return Slept::Until(wake);
        }
        match self.look(ordinal, KIND, "", fingerprint) {
            Looked::Delivered { .. } => Slept::Over,
            Looked::Held | Looked::Absent => Slept::Held,
            Looked::Diverged => Slept::Diverged,
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
        if self.open.contains_key(&ordinal) || !self.may_start() {
            return Asked::Pending;
        }
        if let Some(refusal) = question.refusal {
            let (what, print) = (question.label, question.fingerprint);
            self.insert(ordinal, EntryKind::Refusal, what, print, refusal.clone(), true);
            return match self.look(ordinal, kind, what, print) {
                Looked::Delivered { kind, response } => Asked::Delivered { kind, response },
                _ => Asked::Pending,
            };
        }
        // An answer is recorded outside of a run, so there must be room for it now: a body that asks in a loop ends here.
        if self.is_full() {
            self.fault.get_or_insert(Fault::LedgerFull);
            return Asked::Pending;
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
        let key = first_key(ordinal, key)?;
        match self.keys.insert(key.clone(), ordinal) {
            Some(other) if other != ordinal => Err(Fault::KeyUsedTwice { key }),
            _ => Ok(key),
        }
    }

    /// Whether a step that nothing is recorded for may start now; if so it counts as running until it is finished or
    /// abandoned. If not it waits, and asks again when it is polled again.
    #[must_use]
    pub fn begin_step(&mut self) -> bool {
        if self.is_asking() || !self.may_start() {
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
    pub fn finish_step(&mut self, ordinal: u32, name: &str, fingerprint: Fingerprint, response: Json) {
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
        self.bytes = self.bytes.saturating_add(response.get().len());
        if self.is_full() {
            self.fault.get_or_insert(Fault::LedgerFull);
            return;
        }
        if self.hold == Hold::AfterEntry {
            self.hold = Hold::Held;
        }
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
        // An answer is never replaced, whatever the caller mixed up.
        self.slots.entry(ordinal).or_insert(Slot {
            entry,
            recorded: false,
            durable,
            delivered: false,
        });
    }

    /// Whether a further entry would be too much.
    fn is_full(&self) -> bool {
        self.slots.len() + self.open.len() >= MAX_ENTRIES || self.bytes > MAX_BYTES
    }

    /// Whether the body has been told everything that had reached it, and has made every call it had made, when the
    /// ledger was written.
    const fn is_back(&self) -> bool {
        self.next_turn >= self.recorded_turns && self.issued >= self.floor
    }

    fn may_start(&mut self) -> bool {
        // With nothing left to deliver there is no need to wait for a poll that delivers nothing.
        self.live = self.live || (self.is_back() && self.undelivered == 0);
        if !self.live {
            self.waiting = true;
        }
        self.live && !self.is_held() && self.mismatch.is_none() && self.fault.is_none()
    }
}
