//! Which file of a crate names something of which other file, read from its code.
//!
//! A name is followed through re-exports to the file that defines it: `crate::Caller` is an arrow to the file of `Caller`,
//! not to `lib.rs`. Code for tests alone is left out.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, ItemFn, ItemImpl, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// From one file to another, both by their path below `src`.
pub(super) type Arrow = (String, String);

/// A path as it is written, step by step.
type Path = Vec<String>;

/// The arrows between `files`, and those among them that are needed: a module's `pub use` of what its own child modules
/// define only shows it.
///
/// # Panics
/// If a file that a `mod` line names is missing, or is no Rust.
pub(super) fn arrows(files: &BTreeMap<String, String>) -> (BTreeSet<Arrow>, BTreeSet<Arrow>) {
    let mut reader = Reader {
        files,
        modules: BTreeMap::new(),
        at: Path::new(),
    };
    reader.file("lib.rs".to_owned(), String::new());
    let (mut all, mut needed) = (BTreeSet::new(), BTreeSet::new());
    for (at, module) in &reader.modules {
        for (path, exported) in &module.mentions {
            let Some(Target::Module(to) | Target::ItemOf(to)) = reader.resolve(at, path, 0) else {
                continue;
            };
            let arrow = (module.file.clone(), reader.modules[&to].file.clone());
            if arrow.0 == arrow.1 {
                continue;
            }
            if !(*exported && is_inside(&arrow.1, &arrow.0)) {
                needed.insert(arrow.clone());
            }
            all.insert(arrow);
        }
    }
    (all, needed)
}

/// Whether `file` is of a module inside the module of `parent`.
pub(super) fn is_inside(file: &str, parent: &str) -> bool {
    let folder = parent.trim_end_matches(".rs");
    file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

enum Target {
    Module(Path),
    /// Something that this module defines.
    ItemOf(Path),
    OtherCrate,
}

#[derive(Default)]
struct Module {
    file: String,
    /// Where the files of its child modules are.
    folder: String,
    defined: BTreeSet<String>,
    imported: BTreeMap<String, Path>,
    globs: Vec<Path>,
    /// Every path in its code, and whether it is re-exported.
    mentions: Vec<(Path, bool)>,
}

struct Reader<'a> {
    files: &'a BTreeMap<String, String>,
    modules: BTreeMap<Path, Module>,
    /// The module being read.
    at: Path,
}

impl Reader<'_> {
    fn file(&mut self, file: String, folder: String) {
        let text = self.files.get(&file).unwrap_or_else(|| panic!("there is no {file}"));
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.module(file, folder, &syntax.items);
    }

    fn module(&mut self, file: String, folder: String, items: &[Item]) {
        let module = Module {
            file,
            folder,
            defined: items.iter().filter_map(name_of).collect(),
            ..Module::default()
        };
        self.modules.insert(self.at.clone(), module);
        for item in items {
            self.visit_item(item);
        }
    }

    fn here(&mut self) -> &mut Module {
        self.modules.get_mut(&self.at).expect("it was put there")
    }

    fn import(&mut self, tree: &UseTree, mut path: Path, exported: bool) {
        let name = match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                return self.import(&step.tree, path, exported);
            }
            UseTree::Group(group) => {
                return group
                    .items
                    .iter()
                    .for_each(|tree| self.import(tree, path.clone(), exported));
            }
            UseTree::Glob(_) => {
                self.here().globs.push(path.clone());
                return self.here().mentions.push((path, exported));
            }
            UseTree::Name(name) => {
                // `use a::{self, b}` imports `a`.
                path.extend(Some(name.ident.to_string()).filter(|name| name != "self"));
                path.last().cloned().unwrap_or_default()
            }
            UseTree::Rename(rename) => {
                path.extend(Some(rename.ident.to_string()).filter(|name| name != "self"));
                rename.rename.to_string()
            }
        };
        self.here().imported.insert(name, path.clone());
        self.here().mentions.push((path, exported));
    }

    fn resolve(&self, from: &Path, path: &[String], depth: usize) -> Option<Target> {
        let mut at = from.clone();
        let mut steps = path;
        let mut inside = true;
        while let Some((first, rest)) = steps.split_first() {
            match first.as_str() {
                "crate" | "mcp_tasks" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()?),
                _ => break,
            }
            (steps, inside) = (rest, false);
        }
        for name in steps {
            match self.look_up(&at, name, depth) {
                Some(Target::Module(next)) => at = next,
                Some(found) => return Some(found),
                // A path that does not start in this crate, or one to what a macro defined.
                None if inside => return None,
                None => return Some(Target::ItemOf(at)),
            }
            inside = false;
        }
        Some(Target::Module(at))
    }

    fn look_up(&self, at: &Path, name: &String, depth: usize) -> Option<Target> {
        // `use tokio;` names itself.
        if depth > 16 {
            return None;
        }
        let module = &self.modules[at];
        let child = at.iter().chain([name]).cloned().collect();
        if self.modules.contains_key(&child) {
            return Some(Target::Module(child));
        }
        if module.defined.contains(name) {
            return Some(Target::ItemOf(at.clone()));
        }
        if let Some(path) = module.imported.get(name) {
            return Some(self.resolve(at, path, depth + 1).unwrap_or(Target::OtherCrate));
        }
        module
            .globs
            .iter()
            .find_map(|glob| match self.resolve(at, glob, depth + 1)? {
                Target::Module(glob) if glob != *at => self.look_up(&glob, name, depth + 1),
                _ => None,
            })
    }

    /// What syn does not parse, the inside of macros: paths of this crate are found by how they start.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Path::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(ident) if !path.is_empty() && colons == 2 => path.push(ident.to_string()),
                other => {
                    self.mention(std::mem::take(&mut path));
                    match other {
                        TokenTree::Ident(ident) => path.push(ident.to_string()),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        _ => {}
                    }
                }
            }
            colons = 0;
        }
        self.mention(path);
    }

    /// One step alone is a variable as often as not, and an item that is imported has its arrow from the import.
    fn mention(&mut self, path: Path) {
        if path.len() > 1 {
            self.here().mentions.push((path, false));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if for_tests(&item.attrs) {
            return;
        }
        let name = item.ident.to_string();
        let (file, folder) = (self.here().file.clone(), self.here().folder.clone());
        let below = format!("{folder}{name}/");
        self.at.push(name.clone());
        match &item.content {
            Some((_, items)) => self.module(file, below, items),
            None => {
                let renamed = item.attrs.iter().find_map(path_attribute);
                self.file(folder + &renamed.unwrap_or(format!("{name}.rs")), below);
            }
        }
        self.at.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !for_tests(&item.attrs) && item.leading_colon.is_none() {
            let exported = !matches!(item.vis, Visibility::Inherited);
            self.import(&item.tree, Path::new(), exported);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.mention(path.segments.iter().map(|step| step.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, found: &'ast Macro) {
        self.visit_path(&found.path);
        self.tokens(found.tokens.clone());
    }

    // `pub(in crate::client)` names no item, and an attribute none that is run.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// `#[cfg(test)]`, and `#[cfg(all(test, …))]`.
fn for_tests(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .any(|attribute| {
            let condition = attribute.meta.require_list().map(|list| list.tokens.to_string());
            condition.is_ok_and(|condition| condition == "test" || condition.starts_with("all (test"))
        })
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let named = attribute.meta.require_name_value().ok()?;
    match &named.value {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(path),
            ..
        }) if named.path.is_ident("path") => Some(path.value()),
        _ => None,
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
