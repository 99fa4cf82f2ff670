//! Keys and tokens, with openssl's files and an injected time.

use std::time::Duration;

use expect_test::expect;
use forebay_fuzz::{Corpus, run};
use serde_json::json;

use super::openid::OpenId;
use super::*;
use crate::config::{AccountKeys, EXTENDED_EXPIRATION, PodTokens, SecretTokens};

const ISSUER: &str = "https://issuer";
/// A time.
const NOW: i64 = 1_800_000_000;

/// Made for these tests with openssl: RSA in both forms, keys on P-256 and P-521 in both, one on P-384, and a
/// certificate.
struct Files {
    rsa_pkcs1: String,
    rsa_pkcs8: String,
    rsa_public: String,
    rsa_certificate: String,
    p256_sec1: String,
    p256_pkcs8: String,
    p384_sec1: String,
    p521_sec1: String,
    p521_pkcs8: String,
    p521_public: String,
}

fn files() -> Files {
    let pem = |title: &str, text: &str| format!("-----BEGIN {title}-----\n{text}-----END {title}-----\n");
    let parameters = pem("EC PARAMETERS", "BggqhkjOPQMBBw==\n");
    Files {
        rsa_pkcs1: pem("RSA PRIVATE KEY", include_str!("testdata/rsa.pkcs1.b64")),
        rsa_pkcs8: pem("PRIVATE KEY", include_str!("testdata/rsa.pkcs8.b64")),
        rsa_public: pem("PUBLIC KEY", include_str!("testdata/rsa.public.b64")),
        rsa_certificate: pem("CERTIFICATE", include_str!("testdata/rsa.certificate.b64")),
        p256_sec1: parameters + &pem("EC PRIVATE KEY", include_str!("testdata/p256.sec1.b64")),
        p256_pkcs8: pem("PRIVATE KEY", include_str!("testdata/p256.pkcs8.b64")),
        p384_sec1: pem("EC PRIVATE KEY", include_str!("testdata/p384.sec1.b64")),
        p521_sec1: pem("EC PRIVATE KEY", include_str!("testdata/p521.sec1.b64")),
        p521_pkcs8: pem("PRIVATE KEY", include_str!("testdata/p521.pkcs8.b64")),
        p521_public: pem("PUBLIC KEY", include_str!("testdata/p521.public.b64")),
    }
}

fn tokens(signing: &str, verifying: &[&str]) -> ServiceAccountTokens {
    let verifying: Vec<String> = verifying.iter().map(|text| (*text).to_string()).collect();
    let config = ServiceAccounts {
        issuers: vec![ISSUER.into(), "https://old".into()],
        api_audiences: vec!["api".into()],
        keys: AccountKeys::Own(TokenKeys::from_pem(signing, &verifying).expect("keys")),
        max_expiration: None,
        pod_tokens: PodTokens::Extended,
        extended_expiration: EXTENDED_EXPIRATION,
        secret_tokens: SecretTokens::LookedUp,
        keys_uri: None,
    };
    ServiceAccountTokens::new(config, "1.2.3.4:6443".into())
}

fn grant() -> Grant {
    Grant {
        namespace: "ns".into(),
        account: Reference { name: "robot".into(), uid: "u1".into() },
        pod: None,
        secret: None,
        node: None,
        audiences: vec!["api".into(), "other".into()],
        expires_in_seconds: 600,
        warn_after_seconds: None,
        id: "the-id".into(),
    }
}

/// A token that is signed here.
fn issued(tokens: &ServiceAccountTokens, grant: &Grant) -> String {
    tokens.issue(grant, NOW).at_once().expect("at once").expect("a token")
}

/// What becomes of a token, asked for at `audience` at `now`.
fn verdict(tokens: &ServiceAccountTokens, token: &str, audience: &str, now: i64) -> String {
    match tokens.recognize(token, &[audience.to_string()], now as f64) {
        Ok(Some(good)) => format!("{} for {}", good.claims.sub, good.audiences.join(",")),
        Ok(None) => "unknown".into(),
        Err(why) => why.to_string(),
    }
}

