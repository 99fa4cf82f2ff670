//! The catalogue of what hostile clients send, and what it does to a server: the engine of the scenario
//! `hostile`.
//!
//! In: a [`Row`] and a running server. Out: a [`Measure`](measure::Measure): survived or not, growth, CPU,
//! the answer, and what a bystander saw meanwhile. A row is a file below `rows`, named for what it is from.
//! What it sends is written to the wire by hand ([`wire`], [`http2`], [`tls`]): a well-behaved client library
//! would not. Never: a row that is measured with another one's remains; a limit that is bent to what a server
//! does.
#![allow(clippy::disallowed_methods, reason = "it measures the real clock and waits for other processes")]

mod behind;
mod beside;
mod bodies;
mod bystander;
mod converted;
mod growth;
mod hooked;
pub mod http2;
mod issuer;
mod judgement;
mod law;
pub mod measure;
mod prelude;
mod request;
mod row;
pub mod rows;
mod said;
mod stage;
mod table;
mod tls;
mod wire;

pub use beside::{Beside, RowNeighbours, WhenAsked};
pub use law::Law;
pub use measure::{Contest, Measure};
pub use row::{Act, MemoryLimit, Prepared, Row, Scene, Sizes, Who};
pub use said::{Said, Tally};
pub use stage::{Dose, Stage};
pub use table::table;
