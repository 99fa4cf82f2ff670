//! What is counted of service accounts' tokens: those that are used past their time, or kept in Secrets.
//!
//! In: how a token was used. Out: upstream's counters. Never: whose it is.
//!
//! Source: kubernetes v1.36.3 `pkg/serviceaccount/metrics.go`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use forebay_api::TokenUse;

use super::Text;

/// See the module's doc.
#[derive(Debug, Default)]
pub struct TokenUseCounts([AtomicU64; NAMES.len()]);

/// Name and help of each counter.
const NAMES: [(&str, &str); 6] = [
    ("invalid_legacy_auto_token_uses_total", "Uses of tokens in Secrets that are marked as invalid."),
    ("legacy_auto_token_uses_total", "Uses of tokens in Secrets that a controller made."),
    ("legacy_manual_token_uses_total", "Uses of tokens in Secrets that somebody made."),
    ("legacy_tokens_total", "Uses of tokens that say no audience."),
    ("stale_tokens_total", "Uses of tokens that were to be replaced before."),
    ("valid_tokens_total", "Uses of tokens that are to be replaced later."),
];

impl TokenUseCounts {
    pub fn used(&self, used: &TokenUse) {
        let at = match used {
            TokenUse::Invalidated { .. } => 0,
            TokenUse::Automatic { .. } => 1,
            TokenUse::Manual { .. } => 2,
            TokenUse::Legacy { .. } => 3,
            TokenUse::Stale { .. } => 4,
            TokenUse::Fresh => 5,
        };
        self.0[at].fetch_add(1, Relaxed);
    }

    pub fn write(&self, text: &mut Text) {
        for ((name, help), count) in NAMES.iter().zip(&self.0) {
            text.single(&format!("serviceaccount_{name}"), "counter", help, count.load(Relaxed));
        }
    }
}
