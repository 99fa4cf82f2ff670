//! The vocabulary of the Kubernetes API: what every other crate calls things.
//!
//! In: text and bytes from the wire. Out: values with one meaning each. Never: does IO, is async, names an
//! HTTP code.

pub mod accept;
pub mod attributes;
pub mod bad_value;
pub mod caller;
pub mod continue_token;
pub mod domain_path;
pub mod fault_path;
pub mod field_path;
pub mod go_address;
pub mod go_duration;
pub mod go_format;
pub mod go_time;
pub mod go_url;
pub mod json;
pub mod key;
pub mod lease;
pub mod options;
pub mod quantity;
pub mod resource;
pub mod revision;
pub mod schema_duration;
pub mod seen;
pub mod selector;
pub mod status;
pub mod steps;
pub mod unrecognized;
pub mod varint;
pub mod verb;
pub mod version_order;

pub use attributes::{About, Attributes, ResourceAttributes};
pub use caller::Caller;
pub use domain_path::domain_prefixed_path_faults;
pub use field_path::{FieldPath, PathError, PathStep};
pub use key::Key;
pub use lease::{Exhausted, Lease};
pub use resource::{GroupKind, GroupResource, GroupVersionKind, GroupVersionResource};
pub use revision::Revision;
pub use seen::Seen;
pub use status::{CAUSES_MAX, Cause, CauseReason, FAULT_BYTES_MAX, FaultBytes, Foreign, Reason, Status};
pub use unrecognized::unrecognized;
pub use verb::Verb;
