//! The threads that all test servers of this process run on.
//!
//! One owner: the process, for as long as it lives. Not the caller's runtime, as a test may block its only
//! thread, pause its clock, or be over before its server is taken apart.

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

/// For reads of stores, all of them in memory.
const BLOCKING_THREADS_MAX: usize = 4;

/// The runtime, made when it is first needed.
///
/// # Errors
/// When no thread can be started; the next call tries again.
pub(crate) fn handle() -> io::Result<Handle> {
    static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(made) = &*runtime {
        return Ok(made.handle().clone());
    }
    let made = Builder::new_multi_thread()
        .thread_name("forebay-testing")
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()?;
    Ok(runtime.insert(made).handle().clone())
}
