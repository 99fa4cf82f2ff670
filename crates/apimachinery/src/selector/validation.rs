//! What a label key and a label value may be.
//!
//! In: text. Out: what is wrong with it, in kube-apiserver's words; nothing when it is fine. Never: names the
//! field.
//!
//! Source: apimachinery v0.36.3 `api/validate/content`.

const NAME_REGEX: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const NAME_EXAMPLES: &str = "'MyName',  or 'my.name',  or '123-abc'";
const NAME_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;

/// What is wrong with `key` as the key of a label: `[prefix/]name`.
pub fn label_key_faults(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            let rule = name_rule();
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    let mut faults = Vec::new();
    match prefix {
        Some("") => faults.push("prefix part must be non-empty".to_string()),
        Some(prefix) => {
            faults
                .extend(dns1123_subdomain_faults(prefix).iter().map(|fault| format!("prefix part {fault}")));
        }
        None => {}
    }
    if name.is_empty() {
        faults.push("name part must be non-empty".to_string());
    } else if name.len() > NAME_BYTES_MAX {
        faults.push(format!("name part {}", too_long(NAME_BYTES_MAX)));
    }
    if !is_name(name) {
        faults.push(format!("name part {}", name_rule()));
    }
    faults
}

/// What is wrong with `value` as the value of a label.
pub fn label_value_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > NAME_BYTES_MAX {
        faults.push(too_long(NAME_BYTES_MAX));
    }
    if !value.is_empty() && !is_name(value) {
        faults.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
             validation is '({NAME_REGEX})?')"
        ));
    }
    faults
}

/// What is wrong with `value` as a DNS subdomain: labels of lower case letters, digits and `-`, joined by
/// dots.
pub fn dns1123_subdomain_faults(value: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if value.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(too_long(SUBDOMAIN_BYTES_MAX));
    }
    if !value.split('.').all(is_dns_label) {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_string(),
        );
    }
    faults
}

fn name_rule() -> String {
    format!("{NAME_RULE} (e.g. {NAME_EXAMPLES}, regex used for validation is '{NAME_REGEX}')")
}

fn too_long(bytes_max: usize) -> String {
    format!("must be no more than {bytes_max} bytes")
}

fn is_name(text: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    starts_and_ends(text, |byte| byte.is_ascii_alphanumeric()) && text.as_bytes().iter().all(inner)
}

fn is_dns_label(text: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    starts_and_ends(text, edge) && text.bytes().all(|byte| edge(byte) || byte == b'-')
}

fn starts_and_ends(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [first, .., last] => allowed(*first) && allowed(*last),
        [only] => allowed(*only),
    }
}
