//! Spans as the message that a collector takes: `ExportTraceServiceRequest` of OTLP, in protobuf.
//!
//! In: spans. Out: bytes. Never: reads any.
//!
//! Source: opentelemetry-proto v1.9 `collector/trace/v1/trace_service.proto`, `trace/v1/trace.proto`.

use forebay_apimachinery::varint;

use crate::context::SpanContext;
use crate::tracer::{AttributeValue, EndedSpan, SpanKind};

/// Where the message is sent.
pub const PATH: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// What they are told by.
const SCOPE: &str = "forebay";
const STATUS_ERROR: u64 = 2;

/// The message for `spans`.
///
/// - `service`: what this process is called, and which one of them it is.
pub fn export<'s>(service: (&str, &str), spans: impl IntoIterator<Item = &'s EndedSpan>) -> Vec<u8> {
    let mut resource = Vec::new();
    for (name, value) in [("service.name", service.0), ("service.instance.id", service.1)] {
        message(1, &attribute(name, &AttributeValue::Text(value.to_owned().into())), &mut resource);
    }
    let mut scope = Vec::new();
    text(1, SCOPE, &mut scope);
    let mut scope_spans = Vec::new();
    message(1, &scope, &mut scope_spans);
    for one in spans {
        message(2, &span(one), &mut scope_spans);
    }
    let mut resource_spans = Vec::new();
    message(1, &resource, &mut resource_spans);
    message(2, &scope_spans, &mut resource_spans);
    let mut out = Vec::new();
    message(1, &resource_spans, &mut out);
    out
}

fn span(span: &EndedSpan) -> Vec<u8> {
    let mut out = Vec::new();
    message(1, &span.context.trace.0, &mut out);
    message(2, &span.context.span.0, &mut out);
    if let Some(parent) = span.parent {
        message(4, &parent.0, &mut out);
    }
    text(5, &span.name, &mut out);
    let kind = match span.kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
    };
    number(6, kind, &mut out);
    fixed64(7, span.begins, &mut out);
    fixed64(8, span.ends, &mut out);
    for (name, value) in &span.attributes {
        message(9, &attribute(name, value), &mut out);
    }
    if let Some(SpanContext { trace, span, .. }) = span.link {
        let mut link = Vec::new();
        message(1, &trace.0, &mut link);
        message(2, &span.0, &mut link);
        message(13, &link, &mut out);
    }
    if let Some(why) = &span.error {
        let mut status = Vec::new();
        text(2, why, &mut status);
        number(3, STATUS_ERROR, &mut status);
        message(15, &status, &mut out);
    }
    out
}

/// A `KeyValue`.
fn attribute(name: &str, value: &AttributeValue) -> Vec<u8> {
    let mut any = Vec::new();
    match value {
        // Also the empty one: that there is one is said.
        AttributeValue::Text(value) => message(1, value.as_bytes(), &mut any),
        AttributeValue::Number(value) => number(3, *value as u64, &mut any),
    }
    let mut out = Vec::new();
    text(1, name, &mut out);
    message(2, &any, &mut out);
    out
}

fn tag(field: u64, wire: u64, out: &mut Vec<u8>) {
    varint::write(field << 3 | wire, out);
}

fn message(field: u64, content: &[u8], out: &mut Vec<u8>) {
    tag(field, 2, out);
    varint::write(content.len() as u64, out);
    out.extend_from_slice(content);
}

fn text(field: u64, text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() {
        message(field, text.as_bytes(), out);
    }
}

fn number(field: u64, value: u64, out: &mut Vec<u8>) {
    tag(field, 0, out);
    varint::write(value, out);
}

fn fixed64(field: u64, value: u64, out: &mut Vec<u8>) {
    tag(field, 1, out);
    out.extend_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use crate::context::{SpanId, TraceId};

    use super::*;

    /// As `protoc --decode_raw` would show it: field numbers with their content, nested by indentation.
    fn shown(mut bytes: &[u8], nested: &[u64], out: &mut String, depth: usize) {
        while !bytes.is_empty() {
            let tag = varint::read(&mut bytes).expect("a tag");
            let (field, indent) = (tag >> 3, " ".repeat(depth));
            match tag & 7 {
                0 => out
                    .push_str(&format!("{indent}{field}: {}\n", varint::read(&mut bytes).expect("a number"))),
                1 => {
                    let (fixed, rest) = bytes.split_first_chunk::<8>().expect("eight bytes");
                    out.push_str(&format!("{indent}{field}: {}\n", u64::from_le_bytes(*fixed)));
                    bytes = rest;
                }
                _ => {
                    let len = varint::read(&mut bytes).expect("a length") as usize;
                    let (content, rest) = bytes.split_at(len);
                    bytes = rest;
                    match nested.split_first() {
                        Some((first, deeper)) if *first == field || *first == 0 => {
                            out.push_str(&format!("{indent}{field}:\n"));
                            shown(content, deeper, out, depth + 1);
                        }
                        _ => out
                            .push_str(&format!("{indent}{field}: {:?}\n", String::from_utf8_lossy(content))),
                    }
                }
            }
        }
    }

    #[test]
    fn a_span_is_written_as_the_protocol_has_it() {
        let context =
            |span: u8| SpanContext { trace: TraceId([b't'; 16]), span: SpanId([span; 8]), is_sampled: true };
        let span = EndedSpan {
            context: context(b's'),
            parent: Some(SpanId([b'p'; 8])),
            link: Some(context(b'l')),
            name: "GET".into(),
            kind: SpanKind::Server,
            begins: 5,
            ends: 7,
            attributes: vec![("a", "b".into()), ("n", 300.into())],
            error: Some("no".into()),
        };
        let message = export(("apiserver", "one"), [&span]);
        let mut text = String::new();
        shown(&message, &[1, 2, 2], &mut text, 0);
        let trace = "t".repeat(16);
        for line in [
            format!(
                "   1: {trace:?}\n   2: \"ssssssss\"\n   4: \"pppppppp\"\n   5: \"GET\"\n   6: 2\n   7: 5\n   8: 7\n"
            ),
            "   9: \"\\n\\u{1}a\\u{12}\\u{3}\\n\\u{1}b\"\n".to_owned(),
            "   15: \"\\u{12}\\u{2}no\\u{18}\\u{2}\"\n".to_owned(),
        ] {
            assert!(text.contains(&line), "{line}{text}");
        }
        let mut resource = String::new();
        shown(&message, &[1, 1, 1], &mut resource, 0);
        assert!(resource.contains("service.name") && resource.contains("apiserver"), "{resource}");
        assert_eq!(export(("", ""), []), export(("", ""), []));
    }
}
