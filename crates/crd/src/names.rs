//! The name forms of Kubernetes: DNS labels and subdomains, label keys and values, with the messages that
//! refuse them.
//!
//! In: a string. Out: the list of what is wrong with it, empty when nothing is. Never looks at where the name
//! stands.

use forebay_apimachinery::selector::dns1123_subdomain_faults;
pub(crate) use forebay_apimachinery::selector::{
    label_key_faults as label_key, label_value_faults as label_value,
};

const LABEL_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;

/// Refusals of a DNS label that must start with a letter (RFC 1035).
pub(crate) fn dns1035_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_BYTES_MAX);
    if !(is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase())) {
        wrong.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
             validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    wrong
}

/// Refusals of a DNS label that may start with a digit (RFC 1123).
pub(crate) fn dns1123_label(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL_BYTES_MAX);
    if !is_label(name) {
        wrong.push(match is_subdomain(name) {
            true => "must not contain dots".to_owned(),
            false => "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                      start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
                      validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        });
    }
    wrong
}

/// Refusals of a DNS subdomain (RFC 1123).
pub(crate) fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, SUBDOMAIN_BYTES_MAX);
    if !is_subdomain(name) {
        // What is said of its form comes last; of its length it speaks as of a label's.
        wrong.extend(dns1123_subdomain_faults(name).pop());
    }
    wrong
}

/// Refusals of a name that becomes one segment of a URL path; a prefix is completed later and may be `.` or
/// `..`.
pub(crate) fn path_segment(name: &str, is_prefix: bool) -> Vec<String> {
    if !is_prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%'].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// Replaces the end of a `generateName` prefix so that a trailing dash, which more text will follow, is not
/// refused.
pub(crate) fn mask_trailing_dash(name: &str) -> String {
    match name.len() > 1 && name.ends_with('-') {
        true => {
            let kept: String = name.chars().take(name.chars().count() - 2).collect();
            kept + "a"
        }
        false => name.to_owned(),
    }
}

fn too_long(name: &str, max: usize) -> Vec<String> {
    match name.len() > max {
        true => vec![format!("must be no more than {max} characters")],
        false => Vec::new(),
    }
}

pub(crate) fn is_label(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            inner(first) && inner(last) && bytes.iter().all(|&b| inner(b) || b == b'-')
        }
        _ => false,
    }
}

pub(crate) fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains_are_told_apart() {
        let long = "a".repeat(64);
        let rows: [(&str, usize, usize, usize); 10] = [
            // name, refusals as 1035 label, 1123 label, 1123 subdomain
            ("foo", 0, 0, 0),
            ("foo-1", 0, 0, 0),
            ("1foo", 1, 0, 0),
            ("foo.bar", 1, 1, 0),
            ("Foo", 1, 1, 1),
            ("-foo", 1, 1, 1),
            ("foo-", 1, 1, 1),
            ("", 1, 1, 1),
            ("a..b", 1, 1, 1),
            (&long, 1, 1, 0),
        ];
        for (name, label1035, label1123, subdomain) in rows {
            assert_eq!(dns1035_label(name).len(), label1035, "{name}");
            assert_eq!(dns1123_label(name).len(), label1123, "{name}");
            assert_eq!(dns1123_subdomain(name).len(), subdomain, "{name}");
        }
        assert_eq!(dns1123_label("foo.bar"), ["must not contain dots"]);
        assert_eq!(dns1035_label(&long), ["must be no more than 63 characters"]);
    }

    #[test]
    fn label_keys_and_values_follow_their_forms() {
        let rows =
            [("a", 0), ("example.com/a", 0), ("/a", 1), ("a/", 2), ("a/b/c", 1), ("Ex/a", 1), ("-a", 1)];
        for (key, wrong) in rows {
            assert_eq!(label_key(key).len(), wrong, "{key}");
        }
        for (value, wrong) in [("", 0), ("a_b.c", 0), ("a b", 1), ("-", 1)] {
            assert_eq!(label_value(value).len(), wrong, "{value}");
        }
    }

    #[test]
    fn path_segments_refuse_dots_slashes_and_percent() {
        assert_eq!(path_segment(".", false), ["may not be '.'"]);
        assert_eq!(path_segment("..", true), Vec::<String>::new());
        assert_eq!(path_segment("a/%", false), ["may not contain '/'", "may not contain '%'"]);
    }

    #[test]
    fn a_trailing_dash_is_masked() {
        assert_eq!(mask_trailing_dash("foo-"), "foa");
        assert_eq!(mask_trailing_dash("-"), "-");
        assert_eq!(mask_trailing_dash("foo"), "foo");
    }
}
