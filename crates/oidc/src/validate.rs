//! Whether a configuration makes sense, and what it comes to.
//!
//! In: a configuration. Out: issuers, their expressions compiled; or everything that is wrong, in upstream's
//! words and order. Never: reads a certificate by itself.
//!
//! Source: apiserver v0.36.3 `pkg/apis/apiserver/validation/validation.go`.

use std::collections::BTreeSet;

use forebay_apimachinery::domain_prefixed_path_faults;
use forebay_apimachinery::go_url::Url;

use crate::config::{
    AnonymousConfig, AuthenticationConfiguration, ClaimMappings, ClaimRule, JwtIssuer, Mapping, Provider,
    UserRule,
};
use crate::expressions::{About, Expression, NamedClaims, Returns};
use crate::faults::ConfigFaults;
use crate::issuer::{Issuer, Mapped, Rule};
use crate::keys::Algorithm;
use crate::limits::ISSUERS_MAX;

/// The issuers of a configuration.
///
/// - `disallowed`: issuers that are this server's own.
/// - `algorithms`: how their tokens may be signed.
/// - `authorities`: whether a text holds authorities that can vouch for a server.
///
/// # Errors
/// Everything that is wrong, as one line.
pub fn validated(
    configuration: &AuthenticationConfiguration,
    disallowed: &[String],
    algorithms: &[Algorithm],
    authorities: &dyn Fn(&str) -> Result<(), String>,
) -> Result<Vec<Issuer>, String> {
    let mut faults = ConfigFaults::default();
    let count = configuration.jwt.len();
    if count > ISSUERS_MAX {
        faults.push(format!("jwt: Too many: {count}: must have at most {ISSUERS_MAX} items"));
        return Err(faults.told());
    }
    let (mut urls, mut discoveries) = (BTreeSet::new(), BTreeSet::new());
    let mut issuers = Vec::with_capacity(count);
    for (at, jwt) in configuration.jwt.iter().enumerate() {
        let path = format!("jwt[{at}]");
        check_provider(&jwt.issuer, &format!("{path}.issuer"), disallowed, authorities, &mut faults);
        issuers.push(issuer(jwt, &path, algorithms, &mut faults));
        if !urls.insert(&jwt.issuer.url) {
            faults.duplicate(&format!("{path}.issuer.url"), &jwt.issuer.url);
        }
        if let Some(url) = jwt.issuer.discovery_url.as_ref().filter(|url| !url.is_empty())
            && !discoveries.insert(url)
        {
            faults.duplicate(&format!("{path}.issuer.discoveryURL"), url);
        }
    }
    if let Some(anonymous) = &configuration.anonymous {
        check_anonymous(anonymous, &mut faults);
    }
    // What is left out has a fault.
    if faults.is_empty() { Ok(issuers.into_iter().flatten().collect()) } else { Err(faults.told()) }
}

fn check_anonymous(anonymous: &AnonymousConfig, faults: &mut ConfigFaults) {
    if !anonymous.enabled && !anonymous.conditions.is_empty() {
        let paths: Vec<String> =
            anonymous.conditions.iter().map(|condition| format!("{:?}", condition.path)).collect();
        faults.push(format!(
            "anonymous.conditions: Invalid value: [{}]: enabled should be set to true when conditions are defined",
            paths.join(",")
        ));
    }
}

fn check_provider(
    provider: &Provider,
    path: &str,
    disallowed: &[String],
    authorities: &dyn Fn(&str) -> Result<(), String>,
    faults: &mut ConfigFaults,
) {
    let at = |name: &str| format!("{path}.{name}");
    if provider.url.is_empty() {
        faults.required(&at("url"), "");
    } else {
        check_url(&provider.url, &at("url"), disallowed, faults);
    }
    if let Some(discovery) = provider.discovery_url.as_ref().filter(|url| !url.is_empty()) {
        let bare = |url: &str| url.trim_end_matches('/').to_owned();
        if !provider.url.is_empty() && bare(&provider.url) == bare(discovery) {
            faults.invalid(&at("discoveryURL"), discovery, "discoveryURL must be different from URL");
        }
        check_url(discovery, &at("discoveryURL"), &[], faults);
    }
    check_audiences(provider, path, faults);
    if !provider.certificate_authority.is_empty()
        && let Err(why) = authorities(&provider.certificate_authority)
    {
        faults.invalid(&at("certificateAuthority"), "<omitted>", &why);
    }
    match provider.egress_selector_type.as_str() {
        "" => {}
        selector @ ("controlplane" | "cluster") => {
            let why = "egress selectors are not served: providers are asked without a proxy between";
            faults.invalid(&at("egressSelectorType"), selector, why);
        }
        other => {
            let why = "egress selector must be either controlplane or cluster";
            faults.invalid(&at("egressSelectorType"), other, why);
        }
    }
}

