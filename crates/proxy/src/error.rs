//! What goes wrong on the way.
//!
//! In: what the layers below say, in the words of Go's HTTP client (`authorities` has them). Out: what a
//! client is told. Never: a word of its own for what happened to a connection.
//!
//! Source: apimachinery v0.36.3 `pkg/util/proxy/{transport,upgradeaware}.go`.

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

impl ProxyError {
    /// What whoever sent the request is told, in upstream's words.
    ///
    /// - `is_upgrade`: its connection was to speak another protocol.
    pub fn told(&self, is_upgrade: bool) -> String {
        match (self, is_upgrade) {
            (ProxyError::Unreached(why), true) => format!("error dialing backend: {why}"),
            // Go reads such an answer by other means.
            (ProxyError::Broken(why), true) if why == "EOF" => "unexpected EOF".to_owned(),
            (ProxyError::Unreached(why) | ProxyError::Broken(why), false) => {
                format!("error trying to reach service: {why}")
            }
            (why, _) => why.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_depends_on_what_the_connection_was_for() {
        let text = str::to_owned;
        for (why, request, upgrade) in [
            (
                ProxyError::Unreached(text("x")),
                "error trying to reach service: x",
                "error dialing backend: x",
            ),
            (ProxyError::Broken(text("EOF")), "error trying to reach service: EOF", "unexpected EOF"),
            (
                ProxyError::Broken(text("invalid upgrade response: status code 200")),
                "error trying to reach service: invalid upgrade response: status code 200",
                "invalid upgrade response: status code 200",
            ),
            (ProxyError::Unavailable, "service unavailable", "service unavailable"),
            (ProxyError::Unusable(text("x")), "x", "x"),
        ] {
            assert_eq!((&*why.told(false), &*why.told(true)), (request, upgrade));
        }
    }
}
