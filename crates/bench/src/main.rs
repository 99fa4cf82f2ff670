//! `forebay-bench`: the scenarios as a command. `cargo xtask bench` builds what it needs and passes the
//! paths.
//!
//! In: scenario names and a size. Out: the report on stdout, and with `--svg` a picture of the storm; what
//! is going on, on stderr.
//! Never: a figure when a scenario failed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use forebay_bench::client::Protocol;
use forebay_bench::contender::Contender;
use forebay_bench::forebay::Forebay;
use forebay_bench::kubernetes::Kubernetes;
use forebay_bench::lab::Lab;
use forebay_bench::objects::Objects;
use forebay_bench::overload::Overload;
use forebay_bench::report::{Entrant, Measured, Report};
use forebay_bench::scenarios::Scenario;
use forebay_bench::static_server::StaticServer;
use forebay_bench::{Error, curves, hostile, machine, picture, proc, waves};
use tokio::signal::unix::{SignalKind, signal};

/// Measures forebay beside kube-apiserver on etcd, on this machine.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask bench")]
struct Options {
    /// Scenarios to run, in this order: start, create, restart, resident, owners, list, storm, readers,
    /// watchlist, envtest, fanout, crowd, lanes, idle, curve, million, kep3157, kep2340, hostile, informer,
    /// informer-paths, avalanche, fairness, webhooks, conversion, prices [default: all]
    #[arg(value_parser = scenario)]
    scenarios: Vec<Scenario>,
    /// Objects to create
    #[arg(long, default_value_t = 20_000)]
    size: usize,
    /// Which: pods, leases, configmaps, secrets-100k, secrets-1m, random-secrets
    #[arg(long, default_value = "pods", value_parser = objects)]
    objects: Objects,
    /// Clients that create them, a connection each
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Clients that LIST all objects at once in the scenario storm, a connection each
    #[arg(long, default_value_t = 16, value_parser = at_least_one)]
    listers: usize,
    /// Times that each of them LISTs, from the cache and then consistent
    #[arg(long, default_value_t = 2, value_parser = at_least_one)]
    rounds: usize,
    /// Updates a second beside which the scenario storm LISTs a second time
    #[arg(long, default_value_t = 0)]
    storm_writes: u32,
    /// Watchers at once in the scenarios fanout and idle, informers of one program in informer-paths
    #[arg(long, default_value_t = 1_000, value_parser = at_least_one)]
    watchers: usize,
    /// Watchers at once in the scenarios crowd and lanes
    #[arg(long, default_value_t = 10_000, value_parser = at_least_one)]
    crowd: usize,
    /// Control planes at once in the scenario envtest; 20 of kube-apiserver and etcd take 8 GB
    #[arg(long, default_value_t = 20, value_parser = at_least_one)]
    servers: usize,
    /// Draw the scenario storm, memory over time, into this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Objects in the scenario curve, one after the other
    #[arg(long, value_delimiter = ',', default_value = "1000,10000,100000")]
    sizes: Vec<usize>,
    /// Watchers in the scenario curve, one after the other
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000,10000")]
    crowds: Vec<usize>,
    /// Objects that kube-apiserver and etcd are given at most in the scenario curve; 100,000 take 8 GB
    #[arg(long, default_value_t = 100_000)]
    rival_max: usize,
    /// Objects in the scenario million
    #[arg(long, value_name = "OBJECTS", default_value_t = 1_000_000, value_parser = at_least_one)]
    million: usize,
    /// Pods in the scenarios avalanche and fairness
    #[arg(long, default_value_t = 5_000, value_parser = at_least_one)]
    pods: usize,
    /// Readers in the scenario avalanche that ask as client-go does and keep nothing, on as many nodes
    #[arg(long, default_value_t = 580, value_parser = at_least_one)]
    readers: usize,
    /// Informers of client-go there
    #[arg(long, default_value_t = 20)]
    informers: usize,
    /// Writes of pods in a second there
    #[arg(long, default_value_t = 5)]
    writes: usize,
    /// Nodes in the scenario fairness
    #[arg(long, default_value_t = 1_000, value_parser = at_least_one)]
    nodes: usize,
    /// Watches of the greedy user there
    #[arg(long, default_value_t = 10_000)]
    watches: usize,
    /// Its readers that stand still
    #[arg(long, default_value_t = 500)]
    standing: usize,
    /// Megabytes of the list that they ask for
    #[arg(long, value_name = "MB", default_value_t = 1_000, value_parser = at_least_one)]
    list_mb: usize,
    /// How long each thing is measured there, and how long it is calm between blows in avalanche
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    span: u64,
    /// Memory that each server is held to in avalanche and fairness, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 3_072)]
    cage: u64,
    /// Draw the scenario avalanche, requests over time, into this SVG file
    #[arg(long, value_name = "FILE")]
    arrivals: Option<PathBuf>,
    /// Rows of the scenario hostile to do, by name [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = row)]
    only: Vec<String>,
    /// Draw the scenario curve into this SVG file
    #[arg(long, value_name = "FILE")]
    curves: Option<PathBuf>,
    /// Runs of each scenario [default: 5; million 1]
    #[arg(long)]
    runs: Option<usize>,
    /// Let forebay stand on etcd, as kube-apiserver does
    #[arg(long)]
    on_etcd: bool,
    /// Let RBAC decide about the clients, an audit log at Metadata note their requests and quotas count their
    /// pods, on both servers, in scenarios that start one server of each
    #[arg(long)]
    governed: bool,
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
    /// The file server that the scenario list is measured beside, built from crates/bench/static [default:
    /// none]
    #[arg(long, value_name = "FILE")]
    static_server: Option<PathBuf>,
    /// Directory with etcd and kube-apiserver
    #[arg(long, value_name = "DIR", default_value = ".")]
    peers: PathBuf,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let options = Options::parse();
    proc::raise_open_files();
    let done = tokio::select! {
        done = measure(&options) => done,
        // Leaving drops the servers and their directories.
        () = interrupted() => Err(Error::Connection("interrupted".into())),
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

/// Returns on SIGINT or SIGTERM: who ends us must not leave the servers that we started.
async fn interrupted() {
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated => {}
    }
}

async fn measure(options: &Options) -> Result<Report, Error> {
    let base = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let lab = Lab {
        size: options.size,
        objects: options.objects,
        is_governed: options.governed,
        clients: options.clients,
        listers: options.listers,
        rounds: options.rounds,
        storm_writes: options.storm_writes,
        watchers: options.watchers,
        crowd: options.crowd,
        servers: options.servers,
        runs: options.runs,
        protocol: if options.http2 { Protocol::Http2 } else { Protocol::Http1 },
        settle: Duration::from_secs(2),
        sizes: options.sizes.clone(),
        crowds: options.crowds.clone(),
        rival_max: options.rival_max,
        million: options.million,
        only: options.only.clone(),
        overload: Overload {
            pods: options.pods,
            readers: options.readers,
            informers: options.informers,
            writes: options.writes,
            span: Duration::from_secs(options.span),
            cage: options.cage << 20,
            peers: options.peers.clone(),
            nodes: options.nodes,
            watches: options.watches,
            standing: options.standing,
            list_mb: options.list_mb,
        },
        static_server: options.static_server.as_deref().map(StaticServer::at).transpose()?,
        base,
    };
    let contenders = contenders(options)?;
    let chosen =
        if options.scenarios.is_empty() { Scenario::ALL.to_vec() } else { options.scenarios.clone() };
    let drawn = [
        (&options.svg, Scenario::Storm),
        (&options.curves, Scenario::Curve),
        (&options.arrivals, Scenario::Avalanche),
    ];
    for (file, scenario) in drawn {
        if let Some(file) = file {
            drawable(file, scenario, &chosen)?;
        }
    }
    let mut report = Report {
        date: machine::today(),
        machine: machine::describe(&lab.base)?,
        contenders: contenders.iter().map(entrant).collect(),
        measured: Vec::new(),
    };
    for scenario in chosen {
        let (mut metrics, mut series, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let (mut waves, mut mishaps) = (Vec::new(), Vec::new());
        for who in &contenders {
            eprintln!("{}: {}", scenario.name(), who.name());
            let outcome = scenario.run(&lab, who).await?;
            metrics.push(outcome.metrics);
            series.push(outcome.series);
            rows.push(outcome.rows);
            waves.push(outcome.waves);
            mishaps.push(outcome.mishaps);
        }
        let governed = "; RBAC decides, an audit log at Metadata notes, quotas count pods";
        let governed = if lab.is_governed { governed } else { "" };
        let (scenario, about) = (scenario.name(), format!("{}{governed}", scenario.about(&lab)));
        report.measured.push(Measured { scenario, about, metrics, series, waves, rows, mishaps });
    }
    if let (Some(file), Some(chart)) = (&options.svg, picture::of_storm(&report, &lab)) {
        std::fs::write(file, chart.svg()).map_err(unwritable(file))?;
    }
    if let (Some(file), Some(plot)) = (&options.curves, curves::of_curve(&report)) {
        std::fs::write(file, plot.svg()).map_err(unwritable(file))?;
    }
    if let (Some(file), Some(chart)) = (&options.arrivals, waves::of_avalanche(&report, &lab)) {
        std::fs::write(file, chart.svg()).map_err(unwritable(file))?;
    }
    Ok(report)
}

/// Finds out before the scenarios run, which takes minutes, that there will be nothing to draw, or nowhere
/// to.
fn drawable(file: &Path, scenario: Scenario, chosen: &[Scenario]) -> Result<(), Error> {
    if !chosen.contains(&scenario) {
        return Err(Error::NothingToDraw);
    }
    // What is there stays as it is until there is something better, and nothing is not made an empty file.
    let is_new = !file.exists();
    std::fs::File::options().create(true).append(true).open(file).map_err(unwritable(file))?;
    if is_new {
        std::fs::remove_file(file).map_err(unwritable(file))?;
    }
    Ok(())
}

fn unwritable(file: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = file.to_owned();
    move |cause| Error::File { what: "cannot write", path, cause }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(0) => Err("at least 1".into()),
        Ok(number) => Ok(number),
        Err(why) => Err(why.to_string()),
    }
}

fn contenders(options: &Options) -> Result<Vec<Contender>, Error> {
    let mut all = Vec::new();
    if !options.theirs_only {
        let forebay = Forebay::at(&options.forebay)?;
        let forebay = if options.on_etcd { forebay.on_etcd(&options.peers)? } else { forebay };
        all.push(Contender::Forebay(forebay));
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

fn row(name: &str) -> Result<String, String> {
    match hostile::rows::all().any(|row| row.name == name) {
        true => Ok(name.to_owned()),
        false => {
            let known: Vec<&str> = hostile::rows::all().map(|row| row.name).collect();
            Err(format!("known: {}", known.join(", ")))
        }
    }
}

fn objects(name: &str) -> Result<Objects, String> {
    let known = Objects::ALL.into_iter().find(|objects| objects.name() == name);
    known.ok_or_else(|| format!("known: {}", Objects::ALL.map(Objects::name).join(", ")))
}

/// The error and its causes.
fn chain(why: &dyn std::error::Error) -> String {
    std::iter::successors(Some(why), |why| why.source())
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