fn check_url(text: &str, path: &str, disallowed: &[String], faults: &mut ConfigFaults) {
    // Few: the issuers of this server.
    if disallowed.iter().any(|own| own == text) {
        let mut sorted = disallowed.to_vec();
        sorted.sort();
        let why = format!("URL must not overlap with disallowed issuers: [{}]", sorted.join(" "));
        faults.invalid(path, text, &why);
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(why) => return faults.invalid(path, text, &why),
    };
    if url.scheme != "https" {
        faults.invalid(path, text, "URL scheme must be https");
    }
    if url.user.is_some() {
        faults.invalid(path, text, "URL must not contain a username or password");
    }
    if !url.query.is_empty() {
        faults.invalid(path, text, "URL must not contain a query");
    }
    if !url.fragment.is_empty() {
        faults.invalid(path, text, "URL must not contain a fragment");
    }
}

fn check_audiences(provider: &Provider, path: &str, faults: &mut ConfigFaults) {
    let (audiences, policy) = (&provider.audiences, provider.audience_match_policy.as_str());
    let at = format!("{path}.audiences");
    if audiences.is_empty() {
        return faults.required(&at, &format!("at least one {at} is required"));
    }
    let mut seen = BTreeSet::new();
    for (place, audience) in audiences.iter().enumerate() {
        let at = format!("{at}[{place}]");
        if audience.is_empty() {
            faults.required(&at, "");
        }
        if !seen.insert(audience) {
            faults.duplicate(&at, audience);
        }
    }
    let at = format!("{path}.audienceMatchPolicy");
    match (audiences.len(), policy) {
        (_, "MatchAny") | (1, "") => {}
        (1, _) => {
            faults.invalid(&at, policy, "audienceMatchPolicy must be empty or MatchAny for single audience");
        }
        _ => faults.invalid(&at, policy, "audienceMatchPolicy must be MatchAny for multiple audiences"),
    }
}

/// `None` where something is wrong with it.
fn issuer(
    jwt: &JwtIssuer,
    path: &str,
    algorithms: &[Algorithm],
    faults: &mut ConfigFaults,
) -> Option<Issuer> {
    let mut verified = false;
    let (required, claim_rules) = claim_rules(&jwt.claim_validation_rules, path, &mut verified, faults);
    let mappings = &jwt.claim_mappings;
    let path_of = |name: &str| format!("{path}.claimMappings.{name}");
    let (username, names) = mapping(&mappings.username, &path_of("username"), true, faults);
    verified |= names.email_verified;
    let (groups, _) = mapping(&mappings.groups, &path_of("groups"), false, faults);
    let uid = uid(&mappings.uid, &path_of("uid"), faults);
    let extra = extra(mappings, path, &mut verified, faults);
    if names.email && !verified {
        faults.invalid(
            &path_of("username.expression"),
            &mappings.username.expression,
            "claims.email_verified must be used in claimMappings.username.expression or \
             claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in \
             claimMappings.username.expression",
        );
    }
    let user_rules = user_rules(&jwt.user_validation_rules, path, faults);
    let provider = &jwt.issuer;
    Some(Issuer {
        url: provider.url.clone(),
        discovery_url: provider.discovery_url.clone().filter(|url| !url.is_empty()),
        certificate_authority: provider.certificate_authority.clone(),
        audiences: provider.audiences.clone(),
        algorithms: algorithms.to_vec(),
        username: username?,
        groups,
        uid,
        extra,
        required,
        claim_rules,
        user_rules,
    })
}

