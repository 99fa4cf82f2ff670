//! The file server that a LIST is measured beside: Go's own HTTPS server, sending one byte slice
//! (`static/main.go`).
//!
//! In: the program, and how long the slice is. Out: a ready [`Instance`]. Never: a difference in TLS: the
//! client asks every server for the same cipher (`pki`).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::contender::present;
use crate::server::{Instance, Process, free_ports};
use crate::{Error, pki};

/// Path of the slice.
pub const BODY: &str = "/body";

#[derive(Clone, Debug)]
pub struct StaticServer {
    program: PathBuf,
}

impl StaticServer {
    /// The binary at `program`.
    ///
    /// # Errors
    /// [`Error::Missing`] when it is not there.
    pub fn at(program: &Path) -> Result<StaticServer, Error> {
        present("the static server", program, "build it with `go build` from crates/bench/static")?;
        Ok(StaticServer { program: program.to_owned() })
    }

    /// Starts it on a slice of `bytes`, with its certificates in `dir`.
    pub async fn start(&self, dir: &Path, bytes: u64) -> Result<Instance, Error> {
        let place = dir.join("static");
        std::fs::create_dir(&place).map_err(Error::file("cannot create", &place))?;
        pki::write(&place)?;
        let [port] = free_ports()?;
        let args = [
            format!("-address=127.0.0.1:{port}"),
            format!("-certificate={}", place.join("server.crt").display()),
            format!("-key={}", place.join("server.key").display()),
            format!("-bytes={bytes}"),
        ];
        let log = place.join("static.log");
        let mut process = Process::start("static", Command::new(&self.program).args(args), &log)?;
        let since = process.started;
        let (target, ready) = process.ready(since, port, || pki::credentials(&place)).await?;
        Ok(Instance { name: "static", processes: vec![process], target, ready, etcd_port: None })
    }
}
