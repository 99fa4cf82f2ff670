//! The frames of a watch: where they end, which are bookmarks, and those that a fault makes up.
//!
//! In: the bytes of a watch, however they are cut, as lines of JSON or as protobuf behind lengths. Out: whole
//! frames, and frames of our own. Never: what an object is.

use bytes::{Bytes, BytesMut};
use forebay_apimachinery::varint;
use memchr::memchr;

use crate::limits::FRAME_BYTES_MAX;

/// How a watch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serialization {
    Json,
    Protobuf,
}

/// What a server says when it cannot go on, as `metav1.Status` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorStatus {
    pub code: u16,
    pub reason: &'static str,
    pub message: &'static str,
    /// Seconds.
    pub retry_after: Option<u32>,
    /// The reason of its only cause.
    pub cause: Option<&'static str>,
}

impl Serialization {
    /// That of an answer with this content type.
    pub fn of(content_type: &str) -> Serialization {
        match content_type.contains("protobuf") {
            true => Serialization::Protobuf,
            false => Serialization::Json,
        }
    }

    /// The ERROR event that says so.
    pub fn error(self, status: &ErrorStatus) -> Bytes {
        match self {
            Serialization::Json => format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", status.json()).into(),
            Serialization::Protobuf => {
                let raw = field(1, &envelope(&status.protobuf()));
                let event = [field(1, b"ERROR"), field(2, &raw)].concat();
                [&u32::try_from(event.len()).unwrap_or(u32::MAX).to_be_bytes()[..], &event].concat().into()
            }
        }
    }

    /// The first half of an event.
    pub fn half(self) -> Bytes {
        match self {
            Serialization::Json => Bytes::from_static(
                br#"{"type":"MODIFIED","object":{"kind":"ConfigMap","apiVersion":"v1","meta"#,
            ),
            // 200 bytes are said to follow, and the event's kind does.
            Serialization::Protobuf => {
                Bytes::from_static(b"\0\0\0\xc8\x0a\x08MODIFIED\x12\xbb\x01\x0a\xb8\x01k8s\0")
            }
        }
    }

    /// A whole frame that is no event.
    pub fn garbage(self) -> Bytes {
        match self {
            Serialization::Json => {
                Bytes::from_static(b"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":]}}\n")
            }
            // Fields of a wire type that there is none of. Bytes that seem to be cut off are taken for an EOF
            // by client-go.
            Serialization::Protobuf => Bytes::from_static(b"\0\0\0\x08\x0f\x0f\x0f\x0f\x0f\x0f\x0f\x0f"),
        }
    }

    pub fn is_bookmark(self, frame: &[u8]) -> bool {
        match self {
            Serialization::Json => frame.starts_with(b"{\"type\":\"BOOKMARK\""),
            Serialization::Protobuf => {
                frame.get(4..).is_some_and(|event| event.starts_with(b"\x0a\x08BOOKMARK"))
            }
        }
    }

    /// Bytes of the first frame of `bytes`, if it is whole.
    fn whole(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Serialization::Json => memchr(b'\n', bytes).map(|end| end + 1),
            Serialization::Protobuf => {
                let length = bytes.first_chunk::<4>().map(|length| u32::from_be_bytes(*length) as usize)?;
                (bytes.len() >= 4 + length).then_some(4 + length)
            }
        }
    }
}

impl ErrorStatus {
    /// As JSON.
    pub fn json(&self) -> String {
        let causes = self.cause.map(|cause| serde_json::json!([{"reason": cause, "message": self.message}]));
        let mut details = serde_json::Map::new();
        details.extend(causes.map(|causes| ("causes".to_owned(), causes)));
        details.extend(self.retry_after.map(|after| ("retryAfterSeconds".to_owned(), after.into())));
        serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "reason": self.reason, "details": details, "code": self.code,
        })
        .to_string()
    }

    /// As a message.
    fn protobuf(&self) -> Vec<u8> {
        let cause = self.cause.map(|cause| [field(1, cause.as_bytes()), field(2, self.message.as_bytes())]);
        let after = self.retry_after.map(|after| number(5, after));
        let details =
            [cause.map(|cause| field(4, &cause.concat())).unwrap_or_default(), after.unwrap_or_default()];
        [
            field(2, b"Failure"),
            field(3, self.message.as_bytes()),
            field(4, self.reason.as_bytes()),
            field(5, &details.concat()),
            number(6, self.code.into()),
        ]
        .concat()
    }
}

