//! What lists and watches are sent as, made a piece at a time as it is asked for: indented, as YAML, in gzip;
//! and the pieces that those share who read the same.
//!
//! In: the body of a list, the frames of a watch, segments of the cache. Out: bytes, in the form that was
//! negotiated. What is deflated in the cache goes into an answer as it is. Never: a header, a request, a
//! client; who may read what; waits for one.

mod event_blocks;
mod form;
mod gzip;
pub mod limits;
mod list_content;
mod member;
mod pretty;
mod shared_lists;
mod shared_pieces;
mod source;
mod yaml_list;
mod zipped;

pub use event_blocks::{BlockReader, EventBlocks};
pub use form::Form;
pub use gzip::{Gzip, InBlocks, Parts};
pub use list_content::{ListAnswer, ListContent, MadeFor, SourceAnswer};
pub use member::Member;
pub use pretty::{Indenter, indent, indented_len};
pub use shared_lists::{ListReader, SharedLists, Totals};
pub use source::{ListSource, OfList, Pretty, Rest, Resumed, Written, read_ahead};
pub use yaml_list::YamlList;
pub use zipped::{Effort, Zipped};
