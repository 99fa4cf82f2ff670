//! The binary: configuration, wiring, commands.
fn main() {}
