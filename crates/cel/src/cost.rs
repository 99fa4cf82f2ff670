//! What an expression costs: estimated before it is evaluated, counted while it is.
//!
//! In: checked trees; calls with their arguments. Out: numbers equal to those of cel-go with apiserver's
//! estimator, since a rule is refused by them. Never: a clock.
//!
//! Source: cel-go v0.26.0 `checker/cost.go`, `interpreter/runtimecost.go`, `ext/{lists,sets}.go`; apiserver v0.36.3 `pkg/cel/library/cost.go`.

pub(crate) mod actual;
mod bounds;
pub(crate) mod calls;
pub(crate) mod estimate;
mod path;
pub(crate) mod table;

pub use bounds::Bounds;

pub(crate) const LIST: u64 = 10;
pub(crate) const MAP: u64 = 30;
pub(crate) const STRUCT: u64 = 40;
/// Of looking at a character.
pub(crate) const TRAVERSAL: f64 = 0.1;
/// Of a character of a pattern.
pub(crate) const PATTERN: f64 = 0.25;
/// An authorization check: two of them are what a call may cost.
pub(crate) const CHECK: u64 = 350_000;
