//! `forebay migrate`: a state out of a data directory or a snapshot into etcd, or out of etcd into a data
//! directory.
//!
//! In: what was typed. Out: the same keys and values on the other side, as a server there keeps them; what
//! was left out, by key; a digest of both sides. The source is only read. Clients are told to list again: no
//! number of before means anything else afterwards (ADR 35).

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use forebay_encryption::Reload;
use forebay_etcd::{Codec, Etcd};
use forebay_migrate::{AtRest, Existing, Location, Manner, Strictness};
use forebay_rt::{Clock, Tasks};

use crate::config::{EncryptionFile, EtcdConfig, Host, ServeConfig};
use crate::error::Error;
use crate::flags::argv;
use crate::flags::layers::Raw;
use crate::flags::options::{self, Given, Known, known};
use crate::prepare;
use crate::server::failed;
use crate::store;

/// What the command knows.
pub const KNOWN: &[Known] = &[
    known("from-data-dir", "DIR", "Move what a server keeps in this data directory"),
    known("from-snapshot", "FILE", "Move what is in this snapshot"),
    known("from-etcd-servers", "URLS", "Move what is in this etcd"),
    known("to-data-dir", "DIR", "Make a store in this data directory, which has none"),
    known("to-etcd-servers", "URLS", "Put it into this etcd, which has nothing there"),
    known("etcd-prefix", "PATH", "Prefix of the keys of all objects, on both sides [/registry]"),
    known("etcd-cafile", "FILE", "Authorities of the certificates of etcd, PEM"),
    known("etcd-certfile", "FILE", "Certificate to show to etcd, PEM"),
    known("etcd-keyfile", "FILE", "Private key of --etcd-certfile, PEM"),
    known("encryption-provider-config", "FILE", "What is encrypted, on both sides"),
    known("overwrite", "", "Delete what is in etcd below the prefix first"),
    known("resume", "", "Go on with a migration into etcd that was interrupted: keys that are there stay"),
    known("fail-fast", "", "Stop at the first key that cannot be moved"),
];

/// Those that `serve` has as well, and reads here.
const OF_SERVE: [&str; 4] = ["etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile"];

/// How long it is waited for an etcd that does not answer.
const REACH_WAIT: Duration = Duration::from_secs(20);

/// What is to be moved where.
enum Way {
    Into { source: Location, etcd: EtcdConfig },
    OutOf { etcd: EtcdConfig, data_dir: PathBuf },
}

