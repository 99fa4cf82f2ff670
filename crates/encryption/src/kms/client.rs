//! Calls of one plugin over its Unix socket.
//!
//! In: messages. Out: answers within the plugin's time. A plugin that is not there yet is waited for, within
//! that time. Never: retries what may have been done.

use std::sync::Arc;

use bytes::Bytes;
use forebay_grpc::{CallError, UnixService};
use forebay_rt::{Clock, Duration, Tasks};
use tokio::sync::Semaphore;

use super::messages;
use crate::limits;
use crate::metrics::EncryptionMetrics;

/// See the module's doc.
pub struct KmsClient {
    name: Arc<str>,
    service: UnixService,
    timeout: Duration,
    clock: Clock,
    metrics: Arc<EncryptionMetrics>,
    calls: Semaphore,
}

impl KmsClient {
    /// - `socket`: a path; one that begins with `/@` is a name of Linux' own.
    pub fn new(
        name: Arc<str>,
        socket: &str,
        timeout: Duration,
        (clock, tasks): (Clock, Tasks),
        metrics: Arc<EncryptionMetrics>,
    ) -> KmsClient {
        let socket = match socket.strip_prefix("/@") {
            Some(abstracted) => format!("@{abstracted}"),
            None => socket.to_owned(),
        };
        let service = UnixService::new(name.clone(), &socket, clock.clone(), tasks);
        let calls = Semaphore::new(limits::KMS_CALLS_MAX);
        KmsClient { name, service, timeout, clock, metrics, calls }
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
        self.service.call(method, message, limits::KMS_ANSWER_BYTES_MAX).await
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
