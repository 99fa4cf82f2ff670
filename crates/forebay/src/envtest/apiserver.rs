//! envtest's server: `forebay serve` with kube-apiserver's ways where tests rely on them.
//!
//! In: the flags that envtest gives. Out: a server whose data is in a new directory below `--cert-dir`,
//! that serves the certificate which is there, and that ends with its parent. `--etcd-servers` is a warning
//! that says where the data is. Never: reads the environment, which is the tests' own; shares a path with
//! another server.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use forebay_embedded::Syncs;
use forebay_rt::Random;
use jiff::Timestamp;

use crate::config::{Host, ServeConfig};
use crate::error::Error;
use crate::flags::layers::{Layer, Raw};
use crate::logging;
use crate::parent::Parent;
use crate::prepare::Prepared;
use crate::serve::{self, Until};
use forebay_pki::{CertificateFiles, private_files};

/// Runs the server.
///
/// # Errors
/// As `forebay serve`.
pub fn run(typed: Layer, parent: Parent, out: &mut dyn Write) -> Result<(), Error> {
    let mut raw = Raw::collect(typed, std::iter::empty())?;
    let etcd_servers = raw.set_aside("etcd-servers");
    // kube-apiserver has none, and tests rely on it that nobody deletes what they look at.
    raw.unless_given("controllers", "");
    let mut config = ServeConfig::decide(&raw, &Host::this())?;
    logging::init(config.verbosity);

    let data_dir = DataDir::new(&raw, &mut config)?;
    if etcd_servers {
        let dir = config.data_dir.display();
        config
            .warnings
            .push(format!("--etcd-servers is not used: envtest's etcd stores nothing, and data is in {dir}"));
    }
    logging::warn(&config.warnings);
    let mut warnings = Vec::new();
    let prepared = data_dir.prepare(config, &mut warnings)?;
    logging::warn(&warnings);
    serve::run(prepared, Until::Parent(parent), data_dir.syncs(), out)?;
    if !parent.is_gone() {
        // Whoever stopped it may want to see what it had.
        data_dir.keep();
    }
    Ok(())
}

/// Where this server's data is: removed when it did not start, and when nobody is left to do it.
#[derive(Debug)]
struct DataDir {
    /// `None`: somebody else's.
    made: Option<PathBuf>,
}

impl DataDir {
    /// Makes it below the directory of the certificates, unless `--data-dir` names one, and points `config`
    /// at it.
    fn new(raw: &Raw, config: &mut ServeConfig) -> Result<Self, Error> {
        let cert_dir =
            raw.get("cert-dir").and_then(|given| given.values.first()).filter(|dir| !dir.is_empty());
        if let Some(cert_dir) = cert_dir
            && config.tls.given.is_none()
        {
            config.tls.given = certificate_in(Path::new(cert_dir))?;
        }
        if raw.get("data-dir").is_some() {
            config.tls.cert_dir = config.data_dir.join("pki");
            return Ok(Self { made: None });
        }
        let below = cert_dir.map_or_else(std::env::temp_dir, PathBuf::from);
        let made = fresh(&below)?;
        config.data_dir = made.clone();
        config.tls.cert_dir = made.join("pki");
        Ok(Self { made: Some(made) })
    }

    /// What was made for a directory that is new each time needs no files.
    fn prepare(&self, config: ServeConfig, warnings: &mut Vec<String>) -> Result<Prepared, Error> {
        let now = Timestamp::now();
        match &self.made {
            Some(_) => Prepared::in_memory(config, now, warnings),
            None => Prepared::new(config, now, warnings),
        }
    }

    /// envtest starts its etcd without syncs, too.
    fn syncs(&self) -> Syncs {
        if self.made.is_some() { Syncs::Never } else { Syncs::EachCommit }
    }

    fn keep(mut self) {
        self.made = None;
    }
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            // Nobody is there to be told.
            let _ = fs::remove_dir_all(made);
        }
    }
}