/// Runs the command behind `forebay migrate`.
///
/// # Errors
/// What was typed wrong; why it cannot be done, or was not done whole.
pub fn run(arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Error> {
    let given = Given::read(arguments, KNOWN)?;
    if given.help {
        return Ok(out.write_all(help().as_bytes())?);
    }
    if let Some(more) = given.rest.first() {
        return Err(Error::Usage(format!("unexpected argument: {more}")));
    }
    let (way, mut manner) = decide(&given)?;
    let encryption = given.path("encryption-provider-config");
    let runtime = tokio::runtime::Builder::new_multi_thread().thread_name("forebay").enable_all().build();
    let runtime = runtime.map_err(|cause| Error::Serve(format!("no threads: {cause}")))?;
    runtime.block_on(async {
        let (tasks, clock) = (Tasks::new(), Clock::system());
        let encryption = match encryption {
            Some(file) => {
                let given = EncryptionFile { file, reload: Reload::Never };
                Some(store::encryption(&given, &manner.prefix, &clock).await?)
            }
            None => None,
        };
        manner.at_rest = AtRest::new(encryption.clone());
        let codec = store::codec(&manner.prefix, encryption);
        let moved = match way {
            Way::Into { source, etcd } => {
                let store = open(&etcd, (&manner.prefix, codec), &clock, &tasks).await?;
                forebay_migrate::into_etcd(source, &store, &manner, &clock).await
            }
            Way::OutOf { etcd, data_dir } => {
                let store = open(&etcd, (&manner.prefix, codec), &clock, &tasks).await?;
                forebay_migrate::from_etcd(&store, &data_dir, &manner, &clock).await
            }
        };
        tasks.stop(Duration::from_secs(1)).await;
        Ok(moved?.say(out)?)
    })
}

/// `forebay migrate --help`
pub fn help() -> String {
    let known = options::describe(KNOWN);
    format!(
        "\
Move all objects from a data directory into etcd, or from etcd into a data directory.

Usage:
  forebay migrate --from-data-dir DIR --to-etcd-servers URLS [flags]
  forebay migrate --from-snapshot FILE --to-etcd-servers URLS [flags]
  forebay migrate --from-etcd-servers URLS --to-data-dir DIR [flags]

The source is read at one revision and stays as it is; stop who writes to it first, or what they
write meanwhile stays behind. In etcd objects are kept as kube-apiserver keeps them. Afterwards every
client lists once. Run it again when it was interrupted; into etcd, with --resume or --overwrite.
What is encrypted is decrypted and encrypted anew as --encryption-provider-config says; without it,
what is encrypted is left out.

Flags:
{known}"
    )
}

fn decide(given: &Given) -> Result<(Way, Manner), Error> {
    let source = match (given.path("from-data-dir"), given.path("from-snapshot")) {
        (Some(dir), None) => Some(Location::DataDir(dir)),
        (None, Some(file)) => Some(Location::Snapshot(file)),
        (None, None) => None,
        (Some(_), Some(_)) => {
            return Err(Error::Usage("one of --from-data-dir and --from-snapshot".to_owned()));
        }
    };
    let strict = if given.switch("fail-fast", false)? { Strictness::All } else { Strictness::WhatCanBe };
    let existing = match (given.switch("overwrite", false)?, given.switch("resume", false)?) {
        (false, false) => Existing::Refused,
        (true, false) => Existing::Deleted,
        (false, true) => Existing::Resumed,
        (true, true) => return Err(Error::Usage("one of --overwrite and --resume".to_owned())),
    };
    let manner = |prefix| Manner { prefix, existing, strictness: strict, at_rest: AtRest::default() };
    let (from_etcd, to_etcd) = (given.value("from-etcd-servers"), given.value("to-etcd-servers"));
    match (source, from_etcd, to_etcd, given.path("to-data-dir")) {
        (Some(source), None, Some(urls), None) => {
            let (etcd, prefix) = etcd(given, urls)?;
            Ok((Way::Into { source, etcd }, manner(prefix)))
        }
        (None, Some(_), None, Some(_)) if existing != Existing::Refused => {
            Err(Error::Conflict("--overwrite and --resume are for etcd: move the store of the data directory away yourself".to_owned()))
        }
        (None, Some(urls), None, Some(data_dir)) => {
            let (etcd, prefix) = etcd(given, urls)?;
            Ok((Way::OutOf { etcd, data_dir }, manner(prefix)))
        }
        _ => Err(Error::Usage(
            "migrate needs --from-data-dir or --from-snapshot with --to-etcd-servers, or --from-etcd-servers with \
             --to-data-dir"
                .to_owned(),
        )),
    }
}

/// The cluster and the prefix, as `serve` would decide on them.
fn etcd(given: &Given, urls: &str) -> Result<(EtcdConfig, String), Error> {
    let same = OF_SERVE.into_iter().filter_map(|name| Some(format!("--{name}={}", given.value(name)?)));
    let arguments = [format!("--etcd-servers={urls}")].into_iter().chain(same).map(OsString::from);
    let raw = Raw::collect(argv::parse(arguments)?.flags, std::env::vars_os())?;
    let config = ServeConfig::decide(&raw, &Host::this())?;
    let none = || Error::Usage("no URL of an etcd member was given".to_owned());
    Ok((config.etcd.ok_or_else(none)?, config.etcd_prefix))
}

async fn open(
    etcd: &EtcdConfig,
    (prefix, codec): (&str, Arc<dyn Codec>),
    clock: &Clock,
    tasks: &Tasks,
) -> Result<Arc<Etcd>, Error> {
    let options = forebay_etcd::StorageConfig {
        endpoints: etcd.endpoints.clone(),
        tls: prepare::etcd_tls(etcd)?,
        codec,
        prefix: prefix.to_owned(),
        compact_every: None,
        clock: clock.clone(),
        tasks: tasks.clone(),
    };
    let store = Etcd::open(options).map_err(failed)?;
    store.reach(REACH_WAIT).await.map_err(failed)?;
    Ok(store)
}
