//! What a flag is: its name, how its value is spelled, and what becomes of it.
//!
//! The types of the flag table. Nothing here reads a command line.

/// How the value of a flag is spelled, with pflag's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagType {
    /// `--x`, `--x=true`, `--x=false`: never takes the next argument.
    Bool,
    /// One value; the last one given wins.
    One,
    /// Comma-separated; given again, it adds.
    List,
    /// One element a time, commas included; given again, it adds.
    Each,
}

/// What becomes of a flag that is given.
#[derive(Debug, Clone, Copy)]
pub enum Class {
    /// Read by [`crate::config`], which checks the value.
    Served(Help),
    /// Accepted without effect: nothing gets weaker and nothing is lost. One warning lists all of them.
    Harmless(&'static str),
    /// An error: ignoring it would give less protection, or another place for the data, than was asked for.
    Refused(&'static str),
    /// Harmless or refused by value: `Err` says why not.
    Judged(fn(&str) -> Result<(), &'static str>),
}

/// How `--help` shows a served flag.
#[derive(Debug, Clone, Copy)]
pub struct Help {
    pub heading: Heading,
    /// The name of the value, "" for booleans.
    pub value: &'static str,
    /// What it is when not given, as it would be typed; "" when there is none.
    pub default: &'static str,
    pub text: &'static str,
}

/// The sections of `--help`, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heading {
    Data,
    Serving,
    Tls,
    Authentication,
    Authorization,
    Audit,
    Limits,
    Api,
    Logging,
}

impl Heading {
    pub const ALL: [Self; 9] = [
        Self::Data,
        Self::Serving,
        Self::Tls,
        Self::Authentication,
        Self::Authorization,
        Self::Audit,
        Self::Limits,
        Self::Api,
        Self::Logging,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Data => "Data",
            Self::Serving => "Serving",
            Self::Tls => "Certificates",
            Self::Authentication => "Authentication",
            Self::Authorization => "Authorization",
            Self::Audit => "Auditing",
            Self::Limits => "Limits",
            Self::Api => "API",
            Self::Logging => "Logging and configuration",
        }
    }
}

/// One row of the flag table.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Without the dashes.
    pub name: &'static str,
    pub kind: FlagType,
    pub class: Class,
}

impl Flag {
    /// The help of a served flag.
    pub fn help(&self) -> Option<&Help> {
        match &self.class {
            Class::Served(help) => Some(help),
            Class::Harmless(_) | Class::Refused(_) | Class::Judged(_) => None,
        }
    }

    /// What it is when not given.
    pub fn default(&self) -> &'static str {
        self.help().map_or("", |help| help.default)
    }

    /// The environment variable that sets it: `data-dir` is `FOREBAY_DATA_DIR`.
    pub fn variable(&self) -> String {
        format!("FOREBAY_{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }
}
