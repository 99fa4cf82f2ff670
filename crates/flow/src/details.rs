//! What a request asks, as texts for those who look into a dump.
//!
//! In: a request's attributes. Out: the beginning of each text. Never: decides anything.

use forebay_apimachinery::Attributes;
use forebay_apimachinery::attributes::About;

use crate::limits::DETAIL_BYTES_MAX;

/// What it asks, for the dump, each text cut after [`DETAIL_BYTES_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    pub user: Box<str>,
    pub verb: Box<str>,
    pub path: Box<str>,
    pub namespace: Box<str>,
    pub name: Box<str>,
    /// `group/version`, or the version alone.
    pub api_version: Box<str>,
    pub resource: Box<str>,
    pub subresource: Box<str>,
}

impl Details {
    pub fn of(asked: &Attributes, path: &str) -> Details {
        let mut details = Details {
            user: cut(&asked.caller.name),
            verb: cut(asked.verb.as_str()),
            path: cut(path),
            ..Details::default()
        };
        if let About::Resource(resource) = &asked.about {
            details.namespace = cut(resource.namespace);
            details.name = cut(resource.name);
            details.resource = cut(resource.resource);
            details.subresource = cut(resource.subresource);
            details.api_version = match resource.group {
                "" => cut(resource.version),
                group => cut(&format!("{group}/{}", resource.version)),
            };
        }
        details
    }
}

/// The beginning of a text.
pub(crate) fn cut(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(DETAIL_BYTES_MAX)].into()
}
