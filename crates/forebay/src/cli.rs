//! The command line: which command, and what it prints where.
//!
//! Stdout gets what was asked for, stderr the log and errors. The exit code is 0, 1 for what failed, 2 for
//! what was typed wrong.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use forebay_embedded::Syncs;
use jiff::Timestamp;

use crate::config::{Host, ServeConfig};
use crate::envtest::Program;
use crate::error::Error;
use crate::flags::layers::Raw;
use crate::flags::options::{Given, Known};
use crate::flags::{argv, help, nearest};
use crate::prepare::Prepared;
use crate::serve::{self, Until};
use crate::version::{Format, VersionOutput};
use crate::{completion, envtest, kube_apiserver, logging, migrate, snapshot, top};

/// Runs the command of this process, or the program that its name says.
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next();
    let out = &mut io::stdout();
    let done = match Program::named(name.as_deref()) {
        Some(Program::KubeApiserver) => kube_apiserver::run(arguments, out),
        Some(Program::Etcd) => envtest::etcd::run(arguments, out),
        None => run(arguments, out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has had enough: head, or a pager that was quit.
        Err(Error::Output(cause)) if cause.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error.line());
            ExitCode::from(error.exit_code())
        }
    }
}

/// What `version` knows.
const VERSION: &[Known] =
    &[Known { name: "output", short: Some("o"), value: "FORMAT", text: "json or yaml" }];

const COMMANDS: [&str; 8] =
    ["serve", "top", "snapshot", "migrate", "envtest", "version", "completion", "help"];

