//! Snapshots of a store that a server has open: the server gives them out through a socket in its data
//! directory.
//!
//! In: connections to `snapshot.sock`, which only those can make who may enter the directory, and could read
//! the store itself. Out: the bytes of a snapshot file, of the state when the connection came (ADR 34). One
//! at a time; one that takes nothing for a while is cut. A snapshot that cannot go on breaks off, and has no
//! end then.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_embedded::Engine;
use forebay_embedded::snapshot::{Encoder, State};
use forebay_rt::{Clock, Tasks};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};

use forebay_pki::private_files;

/// What errors call what came from a server.
pub const NAME: &str = "the server's snapshot";

const SOCKET: &str = "snapshot.sock";

/// Where the socket is made.
const APART: &str = ".snapshot";

/// How long either side waits for the other: a piece is at most a few MiB.
const STALL_MAX: Duration = Duration::from_secs(60);

/// Gives out snapshots of `engine` until `tasks` end. Where there can be no socket, a warning says so.
///
/// - `dir`: the data directory, which this process holds.
pub fn serve(dir: &Path, engine: Arc<Engine>, clock: Clock, tasks: &Tasks) {
    match listen(dir) {
        Ok(listener) => tasks.spawn("snapshots", async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => give(stream, &engine, &clock).await,
                    Err(error) => {
                        tracing::warn!(%error, "no connection for a snapshot");
                        clock.sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }),
        Err(error) => {
            tracing::warn!(%error, "there is no socket for snapshots: stop the server to save one");
        }
    }
}

/// After an accept that failed: there are no more descriptors, perhaps for a while.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Connects to the server that has `dir`.
///
/// # Errors
/// There is no socket, or nobody behind it.
pub fn connect(dir: &Path) -> io::Result<StdUnixStream> {
    let stream = reached(dir, |path| StdUnixStream::connect(path))?;
    stream.set_read_timeout(Some(STALL_MAX))?;
    Ok(stream)
}

/// The socket is made in a directory of its own that only this user can enter, and comes to its place when it
/// is as it should be: at no moment can somebody else connect.
fn listen(dir: &Path) -> io::Result<UnixListener> {
    let (path, apart) = (dir.join(SOCKET), dir.join(APART));
    // Of a server that was killed: this one holds the store.
    for left in [&path, &apart.join(SOCKET)] {
        private_files::remove_if_there(left)?;
    }
    match fs::remove_dir(&apart) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => DirBuilder::new().mode(0o700).create(&apart)?,
    }
    let listener = reached(&apart, |path| UnixListener::bind(path))?;
    let made = apart.join(SOCKET);
    fs::set_permissions(&made, fs::Permissions::from_mode(0o600))?;
    fs::rename(&made, &path)?;
    fs::remove_dir(&apart)?;
    Ok(listener)
}

/// Does `what` with the socket's path; where that is too long for a socket (108 bytes on Linux), by way of
/// the open directory.
fn reached<T>(dir: &Path, what: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    match what(&dir.join(SOCKET)) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let open = std::fs::File::open(dir)?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&open);
            what(&PathBuf::from(format!("/proc/self/fd/{number}/{SOCKET}")))
        }
        done => done,
    }
}

async fn give(mut stream: UnixStream, engine: &Engine, clock: &Clock) {
    let state = engine.state();
    let revision = state.head().revision;
    match write(&mut stream, state, clock).await {
        Ok(keys) => tracing::info!(%revision, keys, "a snapshot was given out"),
        Err(why) => tracing::warn!(%revision, why, "a snapshot was broken off"),
    }
}

/// Writes all of it; how many keys there were.
async fn write(stream: &mut UnixStream, mut state: State, clock: &Clock) -> Result<u64, String> {
    let (mut encoder, begin) = Encoder::begin(state.head());
    send(stream, &begin, clock).await?;
    loop {
        let step = forebay_rt::blocking(move || {
            let page = state.page();
            let block = page.map(|page| (!page.is_empty()).then(|| encoder.block(&page)));
            (state, encoder, block)
        });
        let (read, made, block) = step.await.map_err(|error| error.to_string())?;
        (state, encoder) = (read, made);
        match block.map_err(|error| error.to_string())? {
            Some(block) => send(stream, &block, clock).await?,
            None => break,
        }
    }
    let (end, summary) = encoder.finish();
    send(stream, &end, clock).await?;
    Ok(summary.keys)
}

async fn send(stream: &mut UnixStream, bytes: &[u8], clock: &Clock) -> Result<(), String> {
    tokio::select! {
        sent = stream.write_all(bytes) => sent.map_err(|error| error.to_string()),
        () = clock.sleep(STALL_MAX) => Err("its reader took nothing for a minute".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;
    use forebay_scratch::Scratch;

    #[tokio::test]
    async fn a_long_name_of_the_directory_is_no_obstacle() {
        let scratch = Scratch::new();
        let dir = scratch.path().join("a".repeat(120));
        std::fs::create_dir(&dir).expect("made");
        assert!(connect(&dir).is_err(), "nobody is there");
        for _ in 0..2 {
            // The second finds what the first left.
            let listener = listen(&dir).expect("listens");
            let mut stream = connect(&dir).expect("connects");
            drop(listener.accept().await.expect("a connection"));
            assert_eq!(stream.read(&mut [0]).expect("its end"), 0);
        }
    }

    #[tokio::test]
    async fn nobody_else_can_connect_at_any_moment() {
        use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
        let scratch = Scratch::new();
        let (path, is_over, seen) =
            (scratch.path().join(SOCKET), Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let look = {
            let (path, is_over, seen) = (path.clone(), is_over.clone(), seen.clone());
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    if let Ok(found) = std::fs::symlink_metadata(&path) {
                        assert_eq!(found.permissions().mode() & 0o777, 0o600);
                        seen.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        };
        let looking = std::thread::Builder::new().name("looks".into()).spawn(look).expect("a thread");
        // As long as it takes to have been looked at often.
        for round in 0.. {
            let listener = listen(scratch.path()).expect("listens");
            assert_eq!(std::fs::read_dir(scratch.path()).expect("listed").count(), 1, "{round}");
            drop(listener);
            if (round > 2_000 && seen.load(Ordering::Relaxed) > 20_000) || looking.is_finished() {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(looking.join().is_ok(), "it had another mode");
    }

    #[tokio::test]
    async fn what_a_killed_server_left_is_no_obstacle() {
        let scratch = Scratch::new();
        let apart = scratch.path().join(APART);
        for left in [false, true] {
            std::fs::create_dir(&apart).expect("made");
            if left {
                std::fs::write(apart.join(SOCKET), "").expect("written");
            }
            drop(listen(scratch.path()).expect("listens"));
            assert!(!apart.exists());
        }
    }
}
