//! Errors, collected.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::Error;

/// Collects errors, so that no check hides behind another. Has to be finished: one that is dropped with errors in it
/// would let wrong code through.
#[derive(Default)]
pub(crate) struct Diagnostics {
    errors: Option<Error>,
    finished: bool,
}

impl Diagnostics {
    /// Notes an error on these tokens.
    pub(crate) fn error(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.errors {
            Some(errors) => errors.combine(error),
            none => *none = Some(error),
        }
    }

    /// The errors as code that reports them, or none.
    pub(crate) fn finish(mut self) -> Option<TokenStream> {
        self.finished = true;
        self.errors.take().map(|errors| errors.to_compile_error())
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        if !self.finished && !std::thread::panicking() {
            panic!("diagnostics were dropped without `finish`");
        }
    }
}
