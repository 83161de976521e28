//! Reads the function: which of its parameters are arguments, and which the server injects.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Attribute, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemFn, Lit, Pat, PatType, PathArguments, Type};

use crate::attr;
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
    for attribute in typed.attrs.iter().filter(|attribute| !is_plain(attribute)) {
        diag.error(
            attribute,
            "a parameter of a tool takes a doc comment and lint levels, no other attribute; put the arguments into a struct and take it as `Args<T>`",
        );
    }
    if let Some(expression) = unreadable_doc(&typed.attrs) {
        diag.error(
            expression,
            "the description of the argument cannot be read from a macro; write it out",
        );
    }
    let role = match injected(&typed.ty) {
        Some(Role::All(ty)) if !check_owned(&ty, diag) => return None,
        Some(role) => role,
        None => {
            let name = argument_name(&typed.pat, diag);
            let fits = check_owned(&typed.ty, diag);
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

/// The attributes that set the level of a lint. The compiler takes them on a parameter.
pub(crate) const LINT_LEVELS: [&str; 5] = ["allow", "expect", "warn", "deny", "forbid"];

/// Whether the attribute is one that a parameter of a tool may have.
fn is_plain(attribute: &Attribute) -> bool {
    let path = attribute.path();
    path.is_ident("doc") || LINT_LEVELS.iter().any(|level| path.is_ident(level))
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
    ident.unraw().to_string()
}

/// The role of a type that the server injects, judged by its last path segment, since a macro sees no types. `State` and
/// `Args` without a type are left to the compiler, which says what is missing.
fn injected(ty: &Type) -> Option<Role> {
    let Type::Path(path) = ungrouped(ty) else {
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
fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        other => other,
    }
}

/// Whether an argument owns what it holds. Reports the innermost type that does not.
fn check_owned(ty: &Type, diag: &mut Diagnostics) -> bool {
    match ty {
        Type::Reference(reference) => {
            let advice = match ungrouped(&reference.elem) {
                Type::Path(path) if path.path.is_ident("str") => "`String`".to_owned(),
                Type::Slice(slice) => format!("`Vec<{}>`", type_text(&slice.elem)),
                other => format!("`{}`", type_text(other)),
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
        Type::Group(group) => check_owned(&group.elem, diag),
        Type::Paren(paren) => check_owned(&paren.elem, diag),
        Type::Array(array) => check_owned(&array.elem, diag),
        Type::Slice(slice) => check_owned(&slice.elem, diag),
        Type::Tuple(tuple) => {
            // Not `all`, which would stop at the first: every one is reported.
            let unfit = tuple.elems.iter().filter(|elem| !check_owned(elem, diag)).count();
            unfit == 0
        }
        Type::Path(path) => path
            .path
            .segments
            .iter()
            .fold(true, |fits, segment| match &segment.arguments {
                PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().fold(fits, |fits, argument| match argument {
                        GenericArgument::Type(inner) => check_owned(inner, diag) && fits,
                        _ => fits,
                    })
                }
                _ => fits,
            }),
        _ => true,
    }
}

/// A type as it is written in source.
fn type_text(ty: &Type) -> String {
    let text = ty.to_token_stream().to_string();
    text.replace(" :: ", "::")
        .replace(" < ", "<")
        .replace(" > ", ">")
        .replace(" >", ">")
        .replace(" ,", ",")
}

/// A doc comment as one text, line by line, without comment markers.
pub(crate) fn docs(attributes: &[Attribute]) -> Option<String> {
    let mut text = String::new();
    for doc in attributes.iter().filter_map(doc) {
        for line in comment_lines(&doc) {
            text.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
            text.push('\n');
        }
    }
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The lines of one doc attribute; those of a block comment without the column of stars.
fn comment_lines(doc: &str) -> Vec<&str> {
    // `str::lines` has no line for an empty text, which is an empty line here.
    let mut lines: Vec<&str> = doc.split('\n').collect();
    // The last line of a block comment is the blank before `*/`; without it, the stars are those of a list.
    if let [_, between @ .., last] = lines.as_mut_slice()
        && last.trim().is_empty()
        && between.iter().all(|line| line.trim_start().starts_with('*'))
    {
        for line in between {
            *line = line.trim_start().strip_prefix('*').unwrap_or_default();
        }
    }
    lines
}

/// The text of a doc attribute, if it is written out.
fn doc(attribute: &Attribute) -> Option<String> {
    match doc_value(attribute)? {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text), ..
        }) => Some(text.value()),
        _ => None,
    }
}

/// A doc attribute whose text a macro cannot read, such as `#[doc = include_str!(…)]`.
pub(crate) fn unreadable_doc(attributes: &[Attribute]) -> Option<&Expr> {
    attributes
        .iter()
        .find_map(|attribute| doc_value(attribute).filter(|_| doc(attribute).is_none()))
}

/// What stands behind `doc =`.
fn doc_value(attribute: &Attribute) -> Option<&Expr> {
    attribute.path().is_ident("doc").then(|| attr::value(&attribute.meta))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    #[test]
    fn a_doc_comment_is_its_text_without_what_sets_it_off() {
        let docs = |text: &str| docs(&[parse_quote!(#[doc = #text])]);
        assert_eq!(docs(" One line. "), Some("One line.".to_owned()));
        assert_eq!(
            docs("\n * One.\n *\n * * a list\n *   of one\n "),
            Some("One.\n\n* a list\n  of one".to_owned())
        );
        assert_eq!(docs(" One.\n * Two.\n "), Some("One.\nTwo.".to_owned()));
        // Written out, not a comment: the stars are a list.
        assert_eq!(docs("One:\n* two\n* three"), Some("One:\n* two\n* three".to_owned()));
        assert_eq!(docs(" \n "), None);
        let lines: [Attribute; 4] = [
            parse_quote!(#[doc = " One."]),
            parse_quote!(#[doc = ""]),
            parse_quote!(#[allow(dead_code)]),
            parse_quote!(#[doc = "   indented"]),
        ];
        assert_eq!(super::docs(&lines), Some("One.\n\n  indented".to_owned()));
    }
}
