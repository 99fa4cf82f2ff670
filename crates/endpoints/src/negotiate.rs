//! The form of an answer: encoding, transformation, indentation.
//!
//! In: the `Accept` header, `pretty` in the query, the user agent. Out: [`Form`], or a 406. Two layers, as in
//! kube-apiserver: the path takes or refuses the media types as they stand, then what the clauses ask for is
//! looked at.

use forebay_apimachinery::Reason;
use forebay_apimachinery::Status;
use forebay_apimachinery::accept::{
    AsKind, Choice, Drops, Media, MetaVersion, Offered, negotiate, negotiate_custom, not_acceptable,
    not_acceptable_stream, parse_accept,
};
use forebay_apimachinery::options::Query;
use forebay_catalog::Served;
use forebay_reads::EventFormat;
use http::{HeaderMap, header};

use crate::status::{Failure, OFFERED};

pub use forebay_pieces::Form;

/// How a watch's events are written.
#[derive(Clone, Copy)]
pub struct StreamForm {
    pub format: &'static EventFormat,
    pub as_kind: AsKind,
    /// Of `as_kind`.
    pub meta: MetaVersion,
    pub drops: Drops,
}

/// What a watch is offered in.
#[derive(Clone, Copy)]
enum Streamed {
    Events(&'static EventFormat),
    /// That of an answer, which is chosen in vain.
    Whole(Media),
}

impl Streamed {
    fn offered(&self) -> &dyn Offered {
        match self {
            Streamed::Events(format) => format,
            Streamed::Whole(media) => media,
        }
    }
}

impl Offered for Streamed {
    fn media_type(&self) -> &'static str {
        self.offered().media_type()
    }

    fn can_stream(&self) -> bool {
        matches!(self, Streamed::Events(_))
    }

    fn has_tables(&self) -> bool {
        self.offered().has_tables()
    }

    fn has_custom_objects(&self) -> bool {
        self.offered().has_custom_objects()
    }

    fn can_drop(&self) -> bool {
        self.offered().can_drop()
    }
}

/// What a built-in resource's path has for an object, and for a list or a watch.
const OBJECT_TYPES: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const LIST_TYPES: [&str; 5] = [
    OBJECT_TYPES[0],
    OBJECT_TYPES[1],
    OBJECT_TYPES[2],
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// What is answered: decides on the transformations that make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    Object,
    List,
}

/// The header, if there is one that says something.
pub fn accept(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
}

/// Whether the client takes gzip.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|clause| {
        let (name, params) = clause.split_once(';').unwrap_or((clause, ""));
        let refused = params.trim().strip_prefix("q=").is_some_and(|q| q.trim().parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

/// Whether people are looking: `?pretty=true`, or a tool that people look with.
pub fn is_pretty(headers: &HeaderMap, query: &Query) -> bool {
    match query.first("pretty").filter(|value| !value.is_empty()) {
        Some(value) => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => {
            let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("");
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| agent.starts_with(tool))
        }
    }
}

/// The form of an object or a list of `served`.
///
/// # Errors
/// 406.
pub fn object(
    headers: &HeaderMap,
    query: &Query,
    served: &Served,
    answered: Answered,
) -> Result<Form, Failure> {
    let accept = accept(headers);
    let types: &[&str] = match answered {
        Answered::Object => &OBJECT_TYPES,
        Answered::List => &LIST_TYPES,
    };
    path_takes(accept, served, types)?;
    let has_tables = served.store.is_some() || served.is("", "componentstatuses");
    let kept = accept.filter(|_| !has_tables).map(without_tables);
    if kept.as_deref().is_some_and(|kept| kept.trim().is_empty()) {
        return Err(not_acceptable(&OFFERED).into());
    }
    let choice = choose(kept.as_deref().or(accept), headers, served, &OFFERED)?;
    let wanted = match (choice.as_kind, answered) {
        (AsKind::PartialObjectMetadata, Answered::List) => Some(("PartialObjectMetadata", "a list")),
        (AsKind::PartialObjectMetadataList, Answered::Object) => {
            Some(("PartialObjectMetadataList", "not a list"))
        }
        _ => None,
    };
    if let Some((asked, but)) = wanted {
        let what = go_type(served, answered);
        let message = format!("you requested {asked}, but the requested object is {but} ({what})");
        return Err(Status::new(Reason::NotAcceptable, message).into());
    }
    Ok(form(choice, headers, query))
}

