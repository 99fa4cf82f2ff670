//! Flow control: whose turn it is, as requests wait for it.
//!
//! In: what a request asks, and what it will cost. Out: a turn, or why not.

mod control;
mod debug;
mod explain;
mod learned;
mod list_meter;
mod of_request;
mod price;
#[cfg(test)]
mod price_table_tests;
#[cfg(test)]
mod price_tests;
#[cfg(test)]
mod tests;
mod ticket;

pub use control::FlowControl;
pub use debug::{DUMPS, dump};
pub use learned::{Learned, ListForeseen, ListPrice};
pub use list_meter::{ListMeter, ListPieces, MeteredPieces};
pub use of_request::OfRequest;
pub use price::{
    Cost, connection, delete_collection, deleted, document, list, object, proxied, rendering,
    rendering_of_events, watch, write,
};
pub use ticket::{Starting, Ticket};
