//! Base64, the standard alphabet with padding, for the data of Secrets and ConfigMaps.
//!
//! In: text or bytes. Out: the other. Never: base64 that the codec has not made canonical.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What a byte stands for; what is no digit stands for nothing.
static DIGITS: [Option<u8>; 256] = {
    let (mut digits, mut at) = ([None; 256], 0);
    while at < ALPHABET.len() {
        digits[ALPHABET[at] as usize] = Some(at as u8);
        at += 1;
    }
    digits
};

/// Encodes bytes.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let digit = (group >> (18 - 6 * position)) as usize & 63;
            out.push(if position <= chunk.len() { char::from(ALPHABET[digit]) } else { '=' });
        }
    }
    out
}

/// Decodes text; what is no digit is skipped.
pub fn decode(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(decoded_len(text));
    let (mut group, mut bits) = (0u32, 0);
    for digit in text.bytes().filter_map(|byte| DIGITS[usize::from(byte)]) {
        group = group << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((group >> bits) as u8);
            group &= (1 << bits) - 1;
        }
    }
    out
}

/// How many bytes the text stands for.
pub fn decoded_len(text: &str) -> usize {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3).saturating_sub(padding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for (plain, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text), plain.as_bytes());
            assert_eq!(decoded_len(text), plain.len());
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
    }
}