#[test]
fn every_form_of_a_key_is_the_same_key() {
    let files = files();
    for (first, second) in [
        (&files.rsa_pkcs1, &files.rsa_pkcs8),
        (&files.rsa_pkcs1, &files.rsa_public),
        (&files.rsa_pkcs1, &files.rsa_certificate),
        (&files.p256_sec1, &files.p256_pkcs8),
        (&files.p521_sec1, &files.p521_pkcs8),
        (&files.p521_sec1, &files.p521_public),
    ] {
        assert!(public_halves(first) == public_halves(second), "{second}");
    }
    let all = [files.rsa_public.as_str(), &files.p256_sec1, &files.p384_sec1, &files.p521_sec1].concat();
    assert_eq!(public_halves(&all).expect("keys").len(), 4);
    let nowhere = files.p521_public.replacen("wv5Sxf08sF/I=", "wv5Sxf08sF/A=", 1);
    assert_ne!(nowhere, files.p521_public);
    for (text, want) in [
        (&String::new(), KeyError::None),
        (&"nothing\n".to_string(), KeyError::None),
        (&nowhere, KeyError::Unsupported),
        (&files.p521_pkcs8.replacen("BSuBBAAj", "BSuBBAAi", 1), KeyError::Unsupported),
        (&"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".to_string(), KeyError::Unsupported),
    ] {
        assert_eq!(public_halves(text).err(), Some(want), "{text}");
    }
    assert_eq!(SigningKey::from_pem(&files.rsa_public).err(), Some(KeyError::None));
}

