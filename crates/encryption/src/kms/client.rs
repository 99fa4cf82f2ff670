//! Calls of one plugin over its Unix socket: one connection, made when it is wanted, and again once it is
//! gone.
//!
//! In: messages. Out: answers within the plugin's time. A plugin that is not there yet is waited for, within
//! that time. Never: retries what may have been done.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use forebay_grpc::{CallError, Channel, chain};
use forebay_rt::{Clock, Duration, Tasks};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use super::messages;
use crate::limits;
use crate::metrics::EncryptionMetrics;

/// Between two attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);

/// How upstream names its plugins to them.
const BASE: &str = "http://localhost";

/// See the module's doc.
pub struct KmsClient {
    name: Arc<str>,
    socket: PathBuf,
    timeout: Duration,
    clock: Clock,
    tasks: Tasks,
    metrics: Arc<EncryptionMetrics>,
    held: Mutex<Option<Channel>>,
    calls: Semaphore,
}

impl KmsClient {
    /// - `socket`: a path; one that begins with `@` is a name of Linux' own.
    pub fn new(
        name: Arc<str>,
        socket: &str,
        timeout: Duration,
        (clock, tasks): (Clock, Tasks),
        metrics: Arc<EncryptionMetrics>,
    ) -> KmsClient {
        let socket = match socket.strip_prefix("/@") {
            Some(abstracted) => format!("\0{abstracted}"),
            None => socket.to_owned(),
        };
        let (held, calls) = (Mutex::default(), Semaphore::new(limits::KMS_CALLS_MAX));
        KmsClient { name, socket: socket.into(), timeout, clock, tasks, metrics, held, calls }
    }

    /// One call.
    ///
    /// # Errors
    /// What the plugin says, or that it says nothing in time.
    pub async fn call(&self, method: &'static str, message: &[u8]) -> Result<Bytes, CallError> {
        let began = self.clock.now();
        let late = || CallError::Status { code: 4, text: "context deadline exceeded".to_owned() };
        let answer = tokio::select! {
            answer = self.ask(method, message) => answer,
            () = self.clock.sleep_until(began + self.timeout) => Err(late()),
        };
        let took = self.clock.now() - began;
        self.metrics.called(&self.name, method, answer.as_ref().err(), took);
        answer
    }

    /// One call, however long it takes. Cancel-safe: dropped, the plugin is told.
    async fn ask(&self, method: &str, message: &[u8]) -> Result<Bytes, CallError> {
        let closed = |_| CallError::Unreachable { text: "the server is closing".to_owned() };
        let _seat = self.calls.acquire().await.map_err(closed)?;
        loop {
            match self.channel().await {
                Ok(channel) => match channel.call(method, message).await {
                    // It was never sent: the plugin may have been started anew.
                    Err(CallError::Unreachable { text }) => {
                        tracing::debug!(name = &*self.name, text, "a plugin is connected to again");
                        self.held().take();
                    }
                    answer => return answer,
                },
                Err(text) => tracing::debug!(name = &*self.name, text, "a plugin cannot be connected to"),
            }
            self.clock.sleep(CONNECT_PAUSE).await;
        }
    }

    async fn channel(&self) -> Result<Channel, String> {
        if let Some(channel) = self.held().as_ref().filter(|channel| !channel.is_closed()) {
            return Ok(channel.clone());
        }
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| error.to_string())?;
        let made = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (send, connection) = made.map_err(|error| chain(&error))?;
        let name = self.name.clone();
        self.tasks.spawn("kms connection", async move {
            if let Err(error) = connection.await {
                tracing::debug!(name = &*name, error = chain(&error), "a connection to a plugin ended");
            }
        });
        let channel = Channel::new(send, BASE.to_owned()).taking(limits::KMS_ANSWER_BYTES_MAX);
        *self.held() = Some(channel.clone());
        Ok(channel)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Channel>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the plugin is.
    ///
    /// # Errors
    /// As for [`KmsClient::call`].
    pub async fn status(&self) -> Result<messages::PluginStatus, CallError> {
        let answer = self.call(messages::STATUS, &[]).await?;
        messages::read_status(answer).map_err(|error| malformed(&error))
    }

    /// What the plugin makes of `seed`.
    ///
    /// # Errors
    /// As for [`KmsClient::call`].
    pub async fn encrypt(&self, seed: &[u8], uid: &str) -> Result<messages::EncryptedSeed, CallError> {
        let answer = self.call(messages::ENCRYPT, &messages::encrypt(seed, uid)).await?;
        messages::read_encrypted(answer).map_err(|error| malformed(&error))
    }

    /// What `request` asks to be decrypted.
    ///
    /// # Errors
    /// As for [`KmsClient::call`].
    pub async fn decrypt(&self, request: &[u8]) -> Result<Bytes, CallError> {
        let answer = self.call(messages::DECRYPT, request).await?;
        messages::read_decrypted(answer).map_err(|error| malformed(&error))
    }
}

/// As gRPC for Go has it.
fn malformed(error: &dyn std::error::Error) -> CallError {
    CallError::Status { code: 13, text: format!("grpc: failed to unmarshal the received message: {error}") }
}
