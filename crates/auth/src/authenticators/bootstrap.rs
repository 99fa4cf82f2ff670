//! Bootstrap tokens: what a machine shows that is to become a node and has nothing else yet.
//!
//! In: a token of the form `id.secret`. Out: whom the Secret that is named for it says, as fresh as a GET of
//! it. Never: tells which part of a token is wrong; one that is not right in every part counts as one that is
//! not there.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authenticator/token/bootstrap`; cluster-bootstrap v0.36.3
//! `util/secrets`.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_api::{Authenticated, Authentication, Authenticator, Eventual, Presented};
use forebay_apimachinery::go_time::{self, Layout};
use forebay_apimachinery::{Caller, Reason};
use forebay_rt::Clock;
use sha2::{Digest, Sha256};

use crate::tokens::{Found, Grounds};

const NAMESPACE: &str = "kube-system";
const SECRET_PREFIX: &str = "bootstrap-token-";
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";
const USER_PREFIX: &str = "system:bootstrap:";
const GROUP: &str = "system:bootstrappers";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 16;
/// Of a group's name, behind `system:bootstrappers:`.
const GROUP_BYTES_MAX: usize = 256;

/// Knows them.
pub struct BootstrapTokens<G> {
    pub grounds: G,
    pub clock: Clock,
    /// They are good for these.
    pub api_audiences: Vec<String>,
}

impl<G: Grounds> Authenticator for BootstrapTokens<G> {
    fn authenticate<'a>(&'a self, presented: &'a Presented<'a>) -> Eventual<'a, Authentication> {
        let text = presented.token.and_then(|token| std::str::from_utf8(token).ok());
        let Some((id, secret)) = text.and_then(parts) else {
            return Eventual::Now(Authentication::NoOpinion);
        };
        // Few: whoever asks says a handful.
        let own = |asked: &&String| self.api_audiences.contains(asked);
        let audiences: Vec<String> = presented.audiences.iter().filter(own).cloned().collect();
        if audiences.is_empty() {
            return Eventual::Now(Authentication::NoOpinion);
        }
        Eventual::later(async move {
            match self.grounds.find("secrets", NAMESPACE, &format!("{SECRET_PREFIX}{id}")).await {
                Ok(found) => {
                    let caller = user(&found, id, secret, self.clock.unix_ms());
                    let caller = caller.map(|caller| Arc::new(caller.authenticated()));
                    let known = caller.map(|caller| Authenticated { caller, audiences });
                    known.map_or(Authentication::NoOpinion, Authentication::Known)
                }
                Err(status) if status.reason == Reason::NotFound => Authentication::NoOpinion,
                Err(status) => Authentication::Refused(status.message.into()),
            }
        })
    }
}

/// The id and the secret of a token.
fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let fits = id.len() == ID_BYTES && secret.len() == SECRET_BYTES && is_plain(id) && is_plain(secret);
    fits.then_some((id, secret))
}

/// Whom the Secret makes of who shows the token, if it is its Secret and good.
fn user(found: &Found, id: &str, secret: &str, now_ms: u64) -> Option<Caller> {
    if found.is_being_deleted() || found.sort() != SECRET_TYPE {
        return None;
    }
    // Digests are compared: how long that takes says nothing about the secret.
    if Sha256::digest(found.datum("token-secret")) != Sha256::digest(secret) {
        return None;
    }
    if found.datum("token-id") != id.as_bytes() || is_over(&found.datum("expiration"), now_ms) {
        return None;
    }
    if found.datum("usage-bootstrap-authentication") != b"true" {
        return None;
    }
    let groups = groups(&found.datum("auth-extra-groups"))?;
    Some(Caller { name: format!("{USER_PREFIX}{id}"), groups, ..Caller::default() })
}

/// Whether a time is past, or none; what does not say when is good for ever.
fn is_over(expiration: &[u8], now_ms: u64) -> bool {
    if expiration.is_empty() {
        return false;
    }
    let text = std::str::from_utf8(expiration).unwrap_or_default();
    let Ok(at) = go_time::parse(Layout::Rfc3339, text) else { return true };
    let ms = i128::from(at.seconds) * 1000 + i128::from(at.nanos / 1_000_000);
    ms <= i128::from(now_ms)
}

