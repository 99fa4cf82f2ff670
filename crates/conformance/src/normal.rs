//! Makes answers of two servers comparable: what differs from server to server gets a name.
//!
//! In: an answer, and the stored object that it is about. Out: the same with `<uid>`, `<rv>`, `<now>`;
//! managedFields without their times. Never: a difference of what a client asked for.

use serde_json::Value;

use crate::pair::Answer;

/// What one server chose for an object.
#[derive(Debug, Default)]
pub struct Chosen {
    names: Vec<(String, &'static str)>,
}

impl Chosen {
    /// What `stored` has of its server's choice.
    pub fn of(stored: &Value) -> Chosen {
        let metadata = &stored["metadata"];
        let mut names = Vec::new();
        for (member, name) in [("uid", "<uid>"), ("creationTimestamp", "<now>")] {
            if let Some(text) = metadata[member].as_str() {
                names.push((text.to_owned(), name));
            }
        }
        if let Some(address) = stored["spec"]["clusterIP"].as_str().filter(|address| *address != "None") {
            names.push((address.to_owned(), "<ip>"));
        }
        Chosen { names }
    }
}

const NO_EFFECT: &str = "but this server does not";
/// How a certificate is named among the extras of a user.
const CERTIFICATE: &str = "X509SHA256=";

/// `answer` as both servers would give it.
pub fn normal(mut answer: Answer, chosen: &Chosen) -> Answer {
    walk(&mut answer.body, chosen);
    // What ours alone says: that something is stored and has no effect yet.
    answer.warnings.retain(|warning| !warning.contains(NO_EFFECT));
    answer
}

fn walk(value: &mut Value, chosen: &Chosen) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
                if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
                    normalize_entries(entries);
                }
                for (member, name) in
                    [("uid", "<uid>"), ("resourceVersion", "<rv>"), ("creationTimestamp", "<now>")]
                {
                    if metadata.get(member).is_some_and(Value::is_string) {
                        metadata.insert(member.to_owned(), name.into());
                    }
                }
            }
            // The administrators have names of their own.
            if members.contains_key("username") && members.contains_key("signerName") {
                members.insert("username".to_owned(), "<admin>".into());
            }
            for (name, value) in members.iter_mut() {
                if value.as_str().is_some_and(|text| is_now(name, text)) {
                    *value = "<now>".into();
                }
                walk(value, chosen);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, chosen)),
        Value::String(text) => {
            if text.starts_with(CERTIFICATE) {
                CERTIFICATE.clone_into(text);
            }
            for (from, to) in &chosen.names {
                if text.contains(from.as_str()) {
                    *text = text.replace(from.as_str(), to);
                }
            }
            while let Some(at) = uuid_in(text) {
                text.replace_range(at..at + UUID_BYTES, "<uid>");
            }
        }
        _ => {}
    }
}

const UUID_BYTES: usize = 36;

/// Where a uid of a server's choice begins; they are of version 4, those of cases are not.
fn uuid_in(text: &str) -> Option<usize> {
    let is_uuid = |window: &[u8]| {
        window.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            14 => *byte == b'4',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(byte),
        })
    };
    text.as_bytes().windows(UUID_BYTES).position(is_uuid)
}

/// Whether a time is one that a server sets; times of cases are all at midnight.
/// Without times, by which they are in order.
fn normalize_entries(entries: &mut [Value]) {
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        entry.remove("time");
    }
    entries.sort_by_key(Value::to_string);
}

fn is_now(member: &str, text: &str) -> bool {
    let is_time = text.len() >= 20 && text.as_bytes()[10] == b'T' && text.ends_with('Z');
    is_time && !text.contains("T00:00:00") && member.ends_with("Time")
}
