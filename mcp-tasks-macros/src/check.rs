//! The rules that the attribute and the function have to keep.

use mcp_tasks_core::duration::{PollInterval, Ttl, parse_grace};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{FnArg, ItemFn, ReturnType, Safety, Type};

use crate::attr::{Attributes, Kind, Text};
use crate::diag::Diagnostics;
use crate::item::{self, Parameter, Role};

pub(crate) fn check(attributes: &Attributes, function: &ItemFn, parameters: &[Parameter], diag: &mut Diagnostics) {
    once(function, diag);
    signature(function, diag);
    injection(parameters, diag);
    returned(&function.sig.output, diag);
    name(attributes, function, diag);
    durations(attributes, diag);
    placement(attributes, diag);
    if attributes.description.is_none()
        && let Some(expression) = item::unreadable_doc(&function.attrs)
    {
        diag.error(
            expression,
            "the description of the tool cannot be read from a macro; write it out, or give `description = \"…\"`",
        );
    }
}

fn once(function: &ItemFn, diag: &mut Diagnostics) {
    for attribute in function.attrs.iter().filter(|attribute| Kind::of(attribute).is_some()) {
        diag.error(
            attribute,
            "a function is one tool; leave one of `#[mcp_task]` and `#[mcp_tool]`, and write a second function for a second tool",
        );
    }
}

fn signature(function: &ItemFn, diag: &mut Diagnostics) {
    let signature = &function.sig;
    if let Some(FnArg::Receiver(receiver)) = signature.inputs.first() {
        diag.error(
            receiver,
            "a tool is a free function, not a method; share what `self` holds through a `State<T>` parameter",
        );
    } else if let Some(this) =
        self_type(signature.inputs.to_token_stream()).or_else(|| self_type(signature.output.to_token_stream()))
    {
        diag.error(
            this,
            "a tool is a free function, not part of an `impl`; move it out and name the type",
        );
    }
    if let Some(constness) = &signature.constness {
        diag.error(
            constness,
            "a tool cannot be a `const fn`; remove `const`, or call the function from the tool",
        );
    }
    if let Safety::Unsafe(_) | Safety::Safe(_) = &signature.safety {
        diag.error(
            &signature.safety,
            "a tool is called by clients and has to be safe; call the unsafe function inside the tool",
        );
    }
    if let Some(abi) = &signature.abi {
        diag.error(
            abi,
            "a tool is a Rust function; call the `extern` function inside the tool",
        );
    }
    if let Some(variadic) = &signature.variadic {
        diag.error(variadic, "a tool has a fixed list of arguments; take a `Vec<T>`");
    }
    if !signature.generics.params.is_empty() {
        diag.error(
            &signature.generics,
            "a tool has no generics, because a client cannot choose them; name the types",
        );
    } else if let Some(clause) = &signature.generics.where_clause {
        diag.error(
            clause,
            "a tool has no generics, so there is nothing to bound; remove the `where` clause",
        );
    }
}

/// Whether the function stands in an `impl` or a trait.
pub(crate) fn in_impl(function: &ItemFn) -> bool {
    let signature = &function.sig;
    signature.receiver().is_some()
        || self_type(signature.inputs.to_token_stream()).is_some()
        || self_type(signature.output.to_token_stream()).is_some()
}

/// `Self` is only ever written in an `impl` or a trait.
fn self_type(tokens: TokenStream) -> Option<TokenTree> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) if ident == "Self" => Some(TokenTree::Ident(ident)),
        TokenTree::Group(group) => self_type(group.stream()),
        _ => None,
    })
}

