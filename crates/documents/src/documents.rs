//! What a server's documents are made from besides its catalog, together.
//!
//! In: what the server was told when it was put together. Out: the same, to who answers. Never: makes a
//! document.

use bytes::Bytes;

use crate::health::Checks;
use crate::openapi::OpenApi;
use crate::zpages::Zpages;

/// See the module's doc.
pub struct Documents {
    pub openapi: OpenApi,
    pub checks: Checks,
    /// `/version`, as it is sent.
    pub version: Bytes,
    /// Host and port that clients reach this server at.
    pub address: String,
    pub zpages: Zpages,
}
