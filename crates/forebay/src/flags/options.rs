//! The options of the small commands, read as pflag reads them: `--name value`, `--name=value`, `--switch`,
//! `-o json`.
//!
//! In: the arguments behind the command and what it knows. Out: what was given. The flags of `serve` have a
//! table of their own, with layers below what is typed; these have none.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::argv;
use super::layers::Origin;
use super::nearest::nearest;
use crate::error::Error;

/// One option.
#[derive(Debug)]
pub struct Known {
    /// Without the dashes.
    pub name: &'static str,
    /// `o` for `-o`.
    pub short: Option<&'static str>,
    /// The name of the value, "" for a switch.
    pub value: &'static str,
    pub text: &'static str,
}

/// An option without a short form.
pub const fn known(name: &'static str, value: &'static str, text: &'static str) -> Known {
    Known { name, short: None, value, text }
}

/// What was given.
#[derive(Debug, Default)]
pub struct Given {
    // (name, value), in order; the last one of a name counts
    values: Vec<(&'static str, String)>,
    pub rest: Vec<String>,
    pub help: bool,
}

impl Given {
    /// Reads `arguments`.
    ///
    /// # Errors
    /// An unknown option, one without its value, an argument that is not UTF-8.
    pub fn read(arguments: impl Iterator<Item = OsString>, known: &'static [Known]) -> Result<Given, Error> {
        let (mut given, mut arguments) = (Given::default(), arguments.map(argv::text));
        while let Some(argument) = arguments.next().transpose()? {
            if argument == "--" {
                given.rest.extend(arguments.by_ref().collect::<Result<Vec<_>, _>>()?);
                break;
            }
            if matches!(argument.as_str(), "-h" | "--help") {
                given.help = true;
                continue;
            }
            let Some(dashed) = argument.strip_prefix('-').filter(|name| !name.is_empty()) else {
                given.rest.push(argument);
                continue;
            };
            let (option, attached) = find(dashed, known)?;
            let value = match attached {
                Some(value) => value.to_owned(),
                None if option.value.is_empty() => "true".to_owned(),
                None => arguments.next().unwrap_or(Err(Error::NeedsArgument { flag: option.name }))?,
            };
            given.values.push((option.name, value));
        }
        Ok(given)
    }

    /// What was given for `name`, last.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.value(name).filter(|path| !path.is_empty()).map(PathBuf::from)
    }

    /// A switch, or `otherwise` when it was not given.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `--switch=maybe`.
    pub fn switch(&self, name: &'static str, otherwise: bool) -> Result<bool, Error> {
        match self.value(name) {
            None => Ok(otherwise),
            Some("true" | "1" | "t") => Ok(true),
            Some("false" | "0" | "f") => Ok(false),
            Some(value) => Err(invalid(name, value, "neither true nor false")),
        }
    }

    /// A number, or `otherwise` when it was not given.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what is no number, or above `max`.
    pub fn number(&self, name: &'static str, otherwise: u64, max: u64) -> Result<u64, Error> {
        let Some(value) = self.value(name) else { return Ok(otherwise) };
        let number: u64 = value.parse().map_err(|_| invalid(name, value, "not a number"))?;
        if number > max {
            return Err(invalid(name, value, &format!("more than {max}")));
        }
        Ok(number)
    }
}

/// The value of an option cannot be used.
pub fn invalid(flag: &'static str, value: &str, reason: &str) -> Error {
    Error::Invalid { flag, value: value.to_owned(), origin: Origin::Typed, reason: reason.to_owned() }
}

/// The option that `dashed`, an argument without its first dash, names, and the value within it.
fn find<'a>(dashed: &'a str, known: &'static [Known]) -> Result<(&'static Known, Option<&'a str>), Error> {
    let Some(long) = dashed.strip_prefix('-') else {
        let short = |option: &&Known| option.short.is_some_and(|short| dashed.starts_with(short));
        let unknown = || Error::Unknown { what: "flag", given: format!("-{dashed}"), nearest: None };
        let option = known.iter().find(short).ok_or_else(unknown)?;
        let attached = &dashed[option.short.map_or(0, str::len)..];
        let attached = (!attached.is_empty()).then(|| attached.strip_prefix('=').unwrap_or(attached));
        return Ok((option, attached));
    };
    let (name, attached) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (long, None),
    };
    let name = name.replace('_', "-");
    let Some(option) = known.iter().find(|option| option.name == name) else {
        let nearest = nearest(&name, known.iter().map(|option| option.name));
        let nearest = nearest.map(|near| format!("--{near}"));
        return Err(Error::Unknown { what: "flag", given: format!("--{name}"), nearest });
    };
    Ok((option, attached))
}

/// The lines of a help text for these options.
pub fn describe(known: &[Known]) -> String {
    let mut text = String::new();
    for option in known {
        let short = option.short.map_or(String::new(), |short| format!("-{short}, "));
        let head = format!("  {short}--{} {}", option.name, option.value);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<32}{}", head.trim_end(), option.text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Known] = &[
        known("data-dir", "DIR", ""),
        known("all", "", ""),
        Known { name: "output", short: Some("o"), value: "FORMAT", text: "" },
    ];

    fn read(line: &str) -> Result<Given, Error> {
        Given::read(line.split_whitespace().map(OsString::from), KNOWN)
    }

    #[test]
    fn options_stand_anywhere_and_the_last_one_counts() {
        let rows = [
            ("f --data-dir d -o json", Some("d"), Some("json"), false, "f"),
            ("--data_dir=d -ojson --all f", Some("d"), Some("json"), true, "f"),
            ("--data-dir a --data-dir=b -o=json --all=false", Some("b"), Some("json"), false, ""),
            ("--output json -- --all -", None, Some("json"), false, "--all -"),
            ("-", None, None, false, "-"),
        ];
        for (line, dir, output, all, rest) in rows {
            let given = read(line).expect(line);
            let values = (given.value("data-dir"), given.value("output"), given.switch("all", false).ok());
            assert_eq!(values, (dir, output, Some(all)), "{line}");
            assert_eq!(given.rest.join(" "), rest, "{line}");
        }
        assert!(read("--all --help").expect("help").help);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let rows = [
            ("--data-dri=d", "unknown flag: --data-dri; did you mean --data-dir?"),
            ("-x", "unknown flag: -x"),
            ("-o", "flag needs an argument: --output"),
        ];
        for (line, want) in rows {
            assert_eq!(read(line).expect_err(line).to_string(), want);
        }
        let given = read("--all=perhaps --data-dir=9").expect("read");
        let error = given.switch("all", true).expect_err("no switch").to_string();
        assert_eq!(error, "invalid argument \"perhaps\" for --all: neither true nor false");
        assert_eq!(given.number("data-dir", 1, 9).ok(), Some(9));
        let error = given.number("data-dir", 1, 8).expect_err("too large").to_string();
        assert_eq!(error, "invalid argument \"9\" for --data-dir: more than 8");
    }
}
