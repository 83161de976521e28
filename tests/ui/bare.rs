//! Tools in a crate that depends on `mcp-tasks` alone, under another name, and forbids what can be forbidden.
#![forbid(unsafe_code, warnings)]
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    rust_2018_idioms,
    unused_qualifications,
    single_use_lifetimes,
    unused_results,
    let_underscore_drop
)]
#![deny(clippy::all, clippy::pedantic, clippy::exhaustive_structs)]

use renamed::ElicitForm;
use renamed::schemars::JsonSchema;
use renamed::serde::{Deserialize, Serialize};

/// What a task gives.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(crate = "::renamed::serde")]
#[schemars(crate = "::renamed::schemars")]
#[non_exhaustive]
pub struct Encoded {
    /// Where it is.
    pub uri: String,
}

/// Everything in one.
#[derive(Debug, Deserialize, JsonSchema, ElicitForm)]
#[serde(crate = "::renamed::serde")]
#[schemars(crate = "::renamed::schemars")]
#[elicit(crate = "::renamed")]
#[non_exhaustive]
pub struct Search {
    /// What to look for.
    pub text: String,
    /// Where.
    pub place: Option<Place>,
}

/// Where to search.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema, ElicitForm)]
#[serde(crate = "::renamed::serde")]
#[schemars(crate = "::renamed::schemars")]
#[elicit(crate = "::renamed")]
#[non_exhaustive]
pub enum Place {
    /// Here.
    Here,
    /// There.
    There,
}

/// The tools; the derives of other crates need the prelude, these attributes do not.
#[no_implicit_prelude]
pub mod tools {
    use ::renamed::{Args, Caller, Denied, State, ToolContext, ToolError, mcp_task, mcp_tool};
    use ::renamed::tool::ToolDefinition;
    use ::std::option::Option::{self, Some};
    use ::std::result::Result::{Err, Ok};
    use ::std::string::String;

    use super::{Encoded, Search};

    /// A `Result` of this crate's own.
    pub type Result<T, E = ToolError> = ::std::result::Result<T, E>;

    /// Re-encode a video
    ///
    /// # Errors
    ///
    /// There is no source.
    #[mcp_task(crate = "::renamed", ttl = "${video.ttl:PT2H}", poll_interval = "5s", required, guard = admin)]
    pub async fn encode(
        _ctx: ToolContext,
        /// Where the source is
        mut uri: String,
        height: Option<u32>,
        caller: Caller,
        state: State<String>,
    ) -> Result<Encoded> {
        if let Some(subject) = caller.subject() {
            uri.push_str(subject);
        }
        if height.is_some() {
            return Err(ToolError::new("no"));
        }
        uri.push_str(&state);
        Ok(Encoded { uri })
    }

    async fn admin(caller: &Caller) -> Result<(), Denied> {
        ::std::future::ready(()).await;
        caller.subject().map(|_| ()).ok_or_else(|| Denied::new("log in first"))
    }

    /// A tool that is not async, with names that Rust keeps for itself.
    #[mcp_tool(crate = "crate::tools::exports::tasks", name = "r.type", read_only)]
    #[must_use]
    pub fn r#type(r#fn: String) -> String {
        r#fn
    }

    /// Nothing in, nothing out.
    #[mcp_tool(crate = "::renamed")]
    #[deprecated = "for the test"]
    pub async fn nothing() {}

    #[mcp_tool(crate = "::renamed")]
    async fn search(Args(search): Args<Search>) -> String {
        search.text
    }

    /// As a crate that re-exports `mcp-tasks` has it.
    mod exports {
        pub(crate) use ::renamed as tasks;
    }

    /// Tools of a private module.
    mod inner {
        use ::renamed::mcp_tool;

        #[mcp_tool(crate = "::renamed")]
        pub(crate) fn hidden(value: u8) -> u8 {
            value
        }
    }

    /// The tools can be named.
    #[must_use]
    pub fn names() -> [&'static str; 3] {
        let inner = inner::hidden(1);
        let _: u8 = inner;
        [encode::TOOL.name, search::TOOL.name, inner::hidden::TOOL.name]
    }
}

/// Tools and a guard named like what the server hands in, and constants like what it hands out.
pub mod odd_names {
    #![allow(non_upper_case_globals)]

    use renamed::{Caller, Denied, State, mcp_task, mcp_tool};

    /// A constant where a pattern might stand.
    pub const value: u8 = 1;
    /// Another one.
    pub const error: u8 = 2;

    #[mcp_task(crate = "::renamed", guard = caller)]
    pub(crate) async fn arguments(first: u8, state: State<String>) -> String {
        format!("{first}{}", *state)
    }

    #[mcp_tool(crate = "::renamed")]
    pub(crate) fn invocation(schema: u8) -> u8 {
        schema
    }

    async fn caller(caller: &Caller) -> Result<(), Denied> {
        std::future::ready(()).await;
        caller.subject().map(|_| ()).ok_or_else(|| Denied::new("log in first"))
    }

    macro_rules! tool {
        ($name:ident, $title:literal, $ttl:expr, $guard:path, $argument:ident: $type:ty, $doc:literal) => {
            #[mcp_task(crate = "::renamed", title = $title, ttl = $ttl, guard = $guard, read_only = true)]
            pub(crate) async fn $name(#[doc = $doc] $argument: $type) -> $type {
                $argument
            }
        };
    }

    tool!(made, "Made by a macro", "PT1H", caller, height: Option<u32>, "How high");
}
