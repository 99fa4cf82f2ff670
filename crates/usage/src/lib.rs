//! Who uses a server, and how much of it: the heavy ones by name, everybody else as a sum, within a bound
//! that no number of clients moves.
//!
//! In: who asks for what in which flow, what that took, and what time it is. Out: [`Flows`] of the last
//! minute, the last ten, and all of it, and a [table] of that for people. Never: IO, a task; decides
//! anything, or knows HTTP.

mod account;
mod counts;
mod ledger;
pub mod limits;
mod read_before;
mod report;
mod request;
mod row;
pub mod table;
mod text;
mod who;

pub use account::{Account, Gauge};
pub use counts::{Cause, Count, ListedAt};
pub use ledger::Ledger;
pub use read_before::ReadBefore;
pub use report::{Causes, Client, Figures, FlowName, Flows, InUse, Lists, Seconds, Used, Window};
pub use request::{Usage, Usages};
pub use text::printable;
pub use who::Who;
