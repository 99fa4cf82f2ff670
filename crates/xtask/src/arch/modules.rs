//! Which module of a crate uses which, and the cycles among them.
//!
//! In: a crate's files. Out: its [`Graph`]: a node a file, an arrow where a file names what another one
//! defines, through re-exports. Tests are left out. Never: another crate.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::tokens::{self, Import, Module, Reach};

/// How many re-exports a name may go through.
const HOPS_MAX: usize = 16;

/// A crate's modules, by their paths: `""` is `lib.rs` (or `main.rs`), `a::b` is `a/b.rs`.
#[derive(Debug, Default)]
pub struct Graph {
    modules: BTreeMap<String, Scope>,
    /// Module -> those that it uses, itself not among them.
    pub uses: BTreeMap<String, BTreeSet<String>>,
    /// Type, its reach, and the module that defines it.
    pub types: Vec<(String, Reach, String)>,
}

#[derive(Debug, Default)]
struct Scope {
    /// The module in whose file it stands.
    file: String,
    children: HashSet<String>,
    defined: HashSet<String>,
    /// Name -> path.
    imports: HashMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    paths: Vec<Vec<String>>,
}

impl Graph {
    /// - `files`: path below `src/` and text, of one crate.
    ///
    /// # Errors
    /// A file that is no Rust.
    pub fn new(files: &[(&str, &str)]) -> Result<Graph, String> {
        let mut graph = Graph::default();
        let mut read = BTreeMap::new();
        let is_library = files.iter().any(|(path, _)| *path == "lib.rs");
        // Programs beside a library are crates of their own, of a few files.
        let beside = |path: &str| path.starts_with("bin/") || (is_library && path == "main.rs");
        for (path, text) in files.iter().filter(|(path, _)| !beside(path)) {
            let module = tokens::read(text).map_err(|why| format!("{path}: {why}"))?;
            read.insert(module_path(path), module);
        }
        for name in for_tests(&read) {
            read.remove(&name);
        }
        for (name, module) in read {
            graph.add(&name, &name, module);
        }
        let names: Vec<String> = graph.modules.keys().cloned().collect();
        for name in &names {
            let Some((_, own)) = name.rsplit_once("::").or((!name.is_empty()).then_some(("", name))) else {
                continue;
            };
            let parent = name.rsplit_once("::").map_or("", |(parent, _)| parent);
            if let Some(scope) = graph.modules.get_mut(parent) {
                scope.children.insert(own.to_owned());
            }
        }
        graph.draw();
        Ok(graph)
    }

    fn add(&mut self, name: &str, file: &str, module: Module) {
        let mut scope = Scope { file: file.into(), ..Scope::default() };
        scope.defined.extend(module.defined);
        scope.paths = module.paths;
        for Import { path, name } in module.imports {
            scope.paths.push(path.clone());
            match name {
                Some(name) => drop(scope.imports.insert(name, path)),
                None => scope.globs.push(path),
            }
        }
        let types = module.types.into_iter().map(|(of, reach)| (of, reach, file.to_owned()));
        self.types.extend(types);
        for (child, inside) in module.inside {
            self.add(&joined(name, &child), file, inside);
        }
        self.modules.insert(name.into(), scope);
    }

    fn draw(&mut self) {
        let mut uses = BTreeMap::<String, BTreeSet<String>>::new();
        for (name, scope) in &self.modules {
            let from = uses.entry(scope.file.clone()).or_default();
            let found = scope.paths.iter().filter_map(|path| self.resolve(name, path, HOPS_MAX));
            let files = found.filter_map(|to| Some(self.modules.get(&to)?.file.clone()));
            from.extend(files.filter(|to| *to != scope.file));
        }
        self.uses = uses;
    }

