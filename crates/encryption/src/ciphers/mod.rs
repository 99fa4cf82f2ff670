//! The ciphers, byte for byte as upstream writes them: AES-GCM, AES-CBC with PKCS#7, XSalsa20-Poly1305, and
//! AES-GCM under keys that are derived for each value.
//!
//! In: a key, and a value with the key of the store that it is at. Out: what is kept, or the value. Never: a
//! prefix, which key it is. Keys are not wiped from memory when they are let go: SECURITY.md says so.
//!
//! Source: apiserver v0.36.3 `storage/value/encrypt/aes`, `secretbox`.

mod cbc;
mod gcm;
mod parts;
mod secretbox;
mod seed;

pub use self::cbc::CbcKey;
pub use self::gcm::GcmKey;
pub use self::secretbox::BoxKey;
pub use self::seed::Seed;

pub(crate) use self::parts::random;

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &[u8] = b"0123456789abcdef0123456789ABCDEF";
    const AT: &[u8] = b"/registry/secrets/default/a";

    type Sealed = Result<Vec<u8>, &'static str>;
    type Seal = Box<dyn Fn(&[u8]) -> Sealed>;
    type Open = Box<dyn Fn(&[u8], &[u8]) -> Sealed>;

    fn sealed(seal: impl Fn(&mut Vec<u8>) -> Result<(), &'static str>) -> Sealed {
        let mut kept = b"before".to_vec();
        seal(&mut kept)?;
        Ok(kept.split_off(6))
    }

    /// A cipher by what it does.
    struct Case {
        name: &'static str,
        seal: Seal,
        open: Open,
        // Bytes that it adds to a value of 100.
        adds: usize,
        binds_place: bool,
    }

    fn cases() -> Vec<Case> {
        let mut cases = Vec::new();
        for (name, bytes) in [("gcm128", 16), ("gcm192", 24), ("gcm256", 32)] {
            let [one, other] = [(); 2].map(|()| GcmKey::new(&KEY[..bytes]).expect("a key"));
            cases.push(Case {
                name,
                seal: Box::new(move |plain| sealed(|kept| one.seal(plain, AT, kept))),
                open: Box::new(move |kept, at| other.open(kept, at)),
                adds: 12 + 16,
                binds_place: true,
            });
        }
        for (name, bytes) in [("cbc128", 16), ("cbc192", 24), ("cbc256", 32)] {
            let [one, other] = [(); 2].map(|()| CbcKey::new(&KEY[..bytes]).expect("a key"));
            cases.push(Case {
                name,
                seal: Box::new(move |plain| sealed(|kept| one.seal(plain, kept))),
                open: Box::new(move |kept, _| other.open(kept)),
                adds: 16 + 12,
                binds_place: false,
            });
        }
        let [one, other] = [(); 2].map(|()| BoxKey::new(KEY).expect("a key"));
        cases.push(Case {
            name: "secretbox",
            seal: Box::new(move |plain| sealed(|kept| one.seal(plain, kept))),
            open: Box::new(move |kept, _| other.open(kept)),
            adds: 24 + 16,
            binds_place: false,
        });
        let [one, other] = [(); 2].map(|()| Seed::new(KEY).expect("a seed"));
        cases.push(Case {
            name: "seed",
            seal: Box::new(move |plain| sealed(|kept| one.seal(plain, AT, kept))),
            open: Box::new(move |kept, at| other.open(kept, at)),
            adds: 32 + 12 + 16,
            binds_place: true,
        });
        cases
    }

    #[test]
    fn what_is_sealed_is_opened_and_nothing_of_it_shows() {
        let plain: Vec<u8> = b"secret!".iter().copied().cycle().take(100).collect();
        for Case { name, seal, open, adds, .. } in cases() {
            let kept = seal(&plain).expect("sealed");
            assert_eq!(kept.len(), plain.len() + adds, "{name}");
            assert!(!kept.windows(7).any(|window| window == b"secret!"), "{name}");
            assert_eq!(open(&kept, AT).expect("opened"), plain, "{name}");
            assert_ne!(seal(&plain).expect("sealed"), kept, "{name}: never the same twice");
            assert_eq!(open(&seal(b"").expect("sealed"), AT), Ok(Vec::new()), "{name}");
        }
    }

    #[test]
    fn what_was_changed_moved_or_cut_is_not_opened() {
        let plain = [7; 64];
        for Case { name, seal, open, binds_place, .. } in cases() {
            let kept = seal(&plain).expect("sealed");
            let elsewhere = open(&kept, b"/registry/secrets/default/b");
            assert_eq!(elsewhere.is_err(), binds_place, "{name}");
            for bytes in [0, 1, 11, 15, 27, 39] {
                assert!(open(&kept[..bytes], AT).is_err(), "{name}: {bytes}");
            }
            let is_authentic = !name.starts_with("cbc");
            for place in 0..kept.len() {
                let mut changed = kept.clone();
                changed[place] ^= 1;
                let opened = open(&changed, AT);
                assert!(!is_authentic || opened.is_err(), "{name}: {place}");
                assert_ne!(opened.as_deref(), Ok(plain.as_slice()), "{name}: {place}");
            }
        }
    }

    #[test]
    fn keys_of_other_lengths_are_none() {
        for bytes in [0, 15, 17, 31] {
            assert!(GcmKey::new(&KEY[..bytes]).is_none() && CbcKey::new(&KEY[..bytes]).is_none(), "{bytes}");
            assert!(BoxKey::new(&KEY[..bytes]).is_none() && Seed::new(&KEY[..bytes]).is_none(), "{bytes}");
        }
    }
}
