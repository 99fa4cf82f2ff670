//! Tokens of a provider that signs with real keys, good and bad.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p521::ecdsa::signature::Signer as _;
use p521::ecdsa::{Signature, SigningKey, VerifyingKey};
use ring::rand::{SecureRandom as _, SystemRandom};
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
    p521: SigningKey,
}

impl Keys {
    fn new() -> Keys {
        let text: String = include_str!("testdata/rsa.pkcs8.b64").split_whitespace().collect();
        let random = SystemRandom::new();
        let pair = |algorithm| {
            let made = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
            EcdsaKeyPair::from_pkcs8(algorithm, made.as_ref(), &random).expect("a key")
        };
        // Below the order of the curve, which has 521 bits.
        let mut secret = [0; 66];
        random.fill(&mut secret[1..]).expect("random");
        Keys {
            p521: SigningKey::from_slice(&secret).expect("a key"),
            rsa: rsa::KeyPair::from_pkcs8(&STANDARD.decode(text).expect("base64")).expect("a key"),
            p256: pair(&signature::ECDSA_P256_SHA256_FIXED_SIGNING),
            p384: pair(&signature::ECDSA_P384_SHA384_FIXED_SIGNING),
        }
    }

    fn set(&self) -> String {
        let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let point = |point: &[u8], curve: &str| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({ "kty": "EC", "crv": curve, "kid": curve, "x": number(x), "y": number(y) })
        };
        let (p256, p384) = (self.p256.public_key().as_ref(), self.p384.public_key().as_ref());
        let p521 = VerifyingKey::from(&self.p521).to_encoded_point(false);
        let public = rsa::PublicKeyComponents::<Vec<u8>>::from(self.rsa.public());
        let rsa = json!({ "kty": "RSA", "kid": "rsa", "n": number(&public.n), "e": number(&public.e) });
        let p521 = point(p521.as_bytes(), "P-521");
        json!({ "keys": [rsa, point(p256, "P-256"), point(p384, "P-384"), p521] }).to_string()
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
            "ES512" => {
                let signature: Signature = self.p521.sign(signed.as_bytes());
                signature.to_bytes().to_vec()
            }
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
    let said = shown(issuer.judge(&token, keys, NOW * 1000));
    said.split_once(" until ").map_or(said.clone(), |(user, _)| user.to_owned())
}

fn shown(judged: Judged) -> String {
    match judged {
        Judged::Known(user, until) => {
            let extra: Vec<String> =
                user.extra.iter().map(|(key, values)| format!("{key}={}", values.join("+"))).collect();
            let (groups, extra) = (user.groups.join(","), extra.join(","));
            format!("{} {} [{groups}] [{extra}] until {until}", user.name, user.uid)
        }
        Judged::Unsigned => "unsigned".to_owned(),
        Judged::Elsewhere(of) => format!("ask {} for {}", of.endpoint, of.claim),
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
        "ES" => format!("P-{}", if algorithm == "ES512" { "521" } else { &algorithm[2..] }),
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
        for confused in ["rsa", "P-256", "P-384", "P-521"].into_iter().filter(|id| *id != ids(algorithm)) {
            let token = keys.token(algorithm, confused, &claims(json!({})));
            assert_eq!(verdict(&issuer, &token, &set), "unsigned", "{algorithm} as {confused}");
        }
    }
    let theirs = other.token("ES256", "P-256", &claims(json!({})));
    assert_eq!(verdict(&issuer, &theirs, &set), "unsigned");
}

