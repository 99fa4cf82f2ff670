//! Configurations as upstream's own tests have them, and its words for what is wrong with others.

use super::*;

const HEAD: &str = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n";
const KEY16: &str = "c2VjcmV0IGlzIHNlY3VyZQ==";
const KEY32: &str = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY=";

/// What is said of a configuration whose `resources` is this.
fn said(resources: &str, reload: Reload) -> String {
    let file = format!("{HEAD}resources:\n{resources}");
    match decode(file.as_bytes()).and_then(|configuration| validate(&configuration, reload)) {
        Ok(()) => "fine".to_owned(),
        Err(why) => why,
    }
}

fn rule(resources: &str, providers: &str) -> String {
    format!("- resources: {resources}\n  providers: {providers}\n")
}

fn keys(provider: &str, name: &str, secret: &str) -> String {
    format!("[{{{provider}: {{keys: [{{name: '{name}', secret: '{secret}'}}]}}}}]")
}

#[test]
fn every_provider_is_read_and_the_defaults_are_upstreams() {
    let file = format!(
        "{HEAD}resources:\n- resources: [secrets, pandas.awesome.bears.example]\n  providers:\n  - identity: {{}}\n  \
         - aesgcm: {{keys: [{{name: key1, secret: {KEY16}}}]}}\n  - kms: {{apiVersion: v2, name: p, endpoint: \
         'unix:///tmp/p.sock', timeout: 10s}}\n  - kms: {{name: q, endpoint: 'unix:///tmp/q.sock', cachesize: 10}}\n  \
         - secretbox: {{keys: [{{name: key1, secret: {KEY32}}}]}}\n"
    );
    let configuration = decode(file.as_bytes()).expect("read");
    assert_eq!(validate(&configuration, Reload::Never), Ok(()));
    let [rule] = configuration.rules.as_slice() else { panic!("{configuration:?}") };
    assert_eq!(rule.resources, ["secrets", "pandas.awesome.bears.example"]);
    let [identity, gcm, second, first, secretbox] = rule.providers.as_slice() else { panic!("{rule:?}") };
    assert!(identity.identity && secretbox.secretbox.is_some());
    assert_eq!(gcm.aesgcm.as_ref().map(|keys| keys[0].name.as_str()), Some("key1"));
    let [second, first] = [second, first].map(|provider| provider.kms.clone().expect("a plugin"));
    assert_eq!(
        (second.api_version.as_str(), second.timeout().as_secs(), second.cache_size),
        ("v2", 10, None)
    );
    assert_eq!(
        (first.api_version.as_str(), first.timeout().as_secs(), first.cache_size),
        ("v1", 3, Some(10))
    );
    // A key is not for logs.
    let shown = format!("{configuration:?}");
    assert!(!shown.contains(KEY16) && !shown.contains(KEY32), "{shown}");
}

#[test]
fn the_name_that_documentation_once_had_is_read_too() {
    let file =
        "kind: EncryptionConfig\napiVersion: v1\nresources: [{resources: [a], providers: [{identity: {}}]}]";
    assert_eq!(decode(file.as_bytes()).expect("read").rules.len(), 1);
}

#[test]
fn what_is_no_configuration_is_said_to_be_none() {
    for (file, expected) in [
        ("[]", "it is no object"),
        ("resources: []", "Object 'Kind' is missing"),
        (
            "kind: EncryptionConfigurations\napiVersion: apiserver.config.k8s.io/v1",
            "no kind \"EncryptionConfigurations\" is registered for version \"apiserver.config.k8s.io/v1\"",
        ),
    ] {
        assert_eq!(decode(file.as_bytes()), Err(expected.to_owned()), "{file}");
    }
    let typo = rule("[secrets]", "[{kms: {name: p, pandas: are the best}}]");
    let why = said(&typo, Reload::Never);
    assert_eq!(why, "strict decoding error: unknown field \"resources[0].providers[0].kms.pandas\"");
    let misplaced = rule("[secrets]", "[{aesgcm: {keys: secret}}]");
    let why = said(&misplaced, Reload::Never);
    assert_eq!(
        why,
        "json: cannot unmarshal string into field resources[0].providers[0].aesgcm.keys of type list"
    );
}

