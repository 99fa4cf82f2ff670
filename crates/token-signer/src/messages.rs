//! The messages of `v1.ExternalJWTSigner`.
//!
//! In: claims. Out: a request's bytes; and answers, read.
//! Source: externaljwt v0.36.3 `apis/v1/api.proto`: field numbers.

use bytes::Bytes;
use forebay_grpc::proto::{FieldContent, Fields, Malformed, Message};

/// The methods, as metrics name them too.
pub const SIGN: &str = "/v1.ExternalJWTSigner/Sign";
pub const FETCH_KEYS: &str = "/v1.ExternalJWTSigner/FetchKeys";
pub const METADATA: &str = "/v1.ExternalJWTSigner/Metadata";

/// What stands around claims in a token, each in base64url.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signed {
    pub header: String,
    pub signature: String,
}

/// What a signer says of its keys, not judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedKeys {
    pub keys: Vec<FetchedKey>,
    /// When it had read them: seconds since 1970, and nanoseconds.
    pub at: Option<(i64, i32)>,
    pub refresh_hint_seconds: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchedKey {
    pub id: String,
    pub der: Bytes,
    pub is_excluded: bool,
}

/// - `claims`: in base64url.
pub fn sign(claims: &str) -> Vec<u8> {
    Message::default().bytes(1, claims.as_bytes()).finish()
}

pub fn read_signed(answer: Bytes) -> Result<Signed, Malformed> {
    let (mut read, mut fields) = (Signed::default(), Fields::of(answer));
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => read.header = text(content)?,
            2 => read.signature = text(content)?,
            _ => {}
        }
    }
    Ok(read)
}

/// - `keys_max`: one more key is kept, and none beyond that.
pub fn read_keys(answer: Bytes, keys_max: usize) -> Result<FetchedKeys, Malformed> {
    let (mut read, mut fields) = (FetchedKeys::default(), Fields::of(answer));
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 if read.keys.len() <= keys_max => read.keys.push(key(content.bytes())?),
            2 => read.at = Some(timestamp(content.bytes())?),
            3 => read.refresh_hint_seconds = content.number().cast_signed(),
            _ => {}
        }
    }
    Ok(read)
}

fn key(message: Bytes) -> Result<FetchedKey, Malformed> {
    let (mut read, mut fields) = (FetchedKey::default(), Fields::of(message));
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => read.id = text(content)?,
            2 => read.der = content.bytes(),
            3 => read.is_excluded = content.is_true(),
            _ => {}
        }
    }
    Ok(read)
}

fn timestamp(message: Bytes) -> Result<(i64, i32), Malformed> {
    let (mut read, mut fields) = ((0, 0), Fields::of(message));
    while let Some((field, content)) = fields.next_field()? {
        match field {
            1 => read.0 = content.number().cast_signed(),
            // Of an int32 the lower half counts.
            2 => read.1 = content.number() as i32,
            _ => {}
        }
    }
    Ok(read)
}

/// The longest life of a token in seconds.
pub fn read_metadata(answer: Bytes) -> Result<i64, Malformed> {
    let (mut seconds, mut fields) = (0, Fields::of(answer));
    while let Some((field, content)) = fields.next_field()? {
        if field == 1 {
            seconds = content.number().cast_signed();
        }
    }
    Ok(seconds)
}

/// What is no UTF-8 is no text of proto3.
fn text(content: FieldContent) -> Result<String, Malformed> {
    String::from_utf8(content.bytes().into()).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use forebay_fuzz::{Corpus, run};

    use super::*;

    #[test]
    fn answers_are_read_as_they_are_written() {
        let at = Message::default().number(1, 5).number(2, 7);
        let told = |id: &str, is_excluded| {
            Message::default().bytes(1, id.as_bytes()).bytes(2, b"der").flag(3, is_excluded)
        };
        let answer =
            Message::default().message(1, told("a", false)).message(2, at).message(1, told("b", true));
        let answer = Bytes::from(answer.number(3, 60).finish());
        let of = |id: &str, is_excluded| FetchedKey {
            id: id.into(),
            der: Bytes::from_static(b"der"),
            is_excluded,
        };
        let all = FetchedKeys {
            keys: vec![of("a", false), of("b", true)],
            at: Some((5, 7)),
            refresh_hint_seconds: 60,
        };
        assert_eq!(read_keys(answer.clone(), 9), Ok(all));
        let few = read_keys(answer, 0).expect("keys");
        assert_eq!(few.keys, [of("a", false)], "enough to see that there are too many");
        let negative = Message::default().number(3, (-5_i64).cast_unsigned()).finish();
        assert_eq!(read_keys(negative.into(), 9).expect("keys").refresh_hint_seconds, -5);
        let signed = Message::default().bytes(1, b"h").bytes(2, b"s").finish();
        assert_eq!(read_signed(signed.into()), Ok(Signed { header: "h".into(), signature: "s".into() }));
        let no_text = Message::default().bytes(1, &[0xff]).finish();
        assert_eq!(read_signed(no_text.into()), Err(Malformed));
        assert_eq!(read_metadata(Message::default().number(1, 600).finish().into()), Ok(600));
        assert_eq!(read_metadata(Bytes::new()), Ok(0));
        assert_eq!(sign("abc"), b"\x0a\x03abc");
    }

    #[test]
    fn fuzz_answers_of_signers() {
        let inputs: &[&[u8]] =
            &[b"\x0a\x0a\x0a\x01a\x12\x03der\x18\x01\x12\x04\x08\x05\x10\x07\x18\x3c", b"\x0a\x01h\x12\x01s"];
        run("signers", &Corpus { inputs, ..Corpus::default() }, |input| {
            let answer = || Bytes::copy_from_slice(input);
            let keys = read_keys(answer(), 2).map(|read| read.keys.len());
            assert!(keys.unwrap_or(0) <= 3);
            (keys.is_ok(), read_signed(answer()).is_ok(), read_metadata(answer()).is_ok())
        });
    }
}