/// Claims that have to be there with their values, and expressions that have to hold.
fn claim_rules(
    rules: &[ClaimRule],
    path: &str,
    verified: &mut bool,
    faults: &mut ConfigFaults,
) -> (Vec<(String, String)>, Vec<Rule>) {
    let (mut claims, mut expressions) = (BTreeSet::new(), BTreeSet::new());
    let (mut required, mut compiled) = (Vec::new(), Vec::new());
    for (at, rule) in rules.iter().enumerate() {
        let path = format!("{path}.claimValidationRules[{at}]");
        match (rule.claim.as_str(), rule.expression.as_str()) {
            ("", "") => faults.required(&path, "claim or expression is required"),
            (claim, "") => {
                if !rule.message.is_empty() {
                    let why = "may not be specified when claim is set";
                    faults.invalid(&format!("{path}.message"), &rule.message, why);
                }
                if !claims.insert(claim) {
                    faults.duplicate(&format!("{path}.claim"), claim);
                }
                required.push((claim.to_owned(), rule.required_value.clone()));
            }
            ("", expression) => {
                if !rule.required_value.is_empty() {
                    let why = "may not be specified when expression is set";
                    faults.invalid(&format!("{path}.requiredValue"), &rule.required_value, why);
                }
                let at = format!("{path}.expression");
                if !expressions.insert(expression) {
                    faults.duplicate(&at, expression);
                    continue;
                }
                if let Some((expression, names)) =
                    compile(expression, About::Claims, Returns::Bool, &at, faults)
                {
                    *verified |= names.email_verified;
                    compiled.push(Rule { expression, message: rule.message.clone() });
                }
            }
            (claim, _) => faults.invalid(&path, claim, "claim and expression can't both be set"),
        }
    }
    (required, compiled)
}

fn user_rules(rules: &[UserRule], path: &str, faults: &mut ConfigFaults) -> Vec<Rule> {
    let (mut seen, mut compiled) = (BTreeSet::new(), Vec::new());
    for (at, rule) in rules.iter().enumerate() {
        let at = format!("{path}.userValidationRules[{at}].expression");
        if rule.expression.is_empty() {
            faults.required(&at, "");
            continue;
        }
        if !seen.insert(&rule.expression) {
            faults.duplicate(&at, &rule.expression);
            continue;
        }
        if let Some((expression, _)) = compile(&rule.expression, About::User, Returns::Bool, &at, faults) {
            compiled.push(Rule { expression, message: rule.message.clone() });
        }
    }
    compiled
}

fn mapping(
    of: &Mapping,
    path: &str,
    is_required: bool,
    faults: &mut ConfigFaults,
) -> (Option<Mapped>, NamedClaims) {
    match (of.claim.as_str(), of.expression.as_str()) {
        ("", "") => {
            if is_required {
                faults.required(path, "claim or expression is required");
            }
            (None, NamedClaims::default())
        }
        ("", expression) => {
            if let Some(prefix) = &of.prefix {
                let why = "may not be specified when expression is set";
                faults.invalid(&format!("{path}.prefix"), prefix, why);
            }
            let at = format!("{path}.expression");
            match compile(expression, About::Claims, Returns::Anything, &at, faults) {
                Some((expression, names)) => (Some(Mapped::By(expression)), names),
                None => (None, NamedClaims::default()),
            }
        }
        (claim, "") => {
            if of.prefix.is_none() {
                let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                faults.required(&format!("{path}.prefix"), why);
            }
            let prefix = of.prefix.clone().unwrap_or_default();
            (Some(Mapped::Claim { name: claim.to_owned(), prefix }), NamedClaims::default())
        }
        _ => {
            faults.invalid(path, "", "claim and expression can't both be set");
            (None, NamedClaims::default())
        }
    }
}

fn uid(of: &Mapping, path: &str, faults: &mut ConfigFaults) -> Option<Mapped> {
    match (of.claim.as_str(), of.expression.as_str()) {
        ("", "") => None,
        (claim, "") => Some(Mapped::Claim { name: claim.to_owned(), prefix: String::new() }),
        ("", expression) => {
            let at = format!("{path}.expression");
            let compiled = compile(expression, About::Claims, Returns::Anything, &at, faults);
            compiled.map(|(expression, _)| Mapped::By(expression))
        }
        _ => {
            faults.invalid(path, "", "claim and expression can't both be set");
            None
        }
    }
}

