//! Tokens of a provider that signs with real keys, good and bad.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{self, EcdsaKeyPair, KeyPair as _, RsaEncoding};
use ring::{hmac, rsa};
use serde_json::{Value, json};

use crate::{Algorithm, AuthenticationConfiguration, Issuer, Judged, KeySet, Token, validated};

/// A time, in seconds since 1970.
const NOW: i64 = 1_800_000_000;

/// What a provider signs with.
struct Keys {
    rsa: rsa::KeyPair,
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
}

impl Keys {
    fn new() -> Keys {
        let text: String = include_str!("testdata/rsa.pkcs8.b64").split_whitespace().collect();
        let random = SystemRandom::new();
        let pair = |algorithm| {
            let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
            EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).expect("a key")
        };
        Keys {
            rsa: rsa::KeyPair::from_pkcs8(&STANDARD.decode(text).expect("base64")).expect("a key"),
            p256: pair(&signature::ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: pair(&signature::ECDSA_P384_SHA384_FIXED_SIGNING),
        }
    }

    fn set(&self) -> String {
        let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let point = |pair: &EcdsaKeyPair, curve: &str| {
            let (x, y) = pair.public_key().as_ref()[1..].split_at(pair.public_key().as_ref().len() / 2);
            json!({ "kty": "EC", "crv": curve, "kid": curve, "x": number(x), "y": number(y) })
        };
        let public = rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let rsa = json!({ "kty": "RSA", "kid": "rsa", "n": number(&public.n), "e": number(&public.e) });
        json!({ "keys": [rsa, point(&self.p256, "P-256"), point(&self.p384, "P-384")] }).to_string()
    }

    /// A token that is signed as `algorithm` says, with the key that fits.
    fn token(&self, algorithm: &str, id: &str, claims: &Value) -> String {
        let signed = signed(json!({ "alg": algorithm, "kid": id }), claims);
        let random = SystemRandom::new();
        let with_rsa = |encoding: &'static dyn RsaEncoding| {
            let mut signature = vec![0; self.rsa.public().modulus_len()];
            self.rsa.sign(encoding, &random, signed.as_bytes(), &mut signature).expect("signed");
            signature
        };
        let with =
            |pair: &EcdsaKeyPair| pair.sign(&random, signed.as_bytes()).expect("signed").as_ref().to_vec();
        let signature = match algorithm {
            "RS256" => with_rsa(&signature::RSA_PKCS1_SHA256),
            "RS384" => with_rsa(&signature::RSA_PKCS1_SHA384),
            "RS512" => with_rsa(&signature::RSA_PKCS1_SHA512),
            "PS256" => with_rsa(&signature::RSA_PSS_SHA256),
            "PS384" => with_rsa(&signature::RSA_PSS_SHA384),
            "PS512" => with_rsa(&signature::RSA_PSS_SHA512),
            "ES256" => with(&self.p256),
            "ES384" => with(&self.p384),
            // The public key as a secret that everybody knows.
            "HS256" => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.rsa.public().as_ref());
                hmac::sign(&key, signed.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn signed(header: Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(&header), part(claims))
}

fn issuer(more: Value) -> Issuer {
    let mut jwt = json!({
        "issuer": { "url": "https://i", "audiences": ["kube"] },
        "claimMappings": { "username": { "claim": "sub", "prefix": "i:" } },
    });
    for (name, value) in more.as_object().expect("members") {
        jwt[name] = value.clone();
    }
    let tree = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [jwt],
    });
    let configuration = AuthenticationConfiguration::of(&tree).expect("read");
    let issuers = validated(&configuration, &[], &Algorithm::ALL, &|_| Ok(()));
    issuers.expect("valid").pop().expect("one")
}

fn claims(more: Value) -> Value {
    let mut claims = json!({ "iss": "https://i", "aud": "kube", "sub": "ann", "exp": NOW + 600, "iat": NOW });
    for (name, value) in more.as_object().expect("members") {
        claims[name] = value.clone();
    }
    claims
}

fn verdict(issuer: &Issuer, token: &str, keys: &KeySet) -> String {
    let token = Token::parse(token).expect("a token");
    if !issuer.has_issued(&token) {
        return "somebody else's".to_owned();
    }
    match issuer.judge(&token, keys, NOW * 1000) {
        Judged::Known(user, _) => {
            let extra: Vec<String> =
                user.extra.iter().map(|(key, values)| format!("{key}={}", values.join("+"))).collect();
            format!("{} {} [{}] [{}]", user.name, user.uid, user.groups.join(","), extra.join(","))
        }
        Judged::Unsigned => "unsigned".to_owned(),
        Judged::Refused(why) => why,
    }
}

