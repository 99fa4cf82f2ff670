//! The tag of an image, which decides how eagerly it is pulled.
//!
//! In: an image's name. Out: its pull policy. Never: a registry.
//!
//! Source: kubernetes v1.36.3 `util/parsers`, distribution's reference grammar.

/// How long the path of a repository may be, in bytes.
const PATH_BYTES_MAX: usize = 255;

/// `Always` for what is, or defaults to, `latest`; what is no image name is left to the kubelet.
pub fn pull_policy(image: &str) -> &'static str {
    if is_latest(image) { "Always" } else { "IfNotPresent" }
}

fn is_latest(image: &str) -> bool {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    let last = named.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match named[last..].find(':') {
        Some(colon) => (&named[..last + colon], Some(&named[last + colon + 1..])),
        None => (named, None),
    };
    let is_default = tag.is_none() && digest.is_none();
    (is_default || tag == Some("latest")) && is_name(name)
}

/// Whether it is a repository, with or without a registry before it.
fn is_name(name: &str) -> bool {
    let (domain, path) = match name.split_once('/') {
        Some((domain, path)) if is_domain(domain) => (domain, path),
        _ => ("docker.io", name),
    };
    let is_official = matches!(domain, "docker.io" | "index.docker.io") && !path.contains('/');
    let before = if is_official { "library/".len() } else { 0 };
    if before + path.len() > PATH_BYTES_MAX {
        return false;
    }
    let is_id = path.len() == 64 && path.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    !is_id && path.split('/').all(is_component)
}

fn is_domain(domain: &str) -> bool {
    domain.contains(['.', ':'])
        || domain == "localhost"
        || domain.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn is_component(component: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: u8| edge(byte) || matches!(byte, b'.' | b'_' | b'-');
    match component.as_bytes() {
        [] => false,
        bytes => edge(bytes[0]) && edge(bytes[bytes.len() - 1]) && bytes.iter().all(|byte| inner(*byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_no_image() {
        let of = |length: usize| "a".repeat(length);
        for (image, policy) in [
            (of(247), "Always"),
            (of(248), "IfNotPresent"),
            (format!("docker.io/{}", of(248)), "IfNotPresent"),
            (format!("a/{}", of(253)), "Always"),
            (format!("a/{}", of(254)), "IfNotPresent"),
            (format!("example.com/{}", of(255)), "Always"),
            (format!("example.com/{}:latest", of(256)), "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(&image), policy, "{image}");
        }
    }

    #[test]
    fn only_what_is_latest_is_always_pulled() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.2", "IfNotPresent"),
            ("localhost:5000/nginx", "Always"),
            ("localhost:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:abc", "IfNotPresent"),
            ("nginx:latest@sha256:abc", "Always"),
            ("Nginx", "IfNotPresent"),
            ("EXAMPLE/nginx", "Always"),
            ("", "IfNotPresent"),
            ("a//b", "IfNotPresent"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
