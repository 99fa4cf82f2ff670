//! What nodes join by: bootstrap-signer-controller signs what ConfigMap `cluster-info` says with each token,
//! and token-cleaner-controller deletes tokens that have expired.
//!
//! In: notices of the map, and of Secrets of kube-system that are tokens. Out: signatures in the map, and
//! deletes. Never: keeps a token; signs with what does not say that it may.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/bootstrap`; k8s.io/cluster-bootstrap v0.36.3 `token/jws`.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use forebay_apimachinery::options::{DeleteOptions, ListOptions, Preconditions};
use forebay_apimachinery::selector::FieldSelector;
use forebay_apimachinery::{Reason, Status};
use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::{Duration, Instant};
use jiff::Timestamp;
use ring::hmac;
use serde_json::{Map, Value, json};

use crate::acting::ActingRegistry;
use crate::limits;
use crate::meta::Meta;
use crate::objects::{built_in, collection, delete, find, named, update};
use crate::queue::{Queue, Verdict};
use crate::run::Named;

/// Where tokens are.
const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const PREFIX: &str = "bootstrap-token-";
const ID_BYTES: usize = 6;
/// The map that is signed: its namespace and name, what of it is, and what signatures begin with.
const INFO: (&str, &str) = ("kube-public", "cluster-info");
const SIGNED: &str = "kubeconfig";
const SIGNATURE: &str = "jws-kubeconfig-";

/// Signs. Its one name is that of the map.
pub struct TokenSigner(pub ActingRegistry);

/// Deletes. Its names are those of Secrets.
pub struct TokenCleaner(pub ActingRegistry);