/// The groups, in order and each once; `None`: one of them may not be given by a token.
fn groups(extra: &[u8]) -> Option<Vec<String>> {
    let mut all: BTreeSet<String> = [GROUP.to_owned()].into();
    if !extra.is_empty() {
        for group in std::str::from_utf8(extra).ok()?.split(',') {
            let rest = group.strip_prefix(GROUP)?.strip_prefix(':')?;
            let is_end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let is_plain = rest.bytes().all(|byte| is_end(byte) || byte == b':' || byte == b'-');
            let ends = rest.bytes().next_back().is_some_and(is_end);
            if !is_plain || !ends || rest.len() > GROUP_BYTES_MAX {
                return None;
            }
            all.insert(group.to_owned());
        }
    }
    Some(all.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use forebay_apimachinery::Status;
    use serde_json::{Value, json};

    use super::*;
    use crate::tokens::UsedSecret;

    /// One Secret, or none, or nothing that can be read.
    struct One(Result<Value, Status>);

    impl Grounds for One {
        async fn find(&self, resource: &str, namespace: &str, name: &str) -> Result<Found, Status> {
            assert_eq!((resource, namespace, name), ("secrets", "kube-system", "bootstrap-token-abcdef"));
            let secret = self.0.clone()?;
            Ok(serde_json::from_value(secret).expect("an object"))
        }

        fn used(&self, secret: UsedSecret) {
            panic!("it is no service account's: {secret:?}");
        }
    }

    const NOW_MS: u64 = 1_800_000_000_000;
    const TOKEN: &str = "abcdef.0123456789abcdef";

    fn secret(change: &Value) -> Value {
        let mut data = json!({
            "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
        });
        for (name, value) in change.as_object().expect("members") {
            data[name] = value.clone();
        }
        let data: serde_json::Map<String, Value> = data
            .as_object()
            .expect("members")
            .iter()
            .map(|(name, value)| (name.clone(), json!(STANDARD.encode(value.as_str().expect("a text")))))
            .collect();
        json!({ "metadata": { "name": "bootstrap-token-abcdef" }, "type": SECRET_TYPE, "data": data })
    }

    async fn shown(token: &str, held: Result<Value, Status>) -> String {
        let tokens = BootstrapTokens {
            grounds: One(held),
            clock: Clock::manual(NOW_MS).0,
            api_audiences: vec!["api".into()],
        };
        let audiences = ["api".to_owned(), "other".to_owned()];
        let presented =
            Presented { token: Some(token.as_bytes()), audiences: &audiences, ..Presented::default() };
        match tokens.authenticate(&presented).wait().await {
            Authentication::Known(known) => {
                format!(
                    "{} {} for {}",
                    known.caller.name,
                    known.caller.groups.join(","),
                    known.audiences.join(",")
                )
            }
            Authentication::NoOpinion => "nobody".to_owned(),
            Authentication::Refused(why) => why.into_owned(),
        }
    }

    #[tokio::test]
    async fn a_token_is_good_if_every_part_of_its_secret_is() {
        let usual = "system:bootstrap:abcdef system:bootstrappers";
        let good = format!("{usual},system:authenticated for api");
        let check = async |change: Value, want: &str| {
            assert_eq!(shown(TOKEN, Ok(secret(&change))).await, want, "{change}");
        };
        check(json!({}), &good).await;
        check(json!({ "expiration": "2027-01-15T08:00:01Z" }), &good).await;
        check(json!({ "expiration": "2027-01-15T09:00:00.5+01:00" }), &good).await;
        for none in ["2027-01-15T08:00:00Z", "2020-01-01T00:00:00Z", "tomorrow"] {
            check(json!({ "expiration": none }), "nobody").await;
        }
        check(json!({ "token-secret": "0123456789abcdee" }), "nobody").await;
        check(json!({ "token-id": "abcdee" }), "nobody").await;
        for usage in ["false", "True", ""] {
            check(json!({ "usage-bootstrap-authentication": usage }), "nobody").await;
        }
        let groups = "system:bootstrappers:kubeadm:default-node-token,system:bootstrappers:a";
        let sorted = "system:bootstrappers:a,system:bootstrappers:kubeadm:default-node-token";
        check(
            json!({ "auth-extra-groups": groups }),
            &format!("{usual},{sorted},system:authenticated for api"),
        )
        .await;
        for group in
            ["system:masters", "system:bootstrappers:", "system:bootstrappers:a:", "system:bootstrappers:A"]
        {
            check(json!({ "auth-extra-groups": group }), "nobody").await;
        }
    }

    #[tokio::test]
    async fn a_secret_that_is_going_or_of_another_type_is_none() {
        let mut going = secret(&json!({}));
        going["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        let mut other = secret(&json!({}));
        other["type"] = json!("Opaque");
        for secret in [going, other, json!({ "metadata": {}, "type": SECRET_TYPE })] {
            assert_eq!(shown(TOKEN, Ok(secret)).await, "nobody");
        }
        assert_eq!(shown(TOKEN, Err(Status::not_found("", "secrets", "x"))).await, "nobody");
        let said = shown(TOKEN, Err(Status::internal("no disk"))).await;
        assert_eq!(said, "Internal error occurred: no disk");
    }

    #[tokio::test]
    async fn what_is_not_of_its_form_is_not_looked_for() {
        let nothing = || Err(Status::internal("it was looked for"));
        for token in [
            "",
            "abcdef",
            "abcdef.",
            "abcde.0123456789abcdef",
            "abcdef.0123456789abcde",
            "ABCDEF.0123456789abcdef",
            "abcdef.0123456789abcdef.x",
            "../../a.0123456789abcdef",
        ] {
            assert_eq!(shown(token, nothing()).await, "nobody", "{token}");
        }
    }
}