#[test]
fn others_learn_issuer_and_keys() {
    let files = files();
    let keys = TokenKeys::from_pem(&files.rsa_pkcs1, &[files.rsa_public.clone(), files.p256_sec1.clone()])
        .expect("keys");
    let made = OpenId::new(ISSUER, None, "1.2.3.4:6443", &keys.verifying).expect("documents");
    let shown = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    expect![[r#"{"issuer":"https://issuer","jwks_uri":"https://1.2.3.4:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256","RS256"]}"#]].assert_eq(&shown(&made.configuration));
    expect![[r#"{"keys":[{"use":"sig","kty":"RSA","kid":"qrM_sTQc6K3SpJMl3XI-suCjU4xgMLXN2UrduHITiqk","alg":"RS256","n":"ufV78XogU4Cd0UfM4fbiovXXqZVc1zJs3UwMYwkHyY8BmQh-VLBlyki9_Zqeuu25YVwb7vWmJgWLc8lUKZvbp2NMDb1bIub19yMyou-1ZsrieTV4QwFyhPDoEHacAcHERzjw8B8_P2-vfgfH5PUMbUHz79tPfYsKehPCg_CSKYsM1Zs3OiDDSSnWukMEtbK1Xe7nkLPmV3U02Wfx_bbE9NLMjqsJTCMt_4K2c1JqZ2iIaiyC-e0_xyQ9BTXyCbqiIrRwBCUQ-rMLezz-T4-f3JTWSKZmodL88XzP37PNWREsQHRI4jeG6MzutC4kk50w4VaiUhvCiQFJnTIrySQHsw","e":"AQAB"},{"use":"sig","kty":"EC","kid":"RTBHKA7RxK1vnW3hQOq9zv3aCc7gLmIra-IRm3PXY5g","crv":"P-256","alg":"ES256","x":"huvd9cVCsaL2HeSlPIHYt1c-aG-Q7iox38lSHsx_Dh0","y":"AJbNcMlxUFP4jzWT3oCBZI9WMCYpKBtAkEBvNzep0N8"}]}"#]].assert_eq(&shown(&made.keys));
    let elsewhere = OpenId::new(ISSUER, Some("https://k/j"), "", &keys.verifying).expect("documents");
    assert!(shown(&elsewhere.configuration).contains(r#""jwks_uri":"https://k/j""#));
    for issuer in ["http://issuer", "kubernetes/serviceaccount", "https://issuer?a", "https://issuer#a"] {
        assert!(OpenId::new(issuer, None, "a:1", &keys.verifying).is_none(), "{issuer}");
    }
}

#[test]
fn a_key_on_p521_is_told_with_all_its_bytes_and_signs_anew_each_time() {
    let files = files();
    let keys = TokenKeys::from_pem(&files.p521_sec1, &[]).expect("keys");
    let made = OpenId::new(ISSUER, None, "1.2.3.4:6443", &keys.verifying).expect("documents");
    let shown = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(shown(&made.configuration).contains(r#""id_token_signing_alg_values_supported":["ES512"]"#));
    expect![[r#"{"keys":[{"use":"sig","kty":"EC","kid":"2zUG5SjWzhEsjMPcMbjZ7krTM5hXWotzzttSuH0hoMI","crv":"P-521","alg":"ES512","x":"ACFbHmyZETZpcQuRrgLDvS9C3xrNlBopJMRN0vFy_DkG1IzAKXA7LJRfE8Oz780_a0CnCj389F0rOvTDHVLuXIsW","y":"AKNgAL0Mt6cZgQqULx8RA2o6asFHkLZoIT5muWjve8jZlTCAsUzpu0RTC3RfD_EpYZa0LXrZ1ITOML-UsX9PLBfy"}]}"#]].assert_eq(&shown(&made.keys));
    let ours = tokens(&files.p521_sec1, &[]);
    let (one, other) = (issued(&ours, &grant()), issued(&ours, &grant()));
    let parts =
        |token: &str| token.rsplit_once('.').map(|(head, signed)| (head.to_owned(), signed.to_owned()));
    let ((head, signed), (other_head, other_signed)) =
        (parts(&one).expect("three parts"), parts(&other).expect("three parts"));
    assert!(head == other_head && signed != other_signed && signed.len() == 176);
    const BROKEN: &str = "go-jose/go-jose: error in cryptographic primitive";
    // As long as a signature, and none.
    for forged in ["A".repeat(176), "_".repeat(176), String::new()] {
        assert_eq!(verdict(&ours, &format!("{head}.{forged}"), "api", NOW), BROKEN);
    }
}

#[test]
fn a_token_says_what_kube_apiservers_say() {
    let files = files();
    let ours = tokens(&files.p256_sec1, &[]);
    let pod = Grant {
        pod: Some(Reference { name: "web".into(), uid: "p1".into() }),
        node: Some(Reference { name: "ghost".into(), uid: String::new() }),
        warn_after_seconds: Some(3607),
        ..grant()
    };
    expect![[r#"{"aud":["api","other"],"exp":1800000600,"iat":1800000000,"iss":"https://issuer","jti":"the-id","kubernetes.io":{"namespace":"ns","node":{"name":"ghost"},"pod":{"name":"web","uid":"p1"},"serviceaccount":{"name":"robot","uid":"u1"},"warnafter":1800003607},"nbf":1800000000,"sub":"system:serviceaccount:ns:robot"}"#]]
        .assert_eq(&ours.claims(&pod, NOW).to_string());
}

#[test]
fn a_token_is_good_at_its_audience_in_its_time() {
    let files = files();
    for key in [
        &files.rsa_pkcs1,
        &files.rsa_pkcs8,
        &files.p256_sec1,
        &files.p256_pkcs8,
        &files.p384_sec1,
        &files.p521_sec1,
        &files.p521_pkcs8,
    ] {
        let ours = tokens(key, &[]);
        let token = issued(&ours, &grant());
        for (audience, at, want) in [
            ("api", 0, "system:serviceaccount:ns:robot for api"),
            ("other", 0, "system:serviceaccount:ns:robot for other"),
            ("api", 660, "system:serviceaccount:ns:robot for api"),
            ("api", 661, "service account token has expired"),
            ("api", -60, "system:serviceaccount:ns:robot for api"),
            ("api", -61, "service account token is not valid yet"),
            ("none", 0, r#"token audiences ["api" "other"] is invalid for the target audiences ["none"]"#),
        ] {
            assert_eq!(verdict(&ours, &token, audience, NOW + at), want, "{audience} {at}");
        }
    }
}

#[test]
fn only_the_keys_that_were_given_are_believed() {
    let files = files();
    let ours = tokens(&files.p256_sec1, &[&files.rsa_public, &files.p256_sec1]);
    let by_rsa = issued(&tokens(&files.rsa_pkcs1, &[]), &grant());
    let other = Grant { id: "another".into(), ..grant() };
    let by_p384 = issued(&tokens(&files.p384_sec1, &[]), &other);
    assert_eq!(verdict(&ours, &by_rsa, "api", NOW), "system:serviceaccount:ns:robot for api");
    assert_eq!(verdict(&ours, &by_p384, "api", NOW), "invalid signature, no keys found");
    const BROKEN: &str = "go-jose/go-jose: error in cryptographic primitive";
    let (head, signature) = by_rsa.rsplit_once('.').expect("three parts");
    let (header, claims) = head.split_once('.').expect("three parts");
    let mine = by_p384.split('.').nth(1).expect("three parts");
    for (token, want) in [
        (format!("{head}.AAAA"), BROKEN),
        (format!("{header}.{mine}.{signature}"), BROKEN),
        (format!("{head}."), BROKEN),
        (head.to_string(), "unknown"),
        (format!("{claims}.{signature}"), "unknown"),
        (String::new(), "unknown"),
        ("a.b.c".to_string(), "unknown"),
        (format!("{by_rsa}{}", "A".repeat(20_000)), "unknown"),
    ] {
        // Shown before or not, it makes no difference.
        for _ in 0..2 {
            assert_eq!(verdict(&ours, &token, "api", NOW), want, "{token}");
        }
    }
}

#[test]
fn a_key_that_is_taken_away_takes_its_tokens_along() {
    let files = files();
    let ours = tokens(&files.p256_sec1, &[&files.rsa_public, &files.p256_sec1]);
    let (by_rsa, by_p256) = (issued(&tokens(&files.rsa_pkcs1, &[]), &grant()), issued(&ours, &grant()));
    const GOOD: &str = "system:serviceaccount:ns:robot for api";
    const GONE: &str = "invalid signature, no keys found";
    let check = |want: [&str; 2]| {
        // The second time it has been seen.
        for _ in 0..2 {
            let verdicts = [&by_rsa, &by_p256].map(|token| verdict(&ours, token, "api", NOW));
            assert_eq!(verdicts, want);
        }
    };
    let published = || {
        let keys = ours.openid().expect("documents").keys;
        let keys: serde_json::Value = serde_json::from_slice(&keys).expect("JSON");
        keys["keys"].as_array().map_or(0, Vec::len)
    };
    check([GOOD, GOOD]);
    assert_eq!(published(), 2);
    ours.replace_keys(
        TokenKeys::from_pem(&files.p384_sec1, std::slice::from_ref(&files.p256_sec1)).expect("keys"),
    );
    check([GONE, GOOD]);
    assert_eq!(published(), 1);
    // It signs with the new key, which is not among those that it was told to believe.
    let by_p384 = issued(&ours, &grant());
    assert_eq!(verdict(&ours, &by_p384, "api", NOW), GONE);
    ours.replace_keys(TokenKeys::from_pem(&files.p384_sec1, &[]).expect("keys"));
    check([GONE, GONE]);
    assert_eq!(verdict(&ours, &by_p384, "api", NOW), GOOD);
}

#[test]
fn what_a_header_claims_decides_nothing() {
    let files = files();
    let ours = tokens(&files.rsa_pkcs1, &[]);
    let AccountKeys::Own(TokenKeys { signing: key, .. }) = &ours.config.keys else { panic!("its own") };
    let signed = |header: serde_json::Value, claims: serde_json::Value| {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = format!("{}.{}", part(header), part(claims));
        let signature = key.sign(head.as_bytes()).expect("signed");
        format!("{head}.{}", URL_SAFE_NO_PAD.encode(signature))
    };
    let claims = json!({ "iss": ISSUER, "aud": "api", "sub": "s" });
    const BROKEN: &str = "go-jose/go-jose: error in cryptographic primitive";
    for (header, want) in [
        (json!({ "alg": "RS256" }), "s for api"),
        (json!({ "alg": "RS256", "kid": key.public.id }), "s for api"),
        (json!({ "alg": "RS256", "kid": "else" }), "invalid signature, no keys found"),
        (json!({ "alg": "none" }), BROKEN),
        (json!({ "alg": "HS256" }), BROKEN),
        (json!({ "alg": "ES256" }), BROKEN),
        (json!({ "alg": "RS256", "crit": ["x"] }), BROKEN),
        (json!({}), "unknown"),
    ] {
        assert_eq!(verdict(&ours, &signed(header.clone(), claims.clone()), "api", NOW), want, "{header}");
    }
    let header = json!({ "alg": "RS256" });
    for (claims, want) in [
        (json!({ "iss": "https://old", "aud": ["api"], "sub": "s" }), "s for api"),
        (json!({ "iss": ISSUER, "sub": "s" }), "s for api"),
        (json!({ "iss": LEGACY_ISSUER, "sub": "s", "exp": 1 }), "s for api"),
        (json!({ "iss": "https://else", "aud": ["api"], "sub": "s" }), "unknown"),
        (json!({ "iss": ISSUER, "aud": 5 }), "unknown"),
        (json!({ "iss": ISSUER, "iat": NOW + 61 }), "service account token is issued in the future"),
        (json!([]), "unknown"),
    ] {
        assert_eq!(verdict(&ours, &signed(header.clone(), claims.clone()), "api", NOW), want, "{claims}");
    }
}

#[test]
fn leeway_is_a_minute() {
    assert_eq!(LEEWAY, Duration::from_secs(60));
}

#[test]
fn fuzz_tokens() {
    let inputs: &[&[u8]] = &[
        b"eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.eyJpc3MiOiJhIiwic3ViIjoiYiIsImF1ZCI6WyJjIl0sImV4cCI6MX0.c2ln",
        b"a.b.c",
    ];
    run("tokens", &Corpus { inputs, words: &["e30", ".", "bnVsbA", "="], ..Corpus::default() }, |input| {
        let input = String::from_utf8_lossy(input).into_owned();
        let token = Token::parse(&input);
        // Nothing that is made up was signed by a key that does not exist.
        token.map(|token| assert_eq!(token.verify(&[]), Err(Unverified::UnknownKey), "no key signed it"))
    });
}
