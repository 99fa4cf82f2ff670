//! How others find the keys that verify our tokens: the issuer's configuration and its key set.
//!
//! In: the issuer, where the key set is, the keys. Out: two documents, made once.
//!
//! Source: kubernetes v1.36.3 `pkg/serviceaccount/openidmetadata.go`; OpenID Connect Discovery 1.0.

use bytes::Bytes;
use serde_json::{Value, json};

use super::keys::PublicHalf;

pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
pub const KEYS_PATH: &str = "/openid/v1/jwks";

/// The two documents. Cheap to clone.
#[derive(Clone)]
pub struct OpenId {
    pub configuration: Bytes,
    pub keys: Bytes,
}

impl OpenId {
    /// The documents of an issuer that can be looked up; of another there are none.
    ///
    /// - `address`: `host:port` of this server, for an issuer that does not say where its keys are.
    pub fn new(issuer: &str, keys_uri: Option<&str>, address: &str, keys: &[PublicHalf]) -> Option<OpenId> {
        let is_url = issuer.strip_prefix("https://").is_some_and(|rest| !rest.contains(['?', '#']));
        if !is_url || keys_uri.is_some_and(|uri| !uri.starts_with("https://")) {
            return None;
        }
        let keys_uri = keys_uri.map_or_else(|| format!("https://{address}{KEYS_PATH}"), str::to_string);
        let mut algorithms: Vec<&str> = keys.iter().map(|key| key.algorithm.name()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let configuration = in_order([
            ("issuer", json!(issuer)),
            ("jwks_uri", json!(keys_uri)),
            ("response_types_supported", json!(["id_token"])),
            ("subject_types_supported", json!(["public"])),
            ("id_token_signing_alg_values_supported", json!(algorithms)),
        ]);
        let keys =
            keys.iter().map(|key| in_order(key.jwk().into_iter().map(|(name, text)| (name, json!(text)))));
        let keys = format!("{{\"keys\":[{}]}}", keys.collect::<Vec<_>>().join(","));
        Some(OpenId { configuration: configuration.into(), keys: keys.into() })
    }
}

/// An object whose members stay in order.
fn in_order(members: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    let written: Vec<String> =
        members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", written.join(","))
}
