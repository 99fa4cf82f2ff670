//! What an object may be called, and how a name is made up.
//!
//! In: a name and its kind's rule; a source of randomness. Out: faults; a name. Never: knows which names are
//! taken.

use forebay_apimachinery::selector::dns1123_subdomain_faults;

use super::{address, format};

/// What a kind asks of its objects' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// `a.b-c`.
    Subdomain,
    /// `a-b`.
    Label,
    /// What may stand in a URL path: `system:node`.
    PathSegment,
    /// The same, for what precedes a generated ending, too.
    Rbac,
    /// As `Subdomain`, said in the words of declarative validation, and `generateName` is not looked at.
    LongName,
    /// An address in canonical form.
    Ip,
    /// The kind itself looks at names, before the rest of the metadata.
    Own,
}

impl NameRule {
    /// What is wrong with `name`.
    pub fn faults(self, name: &str) -> Vec<String> {
        self.faults_of(name, false)
    }

    /// What is wrong with `base` as the beginning of a made-up name.
    pub fn generate_faults(self, base: &str) -> Vec<String> {
        self.faults_of(base, true)
    }

    fn faults_of(self, name: &str, prefix: bool) -> Vec<String> {
        let masked = (prefix && self != NameRule::Ip).then(|| mask_trailing_dash(name)).flatten();
        let name = masked.as_deref().unwrap_or(name);
        match self {
            NameRule::Subdomain => format::dns1123_subdomain(name),
            NameRule::Label => format::dns1123_label(name),
            NameRule::PathSegment => format::path_segment(name, prefix),
            NameRule::Rbac => format::path_segment(name, false),
            NameRule::Own => Vec::new(),
            NameRule::LongName if prefix => Vec::new(),
            NameRule::LongName => dns1123_subdomain_faults(name),
            NameRule::Ip => address::strict_ip_faults(name),
        }
    }
}

/// A dash at the end of a base is fine: something follows. Upstream also drops the character before it, so
/// that one is never judged.
fn mask_trailing_dash(name: &str) -> Option<String> {
    let cut = name.len().checked_sub(2)?;
    (name.ends_with('-') && name.is_char_boundary(cut)).then(|| format!("{}a", &name[..cut]))
}

/// Characters that make no words and are not mistaken for one another.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_BYTES_MAX: usize = 63;
const RANDOM_BYTES: usize = 5;

/// Makes a name: `base`, cut to 58 bytes, and five random characters.
///
/// - `random`: a number below its argument, each equally likely.
///
/// Source: apiserver v0.36.3 `storage/names`; apimachinery `util/rand`.
pub fn generate_name(base: &str, mut random: impl FnMut(u64) -> u64) -> String {
    let mut cut = base.len().min(NAME_BYTES_MAX - RANDOM_BYTES);
    while !base.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut name = String::with_capacity(cut + RANDOM_BYTES);
    name.push_str(&base[..cut]);
    for _ in 0..RANDOM_BYTES {
        let at = random(ALPHABET.len() as u64) as usize % ALPHABET.len();
        name.push(char::from(ALPHABET[at]));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_is_its_base_and_five_characters() {
        let mut next = 0;
        let mut random = |below: u64| {
            next += 7;
            next % below
        };
        assert_eq!(generate_name("web-", &mut random), "web-ks4cl");
        assert_eq!(generate_name(&"a".repeat(80), &mut random).len(), 63);
        assert_eq!(generate_name(&format!("{}é", "a".repeat(57)), |_| 0), format!("{}bbbbb", "a".repeat(57)));
    }

    #[test]
    fn a_base_may_end_in_a_dash() {
        assert!(NameRule::Subdomain.generate_faults("web-").is_empty());
        assert!(!NameRule::Subdomain.faults("web-").is_empty());
        assert!(!NameRule::Label.generate_faults("-").is_empty());
        assert!(NameRule::PathSegment.generate_faults("..").is_empty());
        assert!(!NameRule::Subdomain.generate_faults("é-").is_empty());
    }
}