/// A Status in what stands around each object.
fn envelope(status: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, b"v1"), field(2, b"Status")].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, status)].concat()
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    varint::write(bytes.len() as u64, &mut out);
    out.extend_from_slice(bytes);
    out
}

fn number(field: u8, value: u32) -> Vec<u8> {
    let mut out = vec![field << 3];
    varint::write(value.into(), &mut out);
    out
}

/// Cuts the bytes of a watch into frames.
#[derive(Debug)]
pub struct Cutter {
    serialization: Serialization,
    // What came and is not told yet, <= FRAME_BYTES_MAX and a piece.
    bytes: BytesMut,
}

/// A frame is longer than any object.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Cutter {
    pub fn new(serialization: Serialization) -> Cutter {
        Cutter { serialization, bytes: BytesMut::new() }
    }

    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// The next frame, if it is whole.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn next(&mut self) -> Result<Option<Bytes>, TooLong> {
        match self.serialization.whole(&self.bytes) {
            Some(length) => Ok(Some(self.bytes.split_to(length).freeze())),
            None if self.bytes.len() > FRAME_BYTES_MAX => Err(TooLong),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: ErrorStatus = ErrorStatus {
        code: 410,
        reason: "Expired",
        message: "too old resource version: 1 (2)",
        retry_after: Some(1),
        cause: Some("ResourceVersionTooLarge"),
    };

    #[test]
    fn frames_are_whole_wherever_the_bytes_are_cut() {
        for serialization in [Serialization::Json, Serialization::Protobuf] {
            let frames =
                [serialization.error(&STATUS), serialization.garbage(), serialization.error(&STATUS)];
            let all = frames.concat();
            for piece in [1, 3, 50, 10_000] {
                let mut cutter = Cutter::new(serialization);
                let mut seen = Vec::new();
                for piece in all.chunks(piece) {
                    cutter.push(piece);
                    while let Some(frame) = cutter.next().unwrap() {
                        seen.push(frame);
                    }
                }
                assert_eq!(seen, frames, "{serialization:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn half_a_frame_is_none() {
        for serialization in [Serialization::Json, Serialization::Protobuf] {
            let mut cutter = Cutter::new(serialization);
            cutter.push(&serialization.half());
            assert_eq!(cutter.next(), Ok(None));
        }
    }

    #[test]
    fn a_frame_without_an_end_is_given_up() {
        let mut cutter = Cutter::new(Serialization::Json);
        cutter.push(&vec![b' '; FRAME_BYTES_MAX + 1]);
        assert_eq!(cutter.next(), Err(TooLong));
    }

    #[test]
    fn an_error_says_the_same_in_both_forms() {
        let json: serde_json::Value = serde_json::from_slice(&Serialization::Json.error(&STATUS)).unwrap();
        assert_eq!((&json["type"], &json["object"]["code"]), (&"ERROR".into(), &410.into()));
        assert_eq!(json["object"]["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
        let protobuf = Serialization::Protobuf.error(&STATUS);
        assert_eq!(protobuf[..4], (protobuf.len() as u32 - 4).to_be_bytes());
        // Field 6 of the Status is its code, 410.
        assert!(protobuf.ends_with(b"\x30\x9a\x03"));
        for part in [&b"ERROR"[..], b"k8s\0", b"Status", STATUS.reason.as_bytes(), STATUS.message.as_bytes()]
        {
            assert!(protobuf.windows(part.len()).any(|there| there == part));
        }
    }

    #[test]
    fn bookmarks_are_known_in_both_forms() {
        assert!(Serialization::Json.is_bookmark(b"{\"type\":\"BOOKMARK\",\"object\":{}}\n"));
        assert!(Serialization::Protobuf.is_bookmark(b"\0\0\0\x0a\x0a\x08BOOKMARK"));
        for serialization in [Serialization::Json, Serialization::Protobuf] {
            assert!(!serialization.is_bookmark(&serialization.error(&STATUS)));
            assert!(!serialization.is_bookmark(b""));
        }
    }
}
