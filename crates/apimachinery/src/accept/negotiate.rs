//! The form to answer in.
//!
//! In: an `Accept` header and the encodings that can be had at this place. Out: the first clause that can be
//! met, or nothing, which is a 406. Never: falls back on an encoding that was not asked for.
//!
//! Source: apiserver v0.36.3 `endpoints/handlers/negotiation`, `endpoints/handlers/rest.go`.

use super::header::{Clause, parse_accept};
use crate::{Reason, Status};

/// An encoding of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Media {
    Json,
    Yaml,
    Protobuf,
}

/// What may be offered at some place.
pub trait Offered {
    /// As `Accept` names it.
    fn media_type(&self) -> &'static str;
    /// Whether a watch can be written in it.
    fn can_stream(&self) -> bool;
    /// Whether there is a Table in it.
    fn has_tables(&self) -> bool;
    /// Whether there are custom resources in it, and not only their metadata.
    fn has_custom_objects(&self) -> bool;
    /// Whether fields can be left out of it ([`Drops`]).
    fn can_drop(&self) -> bool;
}

impl Offered for Media {
    fn media_type(&self) -> &'static str {
        self.content_type()
    }

    fn can_stream(&self) -> bool {
        Media::can_stream(*self)
    }

    fn has_tables(&self) -> bool {
        *self != Media::Protobuf
    }

    fn has_custom_objects(&self) -> bool {
        *self != Media::Protobuf
    }

    fn can_drop(&self) -> bool {
        *self == Media::Json
    }
}

/// A version of `meta.k8s.io`. They differ in nothing but their name, and in where a
/// `PartialObjectMetadataList` has its items in protobuf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    #[default]
    V1,
    V1beta1,
}

impl MetaVersion {
    /// As `apiVersion` names it.
    pub const fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// What the object is turned into on its way out, with group `meta.k8s.io`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AsKind {
    /// Nothing: it stays what it is.
    #[default]
    Object,
    Table,
    PartialObjectMetadata,
    PartialObjectMetadataList,
}

/// What of objects a client does not want: `drop` in its clause, fields with `+` between them. One that
/// nobody knows is none, so that clients may name what later servers know.
///
/// Source: KEP-5958, alpha in v1.37.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Drops {
    /// `metadata.managedFields`
    pub managed_fields: bool,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Choice<M = Media> {
    pub media: M,
    pub as_kind: AsKind,
    /// Of `as_kind`.
    pub meta: MetaVersion,
    pub drops: Drops,
    /// `pretty=1` stood in the clause. The query and the user agent may ask for it as well.
    pub pretty: bool,
    /// `stream=watch` stood in the clause.
    pub stream: bool,
}

impl<M> Choice<M> {
    /// An object as it is.
    const fn plain(media: M) -> Choice<M> {
        let (as_kind, meta) = (AsKind::Object, MetaVersion::V1);
        let drops = Drops { managed_fields: false };
        Choice { media, as_kind, meta, drops, pretty: false, stream: false }
    }
}

