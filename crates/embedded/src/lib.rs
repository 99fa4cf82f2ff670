//! The embedded storage engine: one directory, no other process.