    /// The module that defines what `path` names in the module `of`.
    fn resolve(&self, of: &str, path: &[String], hops: usize) -> Option<String> {
        let hops = hops.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => String::new(),
            "self" => of.to_owned(),
            "super" => parent(of)?,
            name => {
                let scope = self.modules.get(of)?;
                if scope.children.contains(name) {
                    joined(of, name)
                } else if let Some(import) = scope.imports.get(name).filter(|import| *import != path) {
                    let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
                    return self.resolve(of, &whole, hops);
                } else {
                    return None;
                }
            }
        };
        while let Some((next, after)) = rest.split_first() {
            let scope = self.modules.get(&at)?;
            if next == "super" {
                at = parent(&at)?;
            } else if scope.children.contains(next) {
                at = joined(&at, next);
            } else if scope.defined.contains(next) {
                return Some(at);
            } else if let Some(import) = scope.imports.get(next) {
                let whole: Vec<String> = import.iter().chain(after).cloned().collect();
                return self.resolve(&at, &whole, hops).or(Some(at));
            } else {
                let globs = scope.globs.iter().filter_map(|glob| {
                    let whole: Vec<String> = glob.iter().chain(rest).cloned().collect();
                    self.resolve(&at, &whole, hops).filter(|found| *found != at)
                });
                return globs.into_iter().next().or(Some(at));
            }
            rest = after;
        }
        Some(at)
    }

    /// The largest set of modules of which each reaches every other; empty where there is no cycle.
    pub fn largest_cycle(&self) -> Vec<String> {
        self.cycles().into_iter().max_by_key(Vec::len).unwrap_or_default()
    }

    /// Every set of at least two modules that reach each other.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let reached: BTreeMap<&str, HashSet<&str>> =
            self.uses.keys().map(|from| (from.as_str(), self.reached(from))).collect();
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for (from, to) in &reached {
            if seen.contains(from) {
                continue;
            }
            let back = |other: &&&str| reached.get(**other).is_some_and(|of| of.contains(from));
            let mut cycle: Vec<String> = to.iter().filter(back).map(|it| (*it).to_owned()).collect();
            seen.extend(to.iter().filter(back).copied());
            if cycle.len() > 1 {
                cycle.sort();
                found.push(cycle);
            }
        }
        found
    }

    fn reached(&self, from: &str) -> HashSet<&str> {
        let mut found = HashSet::new();
        let mut open: Vec<&str> = self.uses.get(from).into_iter().flatten().map(String::as_str).collect();
        while let Some(next) = open.pop() {
            if found.insert(next) {
                open.extend(self.uses.get(next).into_iter().flatten().map(String::as_str));
            }
        }
        found
    }
}

/// Modules that are opened for tests alone, and those below them.
fn for_tests(read: &BTreeMap<String, Module>) -> Vec<String> {
    let opened = read.iter().flat_map(|(name, module)| {
        let tests = module.opened.iter().filter(|opened| opened.in_tests);
        tests.map(|opened| joined(name, &opened.name))
    });
    let roots: Vec<String> = opened.collect();
    let below = |name: &String| {
        roots.iter().any(|root| {
            name == root || name.strip_prefix(root.as_str()).is_some_and(|it| it.starts_with("::"))
        })
    };
    read.keys().filter(|name| below(name)).cloned().collect()
}

fn module_path(file: &str) -> String {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    match path {
        "lib" | "main" => String::new(),
        other => other.replace('/', "::"),
    }
}

fn joined(parent: &str, child: &str) -> String {
    match parent {
        "" => child.to_owned(),
        _ => format!("{parent}::{child}"),
    }
}

fn parent(of: &str) -> Option<String> {
    (!of.is_empty()).then(|| of.rsplit_once("::").map_or("", |(parent, _)| parent).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(files: &[(&str, &str)], from: &str) -> Vec<String> {
        Graph::new(files).unwrap().uses[from].iter().cloned().collect()
    }

    #[test]
    fn a_name_leads_to_the_module_that_defines_it_through_re_exports() {
        let files = [
            ("lib.rs", "mod a; mod b;\npub use b::Thing;"),
            ("a.rs", "use crate::Thing;\nfn f() { super::b::g(); crate::b::inner::h() }"),
            ("b/mod.rs", "pub mod inner;\npub use inner::*;\npub fn g() {}"),
            ("b/inner.rs", "pub struct Thing;\npub fn h() {}"),
        ];
        assert_eq!(uses(&files, "a"), ["b", "b::inner"]);
        assert_eq!(uses(&files, ""), ["b::inner"]);
        assert_eq!(uses(&files, "b"), ["b::inner"]);
        assert!(uses(&files, "b::inner").is_empty());
    }

    #[test]
    fn a_cycle_is_found_and_tests_make_none() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B;\npub struct A;"),
            ("b.rs", "use crate::c::C;\npub struct B;"),
            ("c.rs", "use crate::a::A;\npub struct C;\n#[cfg(test)] mod tests;"),
            ("c/tests.rs", "use crate::d::D;"),
        ];
        assert_eq!(Graph::new(&files).unwrap().largest_cycle(), ["a", "b", "c"]);
        let straight =
            [files[0], files[1], files[2], ("c.rs", "pub struct C;\n#[cfg(test)] use crate::a::A;")];
        assert!(Graph::new(&straight).unwrap().largest_cycle().is_empty());
    }

    #[test]
    fn a_module_in_braces_belongs_to_its_file() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub mod inner { use super::super::b::B; pub struct I; }"),
            ("b.rs", "pub struct B; fn f(i: crate::a::inner::I) {}"),
        ];
        assert_eq!(uses(&files, "a"), ["b"]);
        assert_eq!(uses(&files, "b"), ["a"]);
    }
}
