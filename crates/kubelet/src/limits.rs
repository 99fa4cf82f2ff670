//! How many kubelets are known, and how much of what they refuse with is read.
//!
//! In: nothing. Out: constants. Never: a limit elsewhere.

/// Kubelets whose connections are kept, by their addresses. With one more all are forgotten: what goes over
/// their connections goes on.
pub const KUBELETS_MAX: usize = 1_024;

/// Addresses of a service that are looked at for one whose pod is there. Of more it is some.
pub const ADDRESSES_LOOKED_AT_MAX: usize = 32;

/// Bytes of those pods that are looked at for one address. Once it is more, nobody is there.
pub const POD_BYTES_LOOKED_AT_MAX: usize = 4 << 20;

/// An object of so many bytes is read apart from the tasks: that takes the better part of a millisecond.
pub const READ_APART_BYTES: usize = 256 << 10;

/// Bytes of a name that may be somebody's. A longer one is nobody's.
pub const NAME_BYTES_MAX: usize = 253;

/// Bytes of names that a message lists. The others are left out.
pub const TOLD_BYTES_MAX: usize = 16 << 10;

/// Bytes of a refusal that are told, as kube-apiserver has it.
pub const REFUSAL_BYTES_MAX: usize = 50_000;
