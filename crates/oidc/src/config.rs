//! An `AuthenticationConfiguration`, as it is written.
//!
//! In: a tree. Out: the configuration, or upstream's words for why it is none: a field that nobody knows is
//! an error, because what it was to restrict would not be. Never: whether what it says makes sense, which is
//! `validate.rs`'s.
//!
//! Source: apiserver v0.36.3 `pkg/apis/apiserver/{v1,v1beta1,v1alpha1}/types.go`.

use std::fmt::Write as _;

use forebay_apimachinery::json::go_quote;
use serde::Deserialize;
use serde_json::Value;

const GROUP: &str = "apiserver.config.k8s.io";
const KIND: &str = "AuthenticationConfiguration";

/// See the module's doc.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AuthenticationConfiguration {
    pub jwt: Vec<JwtIssuer>,
    /// What is not said is for a flag to say.
    pub anonymous: Option<AnonymousConfig>,
}

/// Who may ask without credentials, and for what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AnonymousConfig {
    pub enabled: bool,
    /// Any of them is enough; everything, if there is none.
    pub conditions: Vec<AnonymousCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct AnonymousCondition {
    pub path: String,
}

/// Whose tokens are believed, and whom they stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JwtIssuer {
    pub issuer: Provider,
    pub claim_validation_rules: Vec<ClaimRule>,
    pub claim_mappings: ClaimMappings,
    pub user_validation_rules: Vec<UserRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Provider {
    pub url: String,
    #[serde(rename = "discoveryURL")]
    pub discovery_url: Option<String>,
    /// PEM; whom the system believes, if empty.
    pub certificate_authority: String,
    pub audiences: Vec<String>,
    pub audience_match_policy: String,
    pub egress_selector_type: String,
}

/// A claim with its value, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimRule {
    pub claim: String,
    pub required_value: String,
    pub expression: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ClaimMappings {
    pub username: Mapping,
    pub groups: Mapping,
    pub uid: Mapping,
    pub extra: Vec<ExtraMapping>,
}

/// A claim, with what is put before it, or an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Mapping {
    pub claim: String,
    pub prefix: Option<String>,
    pub expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ExtraMapping {
    pub key: String,
    pub value_expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserRule {
    pub expression: String,
    pub message: String,
}

/// What a tree may have.
enum Shape {
    Leaf,
    Members(&'static [(&'static str, Shape)]),
    Items(&'static Shape),
}

const PREFIXED: Shape =
    Shape::Members(&[("claim", Shape::Leaf), ("prefix", Shape::Leaf), ("expression", Shape::Leaf)]);

const CONFIGURATION: Shape = Shape::Members(&[
    ("apiVersion", Shape::Leaf),
    ("kind", Shape::Leaf),
    ("jwt", Shape::Items(&JWT)),
    (
        "anonymous",
        Shape::Members(&[
            ("enabled", Shape::Leaf),
            ("conditions", Shape::Items(&Shape::Members(&[("path", Shape::Leaf)]))),
        ]),
    ),
]);

const JWT: Shape = Shape::Members(&[
    (
        "issuer",
        Shape::Members(&[
            ("url", Shape::Leaf),
            ("discoveryURL", Shape::Leaf),
            ("certificateAuthority", Shape::Leaf),
            ("audiences", Shape::Leaf),
            ("audienceMatchPolicy", Shape::Leaf),
            ("egressSelectorType", Shape::Leaf),
        ]),
    ),
    (
        "claimValidationRules",
        Shape::Items(&Shape::Members(&[
            ("claim", Shape::Leaf),
            ("requiredValue", Shape::Leaf),
            ("expression", Shape::Leaf),
            ("message", Shape::Leaf),
        ])),
    ),
    (
        "claimMappings",
        Shape::Members(&[
            ("username", PREFIXED),
            ("groups", PREFIXED),
            ("uid", Shape::Members(&[("claim", Shape::Leaf), ("expression", Shape::Leaf)])),
            (
                "extra",
                Shape::Items(&Shape::Members(&[("key", Shape::Leaf), ("valueExpression", Shape::Leaf)])),
            ),
        ]),
    ),
    (
        "userValidationRules",
        Shape::Items(&Shape::Members(&[("expression", Shape::Leaf), ("message", Shape::Leaf)])),
    ),
]);

