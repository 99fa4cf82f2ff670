//! What goes wrong on the way.
//!
//! In: what the layers below say, in the words of Go's HTTP client (`authorities` has them). Out: what a
//! client is told. Never: a word of its own for what happened to a connection.

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// It is known not to be there.
    #[error("service unavailable")]
    Unavailable,
    /// What is said of where it is, or of who vouches for it, cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// No connection was made: nobody has seen the request.
    #[error("{0}")]
    Unreached(String),
    /// It went wrong once the server had the request, or a part of it.
    #[error("{0}")]
    Broken(String),
    /// It wants its client to ask elsewhere, which nobody who believes this server is to be told.
    #[error("the backend attempted to redirect this request, which is not permitted")]
    Redirected,
    /// As many requests are under way as may be.
    #[error("too many requests are under way")]
    Full,
}
