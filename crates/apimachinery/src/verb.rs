//! What is asked to be done, by the name that rules, reviews and audit have for it.
//!
//! In: a name, or a method of HTTP. Out: a [`Verb`]. A name has one value: what is known is never a
//! [`Verb::Other`].

use std::fmt;

/// A verb of the API on resources; of another path the request's method in lower case, which is a verb too;
/// or whatever else a rule can name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// A method that no resource has.
    #[default]
    None,
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// The deprecated `/proxy/` form.
    Proxy,
    // Methods on what is no resource.
    Head,
    Post,
    Put,
    Options,
    Connect,
    // What is asked beside what a request's path says.
    /// To act as somebody else.
    Impersonate,
    /// To delete what cannot be read.
    UnsafeDelete,
    /// Any other name.
    Other(OtherVerb),
}

/// The name of a verb that has no value of its own; made by [`Verb::named`] alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherVerb(Box<str>);

impl Verb {
    const KNOWN: [Verb; 17] = [
        Verb::None,
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Create,
        Verb::Update,
        Verb::Patch,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Proxy,
        Verb::Head,
        Verb::Post,
        Verb::Put,
        Verb::Options,
        Verb::Connect,
        Verb::Impersonate,
        Verb::UnsafeDelete,
    ];

    /// The verb of a name.
    pub fn named(name: &str) -> Verb {
        let known = Verb::KNOWN.iter().find(|known| known.as_str() == name);
        known.cloned().unwrap_or_else(|| Verb::Other(OtherVerb(name.into())))
    }

    /// The verb of a method of HTTP on what is no resource: its name in lower case.
    pub fn of_method(method: &str) -> Verb {
        match method {
            "GET" => Verb::Get,
            "HEAD" => Verb::Head,
            "POST" => Verb::Post,
            "PUT" => Verb::Put,
            "PATCH" => Verb::Patch,
            "DELETE" => Verb::Delete,
            "OPTIONS" => Verb::Options,
            "CONNECT" => Verb::Connect,
            other => Verb::named(&other.to_ascii_lowercase()),
        }
    }

    /// As rules, reviews and audit name it.
    pub fn as_str(&self) -> &str {
        match self {
            Verb::None => "",
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Proxy => "proxy",
            Verb::Head => "head",
            Verb::Post => "post",
            Verb::Put => "put",
            Verb::Options => "options",
            Verb::Connect => "connect",
            Verb::Impersonate => "impersonate",
            Verb::UnsafeDelete => "unsafe-delete-ignore-read-errors",
            Verb::Other(OtherVerb(name)) => name,
        }
    }

    /// Whether it only reads.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Verb::Get | Verb::List | Verb::Watch | Verb::Head | Verb::Options)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_verb_and_a_verb_one_name() {
        for known in Verb::KNOWN {
            assert_eq!(Verb::named(known.as_str()), known);
        }
        for name in ["*", "bind", "GET", "frobnicate"] {
            let verb = Verb::named(name);
            assert!(matches!(verb, Verb::Other(_)) && verb.as_str() == name, "{name}");
        }
    }

    #[test]
    fn a_method_is_a_verb_in_lower_case() {
        for method in
            ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "LIST", "Get"]
        {
            assert_eq!(Verb::of_method(method), Verb::named(&method.to_ascii_lowercase()), "{method}");
        }
    }
}
