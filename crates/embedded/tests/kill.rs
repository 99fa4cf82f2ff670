//! A real process that writes, is killed with SIGKILL at a random moment, and started again: what it
//! acknowledged is there. The child is this test binary run again, with a directory in its environment.
#![cfg(unix)]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{key, put};
use forebay_apimachinery::Revision;
use forebay_backend::{Backend, Expect, TxnResponse};
use forebay_embedded::{Engine, Options};
use forebay_rt::Random;
use forebay_scratch::Scratch;

const DIR: &str = "FOREBAY_KILL_TEST_DIR";
const ROUNDS: u64 = 10;

/// The child: several writers without end, each acknowledged write a line on stdout. Does nothing without
/// [`DIR`].
#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let store = Engine::open(Path::new(&dir), Options::default()).expect("opens");
        let first = store.barrier().await.expect("open");
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for n in 0u64.. {
                        let name = format!("/registry/{first}/{writer}/{n}");
                        let value = name.repeat(1 + (n % 50) as usize);
                        let outcome = store.commit(put(&name, Expect::Absent, &value)).await.expect("works");
                        let TxnResponse::Committed(revision) = outcome else { panic!("{outcome:?}") };
                        // One write, so that a line is whole or not there.
                        let mut out = std::io::stdout().lock();
                        out.write_all(format!("ACK {revision} {name}\n").as_bytes())
                            .expect("the parent reads");
                        out.flush().expect("the parent reads");
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.expect("no panic");
        }
    });
}

#[tokio::test]
async fn a_killed_process_has_every_write_it_acknowledged() {
    let (scratch, random) = (Scratch::new(), Random::system());
    let mut acknowledged: Vec<(u64, String)> = Vec::new();
    for round in 0..ROUNDS {
        let before = acknowledged.len();
        acknowledged.extend(run_and_kill(scratch.path(), 20 + random.below(150) as usize));
        assert!(acknowledged.len() > before, "round {round} wrote nothing");
        let store = Engine::open(scratch.path(), Options::default()).expect("opens after a kill");
        for (revision, name) in &acknowledged {
            let found =
                store.get(&key(name)).await.expect("open").unwrap_or_else(|| panic!("{name} is gone"));
            assert_eq!(found.revision, Revision::from_log(*revision), "{name}");
            assert!(
                found.value.starts_with(name.as_bytes()) && found.value.len() % name.len() == 0,
                "{name}"
            );
        }
    }
}

/// Starts the child, kills it after some acknowledgements, and returns all that it gave.
fn run_and_kill(dir: &Path, after: usize) -> Vec<(u64, String)> {
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["child_that_writes_until_it_is_killed", "--exact", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).split(b'\n');
    let mut acknowledged = Vec::new();
    let mut take = |line: Vec<u8>| {
        let line = String::from_utf8(line).expect("text");
        // The test runner's own words may stand before the first line.
        let Some((_, ack)) = line.split_once("ACK ") else { return };
        let (revision, name) = ack.split_once(' ').expect("revision and name");
        acknowledged.push((revision.parse().expect("a number"), name.to_string()));
    };
    for line in lines.by_ref().take(after) {
        take(line.expect("readable"));
    }
    child.kill().expect("SIGKILL");
    lines.for_each(|line| take(line.expect("readable")));
    child.wait().expect("ends");
    acknowledged
}
