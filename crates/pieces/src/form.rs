//! The form of an answer: encoding, transformation, indentation.
//!
//! In: what was negotiated. Out: the same, to who makes the answer and to who looks for an equal one. Never:
//! negotiates.

use forebay_apimachinery::accept::{AsKind, Drops, Media, MetaVersion};

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub media: Media,
    pub as_kind: AsKind,
    /// Of `as_kind`.
    pub meta: MetaVersion,
    pub drops: Drops,
    pub pretty: bool,
}

impl Form {
    /// Whether an object is answered in the text that is stored.
    pub fn is_plain_json(self) -> bool {
        self.media == Media::Json && !self.pretty
    }

    /// Whether it is made to be looked at, which takes longer, and is longer, than for programs.
    pub fn is_for_people(self) -> bool {
        self.media == Media::Yaml || self.pretty
    }

    /// As it is, for programs.
    pub const fn plain(media: Media) -> Form {
        let drops = Drops { managed_fields: false };
        Form { media, as_kind: AsKind::Object, meta: MetaVersion::V1, drops, pretty: false }
    }
}
