//! KMS v2: a plugin on this machine encrypts the seed that values are encrypted with.
//!
//! In: values and what is kept of them. Out: the other of both, and what a plugin has to be asked first.
//! Never: a plugin's own key; the older KMS v1, which upstream has turned off.
//!
//! Source: apiserver v0.36.3 `storage/value/encrypt/envelope/kmsv2`, `server/options/encryptionconfig`.

mod client;
mod envelope;
mod keys;
mod messages;
mod provider;

pub use envelope::DataKeyRef;
pub use provider::KmsProvider;

pub(crate) use provider::KmsSettings;
