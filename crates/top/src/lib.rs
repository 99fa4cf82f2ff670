//! Who uses a server, live in a terminal: `forebay top`.
//!
//! In: a kubeconfig, keys that are pressed, what the server says of [who uses it](forebay_usage::Flows).
//! Out: a screen that is drawn again every so often, or one table or one JSON. Never: asks anything else
//! of a server.

mod error;
pub mod limits;
mod live;
mod screen;
mod source;
mod terminal;

pub use error::TopError;
pub use live::live;
pub use source::{AskedServer, ServerPlace};
pub use terminal::Terminal;
