//! What stands in for a tool after an error, so that one mistake is one error.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, FnArg, ItemFn, Path};

use crate::attr::Kind;
use crate::item::LINT_LEVELS;

/// Removes the attributes of parameters that the compiler would refuse, among them doc comments.
pub(crate) fn strip_parameters(function: &mut ItemFn) {
    let keep = |attribute: &Attribute| {
        let path = attribute.path();
        LINT_LEVELS
            .iter()
            .chain(&["cfg", "cfg_attr"])
            .any(|name| path.is_ident(name))
    };
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Receiver(receiver) => receiver.attrs.retain(keep),
            FnArg::Typed(typed) => typed.attrs.retain(keep),
        }
    }
}

/// The function as it is, and a tool of its name that does nothing, so that calls and registrations of it resolve.
pub(crate) fn broken(mut function: ItemFn, krate: &Path, in_impl: bool) -> TokenStream {
    strip_parameters(&mut function);
    // A second attribute would write a tool of the same name.
    function.attrs.retain(|attribute| Kind::of(attribute).is_none());
    if in_impl {
        // No type can stand in an `impl`.
        return function.into_token_stream();
    }
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #ident {}

        #[automatically_derived]
        impl #krate::__private::ToolDefinition for #ident {
            const TOOL: #krate::__private::ToolDescriptor = #krate::__private::ToolDescriptor::EMPTY;
        }
    }
}
