//! `forebay completion SHELL`: the commands and flags as a description, from which a script is made.
//!
//! Only here is there a parser of clap's: it is made when a script is asked for, and never reads arguments.

use std::io::Write;

use clap::builder::ValueHint;
use clap::{Arg, ArgAction, Command};
use clap_complete::Shell;

use crate::error::Error;
use crate::flags::options::Known;
use crate::flags::spec::{Flag, FlagType};
use crate::flags::{nearest, table};
use crate::{migrate, snapshot, top};

const SHELLS: [(&str, Shell); 5] = [
    ("bash", Shell::Bash),
    ("elvish", Shell::Elvish),
    ("fish", Shell::Fish),
    ("powershell", Shell::PowerShell),
    ("zsh", Shell::Zsh),
];

/// Writes the script for the shell of this name.
///
/// # Errors
/// [`Error::Unknown`] for another shell; [`Error::Output`].
pub fn write(shell: &str, out: &mut dyn Write) -> Result<(), Error> {
    let Some((_, shell)) = SHELLS.iter().find(|(name, _)| *name == shell) else {
        let nearest = nearest(shell, SHELLS.iter().map(|(name, _)| *name)).map(str::to_owned);
        return Err(Error::Unknown { what: "shell", given: shell.to_owned(), nearest });
    };
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut command(), "forebay", &mut script);
    Ok(out.write_all(&script)?)
}

fn command() -> Command {
    let output = Arg::new("output").short('o').long("output").value_parser(["json", "yaml"]);
    let shell = Arg::new("shell").value_parser(SHELLS.map(|(name, _)| name));
    Command::new("forebay")
        .about("A Kubernetes API server in one binary")
        .subcommand(Command::new("serve").about("Run the API server").args(table::served().map(argument)))
        .subcommand(
            Command::new("envtest")
                .about("Print how to run controller-runtime's envtest on it")
                .arg(Arg::new("dir").value_hint(ValueHint::DirPath)),
        )
        .subcommand(
            Command::new("snapshot")
                .about("Save the store to a file, look at such a file, or make a store of it")
                .subcommands(
                    snapshot::commands()
                        .map(|(name, known)| with_options(Command::new(name), known).arg(file())),
                ),
        )
        .subcommand(with_options(
            Command::new("migrate").about("Move all objects from a data directory into etcd, or back"),
            migrate::KNOWN,
        ))
        .subcommand(with_options(
            Command::new("top").about("Show who uses a server, live in the terminal"),
            top::KNOWN,
        ))
        .subcommand(Command::new("version").about("Print the version").arg(output))
        .subcommand(Command::new("completion").about("Print a completion script").arg(shell))
}

fn file() -> Arg {
    Arg::new("file").value_hint(ValueHint::FilePath)
}

fn with_options(command: Command, known: &'static [Known]) -> Command {
    command.args(known.iter().map(|option| {
        let mut argument = Arg::new(option.name).long(option.name).help(option.text);
        argument = option
            .short
            .and_then(|short| short.chars().next())
            .map_or(argument.clone(), |short| argument.short(short));
        if option.value.is_empty() {
            return argument.action(ArgAction::SetTrue);
        }
        argument.value_name(option.value).value_hint(hint(option.value))
    }))
}

fn hint(value: &str) -> ValueHint {
    match value {
        "DIR" => ValueHint::DirPath,
        "FILE" => ValueHint::FilePath,
        _ => ValueHint::Other,
    }
}

fn argument(flag: &'static Flag) -> Arg {
    let mut argument = Arg::new(flag.name).long(flag.name);
    if flag.name == "v" {
        argument = argument.short('v');
    }
    let Some(help) = flag.help() else { return argument };
    argument = argument.help(help.text);
    if flag.kind == FlagType::Bool {
        return argument.action(ArgAction::SetTrue);
    }
    argument.value_name(help.value).value_hint(hint(help.value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_every_served_flag_and_no_other() {
        for (name, _) in SHELLS {
            let mut script = Vec::new();
            write(name, &mut script).expect(name);
            let script = String::from_utf8(script).expect("UTF-8");
            for flag in table::served() {
                assert!(script.contains(flag.name), "{name}: {}", flag.name);
            }
            assert!(
                !script.contains("etcd-servers-overrides") && !script.contains("kubelet-timeout"),
                "{name}"
            );
        }
    }

    #[test]
    fn another_shell_is_an_error_that_names_the_nearest() {
        let error = write("bsh", &mut Vec::new()).expect_err("no such shell");
        assert_eq!(error.to_string(), "unknown shell: bsh; did you mean bash?");
    }
}
