//! Which trace and which span a request is part of, as W3C has it said in `traceparent`.
//!
//! In: a header. Out: ids, and whether the span is told of. Never: believes it, which is for who knows the
//! client.
//!
//! Source: <https://www.w3.org/TR/trace-context/>.

use std::fmt;

/// A trace, never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// A span, never all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

/// A span, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whether it is told of.
    pub is_sampled: bool,
}

impl SpanContext {
    /// Reads `traceparent`: `00-<32 hex>-<16 hex>-<2 hex>`, all in lower case. A later version may have more
    /// behind it.
    pub fn parse(header: &str) -> Option<SpanContext> {
        let mut parts = header.split('-');
        let [version, trace, span, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let [version] = hex::<1>(version)?;
        let (trace, span, [flags]) = (hex::<16>(trace)?, hex::<8>(span)?, hex::<1>(flags)?);
        let is_version = version < 0xff && (version > 0 || parts.next().is_none());
        let is_there = trace != [0; 16] && span != [0; 8];
        (is_version && is_there).then_some(SpanContext {
            trace: TraceId(trace),
            span: SpanId(span),
            is_sampled: flags & 1 == 1,
        })
    }
}

/// As `traceparent`.
impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:?}-{:?}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Exactly `N` bytes, in lower case.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    bytes?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_w3c_has_it() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let read = SpanContext::parse(good).expect("read");
        assert!(read.is_sampled && read.to_string() == good);
        let later = SpanContext::parse(&format!("{}-more", good.replacen("00", "01", 1)));
        assert_eq!(later.map(|read| read.trace), Some(read.trace));
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47366-00f067aa0ba902b7-0",
        ] {
            assert_eq!(SpanContext::parse(bad), None, "{bad}");
        }
    }
}
