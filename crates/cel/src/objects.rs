//! What libraries of Kubernetes make: values that are no part of the language.
//!
//! In: texts. Out: quantities, addresses, URLs, versions, formats, checks. Never: a value of an expression,
//! which has these in it.

use std::fmt;
use std::net::IpAddr;

use crate::authorizer::{Asker, Check, CheckDecision};

pub(crate) mod address;
pub(crate) mod format;
pub(crate) mod quantity;
pub(crate) mod semver;
pub(crate) mod url;

use address::Cidr;
use format::Format;
use quantity::Quantity;
use semver::Semver;
use url::Url;

/// A value of a library's type.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    Quantity(Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Url(Url),
    Semver(Semver),
    Format(&'static Format),
    Authorizer(Asker),
    Check(Check),
    Decision(CheckDecision),
}

impl Object {
    pub fn type_name(&self) -> &'static str {
        match self {
            Object::Quantity(_) => "kubernetes.Quantity",
            Object::Ip(_) => "net.IP",
            Object::Cidr(_) => "net.CIDR",
            Object::Url(_) => "kubernetes.URL",
            Object::Semver(_) => "kubernetes.Semver",
            Object::Format(_) => "kubernetes.NamedFormat",
            Object::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Object::Check(Check::Path { .. }) => "kubernetes.authorization.PathCheck",
            Object::Check(Check::Group { .. }) => "kubernetes.authorization.GroupCheck",
            Object::Check(Check::Resource(_)) => "kubernetes.authorization.ResourceCheck",
            Object::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    /// In bytes, where it has a size.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Object::Ip(IpAddr::V4(_)) => Some(4),
            Object::Ip(IpAddr::V6(_)) => Some(16),
            Object::Cidr(it) => Some(u64::from(it.bits).div_ceil(8)),
            _ => None,
        }
    }

    /// Of what it is read from or asks about.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Object::Quantity(it) => it.text.len(),
            Object::Url(it) => it.text.len(),
            Object::Semver(it) => it.text.len(),
            Object::Authorizer(it) => it.bytes(),
            Object::Check(it) => it.bytes(),
            Object::Decision(it) => it.reason.len() + it.error.as_ref().map_or(0, |error| error.len()),
            Object::Ip(_) | Object::Cidr(_) | Object::Format(_) => 0,
        }
    }

    /// How long the pattern is that a format is matched by.
    pub(crate) fn format_pattern_max(&self) -> Option<u64> {
        match self {
            Object::Format(it) => Some(it.pattern_max),
            _ => None,
        }
    }
}

/// Its type, and what it is where that has a text.
impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name())?;
        match self {
            Object::Quantity(it) => write!(f, " {}", it.text),
            Object::Ip(it) => write!(f, " {it}"),
            Object::Cidr(it) => write!(f, " {it}"),
            Object::Url(it) => write!(f, " {}", it.text),
            Object::Semver(it) => write!(f, " {}", it.text),
            _ => Ok(()),
        }
    }
}
