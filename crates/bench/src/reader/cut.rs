//! What a reader keeps of the bodies that it skips: of a watch the type and revision of each event, of a list
//! its metadata.
//!
//! In: bytes as they come, in gzip or plain. Out: a [`WatchedEvent`] for each line, or the [`Aftermath`] that
//! it is. Never: an object; more of a line than its beginning.

use std::io::Write as _;

use flate2::write::GzDecoder;
use forebay_client_go_rules::{Aftermath, WatchedEvent};
use memchr::memchr;
use memchr::memmem::find;

/// Where types and revisions are: in the beginning of a line or of a list. Bookmarks and errors are shorter.
const HEAD_BYTES: usize = 8 << 10;

/// A body, read on.
pub struct SkippedBody {
    inflate: Option<GzDecoder<Vec<u8>>>,
    /// The beginning of the line that has not ended.
    head: Vec<u8>,
    /// Whether what follows of a list is of no interest.
    is_enough: bool,
}

impl SkippedBody {
    pub fn new(is_gzip: bool) -> SkippedBody {
        let inflate = is_gzip.then(|| GzDecoder::new(Vec::new()));
        SkippedBody { inflate, head: Vec::new(), is_enough: false }
    }

    /// Hands over the beginning of each line that ends in `data`; whether `data` could be read.
    pub fn lines(&mut self, data: &[u8], mut line: impl FnMut(&[u8])) -> bool {
        let Some(inflate) = &mut self.inflate else {
            cut(&mut self.head, data, &mut line);
            return true;
        };
        let is_readable = inflate.write_all(data).is_ok() && inflate.flush().is_ok();
        let plain = std::mem::take(inflate.get_mut());
        cut(&mut self.head, &plain, &mut line);
        is_readable
    }

    /// Keeps the beginning of a body without lines.
    pub fn keep(&mut self, data: &[u8]) {
        if self.is_enough {
            return;
        }
        match &mut self.inflate {
            None => keep(&mut self.head, data),
            Some(inflate) => {
                // What cannot be read has no metadata, which is found out at the end.
                let _ = inflate.write_all(data).and_then(|()| inflate.flush());
                keep(&mut self.head, &std::mem::take(inflate.get_mut()));
            }
        }
        self.is_enough = self.head.len() >= HEAD_BYTES;
    }

    /// The beginning of the body.
    pub fn head(&self) -> &[u8] {
        &self.head
    }
}

fn cut(head: &mut Vec<u8>, mut data: &[u8], line: &mut impl FnMut(&[u8])) {
    while let Some(end) = memchr(b'\n', data) {
        if head.is_empty() {
            line(&data[..end.min(HEAD_BYTES)]);
        } else {
            keep(head, &data[..end]);
            line(head);
            head.clear();
        }
        data = &data[end + 1..];
    }
    keep(head, data);
}

fn keep(head: &mut Vec<u8>, data: &[u8]) {
    let room = HEAD_BYTES.saturating_sub(head.len());
    head.extend_from_slice(&data[..data.len().min(room)]);
}

/// What a line of a watch says.
pub fn event(line: &[u8]) -> Result<WatchedEvent, Aftermath> {
    let revision = || member(line, b"\"resourceVersion\":\"").ok_or(Aftermath::Undecodable);
    match member(line, b"{\"type\":\"").as_deref() {
        Some("ADDED") => Ok(WatchedEvent::Added { revision: revision()? }),
        Some("MODIFIED" | "DELETED") => Ok(WatchedEvent::Changed { revision: revision()? }),
        Some("BOOKMARK") => {
            let ends_initial = find(line, b"\"k8s.io/initial-events-end\":\"true\"").is_some();
            Ok(WatchedEvent::Bookmark { revision: revision()?, ends_initial })
        }
        Some("ERROR") => Err(code(line).map_or(Aftermath::Undecodable, |code| Aftermath::Error {
            code,
            is_too_large: is_too_large(line),
        })),
        _ => Err(Aftermath::Undecodable),
    }
}

