//! The one door: `cargo xtask ci | arch | gen | peers | bench | sim | fuzz | sequences | rules | plugins |
//! hooks | rights | audit | suites | e2e | operators | mutants`.
//!
//! In: a command name and its options. Out: the tools' own output, and an exit code that says whether all
//! went well. Never: a dependency that takes longer to build than to run; logic that the product needs.

#![allow(clippy::disallowed_methods, reason = "a chore that times itself; no simulation runs it")]

mod arch;
mod audit;
mod bench;
mod ci;
mod core_mutants;
mod dependencies;
mod e2e;
mod fuzz;
mod generate;
mod hooks;
mod mutants;
mod operators;
mod peers;
mod plugins;
mod python;
mod rights;
mod robustness;
mod rules;
mod run;
mod sequences;
mod sim;
mod suites;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  ci [--fast]               every check, as CI runs it; --fast leaves out what needs the Go peers
  arch [--write]            only the architecture checks of ci: arrows between crates, words that a crate may not use, import
                            cycles; --write draws the crates in ARCHITECTURE.md anew
  dependencies              only the dependency tree, held against deny.toml
  gen [--check]             write the schema table from the Kubernetes Go modules; --check only compares
  peers [--print]           build the real etcd, kube-apiserver and kubectl that tests and benches compare with;
                            --print writes their paths as NAME=path lines and builds nothing
  bench [scenario] [...]    measure forebay beside kube-apiserver and etcd; `bench --help` lists the options
  sim [--seeds N] [--from S] [--print] [--release]
                            simulate N seeds from S on and say what happened; --print shows every line of it,
                            --release builds it optimised, for long runs
  fuzz [inputs [seed]]      give the parsers mutated inputs, a million each unless said otherwise
  plugins [--count N] [--from S] [--of NAME,...]
                            send 2,000 cases for each admission plugin to forebay and kube-apiserver
  hooks [--count N] [--from S]
                            send 2,000 configurations of webhooks, and writes under them, to forebay and kube-apiserver
  audit [--policies N] [--requests N] [--from P]
                            send 2,000 requests under each of 20 audit policies to forebay and kube-apiserver, and compare what
                            they note
  rights [--count N] [--policies N]
                            ask forebay and kube-apiserver 20,000 questions about who may do what, over 200 policies
  sequences [--count N] [--from S] [--paused N] [--redefined N] [--kind PLURAL] [--at-once N] [--seconds S] [--resume]
            [--same] [--all] [--release]
                            send writes of several managers to forebay and kube-apiserver, 20,000 sequences of them, 500 that
                            pause and 100 of each kind that changes unless said otherwise, and compare all answers; --seconds stops after so many, --resume
                            goes on where a run was stopped; --same compares kube-apiserver with itself, --all shows differences
                            that are known, too
  rules [NAME] [--show] [--release]
                            send the definitions of well-known operators, and for each of their rules objects that pass and
                            that fail, to forebay and kube-apiserver, and compare; NAME is an operator, or in a definition's
                            name; --show prints what differs with its objects
  rules --times             say what an evaluation of a rule takes beside cel-go
  suites [suite] [package] [...]
                            run controller-runtime's own tests, those of Flux' library of server-side apply, Kueue's and JobSet's,
                            from their Go modules, on forebay by way of envtest
  e2e [--focus REGEX] [--rival] [--release]
                            run upstream's own specs that need no nodes, on forebay or, with --rival, on kube-apiserver, and say
                            which fail that are not known to; --focus runs those of such a name
  operators [NAME] [...]    build operators that people run from their Go modules, outside of the repository, and have each do on
                            forebay what it is for: cert-manager, prometheus-operator, kueue, cluster-api, gatekeeper
  mutants                   make each mistake of crates/{sim,fuzz}/mutants in a copy, and see that the simulation, or the fuzzer, finds it
  mutants core [package] [...]
                            change the core's sources in a copy, a little at a time, and see that their crates' tests notice 95 %

The peers are kept outside the repository: $FOREBAY_PEERS_DIR, or forebay/peers in the user's cache directory.
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let done = match command {
        "ci" => run::flags(rest, &["--fast"]).and_then(|flags| ci::ci(flags.contains(&"--fast"))),
        "arch" => run::flags(rest, &["--write"]).and_then(|flags| match flags.contains(&"--write") {
            true => arch::check(arch::Drawing::Write),
            false => arch::check(arch::Drawing::Check),
        }),
        "dependencies" => run::flags(rest, &[]).and_then(|_| dependencies::check()),
        "gen" => run::flags(rest, &["--check"]).and_then(|flags| match flags.contains(&"--check") {
            true => generate::generate(generate::Mode::Check),
            false => generate::generate(generate::Mode::Write),
        }),
        "peers" => run::flags(rest, &["--print"]).and_then(|flags| match flags.contains(&"--print") {
            true => peers::print(),
            false => peers::build(),
        }),
        "bench" => bench::bench(rest),
        "sim" => sim::sim(rest),
        "fuzz" => fuzz::fuzz(rest),
        "plugins" => plugins::plugins(rest),
        "hooks" => hooks::hooks(rest),
        "rights" => rights::rights(rest),
        "audit" => audit::audit(rest),
        "sequences" => sequences::sequences(rest),
        "rules" => rules::rules(rest),
        "suites" => suites::suites(rest),
        "e2e" => e2e::e2e(rest),
        "operators" => operators::operators(rest),
        "mutants" => match rest.split_first() {
            Some((first, only)) if first == "core" => core_mutants::core(only),
            _ => run::flags(rest, &["core"]).and_then(|_| mutants::mutants()),
        },
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("no command {other:?}\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
