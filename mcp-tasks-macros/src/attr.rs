//! Reads the arguments of an attribute.

use mcp_tasks_core::placeholder::Template;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Lit, LitStr, Meta, Path, Token, parse_quote};

use crate::diag::Diagnostics;

/// Which attribute it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Task,
    Tool,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Task => "mcp_task",
            Self::Tool => "mcp_tool",
        }
    }

    /// Which one an attribute of a function is, judged by its last path segment.
    pub(crate) fn of(attribute: &Attribute) -> Option<Self> {
        let last = attribute.path().segments.last()?;
        [Self::Task, Self::Tool]
            .into_iter()
            .find(|kind| last.ident == kind.name())
    }

    fn keys(self) -> impl Iterator<Item = &'static str> {
        KEYS.iter()
            .filter(move |(_, task_only)| self == Self::Task || !task_only)
            .map(|(key, _)| *key)
    }
}

/// Every key, and whether it makes sense for tasks alone.
const KEYS: [(&str, bool); 18] = [
    ("name", false),
    ("title", false),
    ("description", false),
    ("ttl", true),
    ("poll_interval", true),
    ("required", true),
    ("grace", true),
    ("defer", true),
    ("on_crash", true),
    ("placement", true),
    ("version", true),
    ("single_use", false),
    ("read_only", false),
    ("destructive", false),
    ("idempotent", false),
    ("open_world", false),
    ("guard", false),
    ("crate", false),
];

/// A text with its placeholders.
pub(crate) struct Text {
    pub(crate) literal: LitStr,
    template: Template,
}

impl Text {
    /// The text when nothing is configured; `None` if that depends on configuration.
    pub(crate) fn value(&self) -> Option<String> {
        self.template.resolve(|_| None).ok()
    }
}

/// What the attribute says.
pub(crate) struct Attributes {
    pub(crate) name: Option<Text>,
    pub(crate) title: Option<Text>,
    pub(crate) description: Option<Text>,
    pub(crate) ttl: Option<Text>,
    pub(crate) poll_interval: Option<Text>,
    pub(crate) grace: Option<Text>,
    pub(crate) placement: Option<Text>,
    pub(crate) version: Option<Text>,
    pub(crate) required: bool,
    pub(crate) defer: bool,
    pub(crate) single_use: bool,
    /// What becomes of a task whose node died, as the name of a variant.
    pub(crate) on_crash: Option<&'static str>,
    pub(crate) read_only: Option<bool>,
    pub(crate) destructive: Option<bool>,
    pub(crate) idempotent: Option<bool>,
    pub(crate) open_world: Option<bool>,
    pub(crate) guard: Option<Path>,
    /// Where `mcp-tasks` is.
    pub(crate) krate: Path,
}

impl Attributes {
    pub(crate) fn read(kind: Kind, tokens: TokenStream, diag: &mut Diagnostics) -> Self {
        let mut attributes = Self {
            name: None,
            title: None,
            description: None,
            ttl: None,
            poll_interval: None,
            grace: None,
            placement: None,
            version: None,
            required: false,
            defer: false,
            single_use: false,
            on_crash: None,
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
            guard: None,
            krate: parse_quote!(::mcp_tasks),
        };
        let metas = match Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens) {
            Ok(metas) => metas,
            Err(error) => {
                diag.push(error);
                return attributes;
            }
        };
        let mut seen: Vec<String> = Vec::new();
        for meta in metas {
            let Some(key) = known_key(kind, &meta, diag) else {
                continue;
            };
            if seen.contains(&key) {
                diag.error(meta.path(), format!("`{key}` is given twice"));
                continue;
            }
            attributes.set(&key, &meta, diag);
            seen.push(key);
        }
        attributes
    }

    fn set(&mut self, key: &str, meta: &Meta, diag: &mut Diagnostics) {
        match key {
            "name" => self.name = text(key, meta, diag),
            "title" => self.title = text(key, meta, diag),
            "description" => self.description = text(key, meta, diag),
            "ttl" => self.ttl = text(key, meta, diag),
            "poll_interval" => self.poll_interval = text(key, meta, diag),
            "grace" => self.grace = text(key, meta, diag),
            "placement" => self.placement = text(key, meta, diag),
            "on_crash" => self.on_crash = on_crash(meta, diag),
            "version" => self.version = text(key, meta, diag),
            "required" => self.required = flag(key, meta, diag).unwrap_or_default(),
            "defer" => self.defer = flag(key, meta, diag).unwrap_or_default(),
            "single_use" => self.single_use = flag(key, meta, diag).unwrap_or_default(),
            "read_only" => self.read_only = flag(key, meta, diag),
            "destructive" => self.destructive = flag(key, meta, diag),
            "idempotent" => self.idempotent = flag(key, meta, diag),
            "open_world" => self.open_world = flag(key, meta, diag),
            "guard" => self.guard = path(key, meta, diag),
            _ => {
                if let Some(krate) = crate_path(meta, diag) {
                    self.krate = krate;
                }
            }
        }
    }
}