impl AuthenticationConfiguration {
    /// What `tree` says.
    ///
    /// # Errors
    /// Upstream's words.
    pub fn of(tree: &Value) -> Result<AuthenticationConfiguration, String> {
        let text = |name: &str| tree[name].as_str().unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if kind.is_empty() {
            return Err("Object 'Kind' is missing".to_owned());
        }
        if version.is_empty() {
            return Err("Object 'apiVersion' is missing".to_owned());
        }
        let of_group = version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/'));
        if kind != KIND || !matches!(of_group, Some("v1" | "v1beta1" | "v1alpha1")) {
            return Err(format!(
                "no kind {} is registered for version {}",
                go_quote(kind),
                go_quote(version)
            ));
        }
        let mut unknown = Vec::new();
        strange(tree, &CONFIGURATION, &mut String::new(), &mut unknown);
        if !unknown.is_empty() {
            return Err(format!("strict decoding error: {}", unknown.join(", ")));
        }
        Deserialize::deserialize(without_nulls(tree.clone()))
            .map_err(|why: serde_json::Error| why.to_string())
    }
}

/// The fields of `tree` that `shape` does not have.
fn strange(tree: &Value, shape: &Shape, path: &mut String, unknown: &mut Vec<String>) {
    let len = path.len();
    match (tree, shape) {
        (Value::Object(members), Shape::Members(known)) => {
            for (name, value) in members {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                // Few: a kind has a handful of fields.
                match known.iter().find(|(known, _)| known == name) {
                    Some((_, below)) => strange(value, below, path, unknown),
                    None => unknown.push(format!("unknown field {}", go_quote(path))),
                }
                path.truncate(len);
            }
        }
        (Value::Array(items), Shape::Items(below)) => {
            for (at, item) in items.iter().enumerate() {
                let _ = write!(path, "[{at}]");
                strange(item, below, path, unknown);
                path.truncate(len);
            }
        }
        _ => {}
    }
}

/// What is null was not said. No deeper than the shape, which is known to fit.
fn without_nulls(tree: Value) -> Value {
    match tree {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| (name, without_nulls(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(version: &str, more: &Value) -> Result<AuthenticationConfiguration, String> {
        let mut tree = json!({ "apiVersion": version, "kind": KIND });
        for (name, value) in more.as_object().into_iter().flatten() {
            tree[name] = value.clone();
        }
        AuthenticationConfiguration::of(&tree)
    }

    #[test]
    fn every_version_is_read_and_says_the_same() {
        let more = json!({
            "jwt": [{
                "issuer": { "url": "https://i", "discoveryURL": "https://d", "audiences": ["a"] },
                "claimMappings": { "username": { "claim": "sub", "prefix": "" }, "uid": null },
            }],
            "anonymous": { "enabled": true, "conditions": [{ "path": "/livez" }] },
        });
        let all: Vec<_> = ["v1", "v1beta1", "v1alpha1"]
            .map(|version| of(&format!("{GROUP}/{version}"), &more).expect("read"))
            .into();
        assert!(all.iter().all(|one| *one == all[0]));
        let issuer = &all[0].jwt[0];
        assert_eq!(issuer.issuer.discovery_url.as_deref(), Some("https://d"));
        assert_eq!(issuer.claim_mappings.username.prefix.as_deref(), Some(""));
        assert_eq!(issuer.claim_mappings.uid, Mapping::default());
        let path =
            |of: &AuthenticationConfiguration| of.anonymous.clone().map(|it| it.conditions[0].path.clone());
        assert_eq!(path(&all[0]).as_deref(), Some("/livez"));
    }

    #[test]
    fn what_is_none_is_refused() {
        let refused = |version: &str, more: Value| of(version, &more).expect_err("refused");
        assert_eq!(refused("", json!({})), "Object 'apiVersion' is missing");
        assert_eq!(
            refused("apiserver.config.k8s.io/v2", json!({})),
            "no kind \"AuthenticationConfiguration\" is registered for version \"apiserver.config.k8s.io/v2\""
        );
        let v1 = "apiserver.config.k8s.io/v1";
        assert!(refused(v1, json!({ "kind": "Other" })).starts_with("no kind \"Other\""));
        assert_eq!(
            refused(v1, json!({ "jwt": [{ "issuer": { "urls": 1 }, "x": 2 }], "y": 3 })),
            "strict decoding error: unknown field \"jwt[0].issuer.urls\", unknown field \"jwt[0].x\", unknown field \"y\""
        );
        assert!(refused(v1, json!({ "jwt": 1 })).contains("invalid type"));
    }
}
