//! Which documents there are, and how each is made.
//!
//! In: a catalog and a document's name. Out: the document, and a fingerprint of what it is made from, which
//! tells whether it has to be made again. Never: kept.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use forebay_catalog::{Catalog, Served};
use forebay_schema::builtin::table;
use forebay_schema::openapi::Kinds;
use sha2::{Digest, Sha256};

use super::contents::{Contents, Subject, in_version, subjects};
use super::packed::{Packed, Packer};
use super::part::OpenApiPart;
use super::{custom, json, proto};

/// The name of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    V2Json,
    V2Proto,
    V3(Subject),
}

/// What a document is made from, in short.
pub type Fingerprint = [u8; 32];

/// Makes a document.
///
/// - `parts`: what other servers say of themselves, which stands in those of v2.
pub fn make(catalog: &Catalog, name: &Name, parts: &[Arc<OpenApiPart>]) -> Packed {
    // The table never changes.
    static KINDS: OnceLock<Kinds> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| Kinds::new(table()));
    let mut out = Packer::default();
    match name {
        Name::V3(subject) => json::v3(&Contents::of(catalog, subject), kinds, &mut out),
        Name::V2Json => json::v2(&Contents::of_all(catalog, &subjects(catalog)), kinds, parts, &mut out),
        Name::V2Proto => proto::v2(&Contents::of_all(catalog, &subjects(catalog)), kinds, parts, &mut out),
    }
    out.finish()
}

/// The fingerprint of a document.
pub fn fingerprint(catalog: &Catalog, name: &Name, parts: &[Arc<OpenApiPart>]) -> Fingerprint {
    let mut digest = Sha256::new();
    match name {
        Name::V3(Subject::Version { group, version }) => {
            in_version(catalog, group, version).for_each(|served| add(served, &mut digest));
        }
        // Their content is fixed.
        Name::V3(_) => {}
        Name::V2Json | Name::V2Proto => {
            catalog.iter().for_each(|served| add(served, &mut digest));
            digest.update(OpenApiPart::fingerprint(parts));
        }
    }
    digest.finalize().into()
}

/// The fingerprints of all documents of v3, in one pass.
pub fn fingerprints(catalog: &Catalog) -> BTreeMap<Subject, Fingerprint> {
    let mut digests: BTreeMap<Subject, Sha256> =
        subjects(catalog).into_iter().map(|subject| (subject, Sha256::new())).collect();
    for served in catalog.iter() {
        let subject =
            Subject::Version { group: served.group().to_string(), version: served.gvr.version.to_string() };
        if let Some(digest) = digests.get_mut(&subject) {
            add(served, digest);
        }
    }
    digests.into_iter().map(|(subject, digest)| (subject, digest.finalize().into())).collect()
}

/// All of a resource that shows in a document.
fn add(served: &Served, digest: &mut Sha256) {
    let mut text = |text: &str| {
        digest.update((text.len() as u64).to_be_bytes());
        digest.update(text);
    };
    for part in
        [&served.gvr.group, &served.gvr.version, &served.gvr.resource, &served.gvk.kind, &served.list_kind]
    {
        text(part);
    }
    text(if served.namespaced { "namespaced" } else { "cluster" });
    text(&served.verbs.join(","));
    for subresource in &served.subresources {
        let gvk = &subresource.gvk;
        [&subresource.name, &gvk.group, &gvk.version, &gvk.kind].into_iter().for_each(|part| text(part));
        text(&subresource.verbs.join(","));
    }
    custom::selectable_fields(served).iter().for_each(|path| text(path));
    text(custom::schema_text(served).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_ins;

    #[test]
    fn fingerprints_are_the_same_alone_and_together() {
        let catalog = built_ins();
        let all = fingerprints(&catalog);
        assert_eq!(
            all.keys().cloned().collect::<std::collections::BTreeSet<_>>(),
            subjects(&catalog).into_iter().collect()
        );
        for (subject, together) in all {
            assert_eq!(fingerprint(&catalog, &Name::V3(subject.clone()), &[]), together, "{subject:?}");
        }
    }
}
