//! `forebay-bench`: the scenarios as a command. `cargo xtask bench` builds what it needs and passes the paths.
//!
//! In: scenario names and a size. Out: the report on stdout; what is going on, on stderr.
//! Never: a figure when a scenario failed.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use forebay_bench::client::Protocol;
use forebay_bench::contender::Contender;
use forebay_bench::forebay::Forebay;
use forebay_bench::kubernetes::Kubernetes;
use forebay_bench::lab::Lab;
use forebay_bench::report::{Entrant, Measured, Report};
use forebay_bench::scenarios::Scenario;
use forebay_bench::{Error, machine};

/// Measures forebay beside kube-apiserver on etcd, on this machine.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask bench")]
struct Options {
    /// Scenarios to run, in this order: start, create, restart [default: all]
    #[arg(value_parser = scenario)]
    scenarios: Vec<Scenario>,
    /// Pods to create
    #[arg(long, default_value_t = 20_000)]
    size: usize,
    /// Clients that create them, a connection each
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Runs of each scenario [default: 5, create 3]
    #[arg(long)]
    runs: Option<usize>,
    /// Let the clients speak HTTP/2 instead of HTTP/1.1
    #[arg(long)]
    http2: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Measure forebay only
    #[arg(long, conflicts_with = "theirs_only")]
    ours_only: bool,
    /// Measure kube-apiserver and etcd only
    #[arg(long)]
    theirs_only: bool,
    /// Directory that data is written below; the disk to measure [default: the temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The forebay binary
    #[arg(long, value_name = "FILE", default_value = "target/release/forebay")]
    forebay: PathBuf,
    /// Directory with etcd and kube-apiserver
    #[arg(long, value_name = "DIR", default_value = ".")]
    peers: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    let done = tokio::select! {
        done = measure(&options) => done,
        // Leaving drops the servers and their directories.
        _ = tokio::signal::ctrl_c() => Err(Error::Connection("interrupted".into())),
    };
    match done {
        Ok(report) if options.json => println!("{:#}", report.json()),
        Ok(report) => print!("{report}"),
        Err(why) => {
            eprintln!("forebay-bench: {}", chain(&why));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

async fn measure(options: &Options) -> Result<Report, Error> {
    let base = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let lab = Lab {
        size: options.size,
        clients: options.clients,
        runs: options.runs,
        protocol: if options.http2 { Protocol::Http2 } else { Protocol::Http1 },
        settle: Duration::from_secs(2),
        base,
    };
    let contenders = contenders(options)?;
    let mut report =
        Report { machine: machine::describe(&lab.base)?, contenders: Vec::new(), measured: Vec::new() };
    report.contenders.extend(contenders.iter().map(entrant));
    let chosen =
        if options.scenarios.is_empty() { Scenario::ALL.to_vec() } else { options.scenarios.clone() };
    for scenario in chosen {
        let mut metrics = Vec::new();
        for who in &contenders {
            eprintln!("{}: {}", scenario.name(), who.name());
            metrics.push(scenario.run(&lab, who).await?);
        }
        report.measured.push(Measured { scenario: scenario.name(), about: scenario.about(&lab), metrics });
    }
    Ok(report)
}

fn contenders(options: &Options) -> Result<Vec<Contender>, Error> {
    let mut all = Vec::new();
    if !options.theirs_only {
        all.push(Contender::Forebay(Forebay::at(&options.forebay)?));
    }
    if !options.ours_only {
        all.push(Contender::Kubernetes(Kubernetes::in_dir(&options.peers)?));
    }
    Ok(all)
}

fn entrant(who: &Contender) -> Entrant {
    Entrant { name: who.name(), versions: who.versions(), commands: who.commands() }
}

fn scenario(name: &str) -> Result<Scenario, String> {
    let known = Scenario::ALL.iter().find(|scenario| scenario.name() == name);
    known.copied().ok_or_else(|| format!("known: {}", Scenario::ALL.map(Scenario::name).join(", ")))
}

/// The error and its causes.
fn chain(why: &dyn std::error::Error) -> String {
    std::iter::successors(Some(why), |why| why.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
