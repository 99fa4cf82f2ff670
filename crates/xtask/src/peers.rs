//! The peers: the real etcd in three versions and etcdutl, kube-apiserver, kubectl, kube-controller-manager,
//! kube-scheduler, kubeadm and sample-apiserver that tests and benches compare with or run.
//!
//! In: the scratch Go modules under `tools/peers/`, one a version; upstream's end-to-end specs, with what
//! their pods run, are two of them, built only when they are to be run. Out: binaries in a cache outside the
//! repository, `<cache>/<module>-<version>/<binary>`, and a link `<cache>/bin/<name>` to each, which is what
//! others use. Never: built again while the recipe they were built from is unchanged; anything written into
//! the repository. The Python client is kept beside them by `python.rs`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;
use crate::run::{self, Done};

/// A scratch module and the programs built from it. Another version is a folder under `tools/peers` and a
/// line in [`RECIPES`].
struct Recipe {
    /// Folder under `tools/peers`.
    folder: &'static str,
    /// The module whose required version names the build.
    module: &'static str,
    /// Name of the link in `bin`, and the package it is built from.
    programs: &'static [(&'static str, &'static str)],
    /// Go packages with the version variables that a release of Kubernetes sets.
    stamps: &'static [&'static str],
    kind: Program,
}

/// What a recipe's packages are built as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Command,
    /// The tests of the scratch module itself, which has a source of its own.
    Tests,
}

/// The source of a module of tests.
const TESTS: &str = "main_test.go";

