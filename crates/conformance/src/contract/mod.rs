//! The contract of GET, LIST and WATCH: one set of rows, run on everything that has to keep it.
//!
//! In: `contract/*.txt` (the tables, and what is written before and between them), a [`Target`]. Out:
//! [`Results`], and a [`report`] of how many rows hold for each table on each target. Never: a row that one
//! target alone is asked.

pub mod ask;
pub mod history;
pub mod http;
pub mod local;
pub mod report;
pub mod shape;
pub mod suite;
pub mod table;
pub mod target;

pub use suite::{Results, run};
pub use target::{Target, Whose};
