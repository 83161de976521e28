//! What the driver of a run asks between two polls of the body.

use super::{Cursor, Hold};
use crate::ledger::{Divergence, Entry, Fault, Ledger, Mismatch, Suspension};

/// # Between polls
impl Cursor {
    /// To be asked after each poll that left the body pending: whether it is to be polled again at once, with every
    /// call that waits woken, as the replay got on or has caught up.
    #[must_use]
    pub fn settle(&mut self) -> bool {
        if self.mismatch.is_some() || self.fault.is_some() {
            return false;
        }
        let moved = std::mem::take(&mut self.moved);
        // Whoever waits may get something by another poll, as long as polls get the replay on.
        let may_get_on = moved && self.waiting;
        if !self.live && !may_get_on {
            self.live = self.is_back();
        }
        let again = self.waiting && (self.live || moved);
        if again {
            self.waiting = false;
        }
        again
    }

    /// Whether a step's result or the end of a wait is to be stored.
    #[must_use]
    pub const fn is_unsaved(&self) -> bool {
        self.unsaved
    }

    /// The ledger as it stands, for a write: what is not delivered yet is marked as known not to have been delivered
    /// with this many calls made. Whoever takes it sees to it that it is stored.
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

    /// The steps that run are given up: the body does not poll them while it waits, so they would never end. They are done
    /// again when the body comes by again.
    pub fn abandon_steps(&mut self) {
        self.running = 0;
    }

    /// Whether a step runs.
    #[must_use]
    pub const fn is_stepping(&self) -> bool {
        self.running > 0
    }

    /// Whether the run can be parked now: a question is open and no step runs.
    #[must_use]
    pub fn can_suspend(&self) -> bool {
        self.is_asking() && self.running == 0 && self.fault.is_none() && self.mismatch.is_none()
    }

    /// Whether the run can be put to sleep now, if its body waits for nothing but that waits end: no question is open, no
    /// step runs, no result has to be stored before the body gets it, and the replay is through. What the write has to
    /// store is the [`ledger`](Self::ledger).
    #[must_use]
    pub fn can_rest(&self) -> bool {
        !self.is_asking()
            && !self.is_stepping()
            && !self.is_blocked()
            && !self.is_held()
            && self.slots.values().all(|slot| slot.durable)
            && self.fault.is_none()
            && self.mismatch.is_none()
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

    /// Whether calls wait for a replay that cannot get on by itself. If nothing outside the machine (a timer, a socket)
    /// can wake the body either, it never will: see [`Cursor::stalled`].
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.waiting && !self.is_back()
    }

    /// Declares the run stalled: the body waits for recorded answers out of their order, or without making the calls
    /// that were recorded, and nothing can wake it.
    pub fn stalled(&mut self) {
        let due = Some(self.next_turn);
        let is_due = |entry: &&Entry| entry.turn == due;
        let entry = self.left_over().find(is_due).or_else(|| self.left_over().next());
        if let Some(entry) = entry {
            let divergence = if entry.ordinal < self.issued {
                Divergence::OutOfOrder
            } else {
                Divergence::NotReached
            };
            self.diverged(Mismatch::at(entry, divergence));
        }
    }

    /// The body ended: a recorded call that it did not make this time is a mismatch, and so is an answer that had
    /// reached it and did not this time.
    pub fn finish(&mut self) {
        let missed = self.left_over().find_map(|entry| {
            if entry.ordinal >= self.issued {
                Some(Mismatch::at(entry, Divergence::NotReached))
            } else if entry.turn.is_some() {
                Some(Mismatch::at(entry, Divergence::NotAwaited))
            } else {
                None
            }
        });
        if let Some(mismatch) = missed {
            self.diverged(mismatch);
        }
    }

    /// What was recorded and has not reached the body in this run.
    fn left_over(&self) -> impl Iterator<Item = &Entry> {
        self.slots
            .values()
            .filter(|slot| slot.recorded && !slot.delivered)
            .map(|slot| &slot.entry)
    }

    fn diverged(&mut self, mismatch: Mismatch) {
        self.mismatch.get_or_insert(mismatch);
    }

    /// Holds the run after the first entry that it adds: from then on nothing further starts, as with a question open,
    /// while steps that run go on and what is recorded is delivered. Whoever tests a body stops the run there and runs
    /// it again from the top, so that it is replayed from every place in its ledger.
    pub const fn hold_after_entry(&mut self) {
        self.hold = Hold::AfterEntry;
    }

    /// Lets a run go on that is held, or would be.
    pub const fn release(&mut self) {
        self.hold = Hold::Never;
    }

    /// Whether the run is held.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        matches!(self.hold, Hold::Held)
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