#[test]
fn what_is_wrong_is_said_in_upstreams_words() {
    let fine = keys("aescbc", "foo", KEY32);
    let kms = |more: &str| format!("[{{kms: {{apiVersion: v2, endpoint: 'unix:///tmp/p.sock', {more}}}}}]");
    let name = |name: &str, why: &str| {
        (
            rule(&format!("['{name}']"), &fine),
            format!("resources[0].resources[0]: Invalid value: \"{name}\": {why}"),
        )
    };
    let at = "resources[0].providers[0]";
    let cases: Vec<(String, String)> = vec![
        (rule("[secrets]", &fine), "fine".into()),
        (
            rule("[]", &fine),
            "resources[0].resources: Required value: at least one resources[0].resources is required".into(),
        ),
        (
            rule("[secrets]", "[]"),
            "resources[0].providers: Required value: at least one resources[0].providers is required".into(),
        ),
        (
            rule("[secrets]", "[{}]"),
            format!(
                "{at}: Invalid value: {{}}: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, \
                 Secretbox, Identity"
            ),
        ),
        (
            rule("[secrets]", "[{identity: {}, aescbc: {keys: [{name: a, secret: YWJjZGVmZ2hpamtsbW5vcA==}]}}]"),
            format!(
                "{at}: Invalid value: \"REDACTED\": more than one provider specified in a single element, should split into \
                 different list elements"
            ),
        ),
        (
            rule("[secrets]", &keys("aesgcm", "", KEY16)),
            format!("{at}.aesgcm.keys[0].name: Required value: name is a mandatory field for a key"),
        ),
        (
            rule("[secrets]", &keys("aesgcm", "foo", "")),
            format!("{at}.aesgcm.keys[0].secret: Required value: secret is a mandatory field for a key"),
        ),
        (
            rule("[secrets]", &keys("aesgcm", "foo", "YSBzZWNyZXQ=")),
            format!(
                "{at}.aesgcm.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 8, \
                 expected one of [16 24 32]"
            ),
        ),
        (
            rule("[secrets]", &keys("secretbox", "foo", KEY16)),
            format!(
                "{at}.secretbox.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, got 16, \
                 expected one of [32]"
            ),
        ),
        (
            rule("[secrets]", &keys("aesgcm", "foo", "!!!")),
            format!("{at}.aesgcm.keys[0].secret: Invalid value: \"REDACTED\": secrets must be base64 encoded"),
        ),
        (
            rule("[secrets]", "[{aescbc: {keys: []}}]"),
            format!("{at}.aescbc.keys: Required value: at least one keys is required"),
        ),
        (rule("[secrets]", &kms("name: p")), "fine".into()),
        (
            rule("[secrets]", &kms("timeout: 1s")),
            format!("{at}.kms.name: Required value: name is a mandatory field for a provider"),
        ),
        (
            rule("[secrets]", &kms("name: 'a:b'")),
            format!(
                "{at}.kms.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':'"
            ),
        ),
        (
            rule("[secrets]", &kms("name: p, cachesize: 7")),
            format!("{at}.kms.cachesize: Invalid value: 7: cachesize is not supported in v2"),
        ),
        (
            rule("[secrets]", &kms("name: p, timeout: 0s")),
            format!("{at}.kms.timeout: Invalid value: \"0s\": timeout should be a positive value"),
        ),
        (
            rule("[secrets]", "[{kms: {apiVersion: v3, name: p, endpoint: 'unix:///tmp/p.sock'}}]"),
            format!(
                "{at}.kms.apiVersion: Invalid value: \"v3\": unsupported apiVersion apiVersion for KMS provider, only v1 \
                 and v2 are supported"
            ),
        ),
        (
            rule("[secrets]", "[{kms: {apiVersion: v2, name: p}}]"),
            format!("{at}.kms.endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms"),
        ),
        (
            rule("[secrets]", "[{kms: {apiVersion: v2, name: p, endpoint: 'http://localhost'}}]"),
            format!(
                "{at}.kms.endpoint: Invalid value: \"http://localhost\": unsupported scheme \"http\" for KMS provider, only \
                 unix is supported"
            ),
        ),
        name("Secrets", "resource name should not contain capital letters"),
        name("*", "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"),
        name("apiserveripinfo", "resources which do not have REST API/s cannot be encrypted"),
        name(
            "events.events.k8s.io",
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config \
             file",
        ),
        name("*.extensions", "'extensions' group has been removed and cannot be used for encryption"),
        name("secrets.*", "encrypting the same resource across groups is not supported"),
        (
            rule("[secrets, secrets]", &fine),
            "resources[0].resources: Invalid value: [\"secrets\",\"secrets\"]: the same resource cannot be specified \
             multiple times"
                .into(),
        ),
        (
            rule("[secrets, '*.']", &fine),
            "resources[0].resources: Invalid value: [\"secrets\",\"*.\"]: using overlapping resources such as 'secrets' and \
             '*.' in the same resource list is not allowed as they will be masked"
                .into(),
        ),
        (rule("[secrets, '*.apps']", &fine), "fine".into()),
        (
            rule("[]", "[]"),
            "[resources[0].resources: Required value: at least one resources[0].resources is required, \
             resources[0].providers: Required value: at least one resources[0].providers is required]"
                .into(),
        ),
        (String::new(), "resources: Required value: at least one resources is required".into()),
    ];
    for (resources, expected) in cases {
        assert_eq!(said(&resources, Reload::Never), expected, "{resources}");
    }
}

#[test]
fn names_of_plugins_are_unique_and_those_of_v1_too_where_the_file_is_followed() {
    let kms = |version: &str| {
        format!("{{kms: {{apiVersion: {version}, name: p, endpoint: 'unix:///tmp/p.sock'}}}}")
    };
    let twice = |version: &str| rule("[secrets]", &format!("[{}, {}]", kms(version), kms(version)));
    let why = "resources[0].providers[1].kms.name: Invalid value: \"p\": duplicate KMS provider name p, names must be \
               unique";
    assert_eq!(said(&twice("v2"), Reload::Never), why);
    assert_eq!(said(&twice("v1"), Reload::Never), "fine");
    assert_eq!(said(&twice("v1"), Reload::Automatic), why);
}
