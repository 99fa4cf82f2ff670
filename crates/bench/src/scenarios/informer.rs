//! One informer on all objects, as a program of its own: what it takes until it has them, and at rest.
//!
//! In: a contender, and `forebay-mirrored` beside this program. Out: time, CPU and memory of each client, a sample a run. Never: a
//! client that has fewer objects than there are.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::contender::{Contender, present};
use crate::lab::Lab;
use crate::load::{self, Depth};
use crate::report::{Metrics, Unit, add, mib, ms};
use crate::server::Server;
use crate::stored::stored;
use crate::{Error, proc};

const RUNS: usize = 3;
const CLIENTS: [&str; 3] = ["forebay-informer", "kube-rs", "kube-rs-streaming"];
/// In settle times, of 2 s by default: a minute of silence until it counts as at rest.
const QUIET: u32 = 30;
/// Beside its data, in MiB: what an informer may take.
const BASE_MIB: f64 = 12.0;

pub(super) fn about(lab: &Lab) -> String {
    format!(
        "an informer on all {} {}, each client in a process of its own, one after the other: until it has them, its peak, and after {:?} of silence; {} runs",
        lab.size,
        lab.objects.about(),
        lab.settle * QUIET,
        lab.runs(RUNS)
    )
}

pub(super) async fn run(lab: &Lab, who: &Contender) -> Result<Metrics, Error> {
    let mut metrics = Metrics::new();
    let dir = lab.fresh_dir()?;
    let server = who.start(dir.path()).await?;
    load::namespaces(&server).await?;
    load::create(lab, &server, Depth::Whole).await?;
    let stored = stored(lab, &server.target).await?;
    add(&mut metrics, "JSON", Unit::MiB, mib(stored.bytes));
    let kubeconfig = kubeconfig(dir.path(), &server)?;
    for _ in 0..lab.runs(RUNS) {
        for client in CLIENTS {
            one(&mut metrics, lab, client, &kubeconfig, mib(stored.bytes)).await?;
        }
    }
    server.stop().await?;
    Ok(metrics)
}

/// That of its administrator: ours writes one, for kube-apiserver it is made.
fn kubeconfig(dir: &Path, server: &Server) -> Result<PathBuf, Error> {
    let written = dir.join("data/admin.kubeconfig");
    if written.exists() {
        return Ok(written);
    }
    let (pki, made) = (dir.join("pki"), dir.join("admin.kubeconfig"));
    let (pki, address) = (pki.display(), server.target.address);
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{{"name":"c","context":{{"cluster":"c","user":"u"}}}}],
"clusters":[{{"name":"c","cluster":{{"server":"https://{address}","certificate-authority":"{pki}/ca.crt"}}}}],
"users":[{{"name":"u","user":{{"client-certificate":"{pki}/client.crt","client-key":"{pki}/client.key"}}}}]}}"#
    );
    fs::write(&made, text).map_err(Error::file("cannot write", &made))?;
    Ok(made)
}

async fn one(
    metrics: &mut Metrics,
    lab: &Lab,
    client: &str,
    kubeconfig: &Path,
    json: f64,
) -> Result<(), Error> {
    let here = std::env::current_exe().map_err(|e| Error::Proc(e.to_string()))?;
    let program = here.with_file_name("forebay-mirrored");
    present("forebay-mirrored", &program, "build it with `cargo build --release --package forebay-faults`")?;
    let failed = |e: std::io::Error| Error::Proc(format!("{client}: {e}"));
    let mut command = Command::new(program);
    command.arg(client).arg("--kubeconfig").arg(kubeconfig).stdin(Stdio::piped()).stdout(Stdio::piped());
    let begun = Instant::now();
    let mut child = Ends(command.spawn().map_err(failed)?);
    let pid = child.0.id();
    let out = child.0.stdout.take().ok_or_else(|| Error::Proc("no output".into()))?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).map_err(failed)?;
    let took = begun.elapsed();
    if line.trim().parse() != Ok(lab.size) {
        return Err(Error::Answer { what: format!("{client} has {}", lab.size), answer: line });
    }
    let name = |what: &str| format!("{client}: {what}");
    add(metrics, &name("synced"), Unit::Milliseconds, ms(took));
    add(metrics, &name("CPU until synced"), Unit::Milliseconds, ms(proc::cpu(pid)?));
    let peak = mib(proc::resident_peak(pid)?);
    add(metrics, &name("peak"), Unit::MiB, peak);
    add(metrics, &name("peak / JSON"), Unit::Times, peak / json);
    tokio::time::sleep(lab.settle * QUIET).await;
    let rest = mib(proc::resident(pid)?);
    add(metrics, &name("at rest"), Unit::MiB, rest);
    add(metrics, &name(&format!("(at rest - {BASE_MIB} MiB) / JSON")), Unit::Times, (rest - BASE_MIB) / json);
    add(metrics, &name("CPU after a quiet minute"), Unit::Milliseconds, ms(proc::cpu(pid)?));
    Ok(())
}

/// A client that ends with its owner.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // Its input ends; it has a moment for its last words, and goes anyway.
        drop(self.0.stdin.take());
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end && matches!(self.0.try_wait(), Ok(None)) {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
