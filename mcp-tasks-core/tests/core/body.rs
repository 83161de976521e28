//! Bodies made of futures over a [`Cursor`], and a driver that runs them as the engine does, without a runtime: time is
//! a number, a step takes a number of polls.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use mcp_tasks_core::store::contract::Dice;
use mcp_tasks_core::{
    Asked, Cursor, EntryKind, Fault, Fingerprint, InputKind, Json, Ledger, Looked, Mismatch, Question, Slept,
    Suspension, Timestamp,
};

use super::stores::give_way;

pub(crate) type Boxed = Pin<Box<dyn Future<Output = String>>>;

/// One run of a body.
pub(crate) struct Run {
    pub(crate) cursor: Cursor,
    pub(crate) dice: Dice,
    pub(crate) now: u64,
    /// The ordinals of the steps this run started, and of those it dropped before they ended.
    pub(crate) started: BTreeSet<u32>,
    pub(crate) abandoned: BTreeSet<u32>,
    /// How often a fact was made up.
    pub(crate) facts: u32,
    running: u32,
    wake: Option<u64>,
}

/// What a body calls.
#[derive(Clone)]
pub(crate) struct Ctx(pub(crate) Rc<RefCell<Run>>);

pub(crate) fn json(text: &str) -> Json {
    Json::of(text).unwrap()
}

pub(crate) fn text(json: &Json) -> String {
    json.decode::<String>().unwrap_or_else(|_| json.get().to_owned())
}

pub(crate) fn print(kind: &str, name: &str) -> Fingerprint {
    Fingerprint::of(kind, name, None)
}

impl Ctx {
    fn take(&self) -> u32 {
        self.0.borrow_mut().cursor.take_ordinal()
    }

    /// A step of that name, which says its own name and takes some polls.
    pub(crate) fn step(&self, name: impl Into<String>) -> Step {
        Step {
            ctx: self.clone(),
            ordinal: self.take(),
            name: name.into(),
            left: None,
        }
    }

    pub(crate) fn ask(&self, message: String) -> impl Future<Output = String> + use<> {
        let (ctx, ordinal, message) = (self.clone(), self.take(), message);
        let request = json(&message);
        std::future::poll_fn(move |_| {
            let print = print("elicit", &message);
            let question = Question::new(InputKind::Form, &message, &request, print);
            match ctx.0.borrow_mut().cursor.ask(ordinal, &question) {
                Asked::Delivered { response, .. } => Poll::Ready(text(&response)),
                _ => Poll::Pending,
            }
        })
    }

    /// A reading of something that is another one every time.
    pub(crate) fn fact(&self) -> impl Future<Output = String> + use<> {
        let (ctx, ordinal) = (self.clone(), self.take());
        std::future::poll_fn(move |_| {
            let run = &mut *ctx.0.borrow_mut();
            let (facts, value) = (&mut run.facts, run.dice.below(1_000_000));
            let print = print("random", "");
            let looked = run.cursor.record(ordinal, EntryKind::Random, "", print, || {
                *facts += 1;
                json(&value.to_string())
            });
            match looked {
                Looked::Delivered { response, .. } => Poll::Ready(text(&response)),
                _ => Poll::Pending,
            }
        })
    }

    pub(crate) fn sleep(&self, millis: u64) -> impl Future<Output = String> + use<> {
        let (ctx, ordinal) = (self.clone(), self.take());
        std::future::poll_fn(move |_| {
            let run = &mut *ctx.0.borrow_mut();
            let at = |millis| Timestamp::from_millis(millis);
            let (wake, now) = (at(run.now + millis), at(run.now));
            match run.cursor.sleep(ordinal, print("sleep", ""), wake, now) {
                Slept::Over => Poll::Ready("slept".to_owned()),
                Slept::Until(wake) => {
                    let wake = wake.as_millis();
                    run.wake = Some(run.wake.map_or(wake, |earlier| earlier.min(wake)));
                    Poll::Pending
                }
                _ => Poll::Pending,
            }
        })
    }
}

pub(crate) struct Step {
    ctx: Ctx,
    ordinal: u32,
    name: String,
    /// The polls it still takes, once it runs.
    left: Option<u32>,
}

impl Future for Step {
    type Output = String;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<String> {
        let this = &mut *self;
        let run = &mut *this.ctx.0.borrow_mut();
        let print = print("step", &this.name);
        match this.left {
            None => match run.cursor.look(this.ordinal, EntryKind::Step, &this.name, print) {
                Looked::Delivered { response, .. } => return Poll::Ready(text(&response)),
                Looked::Absent if run.cursor.begin_step() => {
                    run.started.insert(this.ordinal);
                    run.running += 1;
                    this.left = Some(run.dice.below(5));
                }
                _ => return Poll::Pending,
            },
            Some(0) => {
                this.left = None;
                run.running -= 1;
                run.cursor
                    .finish_step(this.ordinal, &this.name, print, json(&this.name));
            }
            Some(left) => this.left = Some(left - 1),
        }
        Poll::Pending
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if self.left.is_some() {
            let run = &mut *self.ctx.0.borrow_mut();
            run.running -= 1;
            run.abandoned.insert(self.ordinal);
            run.cursor.abandon_step();
        }
    }
}