#[test]
fn what_is_not_signed_or_signed_with_a_secret_is_refused_before_any_key_is_tried() {
    let keys = Keys::new();
    let set = KeySet::of(keys.set().as_bytes()).expect("a set");
    let issuer = issuer(json!({}));
    for algorithm in ["none", "None", "", "HS256", "ES521", "es512", "EdDSA"] {
        let token = keys.token(algorithm, "rsa", &claims(json!({})));
        assert_eq!(
            verdict(&issuer, &token, &set),
            format!(
                "oidc: verify token: oidc: id token signed with unsupported algorithm, expected [\"ES256\" \"ES384\" \"ES512\" \
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

/// A token of `algorithm` over which there is this signature.
fn forged(algorithm: &str, id: &str, sign: impl FnOnce(&str) -> Vec<u8>) -> String {
    let signed = signed(json!({ "alg": algorithm, "kid": id }), &claims(json!({})));
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(sign(&signed)))
}

#[test]
fn es512_is_for_a_key_on_p521_and_a_signature_as_long_as_that_has_it() {
    let keys = Keys::new();
    let set = KeySet::of(keys.set().as_bytes()).expect("a set");
    let issuer = issuer(json!({}));
    let on_p256 =
        |text: &str| keys.p256.sign(&SystemRandom::new(), text.as_bytes()).expect("signed").as_ref().to_vec();
    let on_p521 = |text: &str| -> Vec<u8> {
        let signature: Signature = keys.p521.sign(text.as_bytes());
        signature.to_bytes().to_vec()
    };
    assert_eq!(verdict(&issuer, &forged("ES512", "P-521", on_p521), &set), "i:ann  [] []");
    for id in ["P-256", "P-521", ""] {
        assert_eq!(verdict(&issuer, &forged("ES512", id, on_p256), &set), "unsigned", "P-256 as {id:?}");
    }
    for algorithm in ["ES256", "ES384", "RS512", "PS512"] {
        for id in ["P-521", ""] {
            let token = forged(algorithm, id, on_p521);
            assert_eq!(verdict(&issuer, &token, &set), "unsigned", "{algorithm} {id:?}");
        }
    }
    for length in [0, 64, 96, 128, 131, 133, 264] {
        let cut = |text: &str| on_p521(text).into_iter().cycle().take(length).collect::<Vec<_>>();
        assert_eq!(verdict(&issuer, &forged("ES512", "P-521", cut), &set), "unsigned", "{length} bytes");
    }
}

#[test]
fn a_token_that_names_no_key_is_tried_with_few_that_are_slow_and_one_that_does_with_its_own() {
    let all: Vec<Keys> = (0..5).map(|_| Keys::new()).collect();
    let mut set = json!({ "keys": [] });
    for (at, keys) in all.iter().enumerate() {
        let own: Value = serde_json::from_str(&keys.set()).expect("JSON");
        for mut key in own["keys"].as_array().expect("keys").clone() {
            key["kid"] = format!("{}-{at}", key["kid"].as_str().expect("an id")).into();
            set["keys"].as_array_mut().expect("a list").push(key);
        }
    }
    let set = KeySet::of(set.to_string().as_bytes()).expect("a set");
    let issuer = issuer(json!({}));
    for (at, keys) in all.iter().enumerate() {
        let token = |algorithm: &str, id: &str| keys.token(algorithm, id, &claims(json!({})));
        let unnamed = if at < 4 { "i:ann  [] []" } else { "unsigned" };
        for (algorithm, curve) in [("ES384", "P-384"), ("ES512", "P-521")] {
            let named = token(algorithm, &format!("{curve}-{at}"));
            assert_eq!(verdict(&issuer, &named, &set), "i:ann  [] []", "{at}");
            assert_eq!(verdict(&issuer, &token(algorithm, ""), &set), unnamed, "{at}");
        }
        // Others cost little, and are tried with each.
        assert_eq!(verdict(&issuer, &token("ES256", ""), &set), "i:ann  [] []", "{at}");
    }
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

/// An issuer whose tokens have their groups in the claim `roles`.
fn with_roles() -> Issuer {
    issuer(json!({ "claimMappings": {
        "username": { "claim": "sub", "prefix": "i:" }, "groups": { "claim": "roles", "prefix": "r:" },
    }}))
}

/// What becomes of a token with these claims, whose source says that.
fn told(of: Value, source: &str) -> (String, String) {
    let keys = Keys::new();
    let set = KeySet::of(keys.set().as_bytes()).expect("a set");
    let (issuer, token) = (with_roles(), keys.token("ES256", "P-256", &claims(of)));
    match issuer.judge(&Token::parse(&token).expect("a token"), &set, NOW * 1000) {
        Judged::Elsewhere(of) => {
            let said = claims(serde_json::from_str(source).expect("claims"));
            let said = keys.token("ES384", "P-384", &said);
            let said = Token::of_source(&said).expect("a token");
            let judged = issuer.judge_told(&of, &said, &set, NOW * 1000);
            (format!("{} {}", of.endpoint, of.access_token), shown(judged))
        }
        judged => (String::new(), shown(judged)),
    }
}

#[test]
fn groups_that_are_kept_elsewhere_are_those_that_the_source_says_and_nothing_else_of_it_counts() {
    let from = |source: Value| json!({ "_claim_names": { "roles": "s" }, "_claim_sources": { "s": source } });
    let asked = |of: Value, source: &str| told(of, source);
    let of = from(json!({ "endpoint": "https://e", "access_token": "t" }));
    assert_eq!(
        asked(of.clone(), r#"{"roles":["x","y"],"sub":"root","iss":"https://j","exp":1800000300}"#),
        ("https://e t".to_owned(), "i:ann  [r:x,r:y] [] until 1800000300".to_owned())
    );
    let refused = |source: &str| asked(of.clone(), source).1;
    let verify = "oidc: could not expand distributed claims: verify distributed claim token: oidc:";
    assert_eq!(refused(r#"{"aud":"x"}"#), format!("{verify} expected audience \"kube\" got [\"x\"]"));
    assert_eq!(
        refused(r#"{"exp":1}"#),
        format!("{verify} token is expired (Token Expiry: 1970-01-01 00:00:01 +0000 UTC)")
    );
    assert_eq!(
        refused("{}"),
        "oidc: could not expand distributed claims: jwt returned by distributed claim endpoint \"https://e\" did not \
         contain claim: roles"
    );
    assert_eq!(
        refused(r#"{"roles":[7]}"#),
        "oidc: parse groups claim \"roles\": json: cannot unmarshal array into Go value of type string"
    );
    // Who says it themselves, has nobody to ask, or asks for something else is not sent anywhere.
    let mut own = of.clone();
    own["roles"] = json!("z");
    for (claims, groups) in [
        (own, "r:z"),
        (from(json!({})), ""),
        (from(json!({ "JWT": "e30.e30.e30" })), ""),
        (from(Value::Null), ""),
        (
            json!({ "_claim_names": { "mail": "s" }, "_claim_sources": { "s": { "endpoint": "https://e" } } }),
            "",
        ),
        (json!({ "_claim_names": null }), ""),
        (json!({ "_claim_sources": { "s": { "endpoint": "https://e" } } }), ""),
    ] {
        let known = format!("i:ann  [{groups}] [] until {}", NOW + 600);
        // Names without sources are no state to be in.
        let want = match claims.get("_claim_names") {
            Some(Value::Null) => {
                "oidc: could not expand distributed claims: oidc: no claim sources".to_owned()
            }
            _ => known,
        };
        assert_eq!(asked(claims.clone(), "{}"), (String::new(), want), "{claims}");
    }
    for (claims, said) in [
        (json!({ "_claim_names": "s", "_claim_sources": {} }), "error parsing distributed claim names"),
        (from(json!("https://e")), "could not parse claim sources"),
        (from(json!({ "endpoint": 7 })), "could not parse claim sources"),
    ] {
        let (_, why) = asked(claims.clone(), "{}");
        let begins = format!("oidc: could not expand distributed claims: oidc: {said}: ");
        assert!(why.starts_with(&begins), "{claims}: {why}");
    }
}

#[test]
fn of_two_sources_the_one_that_keeps_the_groups_is_asked() {
    let of = json!({
        "_claim_names": { "mail": "m", "roles": "g" },
        "_claim_sources": { "m": { "endpoint": "https://m" }, "g": { "endpoint": "https://g" } },
    });
    let (asked, said) = told(of, r#"{"roles":"x","mail":"root@example.com"}"#);
    assert_eq!((asked.as_str(), said), ("https://g ", format!("i:ann  [r:x] [] until {}", NOW + 600)));
}

#[test]
fn what_a_source_says_is_signed_by_the_keys_that_it_is_judged_by() {
    let (keys, others) = (Keys::new(), Keys::new());
    let set = |keys: &Keys| KeySet::of(keys.set().as_bytes()).expect("a set");
    let of =
        json!({ "_claim_names": { "roles": "s" }, "_claim_sources": { "s": { "endpoint": "https://e" } } });
    let (issuer, token) = (with_roles(), keys.token("ES256", "P-256", &claims(of)));
    let judged = issuer.judge(&Token::parse(&token).expect("a token"), &set(&keys), NOW * 1000);
    let Judged::Elsewhere(of) = judged else { panic!("{judged:?}") };
    assert!(!format!("{of:?}").contains("access"), "nothing secret is shown");
    let said = keys.token("ES512", "P-521", &claims(json!({ "roles": "x" })));
    let said = Token::of_source(&said).expect("a token");
    assert_eq!(issuer.judge_told(&of, &said, &set(&others), NOW * 1000), Judged::Unsigned);
    assert!(matches!(issuer.judge_told(&of, &said, &set(&keys), NOW * 1000), Judged::Known(..)));
    let unsigned = keys.token("none", "rsa", &claims(json!({ "roles": "x" })));
    let unsigned = Token::of_source(&unsigned).expect("a token");
    let refused = shown(issuer.judge_told(&of, &unsigned, &set(&keys), NOW * 1000));
    assert!(
        refused.contains("verify distributed claim token: oidc: id token signed with unsupported algorithm")
    );
    let long = format!("e30.{}.x", "e".repeat(128 << 10));
    assert!(Token::of_source(&long).is_none(), "longer than a source may be");
}
