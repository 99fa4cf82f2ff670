//! Clock, seeded randomness, named and joined tasks, shutdown.
