//! Server-side apply's merge: what an object's type says of its fields, sets of fields, and who owns which.
//!
//! In: objects as trees of values, their types through [`TypeRef`], what is asked (an update, an apply), and
//! who owned what before. Out: the merged object, who owns what now, or whose fields are in the way. Never:
//! knows a kind, a server, an HTTP code; stores anything; converts between versions by itself ([`Converter`]
//! does).
//!
//! From below: [`element`](Element) is a step of a path; [`Set`] is a set of paths, encoded, walked without
//! being built; [`TypedValue`] is a value with its type; [`Updater`] is what an update and an apply do with
//! all of them.
//!
//! Source: `sigs.k8s.io/structured-merge-diff/v6` v6.3.3. Its own tests, recorded, are this crate's: see `tests/`.

mod conflict;
mod element;
mod fault;
mod gotext;
mod index;
mod leaf;
pub mod limits;
mod managers;
mod schema;
mod set;
mod tree;
mod typed;
mod updater;

pub use conflict::Conflicts;
pub use element::{Element, ElementKind, Path, path_text};
pub use fault::{Faults, TypeFault};
pub use managers::{Managers, Owned};
pub use schema::{Always, Atom, AtomKinds, List, Map, Relation, ScalarType, TypeRef, Untyped};
pub use set::{Filter, Matcher, Set, SetError, in_order};
pub use typed::{Comparison, Duplicates, Extract, TypedValue, equal};
pub use updater::{Applied, ConvertError, Converter, Error, Updater};
