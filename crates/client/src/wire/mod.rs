//! Bodies of answers, in JSON or protobuf, cut into frames and items without a tree of any of them.
//!
//! In: a body in pieces of any size. Out: a [`Run`] where it is made of texts that were deflated alone, a
//! [`Frame`] for each event of a watch, a [`Part`] for each item of a list and for what stands around them,
//! and objects as [`ObjectText`], which is their bytes and what was found on the way over them; of it comes a
//! value for the cache, whole or as a [`Projection`]. Each byte is walked over once, however it was cut.
//! Never: waits; recurses; judges the grammar of what nobody here asks for, beyond where it ends; holds more
//! than the longest object and a piece.

mod delimited;
mod error;
mod inflate;
mod list;
mod object;
mod pending;
mod projection;
#[cfg(test)]
mod projection_tests;
mod protobuf;
mod refused;
mod runs;
mod status;
#[cfg(test)]
mod tests;
mod text;
mod walk;
mod watch;

pub use delimited::DelimitedFrames;
pub use error::WireError;
pub use inflate::Inflate;
pub use list::{ListItems, ListMeta, Part};
pub use object::{ObjectText, TypeMeta, decimal};
pub use projection::{LAST_APPLIED, MANAGED_FIELDS, Projection, ProjectionError};
pub use protobuf::{MessageFrames, MessageItems, ObjectMessage};
pub use runs::{NextRun, Run, Runs};
pub use status::{StatusCause, StatusFrame};
pub use watch::{Frame, FrameAt, FrameKind, WatchFrames};