impl Media {
    /// As `Content-Type` names it.
    pub const fn content_type(self) -> &'static str {
        match self {
            Media::Json => "application/json",
            Media::Yaml => "application/yaml",
            Media::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// Whether a watch can be written in it.
    pub const fn can_stream(self) -> bool {
        match self {
            Media::Json | Media::Protobuf => true,
            Media::Yaml => false,
        }
    }
}

/// Chooses. `offered` is in our order of preference; it counts where a clause takes several.
///
/// A watch that is chosen in what cannot stream ([`Media::can_stream`]) is to be refused, not looked for
/// further.
///
/// Without a header the first one is chosen.
pub fn negotiate<M: Offered + Copy>(accept: Option<&str>, offered: &[M]) -> Option<Choice<M>> {
    choose(accept, offered, choice)
}

/// Chooses for a custom resource, of which some have nothing but its metadata.
pub fn negotiate_custom<M: Offered + Copy>(accept: Option<&str>, offered: &[M]) -> Option<Choice<M>> {
    choose(accept, offered, |clause, media| {
        choice(clause, media)
            .filter(|choice| choice.media.has_custom_objects() || choice.as_kind != AsKind::Object)
    })
}

/// The encoding for discovery in one document (`APIGroupDiscoveryList`, `apidiscovery.k8s.io/v2`), if the
/// client takes it anywhere in its header; otherwise it wants one of the old documents.
pub fn aggregated_discovery(accept: Option<&str>, offered: &[Media]) -> Option<Media> {
    let accept = accept.filter(|header| !header.is_empty())?;
    let is_wanted = |clause: &Clause| {
        clause.param("as") == Some("APIGroupDiscoveryList")
            && clause.param("g") == Some("apidiscovery.k8s.io")
            && clause.param("v") == Some("v2")
            && clause.param("sv").is_none()
    };
    let found = choose(Some(accept), offered, |clause, media| {
        (is_wanted(clause) && can_stream_as_asked(clause, &media)).then_some(Choice::plain(media))
    });
    found.map(|choice| choice.media)
}

fn choose<M: Offered + Copy>(
    accept: Option<&str>,
    offered: &[M],
    meet: impl Fn(&Clause, M) -> Option<Choice<M>>,
) -> Option<Choice<M>> {
    let Some(accept) = accept.filter(|header| !header.is_empty()) else {
        return Some(Choice::plain(*offered.first()?));
    };
    parse_accept(accept).iter().find_map(|clause| {
        let mut taken = offered.iter().filter(|media| is_taken_by(clause, *media));
        taken.find_map(|&media| meet(clause, media))
    })
}

/// What `clause` asks for in this encoding, if it can be had.
fn choice<M: Offered>(clause: &Clause, media: M) -> Option<Choice<M>> {
    if !can_stream_as_asked(clause, &media) || clause.param("sv").is_some_and(|version| version != "v1") {
        return None;
    }
    let (as_kind, meta) = as_kind(clause, &media)?;
    let drops = if media.can_drop() { drops(clause)? } else { Drops::default() };
    Some(Choice {
        media,
        as_kind,
        meta,
        drops,
        pretty: clause.param("pretty") == Some("1"),
        stream: clause.param("stream").is_some(),
    })
}

fn is_taken_by(clause: &Clause, media: &impl Offered) -> bool {
    let (media_type, subtype) = media.media_type().split_once('/').unwrap_or_default();
    clause.takes(media_type, subtype)
}

fn can_stream_as_asked(clause: &Clause, media: &impl Offered) -> bool {
    clause.param("stream").is_none_or(|schema| schema == "watch" && media.can_stream())
}

fn as_kind(clause: &Clause, media: &impl Offered) -> Option<(AsKind, MetaVersion)> {
    let Some(kind) = clause.param("as") else {
        let is_plain = clause.param("g").is_none() && clause.param("v").is_none();
        return is_plain.then_some((AsKind::Object, MetaVersion::V1));
    };
    let meta = match (clause.param("g"), clause.param("v")) {
        (Some("meta.k8s.io"), Some("v1")) => MetaVersion::V1,
        (Some("meta.k8s.io"), Some("v1beta1")) => MetaVersion::V1beta1,
        _ => return None,
    };
    let kind = match kind {
        "Table" if media.has_tables() => AsKind::Table,
        "PartialObjectMetadata" => AsKind::PartialObjectMetadata,
        "PartialObjectMetadataList" => AsKind::PartialObjectMetadataList,
        _ => return None,
    };
    Some((kind, meta))
}

/// What the clause says to leave out; `None` where it names a field twice.
fn drops(clause: &Clause) -> Option<Drops> {
    let mut fields: Vec<&str> =
        clause.param("drop").into_iter().flat_map(|fields| fields.split('+')).collect();
    fields.sort_unstable();
    let is_sane = fields.windows(2).all(|pair| pair[0] != pair[1]);
    is_sane.then(|| Drops { managed_fields: fields.contains(&"metadata.managedFields") })
}

/// What a client is told that takes nothing of what is offered.
pub fn not_acceptable(offered: &[impl Offered]) -> Status {
    not_acceptable_types(offered.iter().map(|media| media.media_type().to_string()).collect())
}

/// The same for a watch.
pub fn not_acceptable_stream(offered: &[impl Offered]) -> Status {
    let streams = offered.iter().filter(|media| media.can_stream());
    not_acceptable_types(streams.map(|media| format!("{};stream=watch", media.media_type())).collect())
}

fn not_acceptable_types(types: Vec<String>) -> Status {
    let message = format!("only the following media types are accepted: {}", types.join(", "));
    Status::new(Reason::NotAcceptable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Media; 3] = [Media::Json, Media::Yaml, Media::Protobuf];
    const CUSTOM: [Media; 2] = [Media::Json, Media::Yaml];
    const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                           application/json";

    fn check(accept: &str, offered: &[Media], want: Option<(Media, AsKind)>) {
        let got = negotiate(Some(accept), offered).map(|choice| (choice.media, choice.as_kind));
        assert_eq!(got, want, "{accept}");
    }

    #[test]
    fn the_first_clause_that_can_be_met_is_chosen() {
        use AsKind::*;
        use Media::*;
        check(KUBECTL, &ALL, Some((Json, Table)));
        check(
            "application/json;as=Table;v=v1alpha1;g=meta.k8s.io,application/json",
            &ALL,
            Some((Json, Object)),
        );
        check("application/vnd.kubernetes.protobuf,application/json", &ALL, Some((Protobuf, Object)));
        check("application/vnd.kubernetes.protobuf,application/json", &CUSTOM, Some((Json, Object)));
        check(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            &ALL,
            Some((Protobuf, PartialObjectMetadataList)),
        );
        check(
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            &ALL,
            Some((Json, PartialObjectMetadata)),
        );
        check(
            "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,*/*",
            &ALL,
            Some((Json, Object)),
        );
        check("application/yaml", &ALL, Some((Yaml, Object)));
        check("application/json;q=0.1,application/yaml", &ALL, Some((Yaml, Object)));
        check("*/*", &ALL, Some((Json, Object)));
        check("application/*", &[Yaml, Json], Some((Yaml, Object)));
        check("*/*;as=Table;v=v1;g=meta.k8s.io", &[Protobuf, Yaml], Some((Yaml, Table)));
        check("application/json;charset=utf-8;profile=x", &ALL, Some((Json, Object)));
        check("application/json;sv=v1", &ALL, Some((Json, Object)));
        check("text/html,application/xhtml+xml,*/*;q=0.8", &ALL, Some((Json, Object)));
    }

    #[test]
    fn what_cannot_be_met_is_not_replaced() {
        for accept in [
            "text/plain",
            "text/*",
            "application/cbor",
            "application/json;as=Table",
            "application/json;v=v1",
            "application/json;as=Pod;v=v1;g=meta.k8s.io",
            "application/json;sv=v2",
            "application/json;stream=other",
            "application/yaml;stream=watch",
            ",",
        ] {
            check(accept, &ALL, None);
        }
        check("application/vnd.kubernetes.protobuf", &CUSTOM, None);
        assert_eq!(negotiate::<Media>(None, &[]), None);
    }

    #[test]
    fn no_header_is_the_first_offer() {
        for accept in [None, Some("")] {
            let got = negotiate(accept, &[Media::Yaml, Media::Json]);
            assert_eq!(got, Some(Choice::plain(Media::Yaml)));
        }
    }

    #[test]
    fn a_watch_is_not_had_in_yaml() {
        let media = |accept| {
            let choice = negotiate(Some(accept), &ALL).filter(|choice| choice.media.can_stream());
            choice.map(|choice| (choice.media, choice.stream))
        };
        assert_eq!(media("application/json;stream=watch"), Some((Media::Json, true)));
        assert_eq!(media("application/vnd.kubernetes.protobuf;stream=watch"), Some((Media::Protobuf, true)));
        assert_eq!(media("application/json"), Some((Media::Json, false)));
        assert_eq!(media("application/yaml,application/json"), None);
        assert_eq!(media("application/yaml;stream=watch,application/json"), Some((Media::Json, false)));
    }

    #[test]
    fn fields_are_left_out_where_that_can_be() {
        let drops = |accept: &str| negotiate(Some(accept), &ALL).map(|choice| choice.drops.managed_fields);
        for (said, want) in [
            ("application/json", Some(false)),
            ("application/json;drop=metadata.managedFields", Some(true)),
            ("application/json; drop=metadata.managedFields;stream=watch", Some(true)),
            ("application/json;drop=metadata.annotations+metadata.managedFields+x", Some(true)),
            ("*/*;drop=metadata.managedFields", Some(true)),
            ("application/json;as=Table;g=meta.k8s.io;v=v1;drop=metadata.managedFields", Some(true)),
            ("application/json;drop=", Some(false)),
            ("application/json;drop=metadata.managedfields", Some(false)),
            ("application/json;drop=metadata.managedFields+metadata.managedFields", None),
            ("application/yaml;drop=metadata.managedFields", Some(false)),
            ("application/vnd.kubernetes.protobuf;drop=metadata.managedFields", Some(false)),
        ] {
            assert_eq!(drops(said), want, "{said}");
        }
    }

    #[test]
    fn both_versions_of_a_transformation_are_had() {
        let version =
            |accept: &str| negotiate(Some(accept), &ALL).map(|choice| (choice.as_kind, choice.meta));
        let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
        assert_eq!(version(table), Some((AsKind::Table, MetaVersion::V1)));
        assert_eq!(version(&format!("{table}beta1")), Some((AsKind::Table, MetaVersion::V1beta1)));
        assert_eq!(version(&format!("{table}beta2")), None);
    }

    #[test]
    fn a_custom_resource_has_its_metadata_alone_in_protobuf() {
        use AsKind::*;
        let protobuf = "application/vnd.kubernetes.protobuf";
        let partial = format!("{protobuf};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        for (accept, want) in [
            (protobuf.to_owned(), None),
            (format!("{protobuf},application/json"), Some((Media::Json, Object))),
            (format!("{protobuf},*/*"), Some((Media::Json, Object))),
            (partial.clone(), Some((Media::Protobuf, PartialObjectMetadata))),
            (format!("{protobuf},{partial}"), Some((Media::Protobuf, PartialObjectMetadata))),
        ] {
            let got = negotiate_custom(Some(&accept), &ALL).map(|choice| (choice.media, choice.as_kind));
            assert_eq!(got, want, "{accept}");
        }
    }

    #[test]
    fn pretty_is_asked_for_with_1() {
        let pretty = |accept| negotiate(Some(accept), &ALL).map(|choice| choice.pretty);
        assert_eq!(pretty("application/json;pretty=1"), Some(true));
        assert_eq!(pretty("application/json;pretty=true"), Some(false));
    }

    #[test]
    fn discovery_in_one_document_is_found_behind_older_forms() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        let find = |accept: &str| aggregated_discovery(Some(accept), &CUSTOM);
        assert_eq!(find(&format!("{v2},{beta},application/json")), Some(Media::Json));
        assert_eq!(find(&format!("application/json,{beta},{v2}")), Some(Media::Json));
        assert_eq!(find(&format!("{beta},application/json")), None);
        assert_eq!(
            find("application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
            None
        );
        assert_eq!(find("*/*"), None);
        assert_eq!(aggregated_discovery(None, &CUSTOM), None);
    }

    #[test]
    fn a_refusal_lists_what_there_is() {
        assert_eq!(
            not_acceptable(&ALL).message,
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf"
        );
        assert_eq!(
            not_acceptable_stream(&ALL).message,
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch"
        );
    }
}
