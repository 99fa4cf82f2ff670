//! Arguments as pflag reads them: `--flag value`, `--flag=value`, `--flag` for booleans, `-v 4`, `--` ends
//! them.
//!
//! Arguments in; what was typed out, by flag, and what is left over. Values are not looked at.

use std::ffi::OsString;

use super::layers::Layer;
use super::nearest::nearest;
use super::spec::{Flag, FlagType};
use super::table;
use crate::error::Error;

/// What a command line says.
#[derive(Debug, Default)]
pub struct Typed {
    pub flags: Layer,
    /// Arguments that are no flags.
    pub rest: Vec<String>,
    pub help: bool,
}

/// Reads the arguments behind `forebay serve`.
///
/// # Errors
/// An unknown flag, with the nearest known one; a flag without its value; an argument that is not UTF-8.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Typed, Error> {
    let mut arguments = arguments.map(text);
    let mut typed = Typed::default();
    while let Some(argument) = arguments.next().transpose()? {
        if argument == "--" {
            typed.rest.extend(arguments.by_ref().collect::<Result<Vec<_>, _>>()?);
        } else if let Some(long) = argument.strip_prefix("--") {
            read_long(long, &mut arguments, &mut typed)?;
        } else if argument.len() > 1 && argument.starts_with('-') {
            read_short(&argument, &mut arguments, &mut typed)?;
        } else {
            typed.rest.push(argument);
        }
    }
    Ok(typed)
}

/// One argument.
///
/// # Errors
/// It is not UTF-8.
pub(super) fn text(argument: OsString) -> Result<String, Error> {
    argument.into_string().map_err(|raw| Error::Usage(format!("argument is not UTF-8: {}", raw.display())))
}

type Arguments<'a> = &'a mut dyn Iterator<Item = Result<String, Error>>;

fn read_long(long: &str, arguments: Arguments, typed: &mut Typed) -> Result<(), Error> {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    if name.is_empty() || name.starts_with('-') {
        return Err(Error::Usage(format!("bad flag syntax: --{long}")));
    }
    // As in kube-apiserver, --data_dir is --data-dir.
    let name = name.replace('_', "-");
    if name == "help" {
        typed.help = true;
        return Ok(());
    }
    let flag = table::find(&name).ok_or_else(|| unknown(&name))?;
    let value = match value {
        Some(value) => value.to_owned(),
        None => value_behind(flag, arguments)?,
    };
    typed.flags.add(flag, value);
    Ok(())
}

fn value_behind(flag: &'static Flag, arguments: Arguments) -> Result<String, Error> {
    if flag.kind == FlagType::Bool {
        return Ok("true".to_owned());
    }
    arguments.next().unwrap_or(Err(Error::NeedsArgument { flag: flag.name }))
}

fn read_short(argument: &str, arguments: Arguments, typed: &mut Typed) -> Result<(), Error> {
    if argument == "-h" {
        typed.help = true;
        return Ok(());
    }
    let Some(attached) = argument.strip_prefix("-v").filter(|attached| is_level(attached)) else {
        return Err(unknown_short(argument));
    };
    let flag = table::find("v").ok_or_else(|| unknown_short(argument))?;
    let value = match attached.strip_prefix('=').unwrap_or(attached) {
        "" if attached.is_empty() => value_behind(flag, arguments)?,
        value => value.to_owned(),
    };
    typed.flags.add(flag, value);
    Ok(())
}

/// What may follow `-v` in one argument: nothing, `=4` or `4`.
fn is_level(attached: &str) -> bool {
    attached.is_empty() || attached.starts_with('=') || attached.bytes().all(|b| b.is_ascii_digit())
}

fn unknown(name: &str) -> Error {
    let nearest = nearest(name, table::all().map(|flag| flag.name)).map(|near| format!("--{near}"));
    Error::Unknown { what: "flag", given: format!("--{name}"), nearest }
}

