//! The machine before simulated cores, readers and clients, and beside what would be ideal.

mod coming_back;
mod conservation;
mod hostile;
mod ideal;
mod idle;
mod overload;
mod seen;
mod server;
