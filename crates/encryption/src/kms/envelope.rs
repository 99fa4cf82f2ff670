//! What is kept of a value that a plugin's seed encrypts: `EncryptedObject`, a protobuf message.
//!
//! In: its parts, or its bytes. Out: the other of both, held against upstream's bounds.
//!
//! Source: apiserver v0.36.3 `encrypt/envelope/kmsv2/v2/api.proto`, `envelope.go` (`ValidateEncryptedObject`).

use std::collections::BTreeMap;

use forebay_apimachinery::varint;
use forebay_grpc::proto::Message;
use ring::digest::{Context, SHA256};

use super::messages::with_annotations;
use crate::limits;

/// How a data key is made of what the plugin decrypts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceType {
    /// It is the key: as upstream wrote before 1.29.
    #[default]
    Key,
    /// It is a seed that keys are derived from.
    Seed,
}

impl SourceType {
    fn number(self) -> u64 {
        match self {
            SourceType::Key => 0,
            SourceType::Seed => 1,
        }
    }
}

/// By what a data key is known.
pub type CacheKey = [u8; 32];

/// The data key of a value, as it lies beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DataKeyRef {
    pub(crate) key_id: String,
    pub(crate) encrypted: Vec<u8>,
    pub(crate) annotations: BTreeMap<String, Vec<u8>>,
    pub(crate) source: SourceType,
}

/// What is kept, in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptedObject<'a> {
    pub data: &'a [u8],
    pub key_id: &'a str,
    pub encrypted: &'a [u8],
    pub annotations: BTreeMap<&'a str, &'a [u8]>,
    source: u64,
}

const BROKEN: &str = "proto: cannot parse invalid wire-format data";

impl<'a> EncryptedObject<'a> {
    /// Reads and checks it. Nothing is copied.
    ///
    /// # Errors
    /// In upstream's words.
    pub fn read(kept: &'a [u8]) -> Result<EncryptedObject<'a>, String> {
        let mut read = EncryptedObject::default();
        each_field(kept, |field, content| {
            match (field, content) {
                (1, Content::Bytes(data)) => read.data = data,
                (2, Content::Bytes(id)) => read.key_id = std::str::from_utf8(id).map_err(|_| BROKEN)?,
                (3, Content::Bytes(encrypted)) => read.encrypted = encrypted,
                (4, Content::Bytes(entry)) => {
                    let (mut name, mut value): (&str, &[u8]) = ("", &[]);
                    each_field(entry, |field, content| {
                        match (field, content) {
                            (1, Content::Bytes(text)) => {
                                name = std::str::from_utf8(text).map_err(|_| BROKEN)?;
                            }
                            (2, Content::Bytes(bytes)) => value = bytes,
                            _ => {}
                        }
                        Ok(())
                    })?;
                    read.annotations.insert(name, value);
                }
                (5, Content::Number(number)) => read.source = number,
                _ => {}
            }
            Ok(())
        })?;
        if read.source > 1 {
            return Err(format!("unknown encryptedDEKSourceType: {}", read.source));
        }
        if read.data.is_empty() {
            return Err("encrypted data is empty".to_owned());
        }
        let annotations = read.annotations.iter().map(|(name, value)| (*name, value.len()));
        check(read.key_id, read.encrypted, annotations)?;
        Ok(read)
    }

    pub fn source(&self) -> SourceType {
        if self.source == 1 { SourceType::Seed } else { SourceType::Key }
    }

    /// By what its data key is known: the same as that of [`EncryptedObject::data_key`].
    pub fn cache_key(&self) -> CacheKey {
        let annotations = self.annotations.iter().map(|(name, value)| (*name, *value));
        cache_key(self.source(), self.encrypted, self.key_id, annotations)
    }

    pub fn data_key(&self) -> DataKeyRef {
        let annotations = self.annotations.iter();
        DataKeyRef {
            key_id: self.key_id.to_owned(),
            encrypted: self.encrypted.to_vec(),
            annotations: annotations.map(|(name, value)| ((*name).to_owned(), value.to_vec())).collect(),
            source: self.source(),
        }
    }
}

impl DataKeyRef {
    pub(crate) fn cache_key(&self) -> CacheKey {
        let annotations = self.annotations.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
        cache_key(self.source, &self.encrypted, &self.key_id, annotations)
    }

