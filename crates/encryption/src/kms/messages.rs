//! The messages of `v2.KeyManagementService`.
//!
//! In: requests as values. Out: their bytes; and answers, read.
//! Source: kms v0.36.3 `apis/v2/api.proto`: field numbers.

use std::collections::BTreeMap;

use bytes::Bytes;
use forebay_grpc::proto::{Fields, Malformed, Message};

/// The methods, as metrics name them too.
pub const STATUS: &str = "/v2.KeyManagementService/Status";
pub const DECRYPT: &str = "/v2.KeyManagementService/Decrypt";
pub const ENCRYPT: &str = "/v2.KeyManagementService/Encrypt";

/// What a plugin says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginStatus {
    pub version: String,
    pub healthz: String,
    pub key_id: String,
}

/// What it made of a seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncryptedSeed {
    pub ciphertext: Vec<u8>,
    pub key_id: String,
    pub annotations: BTreeMap<String, Vec<u8>>,
}

pub fn encrypt(plaintext: &[u8], uid: &str) -> Vec<u8> {
    Message::default().bytes(1, plaintext).bytes(2, uid.as_bytes()).finish()
}

pub fn decrypt(
    ciphertext: &[u8],
    uid: &str,
    key_id: &str,
    annotations: &BTreeMap<String, Vec<u8>>,
) -> Vec<u8> {
    let message =
        Message::default().bytes(1, ciphertext).bytes(2, uid.as_bytes()).bytes(3, key_id.as_bytes());
    with_annotations(message, annotations).finish()
}

/// The same with field 4.
pub fn with_annotations(message: Message, annotations: &BTreeMap<String, Vec<u8>>) -> Message {
    annotations.iter().fold(message, |message, (name, value)| {
        message.message(4, Message::default().bytes(1, name.as_bytes()).bytes(2, value))
    })
}

pub fn read_status(answer: Bytes) -> Result<PluginStatus, Malformed> {
    let (mut read, mut fields) = (PluginStatus::default(), Fields::of(answer));
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => read.version = content.text(),
            2 => read.healthz = content.text(),
            3 => read.key_id = content.text(),
            _ => {}
        }
    }
    Ok(read)
}

pub fn read_encrypted(answer: Bytes) -> Result<EncryptedSeed, Malformed> {
    let (mut read, mut fields) = (EncryptedSeed::default(), Fields::of(answer));
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => read.ciphertext = content.bytes().to_vec(),
            2 => read.key_id = content.text(),
            3 => {
                let (name, value) = annotation(content.bytes())?;
                read.annotations.insert(name, value);
            }
            _ => {}
        }
    }
    Ok(read)
}

pub fn read_decrypted(answer: Bytes) -> Result<Bytes, Malformed> {
    let (mut plaintext, mut fields) = (Bytes::new(), Fields::of(answer));
    while let Some((field, content)) = fields.next_field()? {
        if field == 1 {
            plaintext = content.bytes();
        }
    }
    Ok(plaintext)
}

fn annotation(entry: Bytes) -> Result<(String, Vec<u8>), Malformed> {
    let (mut name, mut value, mut fields) = (String::new(), Vec::new(), Fields::of(entry));
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => name = content.text(),
            2 => value = content.bytes().to_vec(),
            _ => {}
        }
    }
    Ok((name, value))
}
