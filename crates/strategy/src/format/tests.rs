//! Texts of each form, and what is said of those that have another.
//!
//! In: texts. Out: faults. Never: an object.

use super::*;

#[test]
fn labels_and_subdomains() {
    let rows = [
        ("a", true, true),
        ("0a", true, true),
        ("a-b", true, true),
        ("a.b", false, true),
        ("", false, false),
        ("-", false, false),
        ("a-", false, false),
        ("A", false, false),
        ("a..b", false, false),
        ("é", false, false),
    ];
    for (text, label, subdomain) in rows {
        assert_eq!(dns1123_label(text).is_empty(), label, "{text:?}");
        assert_eq!(dns1123_subdomain(text).is_empty(), subdomain, "{text:?}");
    }
    assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    assert_eq!(dns1123_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
    assert_eq!(dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 characters"]);
}

#[test]
fn search_paths_may_begin_with_an_underscore() {
    for good in ["a", "_a.b_c", "svc.cluster.local"] {
        assert!(search_path(good).is_empty(), "{good}");
    }
    for bad in ["", "-", "_", "a_", "a..b", "A"] {
        assert_eq!(search_path(bad).len(), 1, "{bad}");
    }
}

#[test]
fn path_segments_hold_no_slash_and_no_percent() {
    assert_eq!(path_segment("a%/", false), ["may not contain '/'", "may not contain '%'"]);
    assert_eq!(path_segment("..", false), ["may not be '..'"]);
    assert!(path_segment("..", true).is_empty());
    assert!(path_segment("system:node", false).is_empty());
}

#[test]
fn port_names_say_everything_that_is_wrong() {
    assert!(port_name("http-2").is_empty());
    assert_eq!(
        port_name("-1--"),
        [
            "must contain at least one letter (a-z)",
            "must not contain consecutive hyphens",
            "must not begin or end with a hyphen",
        ]
    );
    assert_eq!(port_name("aaaaaaaaaaaaaaaa"), ["must be no more than 15 characters"]);
}

#[test]
fn keys_and_environment_names() {
    assert!(config_key("a.b_C-1").is_empty());
    assert_eq!(config_key(".."), ["must not be '..'"]);
    assert_eq!(config_key("..a"), ["must not start with '..'"]);
    assert_eq!(config_key("a/b").len(), 1);
    assert!(env_name("my var").is_empty());
    assert_eq!(env_name("a=b").len(), 1);
    assert_eq!(env_name(""), ["environment variable name must be non-empty"]);
}

#[test]
fn addresses_with_leading_zeros_are_read() {
    assert_eq!(sloppy_ip("010.0.0.1"), Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
    assert!(sloppy_ip("::1").is_some());
    for bad in ["", "1.2.3", "1.2.3.4.5", "256.0.0.1", "fe80::1%eth0", "a", "1.2.3.+4"] {
        assert_eq!(sloppy_ip(bad), None, "{bad}");
    }
}
