//! What is said of a body that is no object at all, in kube-apiserver's words.

use crate::Status;

/// 400 for a body that is no object at all.
pub fn unrecognized(kind: &str, error: &dyn std::fmt::Display, body: &[u8]) -> Status {
    let summary = summary(body);
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {error} ({summary})"
    ))
}

/// The beginning of a body, for messages: in hexadecimal unless it looks like JSON.
fn summary(body: &[u8]) -> String {
    const BYTES_MAX: usize = 30;
    if body.is_empty() {
        return "<empty>".into();
    }
    let shown = &body[..body.len().min(BYTES_MAX)];
    let text = match shown {
        [b'{', ..] => String::from_utf8_lossy(shown).into_owned(),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if body.len() > BYTES_MAX { format!("{text} ...") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_summed_up() {
        for (body, want) in [
            ("", "<empty>"),
            ("a: [\n", "613a205b0a"),
            ("{\"a\":", "{\"a\":"),
            ("{0123456789012345678901234567890", "{01234567890123456789012345678 ..."),
        ] {
            assert_eq!(summary(body.as_bytes()), want);
        }
    }
}
