//! What a client asks for beside the object: the options of each verb, as data.
//!
//! In: the query of a URL, or a `DeleteOptions` body. Out: options with kube-apiserver's checks of each value
//! passed. Never: decides what a LIST or WATCH means (`registry` does).

mod delete;
mod fault;
mod list;
mod query;
mod write;

pub use delete::{DeleteOptions, IGNORE_READ_ERRORS, Preconditions, PropagationPolicy};
pub use fault::{field_forbidden, field_invalid, field_not_supported, field_required};
pub use list::{GetOptions, IncludeObject, ListOptions, TableOptions};
pub use query::Query;
pub use write::{
    CreateOptions, FIELD_MANAGER_BYTES_MAX, FieldValidation, PatchOptions, UpdateOptions,
    manager_or_user_agent,
};
