//! One question about a right: may this caller do that?
//!
//! In: parts of a request, of a review, or of what a verb finds out while it works. Out: what an authorizer
//! is asked. It borrows everything: to ask another question about the same request costs nothing. Never:
//! answers.

use crate::selector::{FieldRequirement, LabelRequirement};
use crate::{Caller, Verb};

/// What an authorizer is asked.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    pub caller: &'a Caller,
    pub verb: &'a Verb,
    pub about: About<'a>,
}

/// What it is that something is done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About<'a> {
    Resource(ResourceAttributes<'a>),
    /// What is no resource; decoded.
    Path(&'a str),
}

/// A resource, or some of it. What is empty was not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceAttributes<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub namespace: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub name: &'a str,
    /// What a LIST, a WATCH or a DELETE of a collection is confined to, as far as it can be read: a
    /// requirement less is more that is asked for.
    pub fields: &'a [FieldRequirement],
    pub labels: &'a [LabelRequirement],
}
