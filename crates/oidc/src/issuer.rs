//! An issuer whose tokens are believed, and whom they make of who shows one.
//!
//! In: a token that one of its provider's keys has signed, the time. Out: a caller, or why there is none, in
//! upstream's words. Never: whether the signature is good.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authenticator/token/oidc/oidc.go`.

use std::collections::BTreeMap;

use forebay_apimachinery::Caller;
use forebay_apimachinery::json::go_quote;
use serde_json::{Map, Value};

use crate::claims;
use crate::expressions::{Expression, claims_value, user_value};
use crate::keys::Algorithm;

/// What of a user's attributes says which credential it came with.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// See the module's doc.
#[derive(Debug)]
pub struct Issuer {
    pub url: String,
    /// Where it says of itself where its keys are, if not below its URL.
    pub discovery_url: Option<String>,
    /// Who vouches for its server, PEM; whom the system believes, if empty.
    pub certificate_authority: String,
    pub(crate) audiences: Vec<String>,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) username: Mapped,
    pub(crate) groups: Option<Mapped>,
    pub(crate) uid: Option<Mapped>,
    pub(crate) extra: Vec<(String, Expression)>,
    /// Claims that have to be there, with their values.
    pub(crate) required: Vec<(String, String)>,
    pub(crate) claim_rules: Vec<Rule>,
    pub(crate) user_rules: Vec<Rule>,
}

/// Where something of a user is taken from.
#[derive(Debug)]
pub(crate) enum Mapped {
    Claim { name: String, prefix: String },
    By(Expression),
}

/// What has to hold, and what is said where it does not.
#[derive(Debug)]
pub(crate) struct Rule {
    pub expression: Expression,
    pub message: String,
}

impl Issuer {
    /// Where it says of itself where its keys are.
    pub fn discovery(&self) -> String {
        match &self.discovery_url {
            Some(url) => url.clone(),
            None => {
                let base = self.url.strip_suffix('/').unwrap_or(&self.url);
                format!("{base}/.well-known/openid-configuration")
            }
        }
    }

    /// Whom these claims make of who shows them.
    ///
    /// # Errors
    /// Upstream's words.
    pub(crate) fn caller(&self, claims: &Map<String, Value>) -> Result<Caller, String> {
        let seen = if self.has_expressions() { claims_value(claims) } else { Value::Null };
        let mut user = Caller {
            name: self.username(claims, &seen)?,
            groups: self.groups(claims, &seen)?,
            uid: self.uid(claims, &seen)?,
            extra: self.extra(claims, &seen)?,
        };
        for (name, value) in &self.required {
            if !claims.contains_key(name) {
                return Err(format!("oidc: required claim {name} not present in ID token"));
            }
            let got = claims::text(claims, name).map_err(|why| format!("oidc: parse claim {name}: {why}"))?;
            if got != *value {
                return Err(format!(
                    "oidc: required claim {name} value does not match. Got = {got}, want = {value}"
                ));
            }
        }
        let failed = |why| format!("oidc: error evaluating claim validation expression: {why}");
        held(&self.claim_rules, &seen).map_err(failed)?;
        if !self.user_rules.is_empty() {
            let failed = |why| format!("oidc: error evaluating user info validation rule: {why}");
            held(&self.user_rules, &user_value(&user)).map_err(failed)?;
        }
        user.groups.shrink_to_fit();
        Ok(user)
    }

    fn has_expressions(&self) -> bool {
        let is_one = |of: &Mapped| matches!(of, Mapped::By(_));
        is_one(&self.username)
            || self.groups.as_ref().is_some_and(is_one)
            || self.uid.as_ref().is_some_and(is_one)
            || !self.extra.is_empty()
            || !self.claim_rules.is_empty()
    }

    fn username(&self, claims: &Map<String, Value>, seen: &Value) -> Result<String, String> {
        let (name, prefix) = match &self.username {
            Mapped::By(expression) => {
                let failed = |why| format!("oidc: error evaluating username claim expression: {why}");
                let name = expression.text(seen).map_err(failed)?;
                let name =
                    name.ok_or_else(|| failed("username claim expression must return a string".to_owned()))?;
                if name.is_empty() {
                    return Err("oidc: empty username via CEL expression is not allowed".to_owned());
                }
                return Ok(name);
            }
            Mapped::Claim { name, prefix } => (name, prefix),
        };
        let user = claims::text(claims, name)
            .map_err(|why| format!("oidc: parse username claims {}: {why}", go_quote(name)))?;
        if name == "email" && claims.contains_key("email_verified") {
            let is_verified = claims::truth(claims, "email_verified")
                .map_err(|why| format!("oidc: parse 'email_verified' claim: {why}"))?;
            if !is_verified {
                return Err("oidc: email not verified".to_owned());
            }
        }
        // Upstream lets nobody in particular through.
        if user.is_empty() {
            return Err(format!("oidc: the claim {} names nobody", go_quote(name)));
        }
        Ok(format!("{prefix}{user}"))
    }

    fn groups(&self, claims: &Map<String, Value>, seen: &Value) -> Result<Vec<String>, String> {
        match &self.groups {
            None => Ok(Vec::new()),
            Some(Mapped::Claim { name, prefix }) => {
                let Some(value) = claims.get(name) else { return Ok(Vec::new()) };
                let groups = claims::texts(value)
                    .map_err(|why| format!("oidc: parse groups claim {}: {why}", go_quote(name)))?;
                Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
            }
            Some(Mapped::By(expression)) => {
                let failed = |why: String| format!("oidc: error evaluating group claim expression: {why}");
                let groups = expression.texts(seen).map_err(failed)?;
                groups.map_err(|why| failed(why.to_owned()))
            }
        }
    }

    fn uid(&self, claims: &Map<String, Value>, seen: &Value) -> Result<String, String> {
        match &self.uid {
            None => Ok(String::new()),
            Some(Mapped::Claim { name, .. }) => claims::text(claims, name)
                .map_err(|why| format!("oidc: parse uid claim {}: {why}", go_quote(name))),
            Some(Mapped::By(expression)) => {
                let failed = |why: String| format!("oidc: error evaluating uid claim expression: {why}");
                let uid = expression.text(seen).map_err(failed)?;
                uid.ok_or_else(|| failed("uid claim expression must return a string".to_owned()))
            }
        }
    }

    fn extra(
        &self,
        claims: &Map<String, Value>,
        seen: &Value,
    ) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut extra = BTreeMap::new();
        if let Some(id) = claims.get("jti").and_then(Value::as_str).filter(|id| !id.is_empty()) {
            extra.insert(CREDENTIAL_ID.to_owned(), vec![format!("JTI={id}")]);
        }
        for (key, expression) in &self.extra {
            let values = expression.texts(seen)?.map_err(|why| {
                format!("oidc: error evaluating extra claim expression: {}: {why}", expression.text)
            })?;
            if !values.is_empty() {
                extra.insert(key.clone(), values);
            }
        }
        Ok(extra)
    }
}

/// # Errors
/// What does not hold.
fn held(rules: &[Rule], of: &Value) -> Result<(), String> {
    for rule in rules {
        if !rule.expression.holds(of)? {
            return Err(format!("validation expression '{}' failed: {}", rule.expression.text, rule.message));
        }
    }
    Ok(())
}
