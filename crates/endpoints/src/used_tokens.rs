//! Secrets whose tokens were used are labelled with the day: whoever cleans up old tokens takes those without
//! for unused, and ends them.
//!
//! Owns which are to be labelled, behind a lock of a few lines. In: a Secret that does not say of today that
//! its token was used. Out: a patch of it by the server itself, one after the other. Never: holds up who uses
//! a token; waits for more than [`LABELS_WAITING_MAX`] of them: who is forgotten is labelled when its token
//! is used again.
//!
//! Source: kubernetes v1.36.3 `pkg/serviceaccount/legacy.go` (`patchSecretWithLastUsedDate`).

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_api::{Api, PatchKind};
use forebay_apimachinery::options::PatchOptions;
use forebay_apimachinery::{Reason, Status};
use forebay_auth::tokens::{LAST_USED, UsedSecret};
use forebay_catalog::Target;
use forebay_rt::Clock;
use serde_json::json;
use tokio::sync::Notify;

use crate::limits::{LABEL_PAUSE, LABELS_WAITING_MAX};

/// See the module's doc.
#[derive(Default)]
pub struct UsedTokens {
    waiting: Mutex<Waiting>,
    bell: Notify,
}

#[derive(Default)]
struct Waiting {
    // in the order in which they were used, <= LABELS_WAITING_MAX
    order: VecDeque<UsedSecret>,
    // uids of those, and of the one that is written
    known: HashSet<String>,
}

impl UsedTokens {
    /// Has a Secret labelled, unless that is under way or there are too many.
    pub fn note(&self, secret: UsedSecret) {
        let mut waiting = self.waiting();
        if waiting.order.len() >= LABELS_WAITING_MAX || !waiting.known.insert(secret.uid.clone()) {
            return;
        }
        waiting.order.push_back(secret);
        drop(waiting);
        self.bell.notify_one();
    }

    /// Labels those that are noted, for ever. Cancel-safe.
    pub async fn label_all(self: Arc<Self>, api: Arc<dyn Api>, clock: Clock) {
        loop {
            let bell = self.bell.notified();
            let next = self.waiting().order.pop_front();
            let Some(secret) = next else {
                bell.await;
                continue;
            };
            let labelled = label(&*api, &secret).await;
            self.waiting().known.remove(&secret.uid);
            let Err(status) = labelled else { continue };
            let (namespace, name, why) = (&secret.namespace, &secret.name, &status.message);
            if matches!(status.reason, Reason::NotFound | Reason::Conflict) {
                tracing::debug!(namespace, name, why, "it is gone: nothing says that its token was used");
                continue;
            }
            tracing::warn!(namespace, name, why, "nothing says of a secret that its token was used today");
            // Whatever keeps it from being written keeps others, too.
            clock.sleep(LABEL_PAUSE).await;
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn label(api: &dyn Api, secret: &UsedSecret) -> Result<(), Status> {
    let UsedSecret { namespace, name, uid, day } = secret;
    let served = api.catalog().resource("", "v1", "secrets").cloned();
    let served = served.ok_or_else(|| Status::internal("secrets are not served"))?;
    let target = Target::of_server(served, Some(namespace.clone()), Some(name.clone()));
    let patch = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": name, "namespace": namespace, "uid": uid, "labels": { LAST_USED: day } },
    });
    let patch = patch.to_string();
    api.patch(&target, PatchKind::Merge, patch.as_bytes(), &PatchOptions::default()).wait().await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(uid: &str) -> UsedSecret {
        let text = |text: &str| text.to_owned();
        UsedSecret { namespace: text("n"), name: text("s"), uid: uid.to_owned(), day: text("2026-01-01") }
    }

    #[test]
    fn each_waits_once_and_who_is_too_many_is_forgotten() {
        let all = UsedTokens::default();
        for _ in 0..2 {
            all.note(used("a"));
        }
        assert_eq!(all.waiting().order.len(), 1);
        for number in 0..2 * LABELS_WAITING_MAX {
            all.note(used(&number.to_string()));
        }
        let waiting = all.waiting();
        assert_eq!((waiting.order.len(), waiting.known.len()), (LABELS_WAITING_MAX, LABELS_WAITING_MAX));
    }
}
