//! `cargo xtask operators`: operators that people run, built from their Go modules, on a server of ours.
//!
//! In: names of operators, or none for all. Out: what each has done, as `crates/clients/tests/operators.rs`
//! saw it. Never: a source of a module's in the repository, or a change to one; a build of what is built.
//!
//! A scratch module outside of the repository has the versions that the operator's own `go.mod` has. Where
//! its program is a package of the published module, that is built; where it is a module of its own, a main
//! of `tools/operators` calls the operator's packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::peers;
use crate::run::{self, Done};

struct Operator {
    name: &'static str,
    module: &'static str,
    version: &'static str,
    /// As Go sums it up.
    sum: &'static str,
    /// Modules of the same repository, which its own `go.mod` has from beside it: at the same version, or at
    /// the one behind an `@`.
    beside: &'static [&'static str],
    program: Main,
}

/// What is built.
enum Main {
    /// A package of the module; its root has no path.
    Package(&'static str),
    /// A file of `tools/operators`.
    Ours(&'static str),
}

const OPERATORS: [Operator; 6] = [
    Operator {
        name: "cert-manager",
        module: "github.com/cert-manager/cert-manager",
        version: "v1.21.2",
        sum: "h1:UWgoYM+KLNtRlqmoWOKjKBOBUPVHeepQ6/ac3ERJW68=",
        beside: &[],
        program: Main::Ours("cert-manager.go"),
    },
    Operator {
        name: "prometheus-operator",
        module: "github.com/prometheus-operator/prometheus-operator",
        version: "v0.85.0",
        sum: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        beside: &["pkg/apis/monitoring", "pkg/client"],
        program: Main::Package("cmd/operator"),
    },
    Operator {
        name: "kueue",
        module: "sigs.k8s.io/kueue",
        version: "v0.17.0",
        sum: "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=",
        beside: &[],
        program: Main::Package("cmd/kueue"),
    },
    Operator {
        name: "cluster-api",
        module: "sigs.k8s.io/cluster-api",
        version: "v1.14.2",
        sum: "h1:o3GFNaeNFAOEEMpDPfhCK+2CjmV6gtQ8yLEcUwCg7bA=",
        beside: &["api"],
        program: Main::Package("core"),
    },
    Operator {
        name: "gatekeeper",
        module: "github.com/open-policy-agent/gatekeeper/v3",
        version: "v3.23.1",
        sum: "h1:njHTm0SJ6ZEhhEgmQTpJKTGQbc99fSs4hGiEp1OIKck=",
        beside: &[],
        program: Main::Package(""),
    },
    // Nobody's operator: it says who people are.
    Operator {
        name: "dex",
        module: "github.com/dexidp/dex",
        version: "v0.0.0-20260806151424-ab64ed778070",
        sum: "h1:Zhb4XyHQ8935RToX2ZgxyfQcg8EE9gSnbk2Zi5PYf4E=",
        beside: &["api/v2@v2.4.1-0.20260806151424-ab64ed778070"],
        program: Main::Package("cmd/dex"),
    },
];

/// - `args`: names of operators.
pub fn operators(args: &[String]) -> Done {
    run::need_go("operators")?;
    let known = OPERATORS.each_ref().map(|operator| operator.name);
    if let Some(unknown) = args.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("no operator {unknown:?}; known: {}", known.join(", ")));
    }
    peers::ensure_all()?;
    let bin = peers::bin_dir()?;
    let home = bin.parent().ok_or("the peers have no directory")?.join("operators");
    let asked = |operator: &&Operator| args.is_empty() || args.iter().any(|name| name == operator.name);
    for operator in OPERATORS.iter().filter(asked) {
        operator.ensure(&home)?;
    }
    run::run(&mut run::cargo(&["build", "--package", "forebay", "--bin", "forebay"]))?;
    let mut tests = run::cargo(&["test", "--package", "forebay-clients", "--test", "operators", "--"]);
    tests.args(["--nocapture", "--test-threads=1"]).env("FOREBAY_OPERATORS", &home);
    run::run(tests.args(args.iter().map(|name| name.replace('-', "_"))))
}

/// A module as Go has it.
struct Downloaded {
    dir: PathBuf,
    sum: String,
}

impl Operator {
    /// Builds it, unless that was done; leaves its program and a link to its source in `home`.
    fn ensure(&self, home: &Path) -> Done {
        let program = home.join(format!("{}-{}", self.name, self.version));
        let scratch = home.join("modules").join(self.name);
        fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
        let module = self.downloaded(&scratch)?;
        if !program.is_file() || !self.is_current(&scratch) {
            self.build(&scratch, &module, &program)?;
        }
        link(&program, &home.join(self.name))?;
        link(&module.dir, &home.join(format!("{}.source", self.name)))
    }

