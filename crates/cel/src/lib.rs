//! CEL: the expressions of CRDs, admission policies, webhooks' conditions and devices' selectors.
//!
//! In: an expression that a client sent, declarations of its variables, their values. Out: what is wrong with
//! it in upstream's words, what it may cost, a value and what it did cost. Never: does IO or async, knows
//! admission or a CRD, copies what it is given, goes on past its budget.
//!
//! ```text
//! text ─lexer─parser(macros)─► Ast ─checker(unify, declarations)─► Checked ─plan─► Program ─eval(libraries)─► Value
//!                                                                     └─cost::estimate    └─cost::actual
//! ```

mod ast;
pub mod authorizer;
mod base64;
mod checker;
mod compile;
mod cost;
pub mod decl;
mod declarations;
mod env;
mod error;
mod eval;
mod heights;
mod issue;
pub mod json;
mod lexer;
mod libraries;
pub mod limits;
mod lookup;
mod macros;
mod members;
mod messages;
mod objects;
mod parser;
mod plan;
mod program;
mod spent;
mod time;
mod types;
mod unify;
mod validate;
pub mod value;

pub use compile::Compiled;
pub use cost::Bounds;
pub use env::Env;
pub use error::Error;
pub use heights::{Entries, Inner, Items};
pub use issue::{Issue, Issues};
pub use messages::Struct;
pub use objects::Object;
pub use program::{Activation, Composer, Evaluation, Program};
pub use spent::Spent;
pub use types::{Fields, StructType, Type};
pub use value::Value;