#[test]
fn every_algorithm_is_for_its_kind_of_key_and_no_other() {
    let (keys, other) = (Keys::new(), Keys::new());
    let set = KeySet::of(keys.set().as_bytes()).expect("a set");
    let issuer = issuer(json!({}));
    let known = "i:ann  [] []";
    let ids = |algorithm: &str| match &algorithm[..2] {
        "ES" => format!("P-{}", &algorithm[2..]),
        _ => "rsa".to_owned(),
    };
    for algorithm in Algorithm::ALL.map(Algorithm::name) {
        for id in [ids(algorithm), String::new()] {
            let token = keys.token(algorithm, &id, &claims(json!({})));
            assert_eq!(verdict(&issuer, &token, &set), known, "{algorithm} {id:?}");
            let (front, back) = token.split_at(token.len() - 8);
            let changed = format!("{front}{}", back.chars().rev().collect::<String>());
            if changed != token && Token::parse(&changed).is_some() {
                assert_eq!(verdict(&issuer, &changed, &set), "unsigned", "{algorithm} changed");
            }
        }
        let named_otherwise = keys.token(algorithm, "nobody", &claims(json!({})));
        assert_eq!(verdict(&issuer, &named_otherwise, &set), "unsigned", "{algorithm} of an unknown key");
        // With the key of another kind, under the name of one that is known.
        let confused = if algorithm.starts_with("ES") { "rsa" } else { "P-256" };
        let token = keys.token(algorithm, confused, &claims(json!({})));
        assert_eq!(verdict(&issuer, &token, &set), "unsigned", "{algorithm} as {confused}");
    }
    let theirs = other.token("ES256", "P-256", &claims(json!({})));
    assert_eq!(verdict(&issuer, &theirs, &set), "unsigned");
}

#[test]
fn what_is_not_signed_or_signed_with_a_secret_is_refused_before_any_key_is_tried() {
    let keys = Keys::new();
    let set = KeySet::of(keys.set().as_bytes()).expect("a set");
    let issuer = issuer(json!({}));
    for algorithm in ["none", "None", "", "HS256", "ES512", "EdDSA"] {
        let token = keys.token(algorithm, "rsa", &claims(json!({})));
        assert_eq!(
            verdict(&issuer, &token, &set),
            format!(
                "oidc: verify token: oidc: id token signed with unsupported algorithm, expected [\"ES256\" \"ES384\" \
                 \"PS256\" \"PS384\" \"PS512\" \"RS256\" \"RS384\" \"RS512\"] got {algorithm:?}"
            )
        );
    }
    // An extension that nobody here knows.
    let header = json!({ "alg": "ES256", "kid": "P-256", "crit": ["b64"], "b64": true });
    let signed = signed(header, &claims(json!({})));
    let signature = keys.p256.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
    let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()));
    assert_eq!(verdict(&issuer, &token, &set), "unsigned");
}

/// What becomes of claims that are signed.
fn check(more: Value, of: Value, want: &str) {
    let keys = Keys::new();
    let set = KeySet::of(keys.set().as_bytes()).expect("a set");
    let token = keys.token("ES256", "P-256", &claims(of.clone()));
    assert_eq!(verdict(&issuer(more), &token, &set), want, "{of}");
}

#[test]
fn a_token_is_for_its_audience_and_in_its_time() {
    let at = |seconds: i64| json!({ "exp": seconds });
    let refused = "oidc: verify token: oidc:";
    check(json!({}), json!({ "aud": ["x", "kube"] }), "i:ann  [] []");
    check(json!({}), json!({ "aud": ["x"] }), &format!("{refused} expected audience \"kube\" got [\"x\"]"));
    check(json!({}), json!({ "aud": null }), &format!("{refused} expected audience \"kube\" got []"));
    let two = json!({ "issuer": { "url": "https://i", "audiences": ["b", "a"], "audienceMatchPolicy": "MatchAny" } });
    check(two.clone(), json!({ "aud": "a" }), "i:ann  [] []");
    check(two, json!({}), &format!("{refused} expected audience in [\"a\" \"b\"] got [\"kube\"]"));
    // No clock is ahead of a provider's by any leeway where a token is over.
    check(json!({}), at(NOW), "i:ann  [] []");
    check(
        json!({}),
        at(NOW - 1),
        &format!("{refused} token is expired (Token Expiry: 2027-01-15 07:59:59 +0000 UTC)"),
    );
    check(
        json!({}),
        json!({ "exp": null }),
        &format!("{refused} token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)"),
    );
    check(json!({}), json!({ "nbf": NOW + 60 }), "i:ann  [] []");
    check(
        json!({}),
        json!({ "nbf": NOW + 61 }),
        &format!(
            "{refused} current time 2027-01-15 08:00:00 +0000 UTC before the nbf (not before) time: 2027-01-15 08:01:01 \
             +0000 UTC"
        ),
    );
    check(json!({}), json!({ "iss": "https://j" }), "somebody else's");
    check(
        json!({}),
        json!({ "exp": "soon" }),
        &format!(
            "{refused} failed to unmarshal claims: json: cannot unmarshal string into Go value of type json.Number"
        ),
    );
}