/// What the beginning of a list says.
pub fn list(head: &[u8]) -> Aftermath {
    let head = &head[..find(head, b"\"items\":").unwrap_or(head.len())];
    match member(head, b"\"resourceVersion\":\"") {
        Some(revision) => {
            Aftermath::Listed { revision, token: member(head, b"\"continue\":\"").unwrap_or_default() }
        }
        None => Aftermath::Undecodable,
    }
}

/// Whether a Status says that a revision is of the future.
pub fn is_too_large(status: &[u8]) -> bool {
    find(status, b"\"ResourceVersionTooLarge\"").is_some()
}

fn code(status: &[u8]) -> Option<u16> {
    let at = find(status, b"\"code\":")? + 7;
    let digits = status[at..].iter().take_while(|byte| byte.is_ascii_digit());
    String::from_utf8(digits.copied().collect()).ok()?.parse().ok()
}

/// The text behind `name`, up to the next quote. What is looked for has none within.
fn member(text: &[u8], name: &[u8]) -> Option<String> {
    let rest = &text[find(text, name)? + name.len()..];
    String::from_utf8(rest[..memchr(b'"', rest)?].to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &mut SkippedBody, pieces: &[&[u8]]) -> Vec<String> {
        let mut all = Vec::new();
        for piece in pieces {
            assert!(body.lines(piece, |line| all.push(String::from_utf8_lossy(line).into_owned())));
        }
        all
    }

    #[test]
    fn lines_are_put_together_from_pieces_and_cut_where_they_are_long() {
        let long = [vec![b'a'; HEAD_BYTES + 9], b"\nb\n".to_vec()].concat();
        let all = lines(&mut SkippedBody::new(false), &[b"x", b"y\nz", b"\n", &long[..5], &long[5..]]);
        assert_eq!(all.iter().map(String::len).collect::<Vec<_>>(), [2, 1, HEAD_BYTES, 1]);
    }

    #[test]
    fn a_watch_in_gzip_is_read_as_it_comes() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"one\n").unwrap();
        gzip.flush().unwrap();
        let first = gzip.get_ref().clone();
        gzip.write_all(b"two\n").unwrap();
        let all = gzip.finish().unwrap();
        let mut body = SkippedBody::new(true);
        assert_eq!(lines(&mut body, &[&first]), ["one"]);
        assert_eq!(lines(&mut body, &[&all[first.len()..]]), ["two"]);
    }

    #[test]
    fn an_event_says_its_type_and_revision() {
        let line = |kind: &str| {
            let object = r#"{"metadata":{"name":"a","resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
            format!(r#"{{"type":"{kind}","object":{object}}}"#)
        };
        let revision = || "7".to_owned();
        assert_eq!(event(line("ADDED").as_bytes()), Ok(WatchedEvent::Added { revision: revision() }));
        assert_eq!(event(line("DELETED").as_bytes()), Ok(WatchedEvent::Changed { revision: revision() }));
        let end = WatchedEvent::Bookmark { revision: revision(), ends_initial: true };
        assert_eq!(event(line("BOOKMARK").as_bytes()), Ok(end));
        let error =
            br#"{"type":"ERROR","object":{"kind":"Status","metadata":{},"reason":"Expired","code":410}}"#;
        assert_eq!(event(error), Err(Aftermath::Error { code: 410, is_too_large: false }));
        assert_eq!(event(b"{"), Err(Aftermath::Undecodable));
    }

    #[test]
    fn a_list_says_its_revision_and_its_token_and_no_objects() {
        let head = br#"{"kind":"PodList","metadata":{"resourceVersion":"12","continue":"abc"},"items":[{"continue":"x"}]"#;
        assert_eq!(list(head), Aftermath::Listed { revision: "12".into(), token: "abc".into() });
        assert_eq!(list(br#"{"metadata":{},"items":[{"resourceVersion":"1"}]"#), Aftermath::Undecodable);
    }
}