/// The serving certificate that somebody put there, as kube-apiserver finds it.
fn certificate_in(dir: &Path) -> Result<Option<CertificateFiles>, Error> {
    let files = CertificateFiles { cert: dir.join("apiserver.crt"), key: dir.join("apiserver.key") };
    match (files.cert.exists(), files.key.exists()) {
        (true, true) => Ok(Some(files)),
        (false, false) => Ok(None),
        (true, false) => Err(Error::pki(files.key, "missing, though apiserver.crt is there")),
        (false, true) => Err(Error::pki(files.cert, "missing, though apiserver.key is there")),
    }
}

/// Names are drawn until one is new; 64 random bits are new at once.
const DRAWS_MAX: usize = 8;

/// A directory that was not there before, for its owner alone.
fn fresh(below: &Path) -> Result<PathBuf, Error> {
    private_files::create_dir(below)?;
    let random = Random::system();
    let mut last = None;
    for _ in 0..DRAWS_MAX {
        let dir = below.join(format!("forebay-{:016x}", random.next_u64()));
        match DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => return Ok(dir),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => last = Some((dir, cause)),
            Err(cause) => return Err(Error::file("create directory", dir)(cause)),
        }
    }
    let (dir, cause) = last.unwrap_or_else(|| (below.to_owned(), io::ErrorKind::AlreadyExists.into()));
    Err(Error::file("create directory", dir)(cause))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::flags::argv;
    use forebay_scratch::Scratch;

    fn config(flags: &[String]) -> (Raw, ServeConfig) {
        let typed = argv::parse(flags.iter().map(OsString::from)).expect("parsed");
        let raw = Raw::collect(typed.flags, std::iter::empty()).expect("collected");
        let config = ServeConfig::decide(&raw, &Host::default()).expect("decided");
        (raw, config)
    }

    #[test]
    fn every_server_has_a_directory_of_its_own_below_the_certificates() {
        let scratch = Scratch::new();
        let cert_dir = scratch.path().join("certs");
        let (raw, mut config) = config(&[format!("--cert-dir={}", cert_dir.display())]);
        let first = DataDir::new(&raw, &mut config).expect("made");
        let first_dir = config.data_dir.clone();
        let second = DataDir::new(&raw, &mut config).expect("made");
        assert_ne!(first_dir, config.data_dir);
        assert!(first_dir.starts_with(&cert_dir) && config.data_dir.starts_with(&cert_dir));
        assert_eq!(config.tls.cert_dir, config.data_dir.join("pki"));
        drop(first);
        second.keep();
        assert!(!first_dir.exists() && config.data_dir.is_dir());
    }

    #[test]
    fn the_certificate_that_is_there_is_served() {
        let scratch = Scratch::new();
        let flags = [format!("--cert-dir={}", scratch.path().display())];
        let given = || {
            let (raw, mut config) = config(&flags);
            let made = DataDir::new(&raw, &mut config).map(drop);
            made.map(|()| config.tls.given).map_err(|error| error.line())
        };
        assert_eq!(given(), Ok(None));
        let (cert, key) = (scratch.path().join("apiserver.crt"), scratch.path().join("apiserver.key"));
        fs::write(&cert, "").expect("written");
        let missing = format!("{}: missing, though apiserver.crt is there", key.display());
        assert_eq!(given(), Err(missing));
        fs::write(&key, "").expect("written");
        assert_eq!(given(), Ok(Some(CertificateFiles { cert, key })));
    }

    #[test]
    fn a_named_data_directory_is_kept_as_it_is() {
        let scratch = Scratch::new();
        let named = scratch.path().join("named");
        fs::create_dir(&named).expect("made");
        let (raw, mut config) = config(&[format!("--data-dir={}", named.display())]);
        drop(DataDir::new(&raw, &mut config).expect("nothing to make"));
        assert_eq!(config.data_dir, named);
        assert!(named.is_dir());
    }
}