/// What is answered and not stored has no Table: a clause that asks for one counts as none.
fn without_tables(accept: &str) -> String {
    let asks = |clause: &str| clause.split(';').skip(1).any(|parameter| parameter.trim() == "as=Table");
    accept.split(',').filter(|clause| !asks(clause)).collect::<Vec<_>>().join(",")
}

/// The form of a watch's events.
///
/// - `formats`: those that there are, in order of preference.
///
/// # Errors
/// 406.
pub fn stream(
    headers: &HeaderMap,
    served: &Served,
    formats: &[&'static EventFormat],
) -> Result<StreamForm, Failure> {
    let accept = accept(headers);
    let streams: Vec<&str> = formats.iter().map(|format| format.media_type).collect();
    path_takes(accept, served, &streams).or_else(|_| path_takes(accept, served, &LIST_TYPES))?;
    let mut offered: Vec<Streamed> = formats.iter().copied().map(Streamed::Events).collect();
    offered.insert(1.min(offered.len()), Streamed::Whole(Media::Yaml));
    let Choice { media, as_kind, meta, drops, .. } = choose(accept, headers, served, &offered)?;
    match media {
        Streamed::Events(format) => Ok(StreamForm { format, as_kind, meta, drops }),
        Streamed::Whole(_) => Err(not_acceptable_stream(&offered).into()),
    }
}

/// What a client says in `Prefer` (RFC 7240) that takes several types alike: the one that objects are kept in
/// is to be chosen, wherever it stands in Accept. kube-apiserver knows nothing of it.
const STORED_FORM: &str = "stored-form";

fn prefers_stored_form(headers: &HeaderMap) -> bool {
    let said = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    said.flat_map(|value| value.split(',')).any(|preference| preference.trim() == STORED_FORM)
}

/// - `offered`: what objects are kept in comes first.
fn choose<M: Offered + Copy>(
    accept: Option<&str>,
    headers: &HeaderMap,
    served: &Served,
    offered: &[M],
) -> Result<Choice<M>, Failure> {
    let choice = match served.is_custom() {
        false => choose_built_in(accept, headers, offered),
        true => negotiate_custom(accept, offered),
    };
    choice.ok_or_else(|| not_acceptable(offered).into())
}

fn choose_built_in<M: Offered + Copy>(
    accept: Option<&str>,
    headers: &HeaderMap,
    offered: &[M],
) -> Option<Choice<M>> {
    let choice = negotiate(accept, offered)?;
    let is_whole = |choice: &Choice<M>| choice.as_kind == AsKind::Object;
    if !is_whole(&choice) || !prefers_stored_form(headers) {
        return Some(choice);
    }
    negotiate(accept, &offered[..1]).filter(is_whole).or(Some(choice))
}

/// The form of a document.
///
/// # Errors
/// 406.
pub fn document(headers: &HeaderMap, query: &Query) -> Result<Form, Failure> {
    let choice = negotiate(accept(headers), &OFFERED).ok_or_else(|| not_acceptable(&OFFERED))?;
    if choice.as_kind != AsKind::Object {
        return Err(not_acceptable(&OFFERED).into());
    }
    Ok(form(choice, headers, query))
}

/// The form of a failure: a client that takes none of ours gets JSON all the same, and indented, as it is for
/// people.
pub fn failure(headers: &HeaderMap, query: &Query) -> Form {
    let untransformed = |header: &str| {
        parse_accept(header).iter().find_map(|clause| {
            let transformed = ["as", "g", "v"].iter().any(|name| clause.param(name).is_some());
            let streams = clause.param("stream");
            let takes = |media: &&Media| {
                let (kind, subtype) = media.content_type().split_once('/').unwrap_or_default();
                clause.takes(kind, subtype)
                    && streams.is_none_or(|stream| stream == "watch" && media.can_stream())
            };
            let sane = !transformed && clause.param("sv").is_none_or(|version| version == "v1");
            sane.then(|| OFFERED.iter().find(takes))
                .flatten()
                .map(|media| (*media, clause.param("pretty") == Some("1")))
        })
    };
    let (media, pretty) = match accept(headers).map(untransformed) {
        None => (Media::Json, is_pretty(headers, query)),
        Some(Some((media, pretty))) => (media, pretty || is_pretty(headers, query)),
        Some(None) => (Media::Json, true),
    };
    Form { pretty, ..Form::plain(media) }
}

fn form(choice: Choice, headers: &HeaderMap, query: &Query) -> Form {
    let Choice { media, as_kind, meta, drops, .. } = choice;
    Form { media, as_kind, meta, drops, pretty: choice.pretty || is_pretty(headers, query) }
}

/// Whether a built-in resource's path has any of the types that the client takes. Parameters do not count
/// here, and `application/*` counts as none. Custom resources have no such layer.
pub fn path_takes(accept: Option<&str>, served: &Served, types: &[&str]) -> Result<(), Failure> {
    if served.is_custom() { Ok(()) } else { any_of(accept, types) }
}

/// Whether any of `types` is taken as it stands.
///
/// # Errors
/// 406, which lists them.
pub fn any_of(accept: Option<&str>, types: &[&str]) -> Result<(), Failure> {
    let Some(accept) = accept else { return Ok(()) };
    let taken = accept.split(',').any(|clause| {
        let name = clause.split(';').next().unwrap_or_default().trim();
        name == "*/*" || types.contains(&name)
    });
    if taken { Ok(()) } else { Err(Failure::not_acceptable(types)) }
}

/// The refusal of who takes none of `types`, of a document that is no object of the API.
pub fn takes_none_of(types: &[&str]) -> Failure {
    let message = format!("only the following media types are accepted: {}", types.join(", "));
    Status::new(Reason::NotAcceptable, message).into()
}

/// `*core.ConfigMap`, as messages name it.
fn go_type(served: &Served, answered: Answered) -> String {
    let package = match (served.is_custom(), served.group()) {
        (true, _) => {
            let list = if answered == Answered::List { "List" } else { "" };
            return format!("*unstructured.Unstructured{list}");
        }
        (_, "" | "events.k8s.io") => "core",
        (_, group) => group.split('.').next().unwrap_or(group),
    };
    match answered {
        Answered::Object => format!("*{package}.{}", served.gvk.kind),
        Answered::List => format!("*{package}.{}", served.list_kind),
    }
}

#[cfg(test)]
mod tests {
    use forebay_reads::{FORMATS, JSON, PROTOBUF};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = http::HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn clients_say_whether_they_take_it() {
        for (value, want) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("x-gzip", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().expect("a value"));
            assert_eq!(takes_gzip(&headers), want, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn people_are_recognised() {
        for (query, agent, want) in [
            ("", "curl/8", true),
            ("", "Wget/1", true),
            ("", "Mozilla/5.0 (X11)", true),
            ("", "kubectl/v1.36", false),
            ("pretty=false", "curl/8", false),
            ("pretty=true", "x", true),
            ("pretty=1", "x", true),
            ("pretty=yes", "x", false),
            ("pretty", "curl/8", true),
        ] {
            assert_eq!(
                is_pretty(&headers(&[("user-agent", agent)]), &Query::parse(query)),
                want,
                "{query} {agent}"
            );
        }
    }

    #[test]
    fn who_prefers_what_is_stored_gets_json_where_it_is_taken() {
        let both = "application/vnd.kubernetes.protobuf, application/json";
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json";
        for (accept, prefer, want) in [
            (both, "stored-form", Media::Json),
            (both, "respond-async, stored-form", Media::Json),
            (both, "stored-format", Media::Protobuf),
            (both, "", Media::Protobuf),
            ("application/vnd.kubernetes.protobuf", "stored-form", Media::Protobuf),
            ("application/vnd.kubernetes.protobuf, application/json;q=0.9", "stored-form", Media::Json),
            ("application/yaml, */*", "stored-form", Media::Json),
            (metadata, "stored-form", Media::Protobuf),
        ] {
            let choice =
                choose_built_in(Some(accept), &headers(&[("prefer", prefer)]), &OFFERED).expect("a form");
            assert_eq!(choice.media, want, "{accept} {prefer}");
        }
    }

    #[tokio::test]
    async fn a_media_type_of_watches_is_chosen_once_it_is_in_the_list() {
        static NEW: EventFormat = EventFormat {
            media_type: "text/csv",
            content_type: "text/csv",
            has_tables: false,
            has_custom_objects: false,
            can_drop: false,
            has_stored_form: false,
            writer: JSON.writer,
            message: JSON.message,
        };
        let served = crate::watch_body::testing::served("configmaps").await;
        let chosen = |accept: &str, formats: &[&'static EventFormat]| {
            let form = stream(&headers(&[("accept", accept)]), &served, formats);
            form.map_or_else(|failure| failure.status.message, |form| form.format.media_type.to_owned())
        };
        let all = [&JSON, &PROTOBUF, &NEW];
        for accept in ["text/csv", "text/csv;stream=watch", "application/yaml;stream=watch, text/csv"] {
            assert_eq!(chosen(accept, &all), NEW.media_type, "{accept}");
            assert_ne!(chosen(accept, FORMATS), NEW.media_type, "{accept}");
        }
        for accept in ["*/*", "application/json", "text/csv;as=Table;v=v1;g=meta.k8s.io, application/json"] {
            assert_eq!(chosen(accept, &all), JSON.media_type, "{accept}");
        }
        assert_eq!(chosen("application/vnd.kubernetes.protobuf", &all), PROTOBUF.media_type);
        assert!(chosen("application/yaml", &all).ends_with(
            "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, text/csv;stream=watch"
        ));
    }

    #[test]
    fn a_failure_finds_a_form() {
        for (accept, media, pretty) in [
            ("", Media::Json, false),
            ("application/yaml", Media::Yaml, false),
            ("text/plain", Media::Json, true),
            ("application/json;as=Table;g=meta.k8s.io;v=v1", Media::Json, true),
            ("application/json;as=Table;g=meta.k8s.io;v=v1,application/json", Media::Json, false),
            ("application/json;stream=watch", Media::Json, false),
            ("application/*", Media::Json, false),
            ("application/vnd.kubernetes.protobuf", Media::Protobuf, false),
            ("application/cbor,application/vnd.kubernetes.protobuf;stream=watch", Media::Protobuf, false),
            ("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", Media::Json, true),
            ("application/vnd.kubernetes.protobuf;q=0.1,application/json", Media::Json, false),
        ] {
            let form = failure(&headers(&[("accept", accept)]), &Query::default());
            assert_eq!((form.media, form.pretty), (media, pretty), "{accept}");
        }
    }

    #[test]
    fn a_path_takes_types_as_they_stand() {
        let types = ["application/json", "application/yaml"];
        for (accept, want) in [
            (None, true),
            (Some("*/*"), true),
            (Some("text/html, application/json;q=0.1"), true),
            (Some("application/*"), false),
            (Some("application/cbor"), false),
        ] {
            assert_eq!(any_of(accept, &types).is_ok(), want, "{accept:?}");
        }
        let refusal = any_of(Some("text/plain"), &types).expect_err("refused");
        assert_eq!(
            refusal.status.message,
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml"
        );
    }
}
