//! Encryption at rest as kube-apiserver has it: the same configuration, the same bytes in the store, read by
//! either.
//!
//! In: an `EncryptionConfiguration`, values with the keys that they are at, Unix sockets of KMS plugins. Out:
//! what is kept of values, and back; whether one is to be written anew; a store in front of another one that
//! does both. Never: knows what a value means, or which engine keeps it; says a key in a log.

mod chain;
mod ciphers;
pub mod config;
mod encryption;
mod failed;
mod hash;
mod in_force;
mod kms;
pub mod limits;
mod metrics;
mod rekeyed;
mod reload;
mod rules;
mod store;
#[cfg(test)]
mod tests;

pub use config::Reload;
pub use encryption::{Encryption, EncryptionSettings, Lacking, OpenedValue};
pub use failed::SealError;
pub use in_force::read_configuration;
pub use metrics::{
    CALL_BOUNDS, Direction, EncryptionCounted, EncryptionMetrics, GENERATION_BOUNDS, KeyUse,
    TRANSFORMATION_BOUNDS, Times,
};
pub use store::EncryptedStore;