fn unknown_short(argument: &str) -> Error {
    let name = argument.trim_start_matches('-').split('=').next().unwrap_or_default();
    let nearest = nearest(name, table::all().map(|flag| flag.name)).map(|near| format!("--{near}"));
    Error::Unknown { what: "flag", given: argument.to_owned(), nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, want: &str) {
        let got = match parse(line.split_whitespace().map(OsString::from)) {
            Ok(typed) => {
                let mut words: Vec<String> = typed
                    .flags
                    .iter()
                    .map(|(name, given)| format!("{name}={}", given.values.join("|")))
                    .collect();
                words.extend(typed.rest.iter().map(|rest| format!("[{rest}]")));
                words.extend(typed.help.then(|| "HELP".to_owned()));
                words.join(" ")
            }
            Err(error) => format!("ERROR {}: {error}", error.exit_code()),
        };
        assert_eq!(got, want, "{line}");
    }

    #[test]
    fn flags_are_read_as_pflag_reads_them() {
        let rows = [
            ("", ""),
            ("--data-dir x", "data-dir=x"),
            ("--data-dir=x", "data-dir=x"),
            ("--data-dir=", "data-dir="),
            ("--data-dir=a=b", "data-dir=a=b"),
            ("--data_dir=x", "data-dir=x"),
            ("--data-dir --x", "data-dir=--x"),
            ("--data-dir a --data-dir b", "data-dir=b"),
            ("--anonymous-auth", "anonymous-auth=true"),
            ("--anonymous-auth=false", "anonymous-auth=false"),
            ("--anonymous-auth false", "anonymous-auth=true [false]"),
            ("--api-audiences a,b --api-audiences c", "api-audiences=a|b|c"),
            ("--service-account-key-file a,b --service-account-key-file c", "service-account-key-file=a,b|c"),
            ("--v 4", "v=4"),
            ("--v=4", "v=4"),
            ("-v 4", "v=4"),
            ("-v=4", "v=4"),
            ("-v4", "v=4"),
            ("-- --data-dir", "[--data-dir]"),
            ("x -", "[x] [-]"),
            ("-h --v 1", "v=1 HELP"),
            ("--help", "HELP"),
        ];
        for (line, want) in rows {
            check(line, want);
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let rows = [
            ("--data-dri x", "ERROR 2: unknown flag: --data-dri; did you mean --data-dir?"),
            ("--data-dri=x", "ERROR 2: unknown flag: --data-dri; did you mean --data-dir?"),
            ("-data-dir x", "ERROR 2: unknown flag: -data-dir; did you mean --data-dir?"),
            ("-x", "ERROR 2: unknown flag: -x"),
            ("-version", "ERROR 2: unknown flag: -version"),
            ("--zzzzzz", "ERROR 2: unknown flag: --zzzzzz"),
            ("--data-dir", "ERROR 2: flag needs an argument: --data-dir"),
            ("-v", "ERROR 2: flag needs an argument: --v"),
            ("---x", "ERROR 2: bad flag syntax: ---x"),
            ("--=x", "ERROR 2: bad flag syntax: --=x"),
        ];
        for (line, want) in rows {
            check(line, want);
        }
    }

    #[test]
    fn fuzz_arguments() {
        let inputs: &[&[u8]] = &[
            b"--data-dir\0d\0--secure-port=0\0-v\x004\0--anonymous-auth\0--\0rest",
            b"--no_such-flag=1\0-h",
        ];
        let words =
            &["--", "=", "\0", "-", "--v=", "--help", "--etcd-servers", "_", "--feature-gates=A=true,B=x"];
        let corpus = forebay_fuzz::Corpus { inputs, words, bytes_max: 128, one_in: 20 };
        forebay_fuzz::run("arguments", &corpus, |input| {
            let text = String::from_utf8_lossy(input);
            let typed = parse(text.split('\0').map(OsString::from)).map_err(forebay_fuzz::gist)?;
            Ok::<_, String>((typed.rest.len().min(4), typed.help))
        });
    }
}
