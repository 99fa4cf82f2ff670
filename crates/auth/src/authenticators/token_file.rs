//! Tokens that the server was given with their users.

use std::sync::Arc;

use forebay_api::{Authenticated, Authentication, Authenticator, Eventual, Presented};

use crate::certificates::Credentials;

/// Knows them.
pub struct TokenFile {
    pub credentials: Arc<Credentials>,
    /// They are good for these.
    pub api_audiences: Vec<String>,
}

impl Authenticator for TokenFile {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Eventual<'a, Authentication> {
        let known = presented.token.and_then(|token| self.credentials.user_of(token)).and_then(|caller| {
            let own = |asked: &&String| self.api_audiences.contains(asked);
            let audiences: Vec<String> = presented.audiences.iter().filter(own).cloned().collect();
            (!audiences.is_empty()).then_some(Authenticated { caller, audiences })
        });
        Eventual::Now(known.map_or(Authentication::NoOpinion, Authentication::Known))
    }
}
