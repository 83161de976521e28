//! Reads the function: which of its parameters are arguments, and which the server gives.

use quote::ToTokens;
use syn::{
    Attribute, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, Meta, Pat, PatType, PathArguments, Type,
};

use crate::diag::Diagnostics;

/// One parameter.
pub(crate) struct Parameter {
    pub(crate) role: Role,
    /// As it is written.
    pub(crate) ty: Type,
}

/// Where the value of a parameter comes from.
pub(crate) enum Role {
    /// `ToolContext`.
    Context,
    /// `Caller`.
    Caller,
    /// `State<T>`, with the `T`.
    State(Box<Type>),
    /// `Args<T>`, with the `T`.
    All(Box<Type>),
    /// An argument of this name.
    Argument { name: String, description: Option<String> },
}

/// The parameters; those that do not fit are reported and left out.
pub(crate) fn parameters(function: &ItemFn, diag: &mut Diagnostics) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for input in &function.sig.inputs {
        match input {
            // A receiver is reported with the rest of the signature.
            FnArg::Receiver(_) => {}
            FnArg::Typed(typed) => parameters.extend(parameter(typed, diag)),
        }
    }
    parameters
}

fn parameter(typed: &PatType, diag: &mut Diagnostics) -> Option<Parameter> {
    for attribute in typed.attrs.iter().filter(|attribute| !attribute.path().is_ident("doc")) {
        diag.error(
            attribute,
            "a parameter of a tool takes no attribute but its doc comment; put the arguments into a struct and take it as `Args<T>`",
        );
    }
    let role = match injected(&typed.ty) {
        Some(role) => role,
        None => {
            let name = argument_name(&typed.pat, diag);
            let fits = owned(&typed.ty, diag);
            let description = docs(&typed.attrs);
            if !fits {
                return None;
            }
            Role::Argument {
                name: name?,
                description,
            }
        }
    };
    Some(Parameter {
        role,
        ty: (*typed.ty).clone(),
    })
}

/// The name of the property.
fn argument_name(pattern: &Pat, diag: &mut Diagnostics) -> Option<String> {
    match pattern {
        Pat::Ident(ident) if ident.by_ref.is_none() && ident.subpat.is_none() => Some(unraw(&ident.ident)),
        other => {
            diag.error(
                other,
                "an argument of a tool needs a plain name, which is its property; take the value apart in the body",
            );
            None
        }
    }
}

/// `r#type` is called `type` outside Rust.
pub(crate) fn unraw(ident: &Ident) -> String {
    let name = ident.to_string();
    name.strip_prefix("r#").unwrap_or(&name).to_owned()
}

/// What the server gives for a type, judged by its last path segment, since a macro sees no types. `State` and `Args`
/// without a type are left to the compiler, which says what they miss.
fn injected(ty: &Type) -> Option<Role> {
    let Type::Path(path) = plain(ty) else {
        return None;
    };
    let last = path.path.segments.last()?;
    let inner = || match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.iter().collect::<Vec<_>>().as_slice() {
            [GenericArgument::Type(inner)] => Some(Box::new(inner.clone())),
            _ => None,
        },
        _ => None,
    };
    Some(match last.ident.to_string().as_str() {
        "ToolContext" => Role::Context,
        "Caller" => Role::Caller,
        "State" => Role::State(inner()?),
        "Args" => Role::All(inner()?),
        _ => return None,
    })
}

/// Without the invisible group that `macro_rules!` puts around a type, and without parentheses.
fn plain(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => plain(&group.elem),
        Type::Paren(paren) => plain(&paren.elem),
        other => other,
    }
}

/// Whether an argument can own what it holds. Reports the innermost place that cannot.
fn owned(ty: &Type, diag: &mut Diagnostics) -> bool {
    match ty {
        Type::Reference(reference) => {
            let advice = match plain(&reference.elem) {
                Type::Path(path) if path.path.is_ident("str") => "`String`".to_owned(),
                Type::Slice(slice) => format!("`Vec<{}>`", shown(&slice.elem)),
                other => format!("`{}`", shown(other)),
            };
            diag.error(ty, format!("an argument of a tool owns its value; write {advice}"));
            false
        }
        Type::ImplTrait(_) => {
            diag.error(
                ty,
                "an argument of a tool has one type; name it in place of `impl Trait`",
            );
            false
        }
        Type::Group(group) => owned(&group.elem, diag),
        Type::Paren(paren) => owned(&paren.elem, diag),
        Type::Array(array) => owned(&array.elem, diag),
        Type::Slice(slice) => owned(&slice.elem, diag),
        Type::Tuple(tuple) => {
            // Not `all`, which would stop at the first: every one is reported.
            let unfit = tuple.elems.iter().filter(|elem| !owned(elem, diag)).count();
            unfit == 0
        }
        Type::Path(path) => path
            .path
            .segments
            .iter()
            .fold(true, |fits, segment| match &segment.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().fold(fits, |fits, argument| match argument {
                        GenericArgument::Type(inner) => owned(inner, diag) && fits,
                        _ => fits,
                    })
                }
                _ => fits,
            }),
        _ => true,
    }
}

/// A type as a person writes it.
fn shown(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    text.replace(" :: ", "::")
        .replace(" < ", "<")
        .replace(" > ", ">")
        .replace(" >", ">")
        .replace(" ,", ",")
}

/// A doc comment as one text: a line is a line, without the space after the slashes.
pub(crate) fn docs(attributes: &[Attribute]) -> Option<String> {
    let lines: Vec<String> = attributes.iter().filter_map(doc_line).collect();
    let text = lines.join("\n");
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(line), ..
            }) => {
                let line = line.value();
                Some(line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned())
            }
            _ => None,
        },
        _ => None,
    }
}

/// A doc attribute whose text a macro cannot read, such as `#[doc = include_str!(…)]`.
pub(crate) fn unreadable_doc(attributes: &[Attribute]) -> Option<&Expr> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") && doc_line(attribute).is_none() => Some(&pair.value),
        _ => None,
    })
}
