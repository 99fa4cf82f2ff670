//! Who vouches for whom: authorities, and the certificates of clients and servers that they vouch for, judged
//! as Go's `crypto/x509` judges them.
//!
//! In: authorities, a chain of certificates, a time. Out: whose word there is for it, and how long that
//! holds; or what TLS goes by when it connects to a server, and what Go would say where that fails. Never: a
//! socket, a file, a clock of its own.

mod authority;
mod connection_words;
mod limits;
pub mod old_certificate;
mod purpose;
mod server;
mod signature;
mod words;

pub use authority::{AuthorityError, CertificateAuthority, Word, parsed};
pub use connection_words::{CutIn, go_answer_words, go_dial_words, go_handshake_words};
pub use server::believe_servers;
