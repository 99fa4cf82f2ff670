//! How what is answered is shown: which encoding, and as what, by the form that was negotiated and the query.
//!
//! In: a form, a request's query. Out: what `reads` presents objects by; or what is wrong with the query.
//! Never: looks at an object.

use forebay_apimachinery::accept::{AsKind, Media};
use forebay_apimachinery::options::{IncludeObject, Query, TableOptions};
use forebay_reads::{As, Encoding, Shown};

use crate::negotiate::Form;
use crate::status::Failure;

/// How objects are shown.
///
/// # Errors
/// 400 for an option of Tables that is none.
pub fn shown(form: Form, query: &Query) -> Result<Shown, Failure> {
    let encoding = match form.media {
        Media::Json | Media::Yaml => Encoding::Json,
        Media::Protobuf => Encoding::Protobuf,
    };
    Ok(Shown { what: shown_as(form.as_kind, query)?, meta: form.meta, drops: form.drops, encoding })
}

/// What objects are shown as.
///
/// # Errors
/// 400 for an option of Tables that is none.
pub fn shown_as(as_kind: AsKind, query: &Query) -> Result<As, Failure> {
    Ok(match as_kind {
        AsKind::Object => As::Object,
        AsKind::PartialObjectMetadata | AsKind::PartialObjectMetadataList => As::PartialMetadata,
        AsKind::Table => As::Table(match TableOptions::from_query(query)?.include_object {
            IncludeObject::None => forebay_reads::IncludeObject::None,
            IncludeObject::Metadata => forebay_reads::IncludeObject::Metadata,
            IncludeObject::Object => forebay_reads::IncludeObject::Object,
        }),
    })
}
