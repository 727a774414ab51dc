//! The modules of a crate, as declared in its files: the definitions, imports and paths of each.
//!
//! Modules, items and imports for tests (`#[cfg(test)]`) are ignored.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, Ident, ImplItem, Item, ItemMod, ItemUse, Lit, Macro, Meta, Stmt, UseTree,
};

/// The modules of a crate, its root first.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) modules: Vec<Module>,
}

/// The names in a path, as in `crate::screen::OutputStyle`.
pub(crate) type Names = Vec<String>;

/// A module, in a separate file or inline in another module's file.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The index of its file in [`Tree::files`].
    pub(crate) file: usize,
    pub(crate) parent: Option<usize>,
    pub(crate) children: HashMap<String, usize>,
    /// The names that it defines itself, except modules.
    pub(crate) items: HashSet<String>,
    /// The imported names, and their paths.
    pub(crate) imports: Vec<(String, Names)>,
    /// The modules whose names are all imported.
    pub(crate) globs: Vec<Names>,
    /// Every path in its code, including those of imports.
    pub(crate) paths: HashSet<Names>,
    /// Every name in its code: parts of paths, methods, fields.
    pub(crate) words: HashSet<String>,
}

impl Tree {
    /// Reads the crate with this root file.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.read_file(root, None, root.parent().unwrap_or(root))?;
        Ok(tree)
    }

    /// Returns whether a file's module is below another file's.
    pub(crate) fn is_below(&self, file: usize, above: usize) -> bool {
        let own = self.modules.iter().position(|module| module.file == file);
        let parent = |at: &usize| self.modules[*at].parent;
        std::iter::successors(own, parent).any(|at| self.modules[at].file == above)
    }

    /// Adds a file; the modules that it declares are in `folder`.
    fn read_file(&mut self, path: &Path, parent: Option<usize>, folder: &Path) -> Result<usize> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let parsed =
            syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
        self.files.push(path.to_owned());
        self.add(self.files.len() - 1, parent, folder, &parsed.items)
    }

    fn add(
        &mut self,
        file: usize,
        parent: Option<usize>,
        folder: &Path,
        items: &[Item],
    ) -> Result<usize> {
        let at = self.modules.len();
        self.modules.push(Module { file, parent, ..Module::default() });
        for item in items.iter().filter(|item| !is_for_tests(item_attributes(item))) {
            if let Item::Mod(module) = item {
                let child = self.add_child(at, folder, module)?;
                self.modules[at].children.insert(module.ident.to_string(), child);
            } else {
                self.modules[at].items.extend(defined(item));
                self.modules[at].visit_item(item);
            }
        }
        Ok(at)
    }

    fn add_child(&mut self, parent: usize, folder: &Path, module: &ItemMod) -> Result<usize> {
        let name = module.ident.to_string();
        let name = name.trim_start_matches("r#");
        let file = self.modules[parent].file;
        let below = folder.join(name);
        if let Some((_, items)) = &module.content {
            return self.add(file, Some(parent), &below, items);
        }
        if let Some(path) = module.attrs.iter().find_map(given_path) {
            let path = self.files[file].with_file_name(path);
            let folder = path.parent().unwrap_or(folder).to_owned();
            return self.read_file(&path, Some(parent), &folder);
        }
        let own = folder.join(format!("{name}.rs"));
        let path = if own.exists() { own } else { below.join("mod.rs") };
        self.read_file(&path, Some(parent), &below)
    }
}

/// Returns the name that an item defines.
fn defined(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether the attributes contain `#[cfg(test)]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

/// Returns FILE of `#[path = "FILE"]`.
fn given_path(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

impl Module {
    /// Records an import, including renamed names.
    fn import(&mut self, tree: &UseTree, mut path: Names) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.import(&part.tree, path);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.import(item, path.clone()));
            }
            UseTree::Glob(_) => self.globs.push(path),
            UseTree::Name(name) if name.ident == "self" => self.import_as(None, path),
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                self.import_as(None, path);
            }
            UseTree::Rename(renamed) => {
                if renamed.ident != "self" {
                    path.push(renamed.ident.to_string());
                }
                self.import_as(Some(renamed.rename.to_string()), path);
            }
        }
    }

    fn import_as(&mut self, name: Option<String>, path: Names) {
        self.words.extend(path.iter().cloned());
        if let Some(name) = name.or_else(|| path.last().cloned()) {
            self.paths.insert(path.clone());
            self.imports.push((name, path));
        }
    }

    /// Records the paths of two or more names among tokens without a syntax of their own.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        let mut colons = 0;
        for token in tokens {
            if let TokenTree::Ident(name) = &token {
                self.words.insert(name.to_string());
            }
            match token {
                TokenTree::Ident(name) if colons == 2 => path.push(name.to_string()),
                TokenTree::Ident(name) => self.end_of_path(&mut path, Some(name.to_string())),
                TokenTree::Punct(sign) if sign.as_char() == ':' => {
                    colons += 1;
                    // A single colon, as in `field: value`.
                    if colons == 1 && sign.spacing() == Spacing::Alone {
                        self.end_of_path(&mut path, None);
                    }
                    continue;
                }
                TokenTree::Group(group) => {
                    self.end_of_path(&mut path, None);
                    self.read_tokens(group.stream());
                }
                _ => self.end_of_path(&mut path, None),
            }
            colons = 0;
        }
        self.end_of_path(&mut path, None);
    }

    fn end_of_path(&mut self, path: &mut Names, next: Option<String>) {
        let path = std::mem::replace(path, next.into_iter().collect());
        if path.len() > 1 {
            self.paths.insert(path);
        }
    }
}

impl<'a> Visit<'a> for Module {
    fn visit_ident(&mut self, name: &'a Ident) {
        self.words.insert(name.to_string());
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.paths.insert(path.segments.iter().map(|part| part.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.import(&item.tree, Names::new());
    }

    fn visit_macro(&mut self, one: &'a Macro) {
        visit::visit_macro(self, one);
        self.read_tokens(one.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        visit::visit_attribute(self, attribute);
        if let Meta::List(list) = &attribute.meta {
            self.read_tokens(list.tokens.clone());
        }
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Item(item) if is_for_tests(item_attributes(item)) => {}
            _ => visit::visit_stmt(self, statement),
        }
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        match item {
            ImplItem::Fn(function) if is_for_tests(&function.attrs) => {}
            _ => visit::visit_impl_item(self, item),
        }
    }
}
