//! An answer as one line of text: what the tables hold.
//!
//! In: an [`Observation`], the revisions of its server, the row. Out: a line in which nothing is left of one
//! server's own numbers. Never: knows what was expected, but for how strong a relation of revisions the row
//! asks for.
//!
//! ```text
//! 200 rv=asked [early@o3 four@s8] continue=four@asked remaining=2     a list
//! 200 rv=now []                                                       its revision is no older than {now}
//! 200 one@s1                                                          an object
//! 200 +one@s1 END ~two@s6 -one@l2/web                                 a watch; DELETED with the label it shows
//! 410 Expired "too old resource version: {asked} ({n})" retry=1       a Status
//! ```

use serde_json::Value;

use super::ask::{Asked, Revisions, read_token};
use super::history::{ApiResource, NAMESPACE_PREFIX};
use super::table::{Row, Verb};

/// What a server answered.
#[derive(Debug, Clone, Default)]
pub struct Observation {
    /// Absent where there is no HTTP.
    pub code: Option<u16>,
    /// Of the header; absent where there is no HTTP.
    pub retry_after: Option<u64>,
    /// An object, a list or a Status.
    pub body: Value,
    /// The events of a watch, instead.
    pub events: Option<Vec<Value>>,
}

/// What is needed to show an answer.
pub struct Shown<'a> {
    pub revisions: &'a Revisions,
    pub asked: &'a Asked,
    pub row: &'a Row,
    pub kind: &'a ApiResource,
}

