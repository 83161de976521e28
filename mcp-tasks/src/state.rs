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
/// ```
pub struct State<T>(Arc<T>);

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
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl StateMap {
    /// Gives a value, in place of an earlier one of the same type.
    pub(crate) fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.insert_shared(Arc::new(value));
    }

    /// Gives a value the application keeps sharing.
    pub(crate) fn insert_shared<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        self.values.insert(TypeId::of::<T>(), value);
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<State<T>> {
        let value = Arc::clone(self.values.get(&TypeId::of::<T>())?);
        value.downcast().ok().map(State)
    }

    pub(crate) fn contains(&self, type_id: TypeId) -> bool {
        self.values.contains_key(&type_id)
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
