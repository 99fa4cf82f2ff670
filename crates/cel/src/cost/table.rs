//! By what a call is costed: each function and overload stands here once, and both costs follow.
//!
//! In: which function and overload. Out: a rule, which [`actual`](super::actual) follows with values and
//! [`calls`](super::calls) with what may be. Never: a number.

/// What of a call's arguments it looks at, and what it makes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// Nothing that has a size.
    One,
    /// It asks the authorizer.
    Check,
    /// A selector that is parsed.
    Selector,
    /// Everything in a list.
    Search,
    /// A text so many times, which becomes something else.
    Parse(f64),
    /// A text, which becomes another text or something of its size.
    Convert,
    Replace,
    Split,
    /// The result, twice.
    Join,
    /// A text and a pattern, whose result is part of the text.
    Find,
    /// A text and a pattern.
    Match,
    ContainsIp {
        parses: bool,
    },
    ContainsCidr {
        parses: bool,
    },
    /// A text and a format's pattern.
    Validate,
    Equals,
    /// The shorter of both.
    Compare,
    /// Elements of a list.
    In,
    Concat,
    /// Two lists of which nothing is copied.
    AddList,
    Contains,
    /// The beginning or end of a text.
    Affix,
    Format,
    ToBytes,
    FromBytes,
    Quote,
    /// Both lists, each with each, times a factor.
    Sets(f64),
    Slice,
    Range,
    Reverse,
    /// One level.
    Flatten,
    /// As many levels as are said.
    FlattenTo,
    /// Elements of a list, each with each.
    Distinct,
    Sort {
        texts: bool,
    },
    /// By other elements.
    SortBy {
        texts: bool,
    },
    /// One or both sides, as it turns out.
    Either,
    /// One of two, as it turns out.
    Choice,
}

/// - `overload`: empty where it is not known before the call.
pub(crate) fn rule(function: &str, overload: &str) -> Rule {
    of_lists(overload).or_else(|| of_function(function, overload)).unwrap_or_else(|| of_overload(overload))
}

fn of_lists(overload: &str) -> Option<Rule> {
    let texts = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
    Some(match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => Rule::Sets(1.0),
        "list_sets_equivalent_list" => Rule::Sets(2.0),
        "list_slice" => Rule::Slice,
        "lists_range" => Rule::Range,
        "list_reverse" => Rule::Reverse,
        "list_flatten" => Rule::Flatten,
        "list_flatten_int" => Rule::FlattenTo,
        "list_distinct" => Rule::Distinct,
        _ if overload.ends_with("_sortByAssociatedKeys") => Rule::SortBy { texts },
        _ if overload.starts_with("list_") && overload.ends_with("_sort") => Rule::Sort { texts },
        _ => return None,
    })
}

fn of_function(function: &str, overload: &str) -> Option<Rule> {
    Some(match function {
        "check" => Rule::Check,
        "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
        | "allowed" | "reason" | "error" | "errored" => Rule::One,
        "fieldSelector" | "labelSelector" => Rule::Selector,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => Rule::Search,
        "url" | "jsonpatch.escapeKey" | "lowerAscii" | "upperAscii" | "substring" | "trim" => Rule::Convert,
        "replace" => Rule::Replace,
        "split" => Rule::Split,
        "join" => Rule::Join,
        "find" | "findAll" => Rule::Find,
        "ip" if overload == "cidr_ip" => Rule::One,
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            Rule::Parse(1.0)
        }
        "ip.isCanonical" => Rule::Parse(2.0),
        "masked"
        | "prefixLength"
        | "family"
        | "isUnspecified"
        | "isLoopback"
        | "isLinkLocalMulticast"
        | "isLinkLocalUnicast"
        | "isGlobalUnicast" => Rule::One,
        "containsIP" => Rule::ContainsIp { parses: overload == "cidr_contains_ip_string" },
        "containsCIDR" => Rule::ContainsCidr { parses: overload == "cidr_contains_cidr_string" },
        "validate" => Rule::Validate,
        "format.named" => Rule::One,
        "sign" | "asInteger" | "isInteger" | "asApproximateFloat" | "isGreaterThan" | "isLessThan"
        | "compareTo" | "add" | "sub" | "major" | "minor" | "patch" => Rule::One,
        "getScheme" | "getHostname" | "getHost" | "getPort" | "getEscapedPath" | "getQuery" => Rule::One,
        "_==_" => Rule::Equals,
        _ => return None,
    })
}

fn of_overload(overload: &str) -> Rule {
    match overload {
        "starts_with_string" | "ends_with_string" => Rule::Affix,
        "string_to_bytes" => Rule::ToBytes,
        "bytes_to_string" => Rule::FromBytes,
        "strings_quote" => Rule::Quote,
        "string_format" => Rule::Format,
        "in_list" => Rule::In,
        "not_equals" => Rule::Compare,
        "add_string" | "add_bytes" => Rule::Concat,
        "add_list" => Rule::AddList,
        "matches_string" => Rule::Match,
        "contains_string" => Rule::Contains,
        "logical_or" | "logical_and" => Rule::Either,
        "conditional" => Rule::Choice,
        _ if compares_texts(overload) => Rule::Compare,
        _ => Rule::One,
    }
}

/// Whether it is an order of texts or bytes.
fn compares_texts(overload: &str) -> bool {
    ["less_", "greater_", "less_equals_", "greater_equals_"]
        .into_iter()
        .any(|order| matches!(overload.strip_prefix(order), Some("string" | "bytes")))
}
