//! gRPC as etcd is spoken to: [`forebay_grpc`]'s calls and streams, whose failures are [`RequestError`]s.
//!
//! Never: a message.

use bytes::Bytes;
use forebay_grpc::{CallError, Outgoing, Sender};
use hyper::client::conn::http2::SendRequest;

use crate::error::RequestError;
use crate::limits;

/// One connection to one member. Cheap to clone.
#[derive(Clone)]
pub struct Channel(forebay_grpc::Channel);

/// The receiving side of a stream. Dropped, it ends the stream.
pub struct Receiver(forebay_grpc::Receiver);

impl Channel {
    pub fn new(send: SendRequest<Outgoing>, base: String) -> Channel {
        let channel = forebay_grpc::Channel::new(send, base).taking(limits::ANSWER_BYTES_MAX);
        // A member that has lost its leader ends the stream instead of keeping quiet.
        Channel(channel.saying("hasleader", "true"))
    }

    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// One message there, one back.
    ///
    /// # Errors
    /// [`RequestError`]; [`RequestError::Unreachable`] only when it was never sent.
    pub async fn call(&self, path: &str, message: &[u8]) -> Result<Bytes, RequestError> {
        Ok(self.0.call(path, message).await?)
    }

    /// One message there, many back.
    ///
    /// # Errors
    /// As for [`Channel::call`].
    pub async fn download(&self, path: &str, message: &[u8]) -> Result<Receiver, RequestError> {
        Ok(Receiver(self.0.download(path, message).await?))
    }

    /// Messages both ways. `first` is sent at once.
    ///
    /// # Errors
    /// As for [`Channel::call`].
    pub async fn stream(&self, path: &str, first: &[u8]) -> Result<(Sender, Receiver), RequestError> {
        let (sender, receiver) = self.0.stream(path, first).await?;
        Ok((sender, Receiver(receiver)))
    }
}

impl Receiver {
    /// The next message; `None` when the other side has ended in peace. Cancel-safe.
    ///
    /// # Errors
    /// How it ended otherwise.
    pub async fn next(&mut self) -> Result<Option<Bytes>, RequestError> {
        Ok(self.0.next().await?)
    }
}

impl From<CallError> for RequestError {
    fn from(error: CallError) -> RequestError {
        match error {
            CallError::Unreachable { text } => RequestError::Unreachable { text },
            CallError::Lost { text } => RequestError::Lost { text },
            CallError::Long { bytes } => RequestError::LongAnswer { bytes },
            CallError::Compressed => RequestError::Other { code: 12, text: error.to_string() },
            CallError::Status { code, text } => RequestError::of_status(code, &text),
        }
    }
}
