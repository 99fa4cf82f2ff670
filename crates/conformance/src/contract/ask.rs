//! What the rows' placeholders stand for on one server, and what its revisions are called.
//!
//! In: the revisions that writes were answered with. Out: queries to send, and labels for revisions in
//! answers. Owner: the suite's run of one kind on one target; answers are shown when it is complete.
//!
//! Placeholders: `{s6}` is that write's revision, `{now}` one that was current when the reads began,
//! `{future}` one that is far away, `{field}` the field that `on` is, `{end}` the seconds until a watch ends.
//! `{two@s6}` is a continue token that goes on behind `two` in the state of `s6`, `{two@latest}` one in
//! whatever is current. `<...>` is a continue token of that JSON.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::history::{ApiResource, Mutation, NAMESPACE_PREFIX, Write};
use super::table::{Row, Verb};

/// How far `{future}` is: more than anybody writes meanwhile.
const FUTURE: u64 = 1_000_000;

/// The revisions of one kind on one server.
#[derive(Debug, Clone, Default)]
pub struct Revisions {
    /// In the order of the writes; 0 for a deletion, which is not told its revision.
    writes: Vec<(String, u64)>,
    /// Current when the reads began.
    now: u64,
    /// How long watches are that do not say.
    watch_seconds: u64,
}

/// A row as it is asked of one server.
#[derive(Debug, Clone)]
pub struct Asked {
    pub query: String,
    /// The revision that it names, by itself or in its token.
    pub revision: Option<u64>,
    /// Current before it was asked.
    pub now: u64,
}

impl Revisions {
    /// Notes a write's revision.
    pub fn wrote(&mut self, write: &Write, revision: u64) {
        let revision = if write.mutation == Mutation::Delete { 0 } else { revision };
        self.writes.push((write.label.clone(), revision));
    }

    /// Notes what is current, as the reads begin, and how long watches are to be.
    pub fn begin(&mut self, now: u64, watch_seconds: u64) {
        (self.now, self.watch_seconds) = (now, watch_seconds);
    }

    fn of(&self, name: &str) -> Option<u64> {
        match name {
            "now" => Some(self.now),
            "future" => Some(self.now + FUTURE),
            label => self.writes.iter().find(|(known, _)| known == label).map(|(_, revision)| *revision),
        }
    }

    /// What a revision is called: the label of its write. One between two writes is that of the deletion
    /// between them.
    pub fn label(&self, revision: u64) -> Option<&str> {
        if let Some((label, _)) = self.writes.iter().find(|(_, known)| *known == revision) {
            return Some(label);
        }
        let after = self.writes.iter().rposition(|(_, known)| *known > 0 && *known < revision)?;
        let (label, known) = self.writes.get(after + 1)?;
        let next = self.writes[after + 2..].iter().map(|(_, known)| *known).find(|known| *known > 0);
        (*known == 0 && next.is_none_or(|next| revision < next)).then_some(label)
    }

    /// Whether it is between the writes around a deletion.
    pub fn is_deletion(&self, revision: u64) -> bool {
        let label = self.label(revision);
        self.writes.iter().any(|(known, revision)| Some(known.as_str()) == label && *revision == 0)
    }

    /// The query to send for `row`.
    ///
    /// # Errors
    /// A placeholder that stands for nothing.
    pub fn ask(&self, row: &Row, kind: &ApiResource) -> Result<Asked, String> {
        let mut parts = BTreeMap::new();
        let mut sent = Vec::new();
        for part in row.query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = self.filled_in(row, kind, value).map_err(|why| format!("{}: {why}", row.title))?;
            sent.push(format!("{name}={value}"));
            parts.insert(name, value);
        }
        let number = |name| parts.get(name).and_then(|text: &String| text.parse().ok()).filter(|rv| *rv > 0);
        let token = parts.get("continue").and_then(|token| read_token(token));
        let revision = number("resourceVersion").or(token.and_then(|(rv, _)| u64::try_from(rv).ok()));
        if row.verb == Verb::Watch && !parts.contains_key("timeoutSeconds") {
            sent.push(format!("timeoutSeconds={}", self.watch_seconds));
        }
        Ok(Asked { query: sent.join("&"), revision, now: self.now })
    }

    fn filled_in(&self, row: &Row, kind: &ApiResource, value: &str) -> Result<String, String> {
        if let Some(json) = value.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            return Ok(URL_SAFE_NO_PAD.encode(json.replace("\\0", "\\u0000")));
        }
        let Some((before, rest)) = value.split_once('{') else { return Ok(value.to_owned()) };
        let (inside, after) = rest.split_once('}').ok_or("a brace is not closed")?;
        let known = |name: &str| self.of(name).ok_or_else(|| format!("nobody knows {{{name}}}"));
        let filled = match inside.split_once('@') {
            None if inside == "field" => kind.field.to_owned(),
            None if inside == "end" => self.watch_seconds.to_string(),
            None => known(inside)?.to_string(),
            Some((start, at)) => {
                let at = if at == "latest" { "-1".to_owned() } else { known(at)?.to_string() };
                let start = if row.path.in_namespace {
                    start.to_owned()
                } else {
                    format!("{NAMESPACE_PREFIX}{start}")
                };
                let json = format!(r#"{{"v":"meta.k8s.io/v1","rv":{at},"start":"{start}\u0000"}}"#);
                URL_SAFE_NO_PAD.encode(json)
            }
        };
        Ok(format!("{before}{filled}{after}"))
    }
}

/// The revision and the start of a continue token, if it is one.
pub fn read_token(token: &str) -> Option<(i64, String)> {
    let json = URL_SAFE_NO_PAD.decode(token).ok()?;
    let json: serde_json::Value = serde_json::from_slice(&json).ok()?;
    Some((json["rv"].as_i64()?, json["start"].as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::history;

    #[test]
    fn a_revision_has_the_label_of_its_write_and_a_deletions_lies_between() {
        let mut revisions = Revisions::default();
        let writes = history::writes().expect("the history");
        // s5 to l1, of which s7 is a deletion.
        let some = writes.iter().filter(|write| ["s6", "s7", "s8"].contains(&write.label.as_str()));
        for (write, revision) in some.zip([10, 0, 20]) {
            revisions.wrote(write, revision);
        }
        let labels = [9, 10, 11, 19, 20, 21].map(|revision| revisions.label(revision));
        assert_eq!(labels, [None, Some("s6"), Some("s7"), Some("s7"), Some("s8"), None]);
    }
}
