//! Under the name `kube-apiserver`: a server of a cluster, as kubeadm's manifest of it and others start one,
//! or one of tests, as envtest starts it.
//!
//! In: the arguments. Out: which of the two it is; the one of a cluster: `forebay serve` with
//! kube-apiserver's defaults where a manifest relies on them, which makes and writes nothing where all that
//! it is to show and to keep is given. Never: a cluster's objects in a directory that nobody named.
//!
//! kubeadm looks for a container whose command begins with this name, and gives no `--bind-address`.

use std::ffi::OsString;
use std::io::Write;
use std::net::IpAddr;

use forebay_controllers::Controller;
use forebay_embedded::Syncs;
use forebay_etcd::Endpoint;
use jiff::Timestamp;

use crate::config::{Administrator, Host, ServeConfig};
use crate::envtest;
use crate::error::Error;
use crate::flags::layers::{Layer, Raw};
use crate::flags::{argv, help};
use crate::logging;
use crate::parent::Parent;
use crate::prepare::Prepared;
use crate::serve::{self, Until};
use crate::version::KUBERNETES_VERSION;

/// Runs the server.
///
/// # Errors
/// As `forebay serve`.
pub fn run(arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Error> {
    let parent = Parent::this();
    let mut arguments = arguments.peekable();
    if arguments.peek().is_some_and(|first| first == "--version") {
        return Ok(writeln!(out, "Kubernetes {KUBERNETES_VERSION}")?);
    }
    let typed = argv::parse(arguments)?;
    if typed.help {
        return Ok(out.write_all(help::kube_apiserver().as_bytes())?);
    }
    if let Some(argument) = typed.rest.first() {
        return Err(Error::Usage(format!("unexpected argument: {argument}")));
    }
    match Starter::of(&typed.flags) {
        Starter::Envtest => envtest::apiserver::run(typed.flags, parent, out),
        Starter::Cluster => {
            let raw = Raw::collect(typed.flags, std::env::vars_os())?;
            serve(decide(raw, &Host::this())?, out)
        }
    }
}

/// Who starts a program of this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starter {
    Cluster,
    Envtest,
}

impl Starter {
    /// envtest's server finds its certificate in `--cert-dir`, and its etcd, which stores nothing, is on this
    /// machine and without TLS. Who is taken for envtest in error loses data; who is taken for a cluster in
    /// error is told that etcd does not answer.
    fn of(typed: &Layer) -> Self {
        let given = |name: &str| {
            typed.iter().find(|(given, _)| *given == name).map_or(&[][..], |(_, given)| &given.values)
        };
        let has_certificate = given("tls-cert-file").iter().any(|file| !file.is_empty());
        let has_etcd_of_tests = given("etcd-servers").iter().all(|url| is_of_tests(url));
        match has_certificate || !has_etcd_of_tests {
            true => Self::Cluster,
            false => Self::Envtest,
        }
    }
}

/// Whether an etcd of envtest may be there.
fn is_of_tests(url: &str) -> bool {
    let is_here = |endpoint: &Endpoint| {
        endpoint.host == "localhost" || endpoint.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    };
    url.is_empty() || url.parse().is_ok_and(|endpoint| is_here(&endpoint) && !endpoint.tls)
}

/// What a server of a cluster was told.
fn decide(mut raw: Raw, host: &Host) -> Result<ServeConfig, Error> {
    let given = |name| raw.get(name).is_some_and(|given| given.values.iter().any(|value| !value.is_empty()));
    if !given("etcd-servers") && !given("data-dir") {
        return Err(Error::Conflict(
            "--etcd-servers is to say where objects are kept, or --data-dir, under the name kube-apiserver"
                .to_owned(),
        ));
    }
    let is_nothing_made = !given("data-dir") && !given("cert-dir");
    // On all addresses, as kube-apiserver; of both families where the system has them.
    let advertised = raw.get("advertise-address").and_then(|given| given.values.first()?.parse().ok());
    raw.unless_given(
        "bind-address",
        if advertised.is_some_and(|ip: IpAddr| ip.is_ipv6()) { "::" } else { "0.0.0.0" },
    );
    // kube-controller-manager has them.
    raw.unless_given("controllers", "");
    let mut config = ServeConfig::decide(&raw, host)?;
    if is_nothing_made && is_all_given(&config) {
        if config.controllers.has(Controller::CertificateSigning) {
            return Err(Error::Conflict(format!(
                "--controllers with {} needs --data-dir, where the authority is kept that it signs with",
                Controller::CertificateSigning.name()
            )));
        }
        config.administrator = Administrator::None;
    }
    Ok(config)
}

/// Whether there is nothing that the server would have to make for itself.
fn is_all_given(config: &ServeConfig) -> bool {
    config.etcd.is_some()
        && config.tls.given.is_some()
        && config.tls.client_ca_file.is_some()
        && config.front_proxy.client.is_some()
        && config.authentication.service_accounts.is_signer_given()
}

fn serve(config: ServeConfig, out: &mut dyn Write) -> Result<(), Error> {
    logging::init(config.verbosity);
    logging::warn(&config.warnings);
    let mut warnings = Vec::new();
    let now = Timestamp::now();
    let prepared = match config.administrator {
        Administrator::Made => Prepared::new(config, now, &mut warnings)?,
        Administrator::None => Prepared::in_memory(config, now, &mut warnings)?,
    };
    logging::warn(&warnings);
    serve::run(prepared, Until::Signal, Syncs::EachCommit, out)
}

#[cfg(test)]
mod tests;
