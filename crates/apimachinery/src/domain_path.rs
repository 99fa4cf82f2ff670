//! Keys with a domain before them, such as `example.org/scope`.
//!
//! In: a text, the path of the field that has it. Out: what is wrong with it, as Kubernetes' field errors say
//! it. Never: whether the domain is somebody's.
//!
//! Source: apimachinery v0.36.3 `pkg/util/validation/validation.go` (`IsDomainPrefixedPath`).

use crate::json::go_quote;
use crate::selector::dns1123_subdomain_faults;

/// What is wrong with `key` as a path behind a domain.
pub fn domain_prefixed_path_faults(path: &str, key: &str) -> Vec<String> {
    let invalid = |value: &str, why: &str| format!("{path}: Invalid value: {}: {why}", go_quote(value));
    if key.is_empty() {
        return vec![format!("{path}: Required value")];
    }
    let (host, rest) = match key.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => return vec![invalid(key, "must be a domain-prefixed path (such as \"acme.io/foo\")")],
    };
    // Upstream's older words, which say characters and mean bytes.
    let said = |why: &String| invalid(host, &why.replace("253 bytes", "253 characters"));
    let mut faults: Vec<String> = dns1123_subdomain_faults(host).iter().map(said).collect();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !rest.bytes().all(is_plain) {
        let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
        faults.push(invalid(rest, why));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_a_domain_and_a_path() {
        for good in ["a.io/b", "a/b/c", "a.io/B~%!"] {
            assert!(domain_prefixed_path_faults("k", good).is_empty(), "{good}");
        }
        assert_eq!(domain_prefixed_path_faults("k", ""), ["k: Required value"]);
        for none in ["a", "/a", "a/"] {
            let said = format!(
                "k: Invalid value: \"{none}\": must be a domain-prefixed path (such as \"acme.io/foo\")"
            );
            assert_eq!(domain_prefixed_path_faults("k", none), [said]);
        }
        assert_eq!(domain_prefixed_path_faults("k", "A_/b c").len(), 2);
        let long = domain_prefixed_path_faults("k", &format!("{}/b", "a".repeat(254)));
        assert!(long[0].ends_with("must be no more than 253 characters"), "{long:?}");
    }
}
