//! Tests of the whole edge, over real sockets: [`server::Server`] is one that is asked.

mod elsewhere;
mod flows;
mod hostile;
mod paths;
mod rights;
mod server;
mod shared_lists;
mod spread;
pub(crate) mod turns;