    /// Whether what was built is of the file that is there now, if it is of one.
    fn is_current(&self, scratch: &Path) -> bool {
        let Main::Ours(file) = self.program else { return true };
        let ours = fs::read_to_string(run::root().join("tools/operators").join(file));
        let built = fs::read_to_string(scratch.join("main.go"));
        matches!((ours, built), (Ok(ours), Ok(built)) if ours == built)
    }

    /// The module, whose sources are those that were looked at.
    fn downloaded(&self, scratch: &Path) -> Result<Downloaded, String> {
        let mut command = Command::new("go");
        let of = format!("{}@{}", self.module, self.version);
        command.args(["mod", "download", "-json", &of]).current_dir(scratch).env("GOWORK", "off");
        let text = run::output(&mut command)?;
        let known: Value = serde_json::from_str(&text).map_err(|e| format!("go mod download: {e}"))?;
        match (known["Sum"].as_str(), known["Dir"].as_str()) {
            (Some(sum), Some(dir)) if sum == self.sum => {
                Ok(Downloaded { dir: PathBuf::from(dir), sum: sum.to_owned() })
            }
            (sum, _) => Err(format!("{of} has the sum {sum:?}, not {}", self.sum)),
        }
    }

    fn build(&self, scratch: &Path, module: &Downloaded, program: &Path) -> Done {
        let read = |path: PathBuf| fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()));
        let own = read(module.dir.join("go.mod"))?;
        let write = |name: &str, text: String| {
            let path = scratch.join(name);
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))
        };
        write("go.mod", self.go_mod(&own))?;
        let sums = read(module.dir.join("go.sum"))?;
        write("go.sum", format!("{sums}{} {} {}\n", self.module, self.version, module.sum))?;
        let package = match self.program {
            Main::Package("") => self.module.to_owned(),
            Main::Package(path) => format!("{}/{path}", self.module),
            Main::Ours(file) => {
                write("main.go", read(run::root().join("tools/operators").join(file))?)?;
                ".".to_owned()
            }
        };
        eprintln!("building {} {} (minutes, the first time)", self.name, self.version);
        let mut build = Command::new("go");
        build.current_dir(scratch).env("CGO_ENABLED", "0").env("GOWORK", "off");
        // What it needs beyond its own sums is looked up as Go does it.
        build.args(["build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o"]).arg(program).arg(package);
        run::run(&mut build)
    }

    /// The operator's own `go.mod` as one of a module below it, which may call its internal packages.
    fn go_mod(&self, own: &str) -> String {
        let mut lines: Vec<String> = vec![format!("module {}/of-forebay", self.module)];
        for line in own.lines() {
            let text = line.trim();
            let is_ours =
                text.starts_with("module ") || self.beside().any(|(of, _)| self.is_beside(text, of));
            // What stands beside the module is not part of what is published.
            let is_local = text.contains("=> ./") || text.contains("=> ../");
            if !is_ours && !is_local {
                lines.push(line.to_owned());
            }
        }
        lines.push(format!("require {} {}", self.module, self.version));
        for (of, version) in self.beside() {
            lines.push(format!("require {}/{of} {version}", self.module));
        }
        lines.join("\n") + "\n"
    }

    /// The paths of the modules beside it, and their versions.
    fn beside(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.beside.iter().map(|of| of.split_once('@').unwrap_or((of, self.version)))
    }

    /// Whether a line requires a module of the same repository.
    fn is_beside(&self, line: &str, of: &str) -> bool {
        let line = line.strip_prefix("require ").unwrap_or(line);
        line.strip_prefix(self.module)
            .and_then(|rest| rest.strip_prefix('/')?.strip_prefix(of))
            .is_some_and(|rest| rest.starts_with(" v"))
    }
}

fn link(target: &Path, at: &Path) -> Done {
    if at.is_symlink() {
        fs::remove_file(at).map_err(|e| format!("{}: {e}", at.display()))?;
    }
    std::os::unix::fs::symlink(target, at).map_err(|e| format!("{}: {e}", at.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_module_has_the_operators_versions_and_none_from_beside_it() {
        let own = "module a.io/op\n\ngo 1.26\n\nrequire (\n\ta.io/op/pkg/client v0.1.0\n\tb.io/c v1.0.0\n)\n\n\
                   replace a.io/op/pkg/client => ./pkg/client\n";
        let operator = Operator {
            name: "op",
            module: "a.io/op",
            version: "v0.2.0",
            sum: "",
            beside: &["pkg/client", "api/v2@v2.0.1"],
            program: Main::Package("cmd"),
        };
        let made = operator.go_mod(own);
        assert!(made.starts_with("module a.io/op/of-forebay\n"), "{made}");
        assert!(
            made.contains("b.io/c v1.0.0") && !made.contains("v0.1.0") && !made.contains("replace"),
            "{made}"
        );
        let required =
            "require a.io/op v0.2.0\nrequire a.io/op/pkg/client v0.2.0\nrequire a.io/op/api/v2 v2.0.1\n";
        assert!(made.ends_with(required), "{made}");
    }
}
