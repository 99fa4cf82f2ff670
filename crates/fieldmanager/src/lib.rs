//! Who owns which fields of a Kubernetes object: `metadata.managedFields`, and what an apply makes of them.
//!
//! In: the object as it is and as it is to be, both canonical, what an apply says, the kind in all its
//! versions ([`Versions`]), who writes and when. Out: the entries of `managedFields`; of an apply the object
//! as well, or whose fields are in the way. Never: stores, waits, reads a clock; knows an HTTP code;
//! defaults, validates.
//!
//! From below: [`entry`](Managed) reads and writes entries, [`FieldManager`] is what upstream does in a row
//! of managers around a merge. The merge itself is `merge`, the types are those of the schema's table and of
//! CRDs ([`FieldType`]).
//!
//! Source: `k8s.io/apimachinery` v0.36.3 `pkg/util/managedfields`, which the tests ask the same (`tests/upstream`).

mod cap;
mod conflict;
mod entry;
mod field_manager;
mod field_type;
mod last_applied;
pub mod limits;
mod repeated;
mod reset_fields;
mod scale;
mod versions;

pub use entry::{EntryError, Managed};
pub use field_manager::{Created, FieldManager, Sent};
pub use field_type::FieldType;
pub use forebay_merge::ConvertError;
pub use last_applied::LAST_APPLIED;
pub use repeated::keep_times_if_repeated;
pub use reset_fields::{Filters, custom_reset_fields, reset_fields};
pub use scale::{ReplicasPaths, ScaleEntries, custom_replicas_paths, replicas_paths};
pub use versions::Versions;