fn extra(
    mappings: &ClaimMappings,
    path: &str,
    verified: &mut bool,
    faults: &mut ConfigFaults,
) -> Vec<(String, Expression)> {
    let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
    for (at, mapping) in mappings.extra.iter().enumerate() {
        let path = format!("{path}.claimMappings.extra[{at}]");
        let (key, at) = (&mapping.key, format!("{path}.key"));
        domain_prefixed_path_faults(&at, key).into_iter().for_each(|fault| faults.push(fault));
        if *key != key.to_lowercase() {
            faults.invalid(&at, key, "must be lowercase");
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_below = |of: &str| domain == of || domain.ends_with(&format!(".{of}"));
        if is_below("kubernetes.io") || is_below("k8s.io") {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            faults.invalid(&at, key, why);
        }
        if !seen.insert(key) {
            faults.duplicate(&at, key);
            continue;
        }
        let at = format!("{path}.valueExpression");
        if mapping.value_expression.is_empty() {
            faults.required(&at, "");
            continue;
        }
        let compiled = compile(&mapping.value_expression, About::Claims, Returns::Anything, &at, faults);
        if let Some((expression, names)) = compiled {
            *verified |= names.email_verified;
            all.push((key.clone(), expression));
        }
    }
    all
}

fn compile(
    text: &str,
    about: About,
    returns: Returns,
    path: &str,
    faults: &mut ConfigFaults,
) -> Option<(Expression, NamedClaims)> {
    match Expression::new(text, about, returns) {
        Ok(compiled) => Some(compiled),
        Err(why) => {
            faults.invalid(path, text, &why);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(jwt: Value, want: &str) {
        let tree = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": jwt,
        });
        let configuration = AuthenticationConfiguration::of(&tree).expect("read");
        let own = ["https://own".to_owned()];
        let authorities = |text: &str| match text {
            "good" => Ok(()),
            _ => Err("no certificate".to_owned()),
        };
        let got = match validated(&configuration, &own, &Algorithm::ALL, &authorities) {
            Ok(issuers) => format!("{} good", issuers.len()),
            Err(why) => why,
        };
        assert_eq!(got, want, "{tree}");
    }

    fn with(change: Value) -> Value {
        let mut jwt = json!({
            "issuer": { "url": "https://i", "audiences": ["a"] },
            "claimMappings": { "username": { "claim": "sub", "prefix": "" } },
        });
        for (path, value) in change.as_object().expect("changes") {
            let pointer = format!("/{}", path.replace('.', "/"));
            let (parent, name) = pointer.rsplit_once('/').expect("a slash");
            jwt.pointer_mut(parent).expect("there")[name] = value.clone();
        }
        json!([jwt])
    }

    #[test]
    fn what_makes_sense_is_taken() {
        check(json!([]), "0 good");
        check(with(json!({})), "1 good");
        check(
            with(json!({ "issuer.certificateAuthority": "good", "issuer.discoveryURL": "https://d/x" })),
            "1 good",
        );
        check(
            with(json!({ "issuer.audiences": ["a", "b"], "issuer.audienceMatchPolicy": "MatchAny" })),
            "1 good",
        );
        check(
            with(json!({
                "claimMappings.username": { "expression": "claims.email" },
                "claimMappings.extra": [{ "key": "a.io/verified", "valueExpression": "string(claims.email_verified)" }],
                "userValidationRules": [{ "expression": "!user.username.startsWith('system:')" }],
            })),
            "1 good",
        );
    }

    #[test]
    fn where_an_issuer_is_and_whom_its_tokens_are_for_is_looked_at() {
        let at = "jwt[0].issuer";
        check(with(json!({ "issuer.url": "" })), &format!("{at}.url: Required value"));
        check(
            with(json!({ "issuer.url": "http://u:p@i/?q#f" })),
            &format!(
                "[{at}.url: Invalid value: \"http://u:p@i/?q#f\": URL scheme must be https, \
                 {at}.url: Invalid value: \"http://u:p@i/?q#f\": URL must not contain a username or password, \
                 {at}.url: Invalid value: \"http://u:p@i/?q#f\": URL must not contain a query, \
                 {at}.url: Invalid value: \"http://u:p@i/?q#f\": URL must not contain a fragment]"
            ),
        );
        check(
            with(json!({ "issuer.url": "https://own" })),
            &format!(
                "{at}.url: Invalid value: \"https://own\": URL must not overlap with disallowed issuers: [https://own]"
            ),
        );
        check(
            with(json!({ "issuer.discoveryURL": "https://i/" })),
            &format!(
                "{at}.discoveryURL: Invalid value: \"https://i/\": discoveryURL must be different from URL"
            ),
        );
        check(
            with(json!({ "issuer.audiences": [] })),
            &format!("{at}.audiences: Required value: at least one {at}.audiences is required"),
        );
        check(
            with(json!({ "issuer.audiences": ["a", "a"] })),
            &format!(
                "[{at}.audiences[1]: Duplicate value: \"a\", {at}.audienceMatchPolicy: Invalid value: \"\": \
                 audienceMatchPolicy must be MatchAny for multiple audiences]"
            ),
        );
        check(
            with(json!({ "issuer.certificateAuthority": "bad" })),
            &format!("{at}.certificateAuthority: Invalid value: \"<omitted>\": no certificate"),
        );
        check(
            with(json!({ "issuer.egressSelectorType": "cluster" })),
            &format!(
                "{at}.egressSelectorType: Invalid value: \"cluster\": egress selectors are not served: providers are \
                 asked without a proxy between"
            ),
        );
        let twice = with(json!({}));
        check(json!([twice[0], twice[0]]), "jwt[1].issuer.url: Duplicate value: \"https://i\"");
        check(Value::Array(vec![twice[0].clone(); 65]), "jwt: Too many: 65: must have at most 64 items");
    }

    #[test]
    fn mappings_and_rules_are_looked_at() {
        let at = "jwt[0].claimMappings";
        check(
            with(json!({ "claimMappings.username": {} })),
            &format!("{at}.username: Required value: claim or expression is required"),
        );
        check(
            with(json!({ "claimMappings.username": { "claim": "sub" } })),
            &format!(
                "{at}.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty \
                 string to disable prefixing"
            ),
        );
        check(
            with(json!({ "claimMappings.groups": { "claim": "g", "expression": "claims.g" } })),
            &format!("{at}.groups: Invalid value: \"\": claim and expression can't both be set"),
        );
        check(
            with(
                json!({ "claimMappings.extra": [{ "key": "Kubernetes.io/x", "valueExpression": "" }, { "key": "x" }] }),
            ),
            &format!(
                "[{at}.extra[0].key: Invalid value: \"Kubernetes.io\": a lowercase RFC 1123 subdomain must consist of \
                 lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
                 (e.g. 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), \
                 {at}.extra[0].key: Invalid value: \"Kubernetes.io/x\": must be lowercase, \
                 {at}.extra[0].valueExpression: Required value, \
                 {at}.extra[1].key: Invalid value: \"x\": must be a domain-prefixed path (such as \"acme.io/foo\"), \
                 {at}.extra[1].valueExpression: Required value]"
            ),
        );
        check(
            with(json!({ "claimMappings.username": { "expression": "claims.email" } })),
            &format!(
                "{at}.username.expression: Invalid value: \"claims.email\": claims.email_verified must be used in \
                 claimMappings.username.expression or claimMappings.extra[*].valueExpression or \
                 claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
            ),
        );
        check(
            with(json!({ "claimValidationRules": [
                {},
                { "claim": "a", "expression": "true" },
                { "claim": "a", "message": "m" },
                { "expression": "claims.x", "requiredValue": "v" },
            ]})),
            "[jwt[0].claimValidationRules[0]: Required value: claim or expression is required, \
             jwt[0].claimValidationRules[1]: Invalid value: \"a\": claim and expression can't both be set, \
             jwt[0].claimValidationRules[2].message: Invalid value: \"m\": may not be specified when claim is set, \
             jwt[0].claimValidationRules[3].requiredValue: Invalid value: \"v\": may not be specified when expression \
             is set, jwt[0].claimValidationRules[3].expression: Invalid value: \"claims.x\": must evaluate to bool]",
        );
        check(
            with(
                json!({ "userValidationRules": [{ "expression": "" }, { "expression": "true" }, { "expression": "true" }] }),
            ),
            "[jwt[0].userValidationRules[0].expression: Required value, \
             jwt[0].userValidationRules[2].expression: Duplicate value: \"true\"]",
        );
    }
}
