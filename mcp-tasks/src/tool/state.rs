//! What the application shares with its tools.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A parameter that gets what the application gave the server under its type.
///
/// It is no argument of the tool and not in its schema. Cloning it shares the value. A server without a value of the
/// type does not start. The attribute knows the parameter by the name `State`, so it cannot be renamed on import.
///
/// It derefs to the value, and a pattern in the parameter takes it apart: inside is the [`Arc`] in which the server shares
/// the value, to keep or to move into a spawned task. `state.0` is that `Arc`, not the field `0` of a tuple struct in it.
///
/// The application gives the value itself, with [`TaskRuntimeBuilder::state`](crate::host::TaskRuntimeBuilder::state), and
/// not an `Arc` of it. A value that other parts of the program share in an `Arc` is a `State<Arc<T>>`.
///
/// ```standalone_crate
/// use mcp_tasks::{State, mcp_tool};
///
/// struct Catalogue {
///     titles: Vec<String>,
/// }
///
/// #[mcp_tool]
/// async fn count(catalogue: State<Catalogue>) -> String {
///     catalogue.titles.len().to_string()
/// }
///
/// #[mcp_tool]
/// async fn first(State(catalogue): State<Catalogue>) -> String {
///     let catalogue: std::sync::Arc<Catalogue> = catalogue;
///     catalogue.titles.first().cloned().unwrap_or_default()
/// }
/// # let catalogue = Catalogue { titles: Vec::new() };
/// # let runtime = mcp_tasks::TaskRuntime::builder().state(catalogue).build()?;
/// # drop(runtime);
/// # Ok::<(), mcp_tasks::StartError>(())
/// ```
#[expect(clippy::exhaustive_structs, reason = "made to be taken apart in a parameter")]
pub struct State<T>(pub Arc<T>);

impl<T> State<T> {
    /// Shares a value, for calling a tool's function from a test.
    #[must_use]
    pub const fn new(value: Arc<T>) -> Self {
        Self(value)
    }

    /// The shared value.
    #[must_use]
    pub fn into_inner(self) -> Arc<T> {
        self.0
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

// By hand, because a derive would ask `T: Clone`.
impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for State<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("State").field(&self.0).finish()
    }
}

/// What the application gave, by type.
#[derive(Clone, Default)]
pub(crate) struct StateMap {
    values: HashMap<TypeId, StateValue>,
}

#[derive(Clone)]
struct StateValue {
    /// For messages.
    type_name: &'static str,
    value: Arc<dyn Any + Send + Sync>,
}

impl StateMap {
    /// Gives a value, in place of an earlier one of the same type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.insert_shared(Arc::new(value));
    }

    /// Gives a value the application keeps sharing.
    pub(crate) fn insert_shared<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        let type_name = std::any::type_name::<T>();
        self.values.insert(TypeId::of::<T>(), StateValue { type_name, value });
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        let value = Arc::clone(&self.values.get(&TypeId::of::<T>())?.value);
        value.downcast().ok().map(State)
    }

    pub(crate) fn contains(&self, type_id: TypeId) -> bool {
        self.values.contains_key(&type_id)
    }

    /// The names of the types that are there, in their order.
    pub(crate) fn type_names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.values.values().map(|value| value.type_name).collect();
        names.sort_unstable();
        names
    }
}

impl fmt::Debug for StateMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateMap").field("values", &self.values.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_its_type_alone() {
        let mut states = StateMap::default();
        states.insert(7_u32);
        assert_eq!(states.get::<u32>().as_deref(), Some(&7));
        assert!(states.get::<i32>().is_none());
        assert!(states.contains(TypeId::of::<u32>()));
    }
}