const RECIPES: [Recipe; 8] = [
    // The one that most tests and all benches run on, and the program that restores its backups.
    Recipe {
        folder: "etcd-3.6",
        module: ETCD,
        programs: &[("etcd", ETCD)],
        stamps: &[],
        kind: Program::Command,
    },
    Recipe {
        folder: "etcdutl-3.6",
        module: ETCDUTL,
        programs: &[("etcdutl", ETCDUTL)],
        stamps: &[],
        kind: Program::Command,
    },
    Recipe {
        folder: "etcd-3.5",
        module: ETCD,
        programs: &[("etcd-3.5", ETCD)],
        stamps: &[],
        kind: Program::Command,
    },
    Recipe {
        folder: "etcd-3.7",
        module: ETCD,
        programs: &[("etcd-3.7", ETCD)],
        stamps: &[],
        kind: Program::Command,
    },
    Recipe {
        folder: "kubernetes-1.36",
        module: "k8s.io/kubernetes",
        programs: &[
            ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
            ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        ],
        stamps: KUBERNETES_STAMPS,
        kind: Program::Command,
    },
    // Apart from the two above, which need half of their dependencies.
    Recipe {
        folder: "controllers-1.36",
        module: "k8s.io/kubernetes",
        programs: &[
            ("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
            ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ],
        stamps: KUBERNETES_STAMPS,
        kind: Program::Command,
    },
    Recipe {
        folder: "kubeadm-1.36",
        module: "k8s.io/kubernetes",
        programs: &[("kubeadm", "k8s.io/kubernetes/cmd/kubeadm")],
        stamps: KUBERNETES_STAMPS,
        kind: Program::Command,
    },
    // A server that stands behind an APIService.
    Recipe {
        folder: "sample-apiserver-0.36",
        module: "k8s.io/sample-apiserver",
        programs: &[("sample-apiserver", "k8s.io/sample-apiserver")],
        stamps: &[],
        kind: Program::Command,
    },
];

/// Upstream's end-to-end specs, and what their pods run; only `cargo xtask e2e` needs them, and the former
/// take long to build.
const E2E: [Recipe; 2] = [
    Recipe {
        folder: "e2e-1.36",
        module: "k8s.io/kubernetes",
        programs: &[("e2e.test", ".")],
        stamps: KUBERNETES_STAMPS,
        kind: Program::Tests,
    },
    Recipe {
        folder: "agnhost-1.36",
        module: "k8s.io/kubernetes",
        programs: &[("agnhost", "k8s.io/kubernetes/test/images/agnhost")],
        stamps: KUBERNETES_STAMPS,
        kind: Program::Command,
    },
];

const ETCD: &str = "go.etcd.io/etcd/server/v3";
const ETCDUTL: &str = "go.etcd.io/etcd/etcdutl/v3";
const KUBERNETES_STAMPS: &[&str] = &["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];

/// Builds what is missing, and says where everything is.
pub fn build() -> Done {
    ensure_all()?;
    print()
}

/// Builds what is missing; silent when nothing is.
pub fn ensure_all() -> Done {
    let (cache, _lock) = locked_cache()?;
    RECIPES.iter().try_for_each(|recipe| ensure(recipe, &cache))?;
    python::ensure(&cache)
}

/// Builds upstream's end-to-end specs and what their pods run, if they are missing, and says where both are.
pub fn ensure_e2e() -> Result<[PathBuf; 2], String> {
    let (cache, _lock) = locked_cache()?;
    E2E.iter().try_for_each(|recipe| ensure(recipe, &cache))?;
    Ok(E2E.each_ref().map(|recipe| cache.join("bin").join(recipe.programs[0].0)))
}

/// The cache, for this process alone as long as the file is open.
fn locked_cache() -> Result<(PathBuf, File), String> {
    let cache = cache_dir()?;
    fs::create_dir_all(cache.join("bin")).map_err(|e| io("create", &cache, &e))?;
    let lock = File::create(cache.join("lock")).map_err(|e| io("create", &cache, &e))?;
    lock.lock().map_err(|e| io("lock", &cache, &e))?;
    Ok((cache, lock))
}

/// Writes a `NAME=path` line for each program, and for the Python client's interpreter if it is installed;
/// builds nothing.
pub fn print() -> Done {
    for (name, path) in located()? {
        println!("{}={}", name.to_uppercase().replace(['-', '.'], "_"), path.display());
    }
    if let Some(interpreter) = python::located(&cache_dir()?)? {
        println!("PYTHON={}", interpreter.display());
    }
    Ok(())
}

/// Returns the directory with one link for each program.
pub fn bin_dir() -> Result<PathBuf, String> {
    Ok(cache_dir()?.join("bin"))
}

/// Returns each program's path, or which one is missing or made from an older recipe.
fn located() -> Result<Vec<(&'static str, PathBuf)>, String> {
    let cache = cache_dir()?;
    let mut all = Vec::new();
    for recipe in &RECIPES {
        let plan = Plan::read(recipe, &cache)?;
        if !plan.is_built(recipe) {
            return Err(format!("{} is not built; run `cargo xtask peers`", recipe.folder));
        }
        all.extend(recipe.programs.iter().map(|(name, _)| (*name, cache.join("bin").join(name))));
    }
    Ok(all)
}

/// What a recipe comes to on this machine.
struct Plan {
    version: String,
    /// `<cache>/<module>-<version>`.
    home: PathBuf,
    /// Everything that decides the result, kept as `home/recipe` once the build is whole.
    recipe: String,
    module_dir: PathBuf,
    ldflags: String,
}

impl Plan {
    fn read(recipe: &Recipe, cache: &Path) -> Result<Plan, String> {
        let module_dir = run::root().join("tools/peers").join(recipe.folder);
        let file = module_dir.join("go.mod");
        let go_mod = fs::read_to_string(&file).map_err(|e| io("read", &file, &e))?;
        let version = required_version(&go_mod, recipe.module)
            .ok_or_else(|| format!("{} requires no {}", file.display(), recipe.module))?
            .to_owned();
        let ldflags = ldflags(recipe.stamps, &version);
        let source = match recipe.kind {
            Program::Command => String::new(),
            Program::Tests => {
                let file = module_dir.join(TESTS);
                fs::read_to_string(&file).map_err(|e| io("read", &file, &e))?
            }
        };
        let family = recipe.folder.split('-').next().unwrap_or(recipe.folder);
        Ok(Plan {
            home: cache.join(format!("{family}-{version}")),
            recipe: format!("{ldflags}\n{go_mod}{source}"),
            version,
            module_dir,
            ldflags,
        })
    }

    fn is_built(&self, recipe: &Recipe) -> bool {
        fs::read_to_string(self.home.join("recipe")).is_ok_and(|built| built == self.recipe)
            && recipe.programs.iter().all(|(name, _)| self.home.join(name).is_file())
    }
}

fn ensure(recipe: &Recipe, cache: &Path) -> Done {
    let plan = Plan::read(recipe, cache)?;
    if !plan.is_built(recipe) {
        run::need_go("building the peers")?;
        make(recipe, &plan)?;
    }
    for (name, _) in recipe.programs {
        link(&plan.home.join(name), &cache.join("bin").join(name))?;
    }
    Ok(())
}

/// Builds in a copy of the scratch module; the recipe is written last, so a build that was cut short is done
/// again.
fn make(recipe: &Recipe, plan: &Plan) -> Done {
    let source = plan.home.join("module");
    fs::create_dir_all(&source).map_err(|e| io("create", &source, &e))?;
    let (files, verb): (&[&str], &[&str]) = match recipe.kind {
        Program::Command => (&["go.mod", "go.sum"], &["build"]),
        Program::Tests => (&["go.mod", "go.sum", TESTS], &["test", "-c"]),
    };
    for file in files {
        let from = plan.module_dir.join(file);
        fs::copy(&from, source.join(file)).map_err(|e| io("copy", &from, &e))?;
    }
    for (name, package) in recipe.programs {
        eprintln!("building {name} {} (minutes, the first time)", plan.version);
        let built = source.join(name);
        run::run(
            Command::new("go")
                .current_dir(&source)
                .env("CGO_ENABLED", "0")
                .args(verb)
                .args(["-mod=readonly", "-trimpath", "-ldflags", &plan.ldflags, "-o"])
                .arg(&built)
                .arg(package),
        )?;
        fs::rename(&built, plan.home.join(name)).map_err(|e| io("move", &built, &e))?;
    }
    let stamp = plan.home.join("recipe");
    fs::write(&stamp, &plan.recipe).map_err(|e| io("write", &stamp, &e))
}

/// Points `at` to `target`, at once for anyone who looks.
fn link(target: &Path, at: &Path) -> Done {
    if fs::read_link(at).is_ok_and(|now| now == target) {
        return Ok(());
    }
    let fresh = at.with_extension("new");
    let _ = fs::remove_file(&fresh);
    std::os::unix::fs::symlink(target, &fresh).map_err(|e| io("link", &fresh, &e))?;
    fs::rename(&fresh, at).map_err(|e| io("move", &fresh, &e))
}

/// Returns the version that `go.mod` requires of `module`.
fn required_version<'a>(go_mod: &'a str, module: &str) -> Option<&'a str> {
    go_mod.lines().find_map(|line| {
        let line = line.trim().strip_prefix("require ").unwrap_or(line.trim());
        let mut words = line.split_whitespace();
        (words.next() == Some(module)).then(|| words.next()).flatten().filter(|v| v.starts_with('v'))
    })
}

