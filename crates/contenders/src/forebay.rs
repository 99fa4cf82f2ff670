//! Starts `forebay serve`, on its own store or on an etcd that is started for it.
//!
//! In: the binaries and a directory. Out: a ready [`Instance`]. Never: a flag beyond the directory, the port,
//! etcd's place and the rival's authorization, unless a scenario is about flags; an etcd with other flags
//! than the rival's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::ClientConfig;

use crate::contender::{present, shown};
use crate::server::{Instance, Process, READY, RunningEtcd, free_ports};
use crate::{Error, kubernetes, pki};

#[derive(Clone, Debug)]
pub struct Forebay {
    pub program: PathBuf,
    /// What it stands on; its own store without it.
    pub etcd: Option<PathBuf>,
    /// Further flags, of a scenario that is about them.
    pub flags: Vec<String>,
    /// Where it says whether it is ready.
    pub ready: &'static str,
}

impl Forebay {
    /// The binary at `program`.
    ///
    /// # Errors
    /// [`Error::Missing`] when it is not there.
    pub fn at(program: &Path) -> Result<Forebay, Error> {
        present("forebay", program, "build it with `cargo build --package forebay`")?;
        Ok(Forebay { program: program.to_owned(), etcd: None, flags: Vec::new(), ready: READY })
    }

    /// The same on the etcd in `bin`.
    ///
    /// # Errors
    /// [`Error::Missing`] when it is not there.
    pub fn on_etcd(self, bin: &Path) -> Result<Forebay, Error> {
        let etcd = bin.join("etcd");
        present("etcd", &etcd, kubernetes::HOW)?;
        Ok(Forebay { etcd: Some(etcd), ..self })
    }

    pub fn name(&self) -> &'static str {
        if self.etcd.is_some() { "forebay + etcd" } else { "forebay" }
    }

    pub async fn start(&self, dir: &Path) -> Result<Instance, Error> {
        let Some(program) = &self.etcd else { return self.serve(dir, None).await };
        let etcd = kubernetes::start_etcd(program, dir).await?;
        let since = etcd.process.started;
        Ok(self.serve(dir, Some(etcd)).await?.since(since))
    }

    /// Starts it on what is running.
    pub async fn serve(&self, dir: &Path, etcd: Option<RunningEtcd>) -> Result<Instance, Error> {
        let [port] = free_ports()?;
        let data = dir.join("data");
        let mut args = args(&data.to_string_lossy(), &port.to_string());
        let etcd_port = etcd.as_ref().map(|etcd| etcd.port);
        args.extend(etcd_port.map(|port| etcd_flag(&port.to_string())));
        args.extend(self.flags());
        let command = &mut Command::new(&self.program);
        let mut process =
            Process::start("forebay", command.args(args).current_dir(dir), &dir.join("forebay.log"))?;
        let kubeconfig = data.join("admin.kubeconfig");
        let (target, ready) =
            process.ready_at(self.ready, process.started, port, || credentials(&kubeconfig)).await?;
        let processes = etcd.map(|etcd| etcd.process).into_iter().chain([process]).collect();
        Ok(Instance { name: self.name(), processes, target, ready, etcd_port })
    }

    /// The flags that it has beyond its places: those of the scenario, and who may do what, as the rival's
    /// default is with which it is compared.
    pub fn flags(&self) -> Vec<String> {
        let says = ["--authorization-mode", "--authorization-config"];
        let is_told = self.flags.iter().any(|flag| says.iter().any(|says| flag.starts_with(says)));
        let everybody = (!is_told).then(|| "--authorization-mode=AlwaysAllow".to_owned());
        everybody.into_iter().chain(self.flags.iter().cloned()).collect()
    }

    pub fn commands(&self) -> Vec<String> {
        let mut ours = args("$DIR/data", "$PORT");
        ours.extend(self.flags());
        let Some(etcd) = &self.etcd else { return vec![shown(&self.program, &ours)] };
        ours.push(etcd_flag("$PORT1"));
        vec![shown(etcd, &kubernetes::etcd_args("$DIR", "$PORT1", "$PORT2")), shown(&self.program, &ours)]
    }
}

fn etcd_flag(port: &str) -> String {
    format!("--etcd-servers=http://127.0.0.1:{port}")
}

fn args(data: &str, port: &str) -> Vec<String> {
    ["serve", "--data-dir", data, "--secure-port", port].map(str::to_owned).to_vec()
}

/// Who vouches for the server that runs on `dir`.
pub(crate) fn authority(dir: &Path) -> Result<Vec<u8>, Error> {
    let path = dir.join("data/admin.kubeconfig");
    let text = fs::read_to_string(&path).map_err(Error::file("cannot read", &path))?;
    data(&text, "certificate-authority-data")
        .ok_or_else(|| Error::Pki(format!("{} has none", path.display())))
}

/// The client's side of the kubeconfig that forebay wrote for its administrator.
fn credentials(kubeconfig: &Path) -> Result<Arc<ClientConfig>, Error> {
    let text = fs::read_to_string(kubeconfig).map_err(Error::file("cannot read", kubeconfig))?;
    let part = |key: &str| {
        data(&text, key).ok_or_else(|| Error::Pki(format!("{} has no usable {key}", kubeconfig.display())))
    };
    pki::client_config(
        &part("certificate-authority-data")?,
        &part("client-certificate-data")?,
        &part("client-key-data")?,
    )
}

/// The decoded value of the first `key: base64` line.
fn data(kubeconfig: &str, key: &str) -> Option<Vec<u8>> {
    let value = kubeconfig
        .lines()
        .find_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix(key)?.strip_prefix(':'))?;
    STANDARD.decode(value.trim().trim_matches('"')).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_the_decoded_value_of_its_own_line() {
        let text = "users:\n- name: a\n  user:\n    client-key-data: aGVsbG8=\n    client-certificate-data: \"Y2VydA==\"\n";
        assert_eq!(data(text, "client-key-data").unwrap(), b"hello");
        assert_eq!(data(text, "client-certificate-data").unwrap(), b"cert");
        assert_eq!(data(text, "client-key"), None);
        assert_eq!(data("client-key-data: ???", "client-key-data"), None);
    }

    #[test]
    fn a_missing_binary_is_named_with_the_way_to_get_it() {
        let why = Forebay::at(Path::new("/no/such/forebay")).unwrap_err().to_string();
        assert_eq!(why, "forebay is not at /no/such/forebay: build it with `cargo build --package forebay`");
    }
}