/// All of them; their outputs in order.
pub(crate) async fn join(mut branches: Vec<Boxed>) -> Vec<String> {
    let mut outputs: Vec<Option<String>> = branches.iter().map(|_| None).collect();
    std::future::poll_fn(move |cx| {
        for (branch, output) in branches.iter_mut().zip(&mut outputs) {
            if output.is_none()
                && let Poll::Ready(ready) = branch.as_mut().poll(cx)
            {
                *output = Some(ready);
            }
        }
        if outputs.iter().any(Option::is_none) {
            return Poll::Pending;
        }
        Poll::Ready(outputs.iter_mut().filter_map(Option::take).collect())
    })
    .await
}

/// The first of them, polled in their order first and from a random one on at every later poll. (An unbiased `select!`
/// over async blocks makes the calls within them in another order every time: such a body does not repeat itself.)
pub(crate) async fn race(ctx: &Ctx, mut branches: Vec<Boxed>) -> String {
    let mut first = true;
    std::future::poll_fn(move |cx| {
        let count = branches.len();
        let bound = if std::mem::take(&mut first) { 1 } else { count };
        let from = ctx.0.borrow_mut().dice.below(u32::try_from(bound).unwrap_or(1));
        for at in 0..count {
            let at = (at + from as usize) % count;
            if let Poll::Ready(output) = branches[at].as_mut().poll(cx) {
                return Poll::Ready(format!("{at}:{output}"));
            }
        }
        Poll::Pending
    })
    .await
}

/// Pending once, as a channel or a lock may be.
pub(crate) async fn yield_once() -> String {
    give_way().await;
    "yielded".to_owned()
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum End {
    Done(String),
    Parked(Suspension),
    Mismatch(Mismatch),
    Fault(Fault),
}

/// Runs a body against a ledger until it ends; `wrote` sees every ledger that is written, when it is taken.
pub(crate) fn drive(
    ledger: &Ledger,
    seed: u64,
    body: &dyn Fn(Ctx) -> Boxed,
    mut wrote: impl FnMut(&Ledger, &Run),
) -> (End, Ctx) {
    let ctx = Ctx(Rc::new(RefCell::new(Run {
        cursor: Cursor::new(ledger),
        dice: Dice::new(seed),
        now: 1_000,
        started: BTreeSet::new(),
        abandoned: BTreeSet::new(),
        facts: 0,
        running: 0,
        wake: None,
    })));
    let mut future = body(ctx.clone());
    let mut writing: Option<Ledger> = None;
    let mut idle = 0;
    loop {
        ctx.0.borrow_mut().wake = None;
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let run = &mut *ctx.0.borrow_mut();
        let cursor = &mut run.cursor;
        if let Poll::Ready(output) = &polled
            && !cursor.is_asking()
            && cursor.fault().is_none()
        {
            cursor.finish();
            if cursor.mismatch().is_none() {
                let end = End::Done(output.clone());
                return (end, ctx.clone());
            }
        }
        if let Some(mismatch) = cursor.mismatch() {
            let end = End::Mismatch(mismatch.clone());
            return (end, ctx.clone());
        }
        if let Some(fault) = cursor.fault() {
            let end = End::Fault(fault.clone());
            return (end, ctx.clone());
        }
        if polled.is_ready() {
            let end = End::Parked(cursor.suspend());
            return (end, ctx.clone());
        }
        // A write takes a while, in which the body goes on.
        if let Some(ledger) = writing.take_if(|_| run.dice.one_in(2)) {
            cursor.saved(&ledger);
            continue;
        }
        if cursor.settle() {
            continue;
        }
        if cursor.can_suspend() {
            let end = End::Parked(cursor.suspend());
            return (end, ctx.clone());
        }
        if writing.is_none() && cursor.is_unsaved() {
            let ledger = cursor.ledger();
            wrote(&ledger, run);
            writing = Some(ledger);
            continue;
        }
        if writing.is_some() || run.running > 0 {
            continue;
        }
        if let Some(wake) = run.wake {
            run.now = run.now.max(wake);
            continue;
        }
        // A branch may have yielded to its siblings.
        idle += 1;
        if idle < 20 {
            continue;
        }
        assert!(
            run.cursor.is_blocked(),
            "the body hangs, and the machine does not know why"
        );
        run.cursor.stalled();
    }
}
