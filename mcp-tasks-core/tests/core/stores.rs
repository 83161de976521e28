//! The memory store and its wrappings before the contract suite, and what the suite says of stores that are broken.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use mcp_tasks_core::store::contract::Work;
use mcp_tasks_core::store::contract::scripted::ScriptedStore;
use mcp_tasks_core::{MemoryStore, TaskStore};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// Pending once, so that others get on.
pub(crate) async fn give_way() {
    let mut gave = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Work on a thread of its own.
pub(crate) fn on_a_thread(work: Work) -> Work {
    let running = thread::Builder::new()
        .spawn(move || block_on(work))
        .expect("a thread for the test");
    Box::pin(async move { running.join().expect("the work passes") })
}

mcp_tasks_core::store_contract! {
    memory,
    block_on = block_on,
    async { MemoryStore::new() },
    spawn = on_a_thread,
}

mcp_tasks_core::store_contract! { memory_in_place, block_on = block_on, async { MemoryStore::new() } }

mcp_tasks_core::store_contract! {
    memory_whose_mutations_run_three_times,
    block_on = block_on,
    async {
        // As a store does that meets two conflicts before it commits.
        let retrying = ScriptedStore::new(MemoryStore::new(), |_| Box::pin(std::future::ready(())));
        retrying.with(|script| script.reruns = 3)
    },
    spawn = on_a_thread,
}

mcp_tasks_core::store_contract! {
    memory_through_pointers,
    block_on = block_on,
    async {
        let shared: Arc<dyn TaskStore> = Arc::new(MemoryStore::new());
        let boxed: Box<dyn TaskStore> = Box::new(shared);
        let leaked: &'static dyn TaskStore = Box::leak(boxed);
        leaked
    },
}

/// All cases before one backend, as an author with one database runs them.
fn shared() -> Arc<MemoryStore> {
    static SHARED: std::sync::OnceLock<Arc<MemoryStore>> = std::sync::OnceLock::new();
    SHARED.get_or_init(Arc::default).clone()
}

mcp_tasks_core::store_contract! {
    memory_shared_by_all_cases,
    block_on = block_on,
    async { shared() },
    spawn = on_a_thread,
}
