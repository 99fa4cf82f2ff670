//! Which fields count: what resets them, or leaves them out.
//!
//! In: sets, patterns of paths. Out: what is left of a set. Never: two filters at a time.

use std::cmp::Ordering;

use super::Set;
use super::nodes::{self, Nodes};
use crate::element::Element;

/// What of a set counts.
#[derive(Clone, Debug)]
pub enum Filter {
    /// All but these fields and what is below them.
    Exclude(Set),
    /// The fields that match.
    Include(Matcher),
}

impl Filter {
    pub fn of(&self, set: &Set) -> Set {
        match self {
            Filter::Exclude(excluded) => set.recursive_difference(excluded),
            Filter::Include(matcher) => {
                let mut out = Vec::new();
                include(set.nodes(), matcher, &mut out);
                Set(out)
            }
        }
    }
}

/// A pattern of paths: a tree of elements, where any element may be asked for.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// Every path.
    Any,
    /// Paths that begin with one of these elements, `None` being any, and go on as the pattern does.
    Elements(Vec<(Option<Element<'static>>, Matcher)>),
}

impl Matcher {
    /// Every path that begins as `parts` do, where `None` is any element.
    pub fn prefix(parts: impl DoubleEndedIterator<Item = Option<Element<'static>>>) -> Matcher {
        parts.rev().fold(Matcher::Any, |below, part| Matcher::Elements(vec![(part, below)]))
    }

    /// What either matches, as upstream has it: a second pattern that begins with the same element is not
    /// always found to, and of those that begin with any element none is; what comes first counts then.
    pub fn merge(self, other: Matcher) -> Matcher {
        let (Matcher::Elements(first), Matcher::Elements(more)) = (self, other) else {
            return Matcher::Any;
        };
        let mut merged = first.clone();
        for (part, below) in more {
            match upstreams_find(&first, part.as_ref()) {
                Some(at) => {
                    let known = std::mem::replace(&mut merged[at].1, Matcher::Any);
                    merged[at].1 = known.merge(below);
                }
                None => merged.push((part, below)),
            }
        }
        // Any element counts before a certain one.
        merged.sort_by(|(a, _), (b, _)| a.cmp(b));
        Matcher::Elements(merged)
    }
}

/// Where a part is, if upstream finds it: it halves the list as if that were in the other order.
fn upstreams_find(
    elements: &[(Option<Element<'static>>, Matcher)],
    part: Option<&Element<'static>>,
) -> Option<usize> {
    let order = |at: usize| match (elements[at].0.as_ref(), part) {
        (_, None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (Some(known), Some(part)) => known.cmp(part),
    };
    let (mut from, mut to) = (0, elements.len());
    while from < to {
        let middle = from.midpoint(to);
        match order(middle) {
            Ordering::Greater => from = middle + 1,
            Ordering::Less | Ordering::Equal => to = middle,
        }
    }
    (from < elements.len() && order(from).is_eq()).then_some(from)
}

fn include(nodes: Nodes<'_>, matcher: &Matcher, out: &mut Vec<u8>) {
    let Matcher::Elements(elements) = matcher else { return out.extend_from_slice(nodes.0) };
    for node in nodes {
        // Few: patterns are the server's.
        let found = elements.iter().find(|(part, _)| part.as_ref().is_none_or(|part| *part == node.element));
        if let Some((_, below)) = found {
            nodes::write(out, &node.element, node.member, |out| include(node.below, below, out));
        }
    }
}