    /// Whether it may lie in the store.
    ///
    /// # Errors
    /// In upstream's words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let annotations = self.annotations.iter().map(|(name, value)| (name.as_str(), value.len()));
        check(&self.key_id, &self.encrypted, annotations)
    }

    /// What stands before the `bytes` of encrypted data, and what behind them.
    pub(crate) fn around(&self, bytes: usize) -> (Vec<u8>, Vec<u8>) {
        const DATA: u8 = 1 << 3 | 2;
        let mut head = vec![DATA];
        varint::write(bytes as u64, &mut head);
        let tail = Message::default().bytes(2, self.key_id.as_bytes()).bytes(3, &self.encrypted);
        (head, with_annotations(tail, &self.annotations).number(5, self.source.number()).finish())
    }
}

/// Whether a plugin may call its key so.
///
/// # Errors
/// How metrics name it, and why not.
pub fn check_key_id(key_id: &str) -> Result<(), (&'static str, String)> {
    match key_id.len() {
        0 => Err(("empty", "keyID is empty".to_owned())),
        bytes if bytes > limits::KEY_ID_BYTES_MAX => {
            let max = limits::KEY_ID_BYTES_MAX;
            Err(("too_long", format!("keyID is {bytes} bytes, which exceeds the max size of {max}")))
        }
        _ => Ok(()),
    }
}

fn check<'a>(
    key_id: &str,
    encrypted: &[u8],
    annotations: impl Iterator<Item = (&'a str, usize)>,
) -> Result<(), String> {
    let source = |why: String| Err(format!("failed to validate encrypted DEK source: {why}"));
    let max = limits::ENCRYPTED_DEK_BYTES_MAX;
    match encrypted.len() {
        0 => return source("encrypted DEK source is empty".to_owned()),
        bytes if bytes > max => {
            return source(format!(
                "encrypted DEK source is {bytes} bytes, which exceeds the max size of {max}"
            ));
        }
        _ => {}
    }
    check_key_id(key_id).map_err(|(_, why)| format!("failed to validate key id: {why}"))?;
    let (mut total, mut wrong) = (0, Vec::new());
    for (name, bytes) in annotations {
        total += name.len() + bytes;
        if !is_qualified_domain(name) {
            wrong.push(format!("annotations: Invalid value: \"{name}\": should be a domain with at least two segments separated by dots"));
        }
    }
    if total > limits::ANNOTATIONS_BYTES_MAX {
        let max = limits::ANNOTATIONS_BYTES_MAX;
        wrong.push(format!("total size of annotations is {total}, which exceeds the max size of {max}"));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [only] => Err(format!("failed to validate annotations: {only}")),
        several => Err(format!("failed to validate annotations: [{}]", several.join(", "))),
    }
}

/// A DNS subdomain of two labels or more, perhaps with a dot behind.
fn is_qualified_domain(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(is_edge)
            && bytes.last().is_some_and(is_edge)
            && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
    };
    name.len() <= 253 && name.split('.').count() >= 2 && name.split('.').all(label)
}

fn cache_key<'a>(
    source: SourceType,
    encrypted: &[u8],
    key_id: &str,
    annotations: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> CacheKey {
    let mut context = Context::new(&SHA256);
    context.update(&[source.number() as u8]);
    let mut add = |bytes: &[u8]| {
        context.update(&(bytes.len() as u64).to_le_bytes());
        context.update(bytes);
    };
    add(encrypted);
    add(key_id.as_bytes());
    for (name, value) in annotations {
        add(name.as_bytes());
        add(value);
    }
    let mut key = CacheKey::default();
    key.copy_from_slice(context.finish().as_ref());
    key
}

