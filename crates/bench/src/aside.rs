//! Work on a thread of its own: what it does delays nobody who measures, and nobody delays it.
//!
//! In: a future. Out: a handle. Dropping it ends the work, with all that it holds. Never: an end that is not
//! waited for.

use std::thread::{Builder, JoinHandle};

use tokio::sync::oneshot;

use crate::Error;

#[derive(Debug)]
pub struct Aside {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Aside {
    /// Starts `work`, whose tasks share a runtime of one thread.
    pub fn start(name: &str, work: impl Future<Output = ()> + Send + 'static) -> Result<Aside, Error> {
        let failed = |e: std::io::Error| Error::Proc(format!("{name}: {e}"));
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let until_stopped = async {
            tokio::select! {
                () = work => {}
                // Nothing is ever said: the other end is dropped.
                _ = stopped => {}
            }
        };
        let thread = Builder::new()
            .name(name.into())
            .spawn(move || runtime.block_on(until_stopped))
            .map_err(failed)?;
        Ok(Aside { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, sync_channel};
    use std::time::Duration;

    use super::*;

    #[test]
    fn work_that_never_ends_ends_with_its_handle_and_lets_go_of_what_it_held() {
        let (held, holder) = sync_channel::<()>(1);
        let aside = Aside::start("test", async move {
            let _held = held;
            std::future::pending().await
        });
        assert_eq!(holder.recv_timeout(Duration::ZERO), Err(RecvTimeoutError::Timeout));
        drop(aside.unwrap());
        assert_eq!(holder.recv_timeout(Duration::from_secs(60)), Err(RecvTimeoutError::Disconnected));
    }
}
