//! Media types: what a client takes and what it sent.
//!
//! In: `Accept` and `Content-Type` headers. Out: the form to answer in, and what a body is. Never: encodes or
//! decodes one.

mod content_type;
mod header;
mod negotiate;

pub use content_type::{ContentType, unsupported_media_type};
pub use header::{CLAUSES_MAX, Clause, parse_accept};
pub use negotiate::{
    AsKind, Choice, Drops, Media, MetaVersion, Offered, aggregated_discovery, negotiate, negotiate_custom,
    not_acceptable, not_acceptable_stream,
};