/// What stands in one field.
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// Hands each field of `message` to `take`.
fn each_field<'a>(
    message: &'a [u8],
    mut take: impl FnMut(u64, Content<'a>) -> Result<(), &'static str>,
) -> Result<(), &'static str> {
    let mut rest = message;
    while !rest.is_empty() {
        let tag = varint::read(&mut rest).map_err(|_| BROKEN)?;
        let skip = |rest: &mut &'a [u8], bytes: usize| {
            let (skipped, after) = rest.split_at_checked(bytes).ok_or(BROKEN)?;
            *rest = after;
            Ok::<_, &'static str>(skipped)
        };
        let content = match tag & 7 {
            0 => Content::Number(varint::read(&mut rest).map_err(|_| BROKEN)?),
            1 => skip(&mut rest, 8).map(|_| Content::Other)?,
            2 => {
                let bytes = varint::read(&mut rest).map_err(|_| BROKEN)?;
                Content::Bytes(skip(&mut rest, usize::try_from(bytes).map_err(|_| BROKEN)?)?)
            }
            5 => skip(&mut rest, 4).map(|_| Content::Other)?,
            _ => return Err(BROKEN),
        };
        take(tag >> 3, content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data_key() -> DataKeyRef {
        let annotations = [("a.example.com", b"1".as_slice()), ("b.example.com", b"".as_slice())];
        DataKeyRef {
            key_id: "key".into(),
            encrypted: b"encrypted".to_vec(),
            annotations: annotations.map(|(name, value)| (name.to_owned(), value.to_vec())).into(),
            source: SourceType::Seed,
        }
    }

    fn written(data_key: &DataKeyRef, data: &[u8]) -> Vec<u8> {
        let (head, tail) = data_key.around(data.len());
        [head.as_slice(), data, &tail].concat()
    }

    #[test]
    fn what_is_written_is_read_and_known_by_the_same_key() {
        for source in [SourceType::Key, SourceType::Seed] {
            let data_key = DataKeyRef { source, ..data_key() };
            let kept = written(&data_key, b"data");
            let read = EncryptedObject::read(&kept).expect("whole");
            assert_eq!((read.data, read.key_id), (b"data".as_slice(), "key"));
            assert_eq!(read.data_key(), data_key);
            assert_eq!(read.cache_key(), data_key.cache_key());
        }
        let (one, other) = (data_key(), DataKeyRef { key_id: "other".into(), ..data_key() });
        assert_ne!(one.cache_key(), other.cache_key());
        assert_ne!(one.cache_key(), DataKeyRef { source: SourceType::Key, ..data_key() }.cache_key());
    }

    #[test]
    fn what_upstream_refuses_is_refused_in_its_words() {
        let long = "x".repeat(1025);
        let cases = [
            (DataKeyRef { key_id: String::new(), ..data_key() }, "failed to validate key id: keyID is empty"),
            (
                DataKeyRef { key_id: long.clone(), ..data_key() },
                "failed to validate key id: keyID is 1025 bytes, which exceeds the max size of 1024",
            ),
            (
                DataKeyRef { encrypted: Vec::new(), ..data_key() },
                "failed to validate encrypted DEK source: encrypted DEK source is empty",
            ),
            (
                DataKeyRef { encrypted: long.into_bytes(), ..data_key() },
                "failed to validate encrypted DEK source: encrypted DEK source is 1025 bytes, which exceeds the max size \
                 of 1024",
            ),
            (
                DataKeyRef { annotations: [("a.b".to_owned(), vec![0; 32 << 10])].into(), ..data_key() },
                "failed to validate annotations: total size of annotations is 32771, which exceeds the max size of 32768",
            ),
        ];
        for (data_key, expected) in cases {
            assert_eq!(EncryptedObject::read(&written(&data_key, b"data")), Err(expected.to_owned()));
            assert_eq!(data_key.check(), Err(expected.to_owned()));
        }
        let short = DataKeyRef { annotations: [("short".to_owned(), vec![0])].into(), ..data_key() };
        assert!(short.check().expect_err("no domain").starts_with("failed to validate annotations: "));
        let empty = written(&data_key(), b"");
        assert_eq!(EncryptedObject::read(&empty), Err("encrypted data is empty".to_owned()));
        for broken in [&[0x0a, 9][..], &[0xff], &[0x0b], &[0x12, 1, 0xff]] {
            assert_eq!(EncryptedObject::read(broken), Err(BROKEN.to_owned()), "{broken:?}");
        }
        let unknown = [written(&data_key(), b"data"), vec![5 << 3, 7]].concat();
        assert_eq!(EncryptedObject::read(&unknown), Err("unknown encryptedDEKSourceType: 7".to_owned()));
    }

    #[test]
    fn domains_have_two_labels() {
        for (name, is_one) in
            [("a.b", true), ("a.b.", true), ("a", false), ("A.b", false), ("a..b", false), ("-a.b", false)]
        {
            assert_eq!(is_qualified_domain(name), is_one, "{name}");
        }
    }
}
