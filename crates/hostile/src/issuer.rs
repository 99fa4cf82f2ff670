//! A provider of tokens that every server here believes, and that means no good: its keys are ten megabytes.
//!
//! In: nothing. Out: the provider, and the configuration that names it. Never: a token.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_contenders::Error;
use forebay_hook::Hook;
use serde_json::json;

/// Whose tokens are believed.
pub const ISSUER: &str = "https://hostile.example";
const KEYS_BYTES: u64 = 10 << 20;

/// Starts it.
pub async fn start() -> Hook {
    let provider = Hook::start().await;
    let keys = format!("{}/idp/keys", provider.url());
    let document = json!({ "issuer": ISSUER, "jwks_uri": keys }).to_string();
    provider.answers(".well-known/openid-configuration", json!({ "raw": document }));
    provider.answers("keys", json!({ "flood": KEYS_BYTES }));
    provider
}

/// The file of `--authentication-config`, which is JSON as well.
pub fn write_configuration(provider: &Hook, file: &Path) -> Result<(), Error> {
    let authority = STANDARD.decode(&provider.authority).unwrap_or_default();
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {
                "url": ISSUER,
                "discoveryURL": format!("{}/idp/.well-known/openid-configuration", provider.url()),
                "certificateAuthority": String::from_utf8_lossy(&authority),
                "audiences": ["hostile"],
            },
            "claimMappings": { "username": { "claim": "sub", "prefix": "hostile:" } },
        }],
    });
    std::fs::write(file, configuration.to_string()).map_err(Error::file("cannot write", file))
}