/// The key, if this attribute has it.
fn known_key(kind: Kind, meta: &Meta, diag: &mut Diagnostics) -> Option<String> {
    let key = meta.path().get_ident().map(ToString::to_string);
    let known = key
        .as_deref()
        .and_then(|key| KEYS.iter().find(|(known, _)| *known == key));
    match known {
        Some((key, true)) if kind == Kind::Tool => {
            let message = format!("`{key}` belongs to `#[mcp_task]`; a `#[mcp_tool]` is never a task");
            diag.error(meta.path(), message);
            None
        }
        Some((key, _)) => Some((*key).to_owned()),
        None => {
            let accepted: Vec<_> = kind.keys().map(|key| format!("`{key}`")).collect();
            let meant = key.as_deref().and_then(|key| nearest(key, kind.keys()));
            let question = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
            let separator = if meant.is_some() { "" } else { ";" };
            diag.error(
                meta.path(),
                format!(
                    "unknown key{question}{separator} `#[{}]` takes {}",
                    kind.name(),
                    accepted.join(", ")
                ),
            );
            None
        }
    }
}

/// The known key closest to what was written: one that begins with it, or within one typo for every three letters.
fn nearest(written: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let written = written.to_ascii_lowercase();
    // Shorter is too little to guess from.
    if written.len() < 3 {
        return None;
    }
    let distance = |key: &str| match key.starts_with(&written) {
        true => 0,
        false => strsim::damerau_levenshtein(&written, key),
    };
    known
        .map(|key| (distance(key), key))
        .filter(|(distance, key)| *distance <= (written.len().min(key.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, key)| key)
}

/// What a text of this key looks like, for error messages.
fn example(key: &str) -> &'static str {
    match key {
        "name" => "encode_video",
        "title" => "Encode a video",
        "description" => "Encodes a video. Takes minutes.",
        "ttl" => "PT1H",
        "poll_interval" => "PT5S",
        "grace" => "PT2S",
        "placement" => "any",
        "version" => "2",
        _ => "…",
    }
}

/// The value behind the `=`, without the invisible group that `macro_rules!` puts around its arguments.
pub(crate) fn value(meta: &Meta) -> Option<&Expr> {
    let Meta::NameValue(pair) = meta else {
        return None;
    };
    let mut value = &pair.value;
    while let Expr::Group(group) = value {
        value = &group.expr;
    }
    Some(value)
}

fn literal(meta: &Meta) -> Option<&Lit> {
    match value(meta)? {
        Expr::Lit(ExprLit { lit, attrs }) if attrs.is_empty() => Some(lit),
        _ => None,
    }
}

fn text(key: &str, meta: &Meta, diag: &mut Diagnostics) -> Option<Text> {
    let Some(Lit::Str(literal)) = literal(meta) else {
        diag.error(
            value_of(meta),
            format!(
                "the value must be a string literal, as in `{key} = \"{}\"`",
                example(key)
            ),
        );
        return None;
    };
    match Template::parse(&literal.value()) {
        Ok(template) => Some(Text {
            literal: literal.clone(),
            template,
        }),
        Err(error) => {
            diag.error(literal, error);
            None
        }
    }
}

fn flag(key: &str, meta: &Meta, diag: &mut Diagnostics) -> Option<bool> {
    match (meta, literal(meta)) {
        (Meta::Path(_), _) => Some(true),
        (_, Some(Lit::Bool(truth))) => Some(truth.value),
        _ => {
            let message = format!("write `{key}` alone, `{key} = true` or `{key} = false`");
            diag.error(value_of(meta), message);
            None
        }
    }
}

fn on_crash(meta: &Meta, diag: &mut Diagnostics) -> Option<&'static str> {
    let word = match literal(meta) {
        Some(Lit::Str(word)) => word.value(),
        _ => String::new(),
    };
    match word.as_str() {
        "fail" => Some("Fail"),
        "replay" => Some("Replay"),
        _ => {
            diag.error(value_of(meta), "write `on_crash = \"fail\"` or `on_crash = \"replay\"`");
            None
        }
    }
}

fn path(key: &str, meta: &Meta, diag: &mut Diagnostics) -> Option<Path> {
    match value(meta) {
        Some(Expr::Path(path)) if path.attrs.is_empty() && path.qself.is_none() => Some(path.path.clone()),
        _ => {
            diag.error(value_of(meta), format!("write `{key} = path::to::function`"));
            None
        }
    }
}

/// The value of `crate = "…"`; also for the derive.
pub(crate) fn crate_path(meta: &Meta, diag: &mut Diagnostics) -> Option<Path> {
    let Some(Lit::Str(literal)) = literal(meta) else {
        diag.error(value_of(meta), "write `crate = \"path::to::mcp_tasks\"`");
        return None;
    };
    match literal.parse_with(Path::parse_mod_style) {
        Ok(path) => Some(path),
        Err(_) => {
            diag.error(literal, "not a path; write `crate = \"path::to::mcp_tasks\"`");
            None
        }
    }
}

/// The tokens to report a mistake on: the value, or the whole key.
fn value_of(meta: &Meta) -> TokenStream {
    value(meta).map_or_else(|| meta.to_token_stream(), ToTokens::to_token_stream)
}
