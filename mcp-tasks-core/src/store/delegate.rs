//! Handing operations on.

/// Writes those methods of a [`TaskStore`](crate::TaskStore) that a wrapper hands on as they are: inside its `impl`, the
/// fields that lead to the store within, `=>`, and the methods, or `all`. What is left out and has a default, such as
/// `as_change_feed`, is an ability that the wrapper then has not.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use std::sync::Arc;
///
/// use mcp_tasks_core::store::StoreFuture;
/// use mcp_tasks_core::{TaskRecord, TaskStore};
///
/// /// Counts the tasks that are created.
/// #[derive(Debug)]
/// struct Counting<S> {
///     inner: S,
///     created: AtomicU64,
/// }
///
/// impl<S: TaskStore> TaskStore for Counting<S> {
///     fn create(&self, record: TaskRecord) -> StoreFuture<'_, Arc<TaskRecord>> {
///         self.created.fetch_add(1, Ordering::Relaxed);
///         self.inner.create(record)
///     }
///
///     mcp_tasks_core::delegate_task_store! {
///         inner => get, update, delete, as_sweep, as_expired_leases, as_change_feed
///     }
/// }
/// ```
#[macro_export]
macro_rules! delegate_task_store {
    ($($field:tt).+ => all $(,)?) => {
        $crate::delegate_task_store! {
            $($field).+ => create, get, update, delete, as_sweep, as_expired_leases, as_change_feed
        }
    };
    ($($field:tt).+ => $($method:ident),+ $(,)?) => {
        $crate::delegate_task_store! { @each [[] $($field).+] $($method)+ }
    };
    // A pointer to a store, for this crate.
    (@pointer) => {
        $crate::delegate_task_store! {
            @each [[**]] create get update delete as_sweep as_expired_leases as_change_feed
        }
    };

    (@each $to:tt $($method:ident)+) => {
        $($crate::delegate_task_store! { @one $method $to })+
    };

    (@one create [[$($deref:tt)*] $($field:tt).*]) => {
        fn create(
            &self,
            record: $crate::TaskRecord,
        ) -> $crate::StoreFuture<'_, ::std::sync::Arc<$crate::TaskRecord>> {
            $crate::TaskStore::create(&$($deref)* self $(.$field)*, record)
        }
    };
    (@one get [[$($deref:tt)*] $($field:tt).*]) => {
        fn get<'a>(
            &'a self,
            id: &'a $crate::TaskId,
            now: $crate::Timestamp,
        ) -> $crate::StoreFuture<'a, ::std::option::Option<::std::sync::Arc<$crate::TaskRecord>>> {
            $crate::TaskStore::get(&$($deref)* self $(.$field)*, id, now)
        }
    };
    (@one update [[$($deref:tt)*] $($field:tt).*]) => {
        fn update<'a>(
            &'a self,
            id: &'a $crate::TaskId,
            now: $crate::Timestamp,
            write: $crate::WriteId,
            mutation: $crate::Mutation,
        ) -> $crate::StoreFuture<'a, ::std::option::Option<$crate::Updated>> {
            $crate::TaskStore::update(&$($deref)* self $(.$field)*, id, now, write, mutation)
        }
    };
    (@one delete [[$($deref:tt)*] $($field:tt).*]) => {
        fn delete<'a>(&'a self, id: &'a $crate::TaskId) -> $crate::StoreFuture<'a, ()> {
            $crate::TaskStore::delete(&$($deref)* self $(.$field)*, id)
        }
    };
    (@one as_sweep [[$($deref:tt)*] $($field:tt).*]) => {
        fn as_sweep(&self) -> ::std::option::Option<&dyn $crate::Sweep> {
            $crate::TaskStore::as_sweep(&$($deref)* self $(.$field)*)
        }
    };
    (@one as_expired_leases [[$($deref:tt)*] $($field:tt).*]) => {
        fn as_expired_leases(&self) -> ::std::option::Option<&dyn $crate::ExpiredLeases> {
            $crate::TaskStore::as_expired_leases(&$($deref)* self $(.$field)*)
        }
    };
    (@one as_change_feed [[$($deref:tt)*] $($field:tt).*]) => {
        fn as_change_feed(&self) -> ::std::option::Option<&dyn $crate::ChangeFeed> {
            $crate::TaskStore::as_change_feed(&$($deref)* self $(.$field)*)
        }
    };
    (@one $other:ident $to:tt) => {
        ::core::compile_error!(::core::concat!("a TaskStore has no method `", ::core::stringify!($other), "`"));
    };
}
