//! Certificates written as PEM.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Base64 characters on a line (RFC 7468).
const LINE: usize = 64;

/// A certificate in DER as PEM.
pub(crate) fn certificate(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut out = "-----BEGIN CERTIFICATE-----\n".to_owned();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = after;
    }
    out + "-----END CERTIFICATE-----\n"
}
