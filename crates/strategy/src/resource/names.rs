//! Names of pools, attributes and shares.
//!
//! In: a name. Out: causes. Never: knows which ones there are.

#[cfg(test)]
mod tests;

use crate::core::pod::csi_driver_name;
use crate::field::{Causes, Path};
use crate::format;

const POOL_BYTES_MAX: usize = 253;
const IDENTIFIER_BYTES_MAX: usize = 32;
/// A domain, a slash and an identifier.
pub const QUALIFIED_BYTES_MAX: usize = 63 + 1 + IDENTIFIER_BYTES_MAX;

/// `rack-1/host-2`: subdomains between slashes.
pub fn pool(name: &str, at: &Path<'_>, causes: &mut Causes) {
    if name.is_empty() {
        return causes.required(at, "");
    }
    if name.len() > POOL_BYTES_MAX {
        causes.too_long(at, POOL_BYTES_MAX);
    }
    for part in name.split('/') {
        causes.faults(at, part, format::dns1123_subdomain(part));
    }
}

/// `model`, `vendor.com/model`. Names with more slashes are let through, as upstream does.
pub fn qualified(name: &str, at: &Path<'_>, causes: &mut Causes) {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [id] => identifier(id, at, causes),
        [domain, id] => {
            match domain {
                "" => causes.invalid(at, "", "the domain must not be empty"),
                domain => csi_driver_name(domain, at, causes),
            }
            match id {
                "" => causes.invalid(at, "", "the name must not be empty"),
                id => identifier(id, at, causes),
            }
        }
        _ => {}
    }
}

/// `vendor.com/model`
pub fn fully_qualified(name: &str, at: &Path<'_>, causes: &mut Causes) {
    qualified(name, at, causes);
    if !name.contains('/') {
        let detail = "a fully qualified name must be a domain and a name separated by a slash";
        causes.invalid(at, name, detail);
    }
}

fn identifier(id: &str, at: &Path<'_>, causes: &mut Causes) {
    if id.len() > IDENTIFIER_BYTES_MAX {
        causes.too_long(at, IDENTIFIER_BYTES_MAX);
    }
    if let Some(fault) = format::c_identifier(id) {
        causes.invalid(at, id, fault);
    }
}

/// An UUID in the form that Kubernetes gives them.
pub fn uuid(uid: &str, at: &Path<'_>, causes: &mut Causes) {
    if let Some(fault) = uuid_fault(uid) {
        causes.invalid(at, uid, &format!("error validating uid: {fault}"));
    } else if uid.len() != 36 || uid.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                      hexadecimal characters";
        causes.invalid(at, uid, detail);
    }
}

/// What google/uuid has against a text in any of the forms that it reads.
fn uuid_fault(uid: &str) -> Option<String> {
    let malformed = Some("invalid UUID format".to_string());
    let hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let bytes = uid.as_bytes();
    let dashed = match bytes.len() {
        32 => return if hex(bytes) { None } else { malformed },
        36 => bytes,
        38 => match bytes {
            [b'{', inner @ .., b'}'] => inner,
            _ => return Some("invalid bracketed UUID format".into()),
        },
        45 if bytes[..9].eq_ignore_ascii_case(b"urn:uuid:") => &bytes[9..],
        45 => {
            let prefix = String::from_utf8_lossy(&bytes[..9]).into_owned();
            return Some(format!("invalid urn prefix: {}", forebay_apimachinery::json::go_quote(&prefix)));
        }
        length => return Some(format!("invalid UUID length: {length}")),
    };
    let good = dashed.iter().enumerate().all(|(index, byte)| match index {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    if good { None } else { malformed }
}

/// Whether a text is a version as semver.org has it.
pub fn is_semver(text: &str) -> bool {
    let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
    let number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let pre_word =
        |part: &str| word(part) && (number(part) || !part.bytes().all(|byte| byte.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre.is_none_or(|pre| pre.split('.').all(pre_word))
        && build.is_none_or(|build| build.split('.').all(word))
}

/// A key as it stands in a path: what is too long is cut in its middle.
pub fn shown_key(key: &str, bytes_max: usize) -> String {
    if key.len() <= bytes_max {
        return key.to_string();
    }
    let kept = bytes_max - 3;
    let (mut head, mut tail) = (kept.div_ceil(2), key.len() - kept / 2);
    while !key.is_char_boundary(head) {
        head -= 1;
    }
    while !key.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}...{}", &key[..head], &key[tail..])
}
