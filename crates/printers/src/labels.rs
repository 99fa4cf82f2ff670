//! Label sets and label selectors as text.
//!
//! In: borrowed label maps and `LabelSelector` values. Out: the text that kubectl shows. Never: matching.

use serde_json::Value;

use crate::member::Member;

/// `a=1,b=2`, sorted as text (so `a-b=1` comes before `a=1`), or `<none>`.
pub fn format_labels(labels: &Value) -> String {
    let mut pairs: Vec<String> =
        Member::of(labels).entries().map(|(key, value)| format!("{key}={}", value.text())).collect();
    pairs.sort_unstable();
    match pairs.join(",") {
        text if text.is_empty() => "<none>".to_owned(),
        text => text,
    }
}

/// A `LabelSelector` in the syntax of the `labelSelector` parameter: empty when it is absent or selects
/// everything, `None` when it is not valid.
pub fn selector(selector: &Value) -> Option<String> {
    let selector = Member::of(selector);
    let mut requirements = Vec::new();
    for (key, value) in selector.get("matchLabels").entries() {
        let value = value.text();
        requirements.push((key, (is_key(key) && is_value(value)).then(|| format!("{key}={value}"))?));
    }
    for expression in selector.get("matchExpressions").items() {
        requirements.push((expression.get("key").text(), requirement(expression)?));
    }
    requirements.sort_by_key(|&(key, _)| key);
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    Some(texts.join(","))
}

/// A `LabelSelector` as [`selector`] words it, `<none>` for an empty one, `<error>` for one that is not
/// valid.
pub fn format_selector(value: &Value) -> String {
    match selector(value) {
        None => "<error>".to_owned(),
        Some(text) if text.is_empty() => "<none>".to_owned(),
        Some(text) => text,
    }
}

/// One of `matchExpressions`: `a in (1,2)`, `a notin (1)`, `a`, `!a`.
fn requirement(expression: Member<'_>) -> Option<String> {
    let key = expression.get("key").text();
    let mut values: Vec<&str> = expression.get("values").items().map(Member::text).collect();
    if !is_key(key) || !values.iter().all(|value| is_value(value)) {
        return None;
    }
    values.sort_unstable();
    match (expression.get("operator").text(), values.is_empty()) {
        ("In", false) => Some(format!("{key} in ({})", values.join(","))),
        ("NotIn", false) => Some(format!("{key} notin ({})", values.join(","))),
        ("Exists", true) => Some(key.to_owned()),
        ("DoesNotExist", true) => Some(format!("!{key}")),
        _ => None,
    }
}

/// A `LabelSelector` in the debug form of its Go type, which is what some printers show.
pub(crate) fn go_string(selector: Member<'_>) -> String {
    let mut labels: Vec<(&str, &str)> =
        selector.get("matchLabels").entries().map(|(key, value)| (key, value.text())).collect();
    labels.sort_unstable();
    let labels: String = labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions: String = selector.get("matchExpressions").items().map(go_requirement).collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

fn go_requirement(expression: Member<'_>) -> String {
    let values: Vec<&str> = expression.get("values").items().map(Member::text).collect();
    format!(
        "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
        expression.get("key").text(),
        expression.get("operator").text(),
        values.join(" ")
    )
}

const NAME_BYTES_MAX: usize = 63;
const PREFIX_BYTES_MAX: usize = 253;

/// A label key: a name, perhaps behind a DNS subdomain and a slash.
fn is_key(key: &str) -> bool {
    match key.split_once('/') {
        None => is_name(key),
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
    }
}

/// A label value: empty or a name.
fn is_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= NAME_BYTES_MAX
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_subdomain(prefix: &str) -> bool {
    prefix.len() <= PREFIX_BYTES_MAX && prefix.split('.').all(is_dns_label)
}

fn is_dns_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let is_inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    bytes.first().is_some_and(|&byte| byte != b'-')
        && bytes.last().is_some_and(|&byte| byte != b'-')
        && bytes.iter().all(is_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_sorted_as_whole_pairs() {
        assert_eq!(format_labels(&json!({"b": "2", "a": "1", "a-b": ""})), "a-b=,a=1,b=2");
        assert_eq!(format_labels(&json!({})), "<none>");
        assert_eq!(format_labels(&Value::Null), "<none>");
    }

    #[test]
    fn selectors_read_as_the_query_parameter_does() {
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (value, text) in [
            (Value::Null, "<none>"),
            (json!({}), "<none>"),
            (json!({"matchLabels": {"b": "2", "a": ""}}), "a=,b=2"),
            (expression("a", "In", &["2", "1"]), "a in (1,2)"),
            (expression("a", "NotIn", &["1"]), "a notin (1)"),
            (expression("example.com/a", "Exists", &[]), "example.com/a"),
            (expression("a", "DoesNotExist", &[]), "!a"),
            (expression("a", "In", &[]), "<error>"),
            (expression("a", "Exists", &["1"]), "<error>"),
            (expression("a", "Near", &[]), "<error>"),
            (expression("-a", "Exists", &[]), "<error>"),
            (expression("Example.com/a", "Exists", &[]), "<error>"),
            (expression("/a", "Exists", &[]), "<error>"),
            (expression("a/b/c", "Exists", &[]), "<error>"),
            (expression("a", "In", &["x y"]), "<error>"),
            (json!({"matchLabels": {"a": "x".repeat(64)}}), "<error>"),
            (json!({"matchLabels": {"": "x"}}), "<error>"),
        ] {
            assert_eq!(format_selector(&value), text, "{value}");
        }
    }

    #[test]
    fn requirements_are_ordered_by_key() {
        let value = json!({
            "matchLabels": {"c": "3", "a": "1"},
            "matchExpressions": [{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "DoesNotExist"}],
        });
        assert_eq!(format_selector(&value), "a=1,!a,b,c=3");
    }
}