fn injection(parameters: &[Parameter], diag: &mut Diagnostics) {
    let mut contexts = parameters
        .iter()
        .filter(|parameter| matches!(parameter.role, Role::Context));
    if let (Some(_), Some(second)) = (contexts.next(), contexts.next()) {
        diag.error(
            &second.ty,
            "one `ToolContext` is enough; clone it where a second is needed",
        );
    }
    let mut whole = parameters
        .iter()
        .filter(|parameter| matches!(parameter.role, Role::All(_)));
    let Some(first) = whole.next() else {
        return;
    };
    let beside = parameters
        .iter()
        .any(|parameter| matches!(parameter.role, Role::Argument { .. }));
    if let Some(second) = whole.next() {
        diag.error(
            &second.ty,
            "`Args<T>` takes all arguments, so there is one; merge the two types",
        );
    } else if beside {
        diag.error(
            &first.ty,
            "`Args<T>` takes all arguments; make the other parameters fields of its type",
        );
    }
}

fn returned(output: &ReturnType, diag: &mut Diagnostics) {
    let ReturnType::Type(_, ty) = output else {
        return;
    };
    match &**ty {
        Type::ImplTrait(_) => diag.error(
            ty,
            "the output schema needs the type that is returned; name it in place of `impl Trait`, and write `async fn` for a future",
        ),
        Type::Never(_) => diag.error(ty, "a tool returns; name the type that it returns"),
        _ => {}
    }
}

/// The rule of the core specification, 2026-07-28, server/tools, "Tool Names".
fn name(attributes: &Attributes, function: &ItemFn, diag: &mut Diagnostics) {
    const RULE: &str =
        "is not a tool name; a name has 1 to 128 of the characters A to Z, a to z, 0 to 9, `_`, `-` and `.`";
    let fits = |name: &str| {
        (1..=128).contains(&name.len())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    };
    match &attributes.name {
        Some(text) => {
            if let Some(name) = text.value().filter(|name| !fits(name)) {
                diag.error(&text.literal, format!("`{name}` {RULE}"));
            }
        }
        None => {
            let name = item::unraw(&function.sig.ident);
            if !fits(&name) {
                diag.error(&function.sig.ident, format!("`{name}` {RULE}; give `name = \"…\"`"));
            }
        }
    }
}

fn placement(attributes: &Attributes, diag: &mut Diagnostics) {
    let Some(text) = &attributes.placement else { return };
    match text.value().as_deref() {
        Some("any") if attributes.grace.is_some() => diag.error(
            &text.literal,
            "with `grace` the node that accepts a call runs it at once, with `placement = \"any\"` any node may run it; leave \
             out one",
        ),
        Some("any" | "local") | None => {}
        Some(_) => diag.error(
            &text.literal,
            "write `placement = \"any\"` or `placement = \"local\"`",
        ),
    }
}

fn durations(attributes: &Attributes, diag: &mut Diagnostics) {
    fn parsed<T, E: std::fmt::Display>(
        text: Option<&Text>,
        parse: impl Fn(&str) -> Result<T, E>,
        diag: &mut Diagnostics,
    ) -> Option<T> {
        let text = text?;
        let value = text.value()?;
        parse(&value).map_err(|error| diag.error(&text.literal, error)).ok()
    }
    let ttl = parsed(attributes.ttl.as_ref(), Ttl::parse, diag);
    let poll_interval = parsed(attributes.poll_interval.as_ref(), PollInterval::parse, diag);
    if let (Some(ttl), Some(poll_interval), Some(text)) = (ttl, poll_interval, &attributes.poll_interval)
        && let Err(error) = poll_interval.check_within(ttl)
    {
        diag.error(&text.literal, error);
    }
    let grace = parsed(attributes.grace.as_ref(), parse_grace, diag);
    let Some(text) = &attributes.grace else { return };
    if attributes.defer {
        diag.error(
            &text.literal,
            "`grace` and `defer` both say when the task begins; with `defer` the function says so itself, so leave out one",
        );
    }
    if let (Some(grace), Some(ttl)) = (grace, ttl.and_then(|ttl| ttl.duration()))
        && grace >= ttl
    {
        diag.error(&text.literal, "the grace must be shorter than the ttl");
    }
}