fn run(mut arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Error> {
    let Some(command) = arguments.next() else {
        return Err(Error::Usage(
            "no command; \"forebay serve\" runs the server, \"forebay --help\" lists all".to_owned(),
        ));
    };
    let (known, small): (&'static [Known], Small) = match command.to_str() {
        Some("serve") => return serve_command(arguments, out),
        Some("top") => return top::run(arguments, out),
        Some("snapshot") => return snapshot::run(arguments, out),
        Some("migrate") => return migrate::run(arguments, out),
        Some("envtest") => (&[], print_envtest),
        Some("version" | "--version" | "-V") => (VERSION, version),
        Some("completion") => (&[], complete),
        Some("help" | "--help" | "-h") => (&[], print_help),
        _ => {
            let given = command.to_string_lossy().into_owned();
            return Err(Error::Unknown { what: "command", nearest: near_command(&given), given });
        }
    };
    let given = Given::read(arguments, known)?;
    if given.help {
        return Ok(out.write_all(help::COMMANDS.as_bytes())?);
    }
    small(&given, out)
}

/// A command that is done at once.
type Small = fn(&Given, &mut dyn Write) -> Result<(), Error>;

fn near_command(given: &str) -> Option<String> {
    // A flag first means that the command was left out.
    if given.starts_with('-') {
        return Some(format!("forebay serve {given}"));
    }
    nearest(given, COMMANDS.into_iter()).map(str::to_owned)
}

fn serve_command(arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Error> {
    let typed = argv::parse(arguments)?;
    if typed.help {
        return Ok(out.write_all(help::serve().as_bytes())?);
    }
    if let Some(argument) = typed.rest.first() {
        return Err(unexpected(argument));
    }
    let raw = Raw::collect(typed.flags, std::env::vars_os())?;
    let config = ServeConfig::decide(&raw, &Host::this())?;
    logging::init(config.verbosity);
    logging::warn(&config.warnings);
    let mut warnings = Vec::new();
    let prepared = Prepared::new(config, Timestamp::now(), &mut warnings)?;
    logging::warn(&warnings);
    serve::run(prepared, Until::Signal, Syncs::EachCommit, out)
}

fn print_envtest(given: &Given, out: &mut dyn Write) -> Result<(), Error> {
    match given.rest.as_slice() {
        [] => envtest::print(None, out),
        [dir] => envtest::print(Some(dir), out),
        [_, more, ..] => Err(unexpected(more)),
    }
}

fn version(given: &Given, out: &mut dyn Write) -> Result<(), Error> {
    if let Some(argument) = given.rest.first() {
        return Err(unexpected(argument));
    }
    let format = given.value("output").map_or(Ok(Format::Text), str::parse);
    let version = VersionOutput(format.map_err(Error::Usage)?);
    Ok(write!(out, "{version}")?)
}

fn complete(given: &Given, out: &mut dyn Write) -> Result<(), Error> {
    match given.rest.as_slice() {
        [shell] => completion::write(shell, out),
        [] => Err(Error::Usage("completion needs a shell: bash, elvish, fish, powershell or zsh".to_owned())),
        [_, more, ..] => Err(unexpected(more)),
    }
}

fn print_help(given: &Given, out: &mut dyn Write) -> Result<(), Error> {
    let text = match given.rest.first().map(String::as_str) {
        Some("serve") => help::serve(),
        Some("top") => top::help(),
        Some("snapshot") => snapshot::help(),
        Some("migrate") => migrate::help(),
        _ => help::COMMANDS.to_owned(),
    };
    Ok(out.write_all(text.as_bytes())?)
}

fn unexpected(argument: &str) -> Error {
    Error::Usage(format!("unexpected argument: {argument}"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn output(line: &str) -> String {
        let mut out = Vec::new();
        match run(line.split_whitespace().map(OsString::from), &mut out) {
            Ok(()) => String::from_utf8(out).expect("UTF-8"),
            Err(error) => {
                assert!(out.is_empty(), "{line}");
                format!("{}: {}", error.exit_code(), error.line())
            }
        }
    }

    #[test]
    fn commands_print_what_was_asked_for() {
        let version = output("version");
        assert!(version.starts_with("forebay 0."), "{version}");
        for line in ["--version", "-V"] {
            assert_eq!(output(line), version, "{line}");
        }
        let json = output("version -o json");
        for line in ["version -ojson", "version -o=json", "version --output json", "version --output=json"] {
            assert_eq!(output(line), json, "{line}");
        }
        assert!(json.starts_with('{'), "{json}");
        let help = output("--help");
        for line in ["help", "-h", "version --help", "completion -h", "envtest --help"] {
            assert_eq!(output(line), help, "{line}");
        }
        let serve = output("serve --help");
        for line in ["help serve", "serve -h", "serve --data-dir x --help"] {
            assert_eq!(output(line), serve, "{line}");
        }
        assert_eq!(output("snapshot save --help"), output("help snapshot"));
        assert_eq!(output("migrate --help"), output("help migrate"));
        assert_eq!(output("top --help"), output("help top"));
        assert!(output("completion bash").contains("_forebay"));
        assert!(output("envtest /some/dir").contains("export KUBEBUILDER_ASSETS='/some/dir'\n"));
    }

    #[test]
    fn what_was_typed_wrong_ends_with_2() {
        let rows = [
            ("", "2: no command; \"forebay serve\" runs the server, \"forebay --help\" lists all"),
            ("sevre", "2: unknown command: sevre; did you mean serve?"),
            ("zzzzzzz", "2: unknown command: zzzzzzz"),
            ("--data-dir=x", "2: unknown command: --data-dir=x; did you mean forebay serve --data-dir=x?"),
            ("version -o xml", "2: --output must be 'yaml' or 'json'"),
            ("version -o", "2: flag needs an argument: --output"),
            ("version now", "2: unexpected argument: now"),
            ("completion", "2: completion needs a shell: bash, elvish, fish, powershell or zsh"),
            ("completion csh", "2: unknown shell: csh; did you mean zsh?"),
            ("completion zsh now", "2: unexpected argument: now"),
            ("serve now", "2: unexpected argument: now"),
            ("envtest --now", "2: unknown flag: --now"),
            ("envtest here now", "2: unexpected argument: now"),
            ("snapshot", "2: snapshot needs a command: save, restore or status"),
            ("snapshot stat f", "2: unknown command: snapshot stat; did you mean snapshot status?"),
            ("snapshot status", "2: snapshot needs the name of a file"),
            ("snapshot save f g", "2: unexpected argument: g"),
            ("snapshot status f -o xml", "2: --output must be 'table' or 'json'"),
            (
                "snapshot restore f --bump-revision=-1",
                "2: invalid argument \"-1\" for --bump-revision: not a number",
            ),
            ("top now", "2: unexpected argument: now"),
            ("top --sort=name", "2: --sort must be one of cpu, bytes, held, watches, lists"),
            ("top --window 5m", "2: --window must be '1m', '10m' or 'all'"),
            ("top -o yaml", "2: --output must be 'table' or 'json'"),
            ("migrate now", "2: unexpected argument: now"),
            (
                "migrate --to-etcd-servers=http://a",
                "2: migrate needs --from-data-dir or --from-snapshot with --to-etcd-servers, or --from-etcd-servers \
                 with --to-data-dir",
            ),
            (
                "migrate --from-etcd-servers=https://a --to-data-dir=b",
                "1: --etcd-servers at https need --etcd-cafile",
            ),
            (
                "migrate --from-etcd-servers=http://a --to-data-dir=b --overwrite",
                "1: --overwrite and --resume are for etcd: move the store of the data directory away yourself",
            ),
            ("serve --data-dri=x", "2: unknown flag: --data-dri; did you mean --data-dir?"),
        ];
        for (line, want) in rows {
            assert_eq!(output(line), want, "{line}");
        }
    }

    #[test]
    fn the_overview_reads_well() {
        expect![[r#"
            A Kubernetes API server in one binary, with its store inside.

            Usage:
              forebay <command> [flags]

            Commands:
              serve        Run the API server
              top          Show who uses a server, and why there are lists, live in the terminal
              snapshot     Save the store to a file, look at such a file, or make a store of it
              migrate      Move all objects from a data directory into etcd, or back
              envtest      Print how to run controller-runtime's envtest on it
              version      Print the version; -o json or -o yaml for programs
              completion   Print a completion script: bash, elvish, fish, powershell or zsh

            Two lines to begin with:
              forebay serve &
              kubectl --kubeconfig forebay-data/admin.kubeconfig get namespaces

            "forebay serve --help" lists the flags.
        "#]]
        .assert_eq(&output("--help"));
    }
}
