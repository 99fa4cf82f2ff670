//! An event on its way to where it is kept: bytes, and what they hold of the server's memory.
//!
//! In: an event. Out: its line, made once for all that keep the same. Never: more bytes than were charged.

use bytes::Bytes;
use forebay_room::Held;

use crate::event::{AuditEvent, TYPE_HEAD};
use crate::level::AuditLevel;
use crate::options::TruncateOptions;

/// What says that something is left out.
pub(crate) const TRUNCATED: &str = "audit.k8s.io/truncated";

/// One event, as it is kept.
pub(crate) struct Line {
    pub bytes: Bytes,
    /// Given back when it is kept, or lost.
    pub held: Option<Held>,
}

/// The forms of one event, each made when it is first asked for.
pub(crate) struct Forms<'e> {
    event: &'e AuditEvent,
    json: Option<Bytes>,
    truncated: Option<Bytes>,
}

impl<'e> Forms<'e> {
    pub fn new(event: &'e AuditEvent) -> Forms<'e> {
        Forms { event, json: None, truncated: None }
    }

    pub fn event(&self) -> &'e AuditEvent {
        self.event
    }

    /// Its JSON, with its type and without a newline.
    pub fn json(&mut self) -> &Bytes {
        let event = self.event;
        self.json.get_or_insert_with(|| written(event))
    }

    /// The same, within a limit: without its objects where it is too long. `None`: it is still too long.
    ///
    /// Source: apiserver v0.36.3 `plugin/pkg/audit/truncate/truncate.go`.
    pub fn within(&mut self, limit: &TruncateOptions) -> Option<&Bytes> {
        // As it is written to a file: with a newline.
        let fits = |json: &Bytes| json.len() < limit.event_bytes_max;
        if !limit.is_on || fits(self.json()) {
            return Some(self.json());
        }
        if self.event.level < AuditLevel::Request {
            return None;
        }
        let short = self.short();
        fits(short).then_some(short)
    }

    /// The same without its objects, which it says; `None` where it has none.
    pub fn without_objects(&mut self) -> Option<&Bytes> {
        let AuditEvent { request_object, response_object, .. } = self.event;
        (request_object.is_some() || response_object.is_some()).then(|| self.short())
    }

    fn short(&mut self) -> &Bytes {
        let event = self.event;
        self.truncated.get_or_insert_with(|| {
            let mut event = AuditEvent { request_object: None, response_object: None, ..event.clone() };
            event.annotations.insert(TRUNCATED.into(), "true".into());
            written(&event)
        })
    }
}

fn written(event: &AuditEvent) -> Bytes {
    let mut out = Vec::with_capacity(event.size_hint());
    event.write(&mut out);
    out.into()
}

/// A list of events, as a webhook is sent one: in parts, of which those of events are not copied.
pub(crate) fn event_list(lines: &[Line]) -> Vec<Bytes> {
    const HEAD: &[u8] = br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#;
    let mut parts = vec![Bytes::from_static(HEAD)];
    for (at, line) in lines.iter().enumerate() {
        parts.push(Bytes::from_static(if at == 0 { b"{" } else { b",{" }));
        // Its type is said once for all.
        parts.push(line.bytes.slice(TYPE_HEAD.len()..));
    }
    parts.push(Bytes::from_static(b"]}"));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::an_event;

    #[test]
    fn an_event_that_is_too_long_goes_without_its_objects_or_not_at_all() {
        let object = Some(Bytes::from(format!("\"{}\"", "x".repeat(2_000))));
        let event = AuditEvent { level: AuditLevel::Request, request_object: object, ..an_event() };
        let mut forms = Forms::new(&event);
        let limit =
            |event_bytes_max| TruncateOptions { is_on: true, event_bytes_max, batch_bytes_max: 1 << 20 };
        let len = forms.json().len();
        assert_eq!(forms.within(&limit(len + 1)).map(Bytes::len), Some(len));
        let short = forms.within(&limit(len)).expect("short").clone();
        let text = String::from_utf8(short.to_vec()).expect("a text");
        assert!(text.contains(r#""annotations":{"audit.k8s.io/truncated":"true"}"#) && !text.contains("xxx"));
        assert_eq!(forms.within(&limit(100)), None);
        assert_eq!(forms.within(&TruncateOptions { is_on: false, ..limit(100) }).map(Bytes::len), Some(len));
        let plain = an_event();
        assert_eq!(Forms::new(&plain).within(&limit(100)), None);
    }

    #[test]
    fn events_in_a_list_go_without_their_type() {
        let line = |text: &'static str| Line { bytes: Bytes::from_static(text.as_bytes()), held: None };
        let event = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"None"}"#;
        let list = |lines: &[Line]| String::from_utf8(event_list(lines).concat()).expect("a text");
        assert_eq!(
            list(&[line(event), line(event)]),
            r#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{"level":"None"},{"level":"None"}]}"#
        );
    }
}
