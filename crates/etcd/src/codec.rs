//! Between the values that the server works with and the bytes that etcd keeps.

use bytes::Bytes;

/// How values are kept. What a value means is known to whoever makes one of these: the engine only moves
/// bytes.
pub trait Codec: Send + Sync + 'static {
    /// The bytes to keep at `key`.
    ///
    /// # Errors
    /// Why the value cannot be kept; nothing is written then.
    fn to_stored(&self, key: &str, value: &Bytes) -> Result<Bytes, String>;

    /// The value that `stored`, found at `key`, stands for.
    ///
    /// # Errors
    /// Why it cannot be read. It is then handed on as it is, so that whoever reads it says so, and misses
    /// nothing else.
    fn to_value(&self, key: &str, stored: Bytes) -> Result<Bytes, (Bytes, String)>;
}

/// Values are kept as they are.
#[derive(Debug, Clone, Copy)]
pub struct Verbatim;

impl Codec for Verbatim {
    fn to_stored(&self, _key: &str, value: &Bytes) -> Result<Bytes, String> {
        Ok(value.clone())
    }

    fn to_value(&self, _key: &str, stored: Bytes) -> Result<Bytes, (Bytes, String)> {
        Ok(stored)
    }
}
