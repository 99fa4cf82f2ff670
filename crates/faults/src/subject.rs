//! A client under test: informers on ConfigMaps, one a namespace, all as one program would have them.
//!
//! In: a [`Setting`]. Out: what each informer [holds](InformerState) when it is asked. Never: a look that
//! waits for the server.

use std::time::Duration;

use serde::Deserialize;

use crate::Error;

/// What a client is started with.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The proxy's port on 127.0.0.1.
    pub port: u16,
    /// The proxy by its [name](crate::proxy::NAME), for clients whose resolution of names is ours.
    pub url: String,
    /// Whom to trust, in PEM. The proxy lets everybody in.
    pub authority: String,
    /// One informer each.
    pub namespaces: Vec<String>,
    /// The client's own timeout of a whole request, or of its silence; its default otherwise.
    pub timeout: Option<Duration>,
}

/// What an informer holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct InformerState {
    pub namespace: String,
    pub synced: bool,
    pub objects: u64,
    /// [`Digest`] of names and resourceVersions.
    pub digest: u64,
    /// The highest resourceVersion of an object that was told: a list, an event, a deletion.
    pub seen: u64,
    /// When something was told last, in ms since 1970; 0 before.
    pub last_event_ms: u64,
}

/// Whether the server's name resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    Resolve,
    Fail,
}

/// A running client. Dropping it ends it.
pub trait Subject: Send {
    /// What each informer holds now, one for each namespace, in any order.
    ///
    /// # Errors
    /// The client is broken: not that it is out of date.
    fn look(&mut self) -> Result<Vec<InformerState>, Error>;

    /// From now on the server's name resolves, or does not. Where that cannot be had it does nothing: the
    /// proxy's port is gone too.
    ///
    /// # Errors
    /// As for [`Subject::look`].
    fn resolve(&mut self, _names: Names) -> Result<(), Error> {
        Ok(())
    }
}

/// How a client is started. It returns at once; informers sync by themselves.
pub type Start = fn(&Setting) -> Result<Box<dyn Subject>, Error>;

/// A digest of what a store holds that does not depend on an order: the sum of FNV-1a of `name`, a 0 byte and
/// `resourceVersion`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(pub u64);

impl Digest {
    pub fn add(&mut self, name: &str, resource_version: &str) {
        let bytes = name.bytes().chain([0]).chain(resource_version.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        self.0 = self.0.wrapping_add(hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_does_not_depend_on_the_order_but_on_all_else() {
        let of = |pairs: &[(&str, &str)]| {
            let mut digest = Digest::default();
            pairs.iter().for_each(|(name, revision)| digest.add(name, revision));
            digest
        };
        assert_eq!(of(&[("a", "1"), ("b", "2")]), of(&[("b", "2"), ("a", "1")]));
        for other in [&[("a", "1")][..], &[("a", "2"), ("b", "1")], &[("a", "1"), ("b", "3")]] {
            assert_ne!(of(&[("a", "1"), ("b", "2")]), of(other));
        }
        // As Go's hash/fnv has it.
        assert_eq!(of(&[("a", "1")]).0, 0xe5d2_e819_0426_ecef);
    }
}
