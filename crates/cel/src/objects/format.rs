//! Formats that a text may be held against, with what is said of one that is not of it.

use std::sync::LazyLock;

use regex::Regex;

use super::url;
use crate::base64;
use crate::time;

/// A format of apiserver's library.
#[derive(Debug)]
pub struct Format {
    pub name: &'static str,
    /// Its name among functions.
    pub(crate) key: &'static str,
    /// How long its pattern is taken to be, for the cost.
    pub pattern_max: u64,
    /// What is wrong with a text.
    pub(crate) check: fn(&str) -> Vec<String>,
}

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        self.name == other.name
    }
}

const fn format(
    key: &'static str,
    name: &'static str,
    pattern_max: u64,
    check: fn(&str) -> Vec<String>,
) -> Format {
    Format { name, key, pattern_max, check }
}

/// In the order of their functions.
pub(crate) static FORMATS: [Format; 13] = [
    format("dns1123Label", "DNS1123Label", 30, label),
    format("dns1123Subdomain", "DNS1123Subdomain", 60, subdomain),
    format("dns1035Label", "DNS1035Label", 30, label_1035),
    format("qualifiedName", "QualifiedName", 60, qualified_name),
    format("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |text| label(&prefix(text))),
    format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, |text| subdomain(&prefix(text))),
    format("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |text| label_1035(&prefix(text))),
    format("labelValue", "LabelValue", 40, label_value),
    format("uri", "URI", 1103, uri),
    format("uuid", "uuid", 70, |text| unless(is_uuid(text), "does not match the UUID format")),
    format("byte", "byte", 84, |text| {
        unless(!text.is_empty() && base64::decode(text).is_ok(), "invalid base64")
    }),
    format("date", "date", 71, |text| unless(time::date(text).is_some(), "invalid date")),
    format("datetime", "datetime", 71, |text| unless(time::timestamp(text).is_ok(), "invalid datetime")),
];

fn unless(is: bool, why: &str) -> Vec<String> {
    if is { Vec::new() } else { vec![why.to_owned()] }
}

/// A name that more is put behind may end with a dash.
fn prefix(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.to_owned();
            kept.pop();
            kept + "a"
        }
        _ => text.to_owned(),
    }
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const LABEL_1035: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

/// Whether the whole text is `pattern`, which is one of ours.
fn is(pattern: &'static str, text: &str) -> bool {
    type Whole = LazyLock<[(&'static str, Regex); 5]>;
    static WHOLE: Whole = LazyLock::new(|| {
        [LABEL, SUBDOMAIN, LABEL_1035, QUALIFIED, LABEL_VALUE]
            .map(|pattern| (pattern, Regex::new(&format!("^(?:{pattern})$")).expect("it is one of ours")))
    });
    // Few: there are five.
    WHOLE.iter().any(|(known, whole)| *known == pattern && whole.is_match(text))
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| {
        format!(
            "must be no more than {most} {}",
            if most == 253 || most == 63 { "characters" } else { "bytes" }
        )
    })
}

fn regex_error(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

pub(crate) fn is_label(text: &str) -> bool {
    label(text).is_empty()
}

pub(crate) fn is_subdomain(text: &str) -> bool {
    subdomain(text).is_empty()
}

fn label(text: &str) -> Vec<String> {
    let mut wrong: Vec<_> = too_long(text, 63).into_iter().collect();
    if !is(LABEL, text) {
        wrong.push(if is(SUBDOMAIN, text) {
            "must not contain dots".to_owned()
        } else {
            let message = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
                           start and end with an alphanumeric character";
            regex_error(message, LABEL, &["my-name", "123-abc"])
        });
    }
    wrong
}

fn subdomain(text: &str) -> Vec<String> {
    let mut wrong: Vec<_> = too_long(text, 253).into_iter().collect();
    if !is(SUBDOMAIN, text) {
        let message = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                       must start and end with an alphanumeric character";
        wrong.push(regex_error(message, SUBDOMAIN, &["example.com"]));
    }
    wrong
}

fn label_1035(text: &str) -> Vec<String> {
    let mut wrong: Vec<_> = too_long(text, 63).into_iter().collect();
    if !is(LABEL_1035, text) {
        let message = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                       character, and end with an alphanumeric character";
        wrong.push(regex_error(message, LABEL_1035, &["my-name", "abc-123"]));
    }
    wrong
}

const QUALIFIED_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                                 alphanumeric character";

fn qualified_name(text: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let (mut wrong, name) = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => (Vec::new(), name),
        ["", name] => (vec!["prefix part must be non-empty".to_owned()], name),
        [prefix, name] => (subdomain(prefix).iter().map(|why| format!("prefix part {why}")).collect(), name),
        _ => {
            let message = format!("a valid label key {QUALIFIED_MESSAGE}");
            let why = regex_error(&message, QUALIFIED, &examples);
            return vec![why + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if let Some(why) = too_long(name, 63) {
        wrong.push(format!("name part {why}"));
    }
    if !is(QUALIFIED, name) {
        wrong.push(format!("name part {}", regex_error(QUALIFIED_MESSAGE, QUALIFIED, &examples)));
    }
    wrong
}

fn label_value(text: &str) -> Vec<String> {
    let mut wrong: Vec<_> = too_long(text, 63).into_iter().collect();
    if !is(LABEL_VALUE, text) {
        let message = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                       must start and end with an alphanumeric character";
        wrong.push(regex_error(message, LABEL_VALUE, &["MyValue", "my_value", "12345"]));
    }
    wrong
}

fn uri(text: &str) -> Vec<String> {
    match url::read(text) {
        Ok(_) => Vec::new(),
        Err(why) => vec![why],
    }
}

/// Hexadecimal digits in five groups, with or without dashes between them.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (at, count) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.get(..count) {
            Some(group) if group.bytes().all(|b| b.is_ascii_hexdigit()) => rest = &rest[count..],
            _ => return false,
        }
    }
    rest.is_empty()
}
