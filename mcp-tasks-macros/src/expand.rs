//! Writes the registration of a tool beside its function.
//!
//! Every path is absolute and leads through `__private`, so that the code compiles in a crate without a prelude, with its
//! own `Result`, and with no dependency but `mcp-tasks`. Every name begins with `__mcp_tasks`, a variable's too: the
//! tool's function is called in their scope, and its author may have named it `arguments`. Code that can fail to compile
//! because of the user's types is located at these types.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Ident, ItemFn, LitStr, ReturnType, Type, parse_quote};

use crate::attr::{Attributes, Kind, Text};
use crate::check;
use crate::diag::Diagnostics;
use crate::fallback;
use crate::item::{self, Parameter, Role};

/// Expands one attribute.
pub(crate) fn tool(kind: Kind, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut diag = Diagnostics::default();
    let attributes = Attributes::read(kind, arguments, &mut diag);
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        // What is no item at all is the compiler's to report; an item of another sort would compile without a word.
        if syn::parse2::<syn::Item>(item.clone()).is_ok() {
            let first = item.clone().into_iter().next();
            diag.error(first, format!("`#[{}]` makes a tool of a free function", kind.name()));
        }
        let errors = diag.finish();
        return quote!(#errors #item);
    };
    let parameters = item::parameters(&function, &mut diag);
    check::check(&attributes, &function, &parameters, &mut diag);
    match diag.finish() {
        Some(errors) => {
            let in_impl = check::in_impl(&function);
            let function = fallback::broken(function, &attributes.krate, in_impl);
            quote!(#errors #function)
        }
        None => expand(kind, &attributes, function, &parameters),
    }
}

fn expand(kind: Kind, attributes: &Attributes, mut function: ItemFn, parameters: &[Parameter]) -> TokenStream {
    fallback::strip_parameters(&mut function);
    let krate = &attributes.krate;
    let private = quote!(#krate::__private);
    let visibility = function.vis.clone();
    let ident = function.sig.ident.clone();
    let doc = format!("The tool `{}`, for registration by hand.", item::unraw(&ident));

    let returned: Type = match &function.sig.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    let (at_return, _) = first_and_last(&returned, ident.span());
    let at = respanned(&private, at_return);
    let functions = quote_spanned!(at_return=> #at::Returned::<#returned>::new().functions());

    let handles = parameters
        .iter()
        .enumerate()
        .map(|(index, parameter)| handle(&private, index, parameter));
    let describe = parameters.iter().enumerate().map(|(index, parameter)| {
        let handle = handle_name(index);
        match &parameter.role {
            Role::Argument { name, description } => {
                let description = quoted_option(description.as_deref());
                quote!(#handle.describe(__mcp_tasks_schema, #name, #description);)
            }
            Role::All(_) => quote!(#handle.describe(__mcp_tasks_schema, "", ::core::option::Option::None);),
            _ => TokenStream::new(),
        }
    });
    let check = parameters.iter().enumerate().filter_map(|(index, parameter)| {
        let (handle, name) = (handle_name(index), argument_name(parameter)?);
        Some(quote!(::core::mem::drop(#handle.decode(__mcp_tasks_arguments, #name));))
    });
    let call = call(&private, attributes, &function, parameters);
    let states = parameters
        .iter()
        .enumerate()
        .filter(|(_, parameter)| matches!(parameter.role, Role::State(_)));
    let states = states.map(|(index, _)| {
        let handle = handle_name(index);
        quote!(#handle.requirement())
    });
    let descriptor = descriptor(kind, &private, attributes, &function);

    // The attribute asks for parameters by value, and a tool need not wait for anything.
    function.attrs.push(parse_quote! {
        #[allow(clippy::unused_async, clippy::needless_pass_by_value, clippy::too_many_arguments)]
    });
    quote! {
        #function

        #[doc = #doc]
        #[allow(non_camel_case_types)]
        #[non_exhaustive]
        #visibility struct #ident {}

        #[allow(deprecated, clippy::needless_update)]
        const _: () = {
            #(#handles)*

            fn __mcp_tasks_returned() -> #private::OutputFunctions<#returned> {
                #functions
            }

            fn __mcp_tasks_input(__mcp_tasks_schema: &mut #private::InputSchema) {
                let _ = &__mcp_tasks_schema;
                #(#describe)*
            }

            fn __mcp_tasks_output(__mcp_tasks_schema: &mut #private::OutputSchema) {
                __mcp_tasks_returned().describe(__mcp_tasks_schema);
            }

            fn __mcp_tasks_check(__mcp_tasks_arguments: &mut #private::Arguments) {
                let _ = &__mcp_tasks_arguments;
                #(#check)*
            }

            #call

            const __MCP_TASKS_STATES: &[#private::StateRequirement] = &[#(#states),*];

            #[automatically_derived]
            impl ::core::fmt::Debug for #ident {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    f.write_str(::core::stringify!(#ident))
                }
            }

            #[automatically_derived]
            impl #private::ToolDefinition for #ident {
                const TOOL: #private::ToolDescriptor = #descriptor;
            }

            #private::inventory::submit! {
                <#ident as #private::ToolDefinition>::TOOL
            }
        };
    }
}

/// The constant that describes and decodes a parameter, so that its bounds are checked in one place.
fn handle(private: &TokenStream, index: usize, parameter: &Parameter) -> TokenStream {
    let name = handle_name(index);
    let (handle, ty, make) = match &parameter.role {
        Role::Argument { .. } => ("Argument", &parameter.ty, "of"),
        Role::All(ty) => ("Argument", &**ty, "all"),
        Role::State(ty) => ("SharedState", &**ty, "of"),
        Role::Context | Role::Caller => return TokenStream::new(),
    };
    // From the first to the last token of the type, so that the whole of it is underlined.
    let (start, end) = first_and_last(ty, Span::call_site());
    let (handle, make) = (Ident::new(handle, start), Ident::new(make, end));
    let (start_path, call) = (respanned(private, start), quote_spanned!(end=> ::#make()));
    quote_spanned! {start=>
        const #name: #start_path::#handle<#ty> = #start_path::#handle::<#ty>#call;
    }
}

/// The function that decodes the arguments and calls the tool's function.
fn call(private: &TokenStream, attributes: &Attributes, function: &ItemFn, parameters: &[Parameter]) -> TokenStream {
    let ident = &function.sig.ident;
    let values: Vec<Ident> = parameters
        .iter()
        .enumerate()
        .map(|(index, parameter)| {
            let (start, _) = first_and_last(&parameter.ty, Span::call_site());
            Ident::new(&format!("__mcp_tasks_value_{index}"), start)
        })
        .collect();
    let mut decoded = Vec::new();
    let mut arguments = Vec::new();
    let mut injected = Vec::new();
    for (index, parameter) in parameters.iter().enumerate() {
        let (value, handle) = (&values[index], handle_name(index));
        match &parameter.role {
            Role::Context => injected.push(unwrapped(value, &quote!(__mcp_tasks_invocation.context()))),
            Role::Caller => injected.push(quote!(let #value = __mcp_tasks_invocation.caller();)),
            Role::State(_) => injected.push(unwrapped(value, &quote!(#handle.get(&__mcp_tasks_invocation)))),
            Role::Argument { name, .. } => {
                decoded.push(quote!(let #value = #handle.decode(&mut __mcp_tasks_arguments, #name);));
                arguments.push(value);
            }
            Role::All(_) => {
                decoded.push(quote!(let #value = #handle.decode(&mut __mcp_tasks_arguments, "");));
                arguments.push(value);
                injected.push(quote!(let #value = #private::Args(#value);));
            }
        }
    }
    let tool = tool_name(attributes, function);
    let decode = (!arguments.is_empty()).then(|| {
        quote! {
            let mut __mcp_tasks_arguments = __mcp_tasks_invocation.arguments();
            #(#decoded)*
            let (#(::core::option::Option::Some(#arguments),)*) = (#(#arguments,)*) else {
                return ::core::result::Result::Ok(#private::invalid_arguments_result(
                    #tool,
                    __mcp_tasks_arguments.problems(),
                ));
            };
        }
    });
    let run = if function.sig.asyncness.is_some() {
        quote!(let __mcp_tasks_outcome = #ident(#(#values),*).await;)
    } else {
        let blocking = respanned(&quote!(#private::blocking), located(ident.span()));
        unwrapped(
            &format_ident!("__mcp_tasks_outcome"),
            &quote!(#blocking(move || #ident(#(#values),*)).await),
        )
    };
    // A future that is not `Send` is an error here, so it is located at the function's name.
    let span = located(ident.span());
    let boxed = respanned(&quote!(#private::boxed), span);
    let body = quote! {
        #decode
        #(#injected)*
        #run
        __mcp_tasks_returned().convert(__mcp_tasks_outcome)
    };
    let future = quote_spanned!(span=> #boxed(async move { #body }));
    quote! {
        fn __mcp_tasks_call(
            mut __mcp_tasks_invocation: #private::Invocation,
        ) -> #private::BoxFuture<'static, ::core::result::Result<#private::CallToolResult, #private::ToolError>> {
            let _ = &mut __mcp_tasks_invocation;
            #future
        }
    }
}

/// Binds the value in a `Result`, or returns its error, as `?` does where no prelude is.
fn unwrapped(value: &Ident, result: &TokenStream) -> TokenStream {
    quote! {
        let #value = match #result {
            ::core::result::Result::Ok(__mcp_tasks_got) => __mcp_tasks_got,
            ::core::result::Result::Err(__mcp_tasks_error) => {
                return ::core::result::Result::Err(__mcp_tasks_error);
            }
        };
    }
}

/// The constant that describes the tool.
fn descriptor(kind: Kind, private: &TokenStream, attributes: &Attributes, function: &ItemFn) -> TokenStream {
    let kind = match kind {
        Kind::Task => quote!(Task),
        Kind::Tool => quote!(Tool),
    };
    let name = tool_name(attributes, function);
    let ident = &function.sig.ident;
    let mut fields = Vec::new();
    let mut field = |key: &str, value: TokenStream| {
        let key = format_ident!("{key}");
        fields.push(quote!(#key: #value,));
    };
    let texts: [(&str, &Option<Text>); 7] = [
        ("title", &attributes.title),
        ("description", &attributes.description),
        ("ttl", &attributes.ttl),
        ("poll_interval", &attributes.poll_interval),
        ("grace", &attributes.grace),
        ("placement", &attributes.placement),
        ("version", &attributes.version),
    ];
    for (key, text) in texts {
        field(key, quoted_option(text.as_ref().map(|text| &text.literal)));
    }
    field("doc", quoted_option(item::docs(&function.attrs)));
    let hints = [
        ("read_only", attributes.read_only),
        ("destructive", attributes.destructive),
        ("idempotent", attributes.idempotent),
        ("open_world", attributes.open_world),
    ];
    for (key, hint) in hints {
        field(key, quoted_option(hint));
    }
    let flags = [
        ("required", attributes.required),
        ("defer", attributes.defer),
        ("single_use", attributes.single_use),
    ];
    for (key, flag) in flags {
        field(key, flag.to_token_stream());
    }
    if let Some(on_crash) = attributes.on_crash {
        let on_crash = format_ident!("{on_crash}");
        field("on_crash", quote!(#private::OnCrash::#on_crash));
    }
    let guard_function = attributes.guard.as_ref().map(|guard| {
        field("guard", quoted_option(Some(quote!(__mcp_tasks_guard))));
        let (span, _) = first_and_last(guard, Span::call_site());
        let private = respanned(private, span);
        quote_spanned! {span=>
            fn __mcp_tasks_guard<'a>(
                __mcp_tasks_caller: &'a #private::Caller,
            ) -> #private::BoxFuture<'a, ::core::result::Result<(), #private::Denied>> {
                #private::guarded(#guard, __mcp_tasks_caller)
            }
        }
    });
    quote! {{
        #guard_function

        #private::ToolDescriptor {
            kind: #private::ToolKind::#kind,
            name: #name,
            source: #private::SourceLocation {
                file: ::core::file!(),
                line: ::core::line!(),
                column: ::core::column!(),
                path: ::core::concat!(::core::module_path!(), "::", ::core::stringify!(#ident)),
            },
            #(#fields)*
            states: __MCP_TASKS_STATES,
            input: __mcp_tasks_input,
            output: __mcp_tasks_output,
            check: __mcp_tasks_check,
            call: __mcp_tasks_call,
            ..#private::ToolDescriptor::EMPTY
        }
    }}
}

/// The name of the tool as it is written.
fn tool_name(attributes: &Attributes, function: &ItemFn) -> LitStr {
    match &attributes.name {
        Some(text) => text.literal.clone(),
        None => LitStr::new(&item::unraw(&function.sig.ident), function.sig.ident.span()),
    }
}

/// The name of an argument; empty for all in one.
fn argument_name(parameter: &Parameter) -> Option<&str> {
    match &parameter.role {
        Role::Argument { name, .. } => Some(name),
        Role::All(_) => Some(""),
        _ => None,
    }
}

fn quoted_option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn handle_name(index: usize) -> Ident {
    format_ident!("__MCP_TASKS_PARAMETER_{index}")
}

/// The place of `span`, with names resolved as in a macro, so that lints see generated code.
pub(crate) fn located(span: Span) -> Span {
    span.resolved_at(Span::mixed_site())
}

/// The spans of the first and the last token; without tokens, `otherwise`.
fn first_and_last(tokens: &impl ToTokens, otherwise: Span) -> (Span, Span) {
    let spans: Vec<Span> = tokens.to_token_stream().into_iter().map(|token| token.span()).collect();
    let start = spans.first().copied().unwrap_or(otherwise);
    let end = spans.last().copied().unwrap_or(otherwise);
    (located(start), located(end))
}

/// The same tokens with another span: an error in a path is shown where the path begins.
pub(crate) fn respanned(tokens: &TokenStream, span: Span) -> TokenStream {
    let each = tokens.clone().into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    each.collect()
}