#[test]
fn claims_make_a_user_by_name_and_by_expression() {
    let by_claims = json!({ "claimMappings": {
        "username": { "claim": "email", "prefix": "" },
        "groups": { "claim": "roles", "prefix": "r:" },
        "uid": { "claim": "oid" },
    }});
    let known = json!({ "email": "a@b", "roles": ["x", "y"], "oid": "7", "jti": "j" });
    check(by_claims.clone(), known, "a@b 7 [r:x,r:y] [authentication.kubernetes.io/credential-id=JTI=j]");
    check(by_claims.clone(), json!({ "email": "a@b", "roles": "x", "oid": "7" }), "a@b 7 [r:x] []");
    check(
        by_claims.clone(),
        json!({ "email": "a@b", "email_verified": false, "oid": "7" }),
        "oidc: email not verified",
    );
    check(
        by_claims.clone(),
        json!({ "oid": "7" }),
        "oidc: parse username claims \"email\": claim not present",
    );
    check(by_claims.clone(), json!({ "email": "", "oid": "7" }), "oidc: the claim \"email\" names nobody");
    check(by_claims.clone(), json!({ "email": "a@b" }), "oidc: parse uid claim \"oid\": claim not present");
    check(
        by_claims.clone(),
        json!({ "email": "a@b", "roles": [1], "oid": "7" }),
        "oidc: parse groups claim \"roles\": json: cannot unmarshal array into Go value of type string",
    );
    let nowhere = json!({ "email": "a@b", "oid": "7", "_claim_names": { "roles": "s" } });
    check(by_claims.clone(), nowhere, "oidc: verify token: oidc: source does not exist");
    let elsewhere = json!({
        "email": "a@b", "oid": "7",
        "_claim_names": { "roles": "s" }, "_claim_sources": { "s": { "endpoint": "https://e" } },
    });
    check(
        by_claims,
        elsewhere,
        "oidc: could not expand distributed claims: the claim \"roles\" is kept elsewhere, and is not fetched",
    );
    let by_expressions = json!({ "claimMappings": {
        "username": { "expression": "'u:' + claims.sub" },
        "groups": { "expression": "claims.roles.split(',')" },
        "uid": { "expression": "claims.oid" },
        "extra": [
            { "key": "a.io/tenant", "valueExpression": "claims.tenant" },
            { "key": "a.io/none", "valueExpression": "''" },
        ],
    }});
    let known = json!({ "roles": "x,y", "oid": "7", "tenant": ["t", "s"] });
    check(by_expressions.clone(), known, "u:ann 7 [x,y] [a.io/tenant=t+s]");
    check(
        by_expressions.clone(),
        json!({ "roles": "x", "oid": 7, "tenant": "t" }),
        "oidc: error evaluating uid claim expression: uid claim expression must return a string",
    );
    check(
        by_expressions,
        json!({ "oid": "7", "tenant": "t" }),
        "oidc: error evaluating group claim expression: expression 'claims.roles.split(',')' resulted in error: no such \
         key: roles",
    );
}

#[test]
fn rules_have_to_hold_of_claims_and_of_the_user() {
    let rules = json!({
        "claimValidationRules": [
            { "claim": "hd", "requiredValue": "example.com" },
            { "expression": "claims.exp - claims.iat <= 3600.0", "message": "lives too long" },
        ],
        "userValidationRules": [
            { "expression": "!user.username.endsWith('root')", "message": "no roots" },
        ],
    });
    let hd = |more: Value| {
        let mut claims = json!({ "hd": "example.com" });
        for (name, value) in more.as_object().expect("members") {
            claims[name] = value.clone();
        }
        claims
    };
    check(rules.clone(), hd(json!({})), "i:ann  [] []");
    check(rules.clone(), json!({}), "oidc: required claim hd not present in ID token");
    check(
        rules.clone(),
        json!({ "hd": "x" }),
        "oidc: required claim hd value does not match. Got = x, want = example.com",
    );
    check(
        rules.clone(),
        hd(json!({ "exp": NOW + 3601 })),
        "oidc: error evaluating claim validation expression: validation expression 'claims.exp - claims.iat <= 3600.0' \
         failed: lives too long",
    );
    check(
        rules,
        hd(json!({ "sub": "root" })),
        "oidc: error evaluating user info validation rule: validation expression '!user.username.endsWith('root')' \
         failed: no roots",
    );
}
