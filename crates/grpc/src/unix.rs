//! Calls of one service over its Unix socket: one connection, made when it is wanted, and again once it is
//! gone.
//!
//! In: messages. Out: answers, or why there is none. A service that is not there yet is waited for, as gRPC
//! for Go does it that is told to wait; whoever calls says how long, and drops the call. Never: retries what
//! may have been done.
//!
//! Owner: the locks in here; one caller at a time connects.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use forebay_rt::{Clock, Duration, Tasks};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use crate::channel::{Channel, chain};
use crate::error::CallError;

/// Between two attempts to connect, whoever makes them.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// How upstream calls its plugins to themselves.
const BASE: &str = "http://localhost";

/// See the module's doc.
pub struct UnixService {
    name: Arc<str>,
    socket: PathBuf,
    clock: Clock,
    tasks: Tasks,
    held: Mutex<Held>,
    connects: Semaphore,
}

#[derive(Default)]
struct Held {
    channel: Option<Channel>,
    // Why it could not be connected to, until it can.
    unreachable: Option<String>,
}

impl UnixService {
    /// - `name`: what the log calls it.
    /// - `socket`: a path; what begins with `@` is a name of Linux' own instead.
    pub fn new(name: Arc<str>, socket: &str, clock: Clock, tasks: Tasks) -> UnixService {
        let socket = match socket.strip_prefix('@') {
            Some(abstracted) => format!("\0{abstracted}"),
            None => socket.to_owned(),
        };
        let (held, connects) = (Mutex::default(), Semaphore::new(1));
        UnixService { name, socket: socket.into(), clock, tasks, held, connects }
    }

    /// One call, however long it takes. Cancel-safe: dropped, the service is told.
    ///
    /// - `answer_bytes_max`: a longer answer is an error.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn call(
        &self,
        method: &str,
        message: &[u8],
        answer_bytes_max: usize,
    ) -> Result<Bytes, CallError> {
        loop {
            let channel = self.channel().await?.taking(answer_bytes_max);
            match channel.call(method, message).await {
                // It was never sent: the service may have been started anew.
                Err(CallError::Unreachable { text }) => {
                    tracing::debug!(name = &*self.name, text, "a service is connected to again");
                    self.held().channel = None;
                    self.clock.sleep(CONNECT_PAUSE).await;
                }
                answer => return answer,
            }
        }
    }

    /// What a call that nobody waits for any longer came to, in the words of gRPC for Go.
    pub fn late(&self) -> CallError {
        let text = match &self.held().unreachable {
            None => "context deadline exceeded".to_owned(),
            Some(why) => format!("latest balancer error: connection error: desc = {why:?}"),
        };
        CallError::Status { code: 4, text }
    }

    /// The connection, once there is one.
    async fn channel(&self) -> Result<Channel, CallError> {
        if let Some(channel) = self.connected() {
            return Ok(channel);
        }
        let closed = |_| CallError::Unreachable { text: "the server is closing".to_owned() };
        let _turn = self.connects.acquire().await.map_err(closed)?;
        loop {
            if let Some(channel) = self.connected() {
                return Ok(channel);
            }
            match self.connect().await {
                Ok(channel) => {
                    *self.held() = Held { channel: Some(channel.clone()), unreachable: None };
                    return Ok(channel);
                }
                Err(text) => {
                    tracing::debug!(name = &*self.name, text, "a service cannot be connected to");
                    self.held().unreachable = Some(text);
                }
            }
            self.clock.sleep(CONNECT_PAUSE).await;
        }
    }

    fn connected(&self) -> Option<Channel> {
        self.held().channel.clone().filter(|channel| !channel.is_closed())
    }

    async fn connect(&self) -> Result<Channel, String> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| self.dialled(&error))?;
        let made = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (send, connection) = made.map_err(|error| chain(&error))?;
        let name = self.name.clone();
        self.tasks.spawn("connection to a service", async move {
            if let Err(error) = connection.await {
                tracing::debug!(name = &*name, error = chain(&error), "a connection to a service ended");
            }
        });
        Ok(Channel::new(send, BASE.to_owned()))
    }

    /// As Go says it.
    fn dialled(&self, error: &std::io::Error) -> String {
        let why = error.to_string();
        let why = why.split(" (os error").next().unwrap_or_default().to_lowercase();
        let socket = self.socket.to_string_lossy().replace('\0', "@");
        format!("transport: Error while dialing: dial unix {socket}: connect: {why}")
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for UnixService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixService").field("socket", &self.socket).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_there_is_said_as_go_says_it_and_waited_for() {
        for (socket, said) in
            [("/nonexistent/of.sock", "/nonexistent/of.sock"), ("@forebay-nobody", "@forebay-nobody")]
        {
            let tasks = Tasks::new();
            let service = UnixService::new("it".into(), socket, Clock::system(), tasks.clone());
            assert_eq!(
                service.late().to_string(),
                "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
            );
            let asked = tokio::select! {
                answer = service.call("/a/b", b"", 10) => Some(answer),
                () = async { while service.held().unreachable.is_none() { tokio::task::yield_now().await } } => None,
            };
            assert!(asked.is_none(), "it waits: {asked:?}");
            let late = service.late().to_string();
            let head =
                "rpc error: code = DeadlineExceeded desc = latest balancer error: connection error: desc = ";
            let dialled = format!("{head}\"transport: Error while dialing: dial unix {said}: connect: ");
            assert!(
                late.starts_with(&dialled) && late.ends_with('"') && !late.contains("os error"),
                "{late}"
            );
        }
    }
}
