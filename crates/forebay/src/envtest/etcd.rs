//! Under the name `etcd`: what envtest waits for before it starts the API server, and nothing more.
//!
//! envtest starts an etcd in any case, and asks its `/health`. The server that follows keeps its data itself,
//! so this one answers that question, says on stderr that it is no etcd, and ends with its parent. In:
//! `--listen-client-urls`; every other flag is for a store and is passed over. Never: stores anything;
//! answers anything else but by an error.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use forebay_rt::Clock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::Error;
use crate::parent::Parent;
use crate::version::VERSION;

const HELP: &str = "\
forebay under the name etcd answers /health, for which envtest waits, and stores nothing.

Usage:
  etcd [flags]

Flags:
  --listen-client-urls URL   where to answer [http://localhost:2379]

All other flags of etcd are accepted without effect.
";

const DEFAULT_URL: &str = "http://localhost:2379";
/// A request's head; envtest's is a tenth of it.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Longest wait for one client, which is served alone.
const CLIENT_WAIT: Duration = Duration::from_secs(2);

/// Answers until told to stop, or until the parent is gone.
///
/// # Errors
/// What was typed wrong; what kept it from listening.
pub fn run(arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Error> {
    let parent = Parent::this();
    let url = match read(arguments)? {
        Asked::Help => return Ok(out.write_all(HELP.as_bytes())?),
        Asked::Version => return Ok(writeln!(out, "no etcd: forebay {VERSION}")?),
        Asked::Listen(url) => url,
    };
    eprintln!(
        "This is not etcd but forebay {VERSION}: it answers /health for envtest and stores nothing. \
         forebay as kube-apiserver keeps its data itself; another kube-apiserver finds no store here."
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|cause| Error::Serve(format!("no runtime: {cause}")))?;
    runtime.block_on(serve(&url, parent, out))
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Help,
    Version,
    Listen(String),
}

fn read(arguments: impl Iterator<Item = OsString>) -> Result<Asked, Error> {
    let mut urls = DEFAULT_URL.to_owned();
    let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        // As Go's flags, with one dash or two.
        let flag = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')).unwrap_or_default();
        match flag.split_once('=') {
            None if matches!(flag, "help" | "h") => return Ok(Asked::Help),
            None if flag == "version" => return Ok(Asked::Version),
            None if flag == "listen-client-urls" => {
                urls = arguments.next().ok_or(Error::NeedsArgument { flag: "listen-client-urls" })?;
            }
            Some(("listen-client-urls", value)) => urls = value.to_owned(),
            _ => {}
        }
    }
    // One address is enough to be asked at.
    Ok(Asked::Listen(urls.split(',').next().unwrap_or_default().trim().to_owned()))
}

async fn serve(url: &str, parent: Parent, out: &mut dyn Write) -> Result<(), Error> {
    let address = url.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
    let address = address.ok_or_else(|| Error::Usage(format!("--listen-client-urls {url}: not http://")))?;
    let listen = async {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(address).await?.collect();
        TcpListener::bind(&*addresses).await
    };
    let listener = listen.await.map_err(|cause| Error::Serve(format!("cannot listen on {url}: {cause}")))?;
    let address = listener.local_addr()?;
    writeln!(out, "forebay answers http://{address}/health")?;
    out.flush()?;
    let clock = Clock::system();
    let handler = |kind| signal(kind).map_err(|cause| Error::Serve(format!("no signals: {cause}")));
    let (mut terminate, mut interrupt) =
        (handler(SignalKind::terminate())?, handler(SignalKind::interrupt())?);
    tokio::select! {
        () = answer_all(&listener, &clock) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = parent.gone(&clock) => {}
    }
    Ok(())
}

/// One client after the other: there is one, which asks ten times a second until it hears once.
async fn answer_all(listener: &TcpListener, clock: &Clock) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            clock.sleep(CLIENT_WAIT).await;
            continue;
        };
        tokio::select! {
            // A client that left has no use for an answer.
            _ = answer(stream) => {}
            () = clock.sleep(CLIENT_WAIT) => {}
        }
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX || stream.read_buf(&mut head).await? == 0 {
            return Ok(());
        }
    }
    stream.write_all(&response(&head)).await?;
    stream.shutdown().await
}

fn response(head: &[u8]) -> Vec<u8> {
    let is_health = head.starts_with(b"GET /health ") || head.starts_with(b"GET /health?");
    let (status, kind, body) = match is_health {
        true => ("200 OK", "application/json", r#"{"health":"true","reason":""}"#),
        false => ("501 Not Implemented", "text/plain", "forebay under the name etcd stores nothing\n"),
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_address_of_clients_is_read() {
        let rows = [
            ("", DEFAULT_URL),
            (
                "--data-dir=/x --listen-client-urls=http://127.0.0.1:1 --unsafe-no-fsync=true",
                "http://127.0.0.1:1",
            ),
            ("--listen-client-urls http://127.0.0.1:2,http://[::1]:2 x", "http://127.0.0.1:2"),
            ("-listen-client-urls=http://127.0.0.1:3/", "http://127.0.0.1:3/"),
            ("--listen-peer-urls=http://127.0.0.1:4", DEFAULT_URL),
        ];
        for (line, want) in rows {
            let asked = read(line.split_whitespace().map(OsString::from)).expect("read");
            assert_eq!(asked, Asked::Listen(want.to_owned()), "{line}");
        }
        let asked = |line: &str| read(line.split_whitespace().map(OsString::from));
        assert!(matches!(asked("--help"), Ok(Asked::Help)));
        assert!(matches!(asked("--version"), Ok(Asked::Version)));
        assert_eq!(asked("--listen-client-urls").expect_err("no value").exit_code(), 2);
    }

    #[test]
    fn health_is_all_that_is_answered() {
        let status = |head: &str| {
            let response = response(head.as_bytes());
            String::from_utf8_lossy(&response).lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(status("GET /health HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
        assert_eq!(status("GET /health?serializable=true HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
        for head in
            ["GET /healthy HTTP/1.1", "POST /health HTTP/1.1", "PRI * HTTP/2.0", "GET /v2/keys HTTP/1.1"]
        {
            assert_eq!(status(&format!("{head}\r\n\r\n")), "HTTP/1.1 501 Not Implemented", "{head}");
        }
    }
}
