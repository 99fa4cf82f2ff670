//! What a refused request is answered with, in whichever encoding.
//!
//! In: the body. Out: a [`StatusFrame`]. Never: text that is none.

use super::error::WireError;
use super::protobuf::refused;
use super::status::StatusFrame;

impl StatusFrame {
    /// Reads the body of a refused request, in JSON or protobuf.
    ///
    /// # Errors
    /// [`WireError::Garbled`] when it is no `Status`: some refusals are plain text.
    pub fn read(body: &[u8]) -> Result<StatusFrame, WireError> {
        match refused(body)? {
            Some(status) => Ok(status),
            None => StatusFrame::of_body(body),
        }
    }
}
