//! Resolution of the names in a path, including re-exports.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::tree::Tree;

/// The names that a file imports from another; the key is the pair of files.
pub(crate) type Imports = BTreeMap<(usize, usize), BTreeSet<String>>;

/// Returns the imports of each file of a crate from its other files.
pub(crate) fn imports(tree: &Tree) -> Imports {
    let mut scopes = Scopes { tree, imported: HashMap::new() };
    let mut all = Imports::new();
    for (at, module) in tree.modules.iter().enumerate() {
        for target in module.paths.iter().flat_map(|path| scopes.resolve(at, path)) {
            let Target::Item(definer, name) = target else { continue };
            let to = tree.modules[definer].file;
            if to != module.file {
                all.entry((module.file, to)).or_default().insert(name);
            }
        }
    }
    all
}

/// The target to which a name resolves.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Module(usize),
    /// A name that a module defines.
    Item(usize, String),
}

impl Target {
    fn is_module(&self) -> bool {
        matches!(self, Self::Module(_))
    }
}

/// The targets of the names in each module.
struct Scopes<'t> {
    tree: &'t Tree,
    /// The targets that a module imports under a name; empty during their lookup, so that cycles
    /// end.
    imported: HashMap<(usize, String), BTreeSet<Target>>,
}

impl Scopes<'_> {
    /// Returns all targets of a path in a module: a module and a function can have the same name.
    fn resolve(&mut self, from: usize, path: &[String]) -> BTreeSet<Target> {
        let mut found = BTreeSet::from([Target::Module(from)]);
        for (at, name) in path.iter().enumerate() {
            let mut next = BTreeSet::new();
            for target in found {
                match (target, name.as_str()) {
                    (Target::Module(_), "crate") => next.extend([Target::Module(0)]),
                    (Target::Module(module), "self") => next.extend([Target::Module(module)]),
                    (Target::Module(module), "super") => {
                        next.extend(self.tree.modules[module].parent.map(Target::Module));
                    }
                    (Target::Module(module), name) => next.extend(self.named(module, name)),
                    // A variant or a function of the item.
                    (item, _) => next.extend([item]),
                }
            }
            found = next;
            // Before `::`, a module hides a function of the same name.
            if at + 1 < path.len() && found.iter().any(Target::is_module) {
                found.retain(Target::is_module);
            }
        }
        found
    }

    fn named(&mut self, at: usize, name: &str) -> BTreeSet<Target> {
        let module = &self.tree.modules[at];
        let mut found = self.imported(at, name);
        found.extend(module.children.get(name).copied().map(Target::Module));
        if module.items.contains(name) {
            found.insert(Target::Item(at, name.to_owned()));
        }
        found
    }

    fn imported(&mut self, at: usize, name: &str) -> BTreeSet<Target> {
        let key = (at, name.to_owned());
        if let Some(known) = self.imported.get(&key) {
            return known.clone();
        }
        self.imported.insert(key.clone(), BTreeSet::new());
        let module = &self.tree.modules[at];
        let mut found = BTreeSet::new();
        for (_, path) in module.imports.iter().filter(|(own, _)| own == name) {
            found.extend(self.resolve(at, path));
        }
        for glob in &module.globs {
            found.extend(self.resolve(at, &[glob.as_slice(), &[name.to_owned()]].concat()));
        }
        self.imported.insert(key, found.clone());
        found
    }
}
