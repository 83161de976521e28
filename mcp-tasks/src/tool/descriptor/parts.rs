//! Where a tool stands, and what it needs.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

/// Where a tool stands in the source; shown as `file:line`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceLocation {
    file: &'static str,
    line: u32,
    column: u32,
    path: &'static str,
}

impl SourceLocation {
    /// A place, as `file!()`, `line!()`, `column!()` give it, and the path of the function.
    #[must_use]
    pub const fn new(file: &'static str, line: u32, column: u32, path: &'static str) -> Self {
        Self {
            file,
            line,
            column,
            path,
        }
    }

    /// The file, as the compiler was given it.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        self.file
    }

    /// The line, counted from 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }

    /// The path of the function. Two tools that one macro writes have the rest in common.
    #[must_use]
    pub const fn path(&self) -> &'static str {
        self.path
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A [`State<T>`](crate::State) parameter: what has to be given to the server before it starts.
#[derive(Debug, Clone, Copy)]
pub struct StateRequirement {
    // Functions, because `TypeId::of` is no `const fn` on the oldest supported compiler.
    type_id: fn() -> TypeId,
    shared_type_id: fn() -> TypeId,
    type_name: fn() -> &'static str,
}

impl StateRequirement {
    /// The requirement of a `State<T>` parameter.
    #[must_use]
    pub const fn of<T: Send + Sync + 'static>() -> Self {
        Self {
            type_id: TypeId::of::<T>,
            shared_type_id: TypeId::of::<Arc<T>>,
            type_name: std::any::type_name::<T>,
        }
    }

    /// The type that is needed.
    #[must_use]
    pub fn type_id(&self) -> TypeId {
        (self.type_id)()
    }

    /// The `Arc` of the type, which is another type: whoever gave one has a value and no state of this type.
    pub(crate) fn shared_type_id(&self) -> TypeId {
        (self.shared_type_id)()
    }

    /// The name of the type, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        (self.type_name)()
    }
}