impl Shown<'_> {
    /// The answer's line; `wanted` decides which of two true relations of a list's revision is said.
    pub fn line(&self, answer: &Observation, wanted: &str) -> String {
        let shown = match &answer.events {
            Some(events) => self.events(events),
            None if answer.body["kind"] == "Status" => {
                return format!("{}{}", code(answer), self.status(&answer.body, answer));
            }
            None if answer.body["items"].is_array() || answer.body.get("items").is_some() => {
                self.list(&answer.body, wanted)
            }
            None => self.object(&answer.body),
        };
        format!("{}{shown}", code(answer)).trim_end().to_owned()
    }

    fn list(&self, list: &Value, wanted: &str) -> String {
        let Some(items) = list["items"].as_array() else { return format!("items={}", list["items"]) };
        let items: Vec<String> = items.iter().map(|item| self.object(item)).collect();
        let meta = &list["metadata"];
        let mut line = format!("{} [{}]", self.list_revision(meta, wanted), items.join(" "));
        if let Some(token) = meta["continue"].as_str().filter(|token| !token.is_empty()) {
            line += &format!(" continue={}", self.token(token, revision(meta)));
        }
        if let Some(remaining) = meta.get("remainingItemCount") {
            line += &format!(" remaining={remaining}");
        }
        line
    }

    fn list_revision(&self, meta: &Value, wanted: &str) -> String {
        let shown = revision(meta);
        let is_now = shown >= self.asked.now && shown < self.asked.now + 100_000;
        match self.asked.revision {
            _ if is_now && wanted.contains("rv=now") => "rv=now".to_owned(),
            Some(asked) if asked == shown => "rv=asked".to_owned(),
            _ if is_now => "rv=now".to_owned(),
            _ => format!("rv={}", self.revisions.label(shown).unwrap_or("unknown")),
        }
    }

    /// `two@asked`: where it goes on, and in which state.
    fn token(&self, token: &str, list: u64) -> String {
        let Some((rv, start)) = read_token(token) else { return format!("unreadable:{token}") };
        let start = start.strip_suffix('\0').map_or_else(|| format!("{start}(unended)"), str::to_owned);
        let at = match rv {
            -1 => "latest".to_owned(),
            rv if u64::try_from(rv) == Ok(list) => "rv".to_owned(),
            rv => format!("{rv}"),
        };
        format!("{}@{at}", start.replacen(NAMESPACE_PREFIX, "", 1))
    }

    fn object(&self, object: &Value) -> String {
        let meta = &object["metadata"];
        let shown = revision(meta);
        match self.revisions.label(shown) {
            Some(label) => format!("{}@{label}", self.name(meta)),
            None => format!("{}@?{shown}", self.name(meta)),
        }
    }

    /// With its namespace, where the row is about all of them.
    fn name(&self, meta: &Value) -> String {
        let text = |member: &str| meta[member].as_str().unwrap_or_default();
        if self.row.path.in_namespace || !self.kind.namespaced {
            return text("name").to_owned();
        }
        let namespace = text("namespace");
        format!("{}/{}", namespace.strip_prefix(NAMESPACE_PREFIX).unwrap_or(namespace), text("name"))
    }

    fn events(&self, events: &[Value]) -> String {
        let (mut shown, mut end): (Vec<String>, _) = (Vec::new(), None);
        // Every event up to here was sent.
        let (mut reached, mut booked) = (0, 0);
        for event in events {
            let object = &event["object"];
            let at = revision(&object["metadata"]);
            let kind = event["type"].as_str().unwrap_or_default();
            // The deletion of a pod is two revisions: its beginning is not shown.
            if kind == "MODIFIED" && self.kind.kind == "Pod" && self.revisions.is_deletion(at) {
                reached = at.max(reached);
                continue;
            }
            let sign = match kind {
                "ADDED" => "+",
                "MODIFIED" => "~",
                "DELETED" => "-",
                "BOOKMARK" => {
                    match self.bookmark(object, (reached, booked)).as_str() {
                        "BOOKMARK" => end = Some("BOOKMARK".to_owned()),
                        word => shown.push(word.to_owned()),
                    }
                    booked = at;
                    continue;
                }
                "ERROR" => {
                    shown.push(format!("ERROR {}", self.in_stream(object)));
                    continue;
                }
                other => {
                    shown.push(format!("{other}?"));
                    continue;
                }
            };
            let after_bookmark = if at <= booked { "(after a bookmark)" } else { "" };
            let label = match kind {
                "DELETED" => format!("/{}", object["metadata"]["labels"]["app"].as_str().unwrap_or("?")),
                _ => String::new(),
            };
            reached = at.max(reached);
            shown.push(format!("{sign}{}{label}{after_bookmark}", self.object(object)));
        }
        // A stream of less than a minute has one two seconds before its end, and no other. It is shown last,
        // where the row is about the end: a machine may be so slow that some writes are later.
        shown.extend(end.filter(|_| self.row.query.contains("timeoutSeconds")));
        shown.join(" ")
    }

    fn bookmark(&self, object: &Value, (reached, booked): (u64, u64)) -> String {
        let meta = &object["metadata"];
        let at = revision(meta);
        let is_end = meta["annotations"]["k8s.io/initial-events-end"] == "true";
        let is_typed = object["kind"] == self.kind.kind && object["apiVersion"] == self.kind.api_version();
        let floor = if is_end { self.asked.now.max(self.asked.revision.unwrap_or(0)) } else { 0 };
        let word = if is_end { "END" } else { "BOOKMARK" };
        let is_asked = self.row.query.contains("allowWatchBookmarks=true");
        if !is_typed || meta.get("name").is_some() || !is_asked {
            return format!("{word}(odd: {object})");
        }
        if at < reached || at < booked || at < floor {
            return format!("{word}(too early: {at})");
        }
        word.to_owned()
    }

    fn in_stream(&self, status: &Value) -> String {
        let code = &status["code"];
        let code = if code.is_null() { String::new() } else { format!("{code} ") };
        format!("{code}{}", self.status(status, &Observation::default()))
    }

    fn status(&self, status: &Value, answer: &Observation) -> String {
        let reason = status["reason"].as_str().unwrap_or("-");
        let mut line = format!("{reason} {}", self.message(status));
        let details = &status["details"];
        for cause in details["causes"].as_array().into_iter().flatten() {
            let field = cause["field"].as_str().map(|field| format!(":{field}")).unwrap_or_default();
            let reason = cause["reason"].as_str().unwrap_or("-");
            line += &format!(" cause={reason}{field}:{}", cause["message"]);
        }
        if let Some(token) = status["metadata"]["continue"].as_str() {
            line += &format!(" continue={}", self.token(token, 0));
        }
        let told = details["retryAfterSeconds"].as_u64();
        match (answer.retry_after, told) {
            (None, None) => {}
            (Some(header), told) if Some(header) != told => {
                line += &format!(" retry={header} told={told:?}");
            }
            (_, Some(told)) if answer.code.is_some() && answer.retry_after.is_none() => {
                line += &format!(" retry=none told={told}");
            }
            (_, Some(told)) => line += &format!(" retry={told}"),
            (Some(_), None) => {}
        }
        line
    }

    /// The message, with the numbers of this server replaced where it is about revisions.
    fn message(&self, status: &Value) -> String {
        let message = status["message"].as_str().unwrap_or_default();
        let asked = self.asked.revision.map(|revision| revision.to_string());
        let about_revisions = message.contains("esource version: ") && !message.contains("nvalid")
            || message.contains("ResourceVersion in the precondition");
        if !about_revisions {
            return format!("{message:?}");
        }
        let (mut shown, mut digits) = (String::new(), String::new());
        for letter in message.chars().chain(['\0']) {
            if letter.is_ascii_digit() {
                digits.push(letter);
                continue;
            }
            if !digits.is_empty() {
                shown += if Some(&digits) == asked.as_ref() { "{asked}" } else { "{n}" };
                digits.clear();
            }
            shown.extend((letter != '\0').then_some(letter));
        }
        format!("{shown:?}")
    }
}

fn code(answer: &Observation) -> String {
    answer.code.map(|code| format!("{code} ")).unwrap_or_default()
}

fn revision(meta: &Value) -> u64 {
    meta["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Whether `answer`'s line is what `wanted` says; a target without HTTP has no code, and says none.
pub fn is_as_wanted(line: &str, wanted: &str, answer: &Observation, row: &Row) -> bool {
    let wanted = match answer.code {
        Some(_) => wanted,
        None => wanted.split_once(' ').map_or("", |(_, rest)| rest),
    };
    let wanted = match (answer.code, row.verb) {
        // The code inside of an ERROR event is made by the edge, too.
        (None, Verb::Watch) => without_stream_code(wanted),
        _ => wanted.to_owned(),
    };
    line == wanted
}

fn without_stream_code(wanted: &str) -> String {
    match wanted.split_once("ERROR ") {
        Some((before, after)) => {
            let after = after.split_once(' ').map_or(after, |(_, rest)| rest);
            format!("{before}ERROR {after}")
        }
        None => wanted.to_owned(),
    }
}
