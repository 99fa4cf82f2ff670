//! The machine before simulated cores, readers and clients, and beside what would be ideal.

mod avalanche;
mod cluster;
mod coming_back;
mod conservation;
mod cores;
mod hostile;
mod ideal;
mod idle;
mod overload;
mod seen;
mod server;
