//! `#[derive(ElicitForm)]`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::{Attribute, Data, DeriveInput, Fields, Meta, Path, Token, Type, parse_quote};

use crate::attr;
use crate::diag::Diagnostics;
use crate::expand::{located, respanned};

pub(crate) fn derive(item: TokenStream) -> TokenStream {
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.to_compile_error(),
    };
    let mut diag = Diagnostics::default();
    let krate = crate_path(&input.attrs, &mut diag);
    if !input.generics.params.is_empty() {
        diag.error(
            &input.generics,
            "a form has no generics, because a person sees it as it is; name the types",
        );
    }
    let ident = &input.ident;
    let code = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => {
                let types = fields
                    .named
                    .iter()
                    .filter(|field| !is_skipped_by_serde(&field.attrs))
                    .map(|field| &field.ty);
                form(&krate, ident, types)
            }
            Fields::Unnamed(fields) => {
                diag.error(fields, "a form has named fields, because a person is shown their names");
                form(&krate, ident, std::iter::empty())
            }
            Fields::Unit => {
                diag.error(
                    ident,
                    "a form has named fields; write `{}` for one that only asks for consent",
                );
                form(&krate, ident, std::iter::empty())
            }
        },
        Data::Enum(data) => {
            for variant in &data.variants {
                if !matches!(variant.fields, Fields::Unit) {
                    diag.error(
                        &variant.fields,
                        "a choice has variants without data; ask for the data in another field",
                    );
                }
            }
            if data.variants.is_empty() {
                diag.error(ident, "a choice has at least one variant");
            }
            choice(&krate, ident)
        }
        Data::Union(data) => {
            diag.error(
                data.union_token,
                "a form is a struct with named fields, a choice an enum without data",
            );
            TokenStream::new()
        }
    };
    match diag.finish() {
        // So that uses of the form resolve, and one mistake is one error; generic code would need bounds.
        Some(errors) if input.generics.params.is_empty() => quote!(#errors #code),
        Some(errors) => errors,
        None => code,
    }
}

fn form<'a>(krate: &Path, ident: &syn::Ident, types: impl Iterator<Item = &'a Type>) -> TokenStream {
    let checks: Vec<_> = types
        .map(|ty| quote!(#krate::__private::assert_field::<#ty>();))
        .collect();
    let span = located(ident.span());
    let krate = respanned(&quote!(#krate), span);
    let implementation = quote_spanned! {span=>
        #[automatically_derived]
        impl #krate::__private::ElicitForm for #ident {}
    };
    quote! {
        #implementation

        const _: () = {
            #(#checks)*
        };
    }
}

fn choice(krate: &Path, ident: &syn::Ident) -> TokenStream {
    let span = located(ident.span());
    let krate = respanned(&quote!(#krate), span);
    quote_spanned! {span=>
        #[automatically_derived]
        impl #krate::__private::ElicitField for #ident {}

        #[automatically_derived]
        impl #krate::__private::ElicitChoice for #ident {}
    }
}

/// `#[elicit(crate = "…")]`.
fn crate_path(attributes: &[Attribute], diag: &mut Diagnostics) -> Path {
    let mut krate: Path = parse_quote!(::mcp_tasks);
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("elicit"))
    {
        let metas = match attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) {
            Ok(metas) => metas,
            Err(error) => {
                diag.push(error);
                continue;
            }
        };
        for meta in metas {
            if meta.path().is_ident("crate") {
                krate = attr::crate_path(&meta, diag).unwrap_or(krate);
            } else {
                diag.error(meta.path(), "unknown key; `#[elicit]` takes `crate`");
            }
        }
    }
    krate
}

/// Whether serde does not read the field, so that it is not in the form either.
fn is_skipped_by_serde(attributes: &[Attribute]) -> bool {
    let mut skipped = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        // Serde reports what it does not accept.
        let _ = attribute.parse_nested_meta(|meta| {
            skipped |= meta.path.is_ident("skip") || meta.path.is_ident("skip_deserializing");
            if meta.input.peek(Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            } else if meta.input.peek(syn::token::Paren) {
                let _: proc_macro2::Group = meta.input.parse()?;
            }
            Ok(())
        });
    }
    skipped
}