/// Linker flags: no symbol table, and the version variables that a release build sets.
fn ldflags(stamps: &[&str], version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or(""), numbers.next().unwrap_or(""));
    let mut flags = "-s -w".to_owned();
    for package in stamps {
        for (variable, value) in [
            ("gitVersion", version),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitCommit", "from-go-module"),
            ("gitTreeState", "archive"),
        ] {
            flags += &format!(" -X {package}.{variable}={value}");
        }
    }
    flags
}

fn cache_dir() -> Result<PathBuf, String> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = var("FOREBAY_PEERS_DIR") {
        return std::path::absolute(&dir).map_err(|e| io("find", &dir, &e));
    }
    var("XDG_CACHE_HOME")
        .or_else(|| var("HOME").map(|home| home.join(".cache")))
        .map(|base| base.join("forebay").join("peers"))
        .ok_or_else(|| "neither FOREBAY_PEERS_DIR, XDG_CACHE_HOME nor HOME is set".to_owned())
}

fn io(what: &str, path: &Path, why: &std::io::Error) -> String {
    format!("cannot {what} {}: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_required_not_one_replaced_or_named_as_tool() {
        let go_mod = "tool k8s.io/a/cmd\nrequire k8s.io/a v1.2.3\nrequire (\n\tk8s.io/b v0.1.0 // indirect\n)\n\
                      replace (\n\tk8s.io/c => k8s.io/c v0.9.0\n)\n";
        assert_eq!(required_version(go_mod, "k8s.io/a"), Some("v1.2.3"));
        assert_eq!(required_version(go_mod, "k8s.io/b"), Some("v0.1.0"));
        assert_eq!(required_version(go_mod, "k8s.io/c"), None);
        assert_eq!(required_version(go_mod, "k8s.io/a/cmd"), None);
    }

    #[test]
    fn every_recipe_names_a_module_that_its_folder_requires() {
        for recipe in RECIPES.iter().chain(&E2E) {
            let plan = Plan::read(recipe, Path::new("cache")).unwrap();
            assert!(plan.version.starts_with('v'), "{}: {}", recipe.folder, plan.version);
            let series = plan.version.trim_start_matches('v');
            assert!(
                series.starts_with(recipe.folder.rsplit('-').next().unwrap()),
                "{}: {series}",
                recipe.folder
            );
            assert!(plan.module_dir.join("go.sum").is_file(), "{} has its checksums", recipe.folder);
        }
    }

    #[test]
    fn kubernetes_programs_are_stamped_with_their_version() {
        let flags = ldflags(&["p/version"], "v1.36.3");
        assert!(flags.contains("-X p/version.gitVersion=v1.36.3"), "{flags}");
        assert!(flags.contains("-X p/version.gitMajor=1 -X p/version.gitMinor=36"), "{flags}");
        assert_eq!(ldflags(&[], "v3.6.8"), "-s -w");
    }
}
