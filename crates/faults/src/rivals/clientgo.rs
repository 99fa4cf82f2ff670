//! client-go: the program `go/` beside this crate, which holds an informer of a factory for each namespace.
//!
//! In: a [`Setting`], told as its first line. Out: a [`Subject`], which asks it by lines. Never: a program
//! that outlives us: it ends with its standard input.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use forebay_clients::needs;
use serde_json::json;

use crate::Error;
use crate::subject::{InformerState, Names, Setting, Subject};

struct ClientGo {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

pub fn start(setting: &Setting) -> Result<Box<dyn Subject>, Error> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let program = BUILT.get_or_init(build).clone().map_err(failed)?;
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // It logs each failed watch there.
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let (Some(orders), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("it has no pipes"));
    };
    let mut it = ClientGo { child, orders, answers: BufReader::new(answers) };
    it.ask(&json!({
        "url": setting.url, "port": setting.port, "authority": setting.authority, "namespaces": setting.namespaces,
        "timeoutMs": setting.timeout.map_or(0, |timeout| timeout.as_millis() as u64),
    }))?;
    Ok(Box::new(it))
}

fn build() -> Result<PathBuf, String> {
    let binary = needs::cache_dir()?.join("faults-client-go");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("go");
    let mut command = Command::new("go");
    command.args(["build", "-mod=readonly", "-trimpath", "-o"]).arg(&binary).arg(".");
    needs::output(command.current_dir(module).env("GOFLAGS", "-buildvcs=false").env("CGO_ENABLED", "0"))?;
    Ok(binary)
}

impl ClientGo {
    /// One line for one line.
    fn ask(&mut self, order: &serde_json::Value) -> Result<String, Error> {
        self.orders.write_all(format!("{order}\n").as_bytes()).map_err(failed)?;
        let mut answer = String::new();
        match self.answers.read_line(&mut answer).map_err(failed)? {
            0 => Err(failed("it has ended")),
            _ => Ok(answer),
        }
    }
}

impl Subject for ClientGo {
    fn look(&mut self) -> Result<Vec<InformerState>, Error> {
        let answer = self.ask(&json!("look"))?;
        serde_json::from_str(&answer).map_err(|why| failed(format!("{why}: {answer}")))
    }

    fn resolve(&mut self, names: Names) -> Result<(), Error> {
        self.ask(&json!(match names {
            Names::Resolve => "resolve",
            Names::Fail => "fail to resolve",
        }))
        .map(drop)
    }
}

impl Drop for ClientGo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn failed(why: impl std::fmt::Display) -> Error {
    Error::Subject { subject: "client-go", why: why.to_string() }
}
