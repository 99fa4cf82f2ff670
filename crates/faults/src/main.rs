//! `forebay-faults`: makes each fault before each client, and prints the table.
//!
//! In: flags. Out: a Markdown table on standard output, a line as soon as its fault is over. Never: a server
//! that outlives it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use forebay_clients::server::{ControlPlane, Implementation};
use forebay_faults::fault::{Fault, ROWS};
use forebay_faults::limits::EQUAL_MAX;
use forebay_faults::rivals::{self, RIVALS, Rival};
use forebay_faults::run::{Plan, Stage};
use forebay_faults::{Error, configuration, table};

/// Makes faults between informers and an API server, and says what each client does.
#[derive(Parser)]
struct Flags {
    /// Which server stands behind the proxies.
    #[arg(long, value_parser = ["forebay", "kube-apiserver"], default_value = "forebay")]
    server: String,
    /// Clients, in the order of the table; all of them unless it is given.
    #[arg(long, value_delimiter = ',', value_parser = rival)]
    subject: Vec<Rival>,
    /// Informers of each client, a namespace each.
    #[arg(long, default_value_t = 50)]
    informers: usize,
    /// Faults by name; all of them unless it is given. `--fault help` lists them.
    #[arg(long, value_delimiter = ',', value_parser = fault)]
    fault: Vec<Fault>,
    /// Writes a second, to all namespaces together.
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// Seconds that an outage lasts.
    #[arg(long, default_value_t = 5)]
    outage: u64,
    /// Seconds that a server is gone for long. Ten minutes are 600.
    #[arg(long, default_value_t = 30)]
    gone: u64,
    /// Seconds after a fault is over until a client that is still blind is given up.
    #[arg(long, default_value_t = 90)]
    bound: u64,
}

fn rival(name: &str) -> Result<Rival, String> {
    let names = || RIVALS.map(|rival| rival.name).join(", ");
    rivals::named(name).ok_or_else(|| format!("not one of {}", names()))
}

fn fault(name: &str) -> Result<Fault, String> {
    let lines = || ROWS.map(|row| format!("  {:<14} {}", row.name, row.what)).join("\n");
    Fault::named(name).ok_or_else(|| format!("one of\n{}", lines()))
}

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("forebay-faults: {}", shown(&why));
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Flags) -> Result<(), Error> {
    let implementation = match flags.server.as_str() {
        "kube-apiserver" => Implementation::KubeApiserver,
        _ => Implementation::Forebay,
    };
    let rivals = if flags.subject.is_empty() { RIVALS.to_vec() } else { flags.subject.clone() };
    let all = || ROWS.iter().map(|row| row.fault).collect();
    let faults: Vec<Fault> = if flags.fault.is_empty() { all() } else { flags.fault.clone() };
    let plan = Plan {
        informers: flags.informers,
        writes_per_second: flags.rate,
        a_while: Duration::from_secs(flags.outage),
        long: Duration::from_secs(flags.gone),
        blind_max: Duration::from_secs(flags.bound),
        equal_max: EQUAL_MAX,
    };
    let server = ControlPlane::start_as(implementation).map_err(Error::Harness)?;
    let mut stage = Stage::set(&configuration(server.kubeconfig())?, plan)?;
    let names: Vec<&str> = rivals.iter().map(|rival| rival.name).collect();
    say(&table::head(&names));
    for fault in faults {
        let outcome = stage.run(fault, &rivals)?;
        say(&table::line(&outcome, &plan));
    }
    Ok(())
}

/// A line, at once.
fn say(line: &str) {
    let mut out = std::io::stdout();
    // Who reads no more has seen enough.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// An error with its causes.
fn shown(why: &dyn std::error::Error) -> String {
    let mut text = why.to_string();
    let mut source = why.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