impl Named for TokenSigner {
    const NAME: &'static str = crate::Controller::TokenSigner.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        let maps = built_in(&self.0, "", "v1", "configmaps")?;
        let field_selector = FieldSelector::equals("metadata.name", INFO.1);
        let options = ListOptions { field_selector, ..ListOptions::default() };
        let map = self.0.informer(&collection(&maps, Some(INFO.0)), &options)?;
        Ok(vec![map, tokens(&self.0)?])
    }

    fn observe(&self, _: usize, notice: &Notice, _: Instant, queue: &mut Queue<String>) {
        if let Notice::Put(_) | Notice::Deleted(_) = notice {
            queue.add(String::new());
        }
    }

    fn sync(&self, _: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move {
            match sign(&registry).await {
                Ok(()) => Verdict::Done,
                Err(status) if status.reason == Reason::NotFound => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

impl Named for TokenCleaner {
    const NAME: &'static str = crate::Controller::TokenCleaner.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        Ok(vec![tokens(&self.0)?])
    }

    fn observe(&self, _: usize, notice: &Notice, _: Instant, queue: &mut Queue<String>) {
        if let Notice::Put(secret) = notice {
            queue.add(secret.name().to_string());
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move {
            match clean(&registry, &name).await {
                Ok(None) => Verdict::Done,
                Ok(Some(wait)) => Verdict::Until(registry.clock().now() + wait.min(limits::EXPIRY_WAIT_MAX)),
                // It is another one by now, which is told of.
                Err(status) if status.reason == Reason::Conflict => Verdict::Done,
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

fn tokens(registry: &ActingRegistry) -> Result<Informer, Status> {
    let secrets = built_in(registry, "", "v1", "secrets")?;
    let options =
        ListOptions { field_selector: FieldSelector::equals("type", TYPE), ..ListOptions::default() };
    registry.informer(&collection(&secrets, Some(NAMESPACE)), &options)
}

async fn sign(registry: &ActingRegistry) -> Result<(), Status> {
    let maps = built_in(registry, "", "v1", "configmaps")?;
    let target = named(&maps, INFO.0, INFO.1);
    let Some(found) = find(registry, &target).await? else { return Ok(()) };
    let mut map = maps.to_value(&found)?;
    let Some(content) = map["data"][SIGNED].as_str().map(str::to_owned) else { return Ok(()) };
    let secrets = built_in(registry, "", "v1", "secrets")?;
    let all = registry.objects(&collection(&secrets, Some(NAMESPACE))).await?;
    let now = registry.timestamp();
    // id -> its secret; of two the first counts
    let mut tokens: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for secret in all.iter().filter(|secret| secret.name().starts_with(PREFIX)) {
        if let Some((id, token)) = Token::of(secret).and_then(|token| token.into_signer(secret.name(), now)) {
            tokens.entry(id).or_insert(token);
        }
    }
    let data = map["data"].as_object().cloned().unwrap_or_default();
    let mut signed: Map<String, Value> = data
        .iter()
        .filter(|(key, _)| !key.starts_with(SIGNATURE))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    for (id, token) in tokens {
        signed.insert(format!("{SIGNATURE}{id}"), json!(signature(&content, &id, &token)));
    }
    if signed == data {
        return Ok(());
    }
    map["data"] = Value::Object(signed);
    update(registry, &target, map).await
}

/// Deletes a token that has expired; for how long it has not yet, if it ever does.
async fn clean(registry: &ActingRegistry, name: &str) -> Result<Option<Duration>, Status> {
    let target = named(&built_in(registry, "", "v1", "secrets")?, NAMESPACE, name);
    let Some(secret) = find(registry, &target).await? else { return Ok(None) };
    let Some(token) = Token::of(&secret) else { return Ok(None) };
    match token.left(registry.timestamp()) {
        Left::Forever => Ok(None),
        Left::Some(left) => Ok(Some(left)),
        Left::None => {
            let uid = Some(Meta::of(&secret).uid);
            let preconditions = Preconditions { uid, ..Preconditions::default() };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            delete(registry, &target, &options).await.map(|()| None)
        }
    }
}

/// The data of a Secret that is a token.
struct Token(BTreeMap<String, Vec<u8>>);

#[derive(Debug, PartialEq, Eq)]
enum Left {
    Forever,
    Some(Duration),
    None,
}

impl Token {
    fn of(secret: &Object) -> Option<Token> {
        let secret: Value = serde_json::from_slice(&secret.untyped_json()).ok()?;
        let decoded =
            |(key, value): (&String, &Value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?));
        let data = secret["data"].as_object().into_iter().flatten().filter_map(decoded).collect();
        (secret["type"] == TYPE).then_some(Token(data))
    }

    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default()
    }

    /// What is no time is over.
    fn left(&self, now: Timestamp) -> Left {
        if self.0.get("expiration").is_none_or(Vec::is_empty) {
            return Left::Forever;
        }
        let Ok(expires) = self.text("expiration").parse::<Timestamp>() else { return Left::None };
        match u64::try_from(expires.as_millisecond() - now.as_millisecond()) {
            Ok(left @ 1..) => Left::Some(Duration::from_millis(left)),
            _ => Left::None,
        }
    }

    /// Its id and its secret, if one may sign with it.
    fn into_signer(mut self, name: &str, now: Timestamp) -> Option<(String, Vec<u8>)> {
        let id = self.text("token-id").to_owned();
        let is_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let is_named =
            name.strip_prefix(PREFIX) == Some(id.as_str()) && id.len() == ID_BYTES && id.bytes().all(is_id);
        let may_sign = self.text("usage-bootstrap-signing") == "true" && self.left(now) != Left::None;
        let secret = self.0.remove("token-secret").filter(|secret| !secret.is_empty())?;
        (is_named && may_sign).then_some((id, secret))
    }
}

/// A JWS (RFC 7515, appendix F) without what is signed.
fn signature(content: &str, id: &str, secret: &[u8]) -> String {
    let header = URL_SAFE_NO_PAD.encode(json!({ "alg": "HS256", "kid": id }).to_string());
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of upstream's `jws_test.go`.
    #[test]
    fn a_signature_is_what_clients_make_of_the_same() {
        assert_eq!(
            signature(
                "Hello from the other side. I must have called a thousand times.",
                "joshua",
                b"my voice is my passcode"
            ),
            "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8"
        );
    }

    #[test]
    fn only_tokens_that_say_so_and_have_not_expired_sign() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let token = |change: &[(&str, &str)]| {
            let mut data = BTreeMap::from([
                ("token-id".to_owned(), b"abcdef".to_vec()),
                ("token-secret".to_owned(), b"0123456789abcdef".to_vec()),
                ("usage-bootstrap-signing".to_owned(), b"true".to_vec()),
            ]);
            data.extend(change.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())));
            Token(data)
        };
        let signs =
            |change: &[(&str, &str)]| token(change).into_signer("bootstrap-token-abcdef", now).is_some();
        assert!(signs(&[]) && signs(&[("expiration", "2026-01-01T00:00:01Z")]));
        for no in [
            ("expiration", "2026-01-01T00:00:00Z"),
            ("expiration", "tomorrow"),
            ("token-id", "abcdeg"),
            ("token-secret", ""),
            ("usage-bootstrap-signing", "yes"),
        ] {
            assert!(!signs(&[no]), "{no:?}");
        }
        assert_eq!(
            token(&[("expiration", "2026-01-01T00:00:02Z")]).left(now),
            Left::Some(Duration::from_secs(2))
        );
    }
}
