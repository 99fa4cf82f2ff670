//! What a call may cost, and how long its result may be.

use crate::ast::{Expr, Id, Literal};
use crate::types::{Fields, Type};

use super::estimate::{Estimator, Node};
use super::table::{self, Rule};
use super::{Bounds, CHECK, LIST, PATTERN, TRAVERSAL};

/// The longest pattern of a format, and the longest name of one.
const FORMAT_PATTERN_MAX: f64 = 128.0;
const FORMAT_MAX: u64 = 64;

pub(crate) struct Call<'c> {
    pub function: &'c str,
    pub overload: &'c str,
    pub target: Option<&'c Node>,
    pub args: &'c [Node],
    /// Of the arguments.
    pub costs: &'c [Bounds],
}

pub(crate) struct Estimate {
    pub cost: Bounds,
    pub size: Option<Bounds>,
}

impl From<Bounds> for Estimate {
    fn from(cost: Bounds) -> Estimate {
        Estimate { cost, size: None }
    }
}

fn sized(cost: Bounds, size: Bounds) -> Estimate {
    Estimate { cost, size: Some(size) }
}

pub(crate) fn cost(e: &mut Estimator, id: Id, call: &Call) -> Estimate {
    let args = call.costs.iter().fold(Bounds::ZERO, |sum, cost| sum.add(*cost));
    let rule = table::rule(call.function, call.overload);
    match estimated(e, id, call, rule) {
        // What is evaluated of their arguments is what they cost.
        Some(found) if matches!(rule, Rule::Either | Rule::Choice) => found,
        Some(found) => Estimate { cost: found.cost.add(args), ..found },
        None => args.add(Bounds::ONE).into(),
    }
}

/// The size of a node as apiserver's estimator asks for it.
fn size(e: &Estimator, node: &Node) -> Bounds {
    node.size.or_else(|| e.declared(&node.path)).unwrap_or(Bounds::UNKNOWN)
}

fn size_or_unknown(node: &Node) -> Bounds {
    node.size.unwrap_or(Bounds::UNKNOWN)
}

fn int(e: &Estimator, node: &Node, otherwise: u64) -> u64 {
    match e.checked.ast.expr(node.id) {
        Expr::Literal(Literal::Int(it)) => u64::try_from(*it).unwrap_or(0),
        _ => otherwise,
    }
}

fn allocated(factor: f64, size: Bounds) -> Estimate {
    sized(size.scaled(factor).add(Bounds::ONE).add(Bounds::fixed(LIST)), size)
}

/// `None` for what costs one.
fn estimated(e: &mut Estimator, id: Id, call: &Call, rule: Rule) -> Option<Estimate> {
    let all: Vec<&Node> = call.target.into_iter().chain(call.args).collect();
    let parsed = |e: &Estimator, node: &Node| size(e, node).scaled(TRAVERSAL);
    Some(match (rule, &all[..]) {
        (Rule::Check, _) => Bounds::fixed(CHECK).into(),
        (Rule::Selector, [_, selector]) => {
            let length = size(e, selector);
            let requirements = length.scaled(0.5).scaled(50.0);
            Bounds::fixed(LIST).add(length.scaled(TRAVERSAL)).add(requirements).into()
        }
        (Rule::Search, [list, ..]) => search(e, list).into(),
        (Rule::Parse(times), [text, ..]) => size(e, text).scaled(times * TRAVERSAL).into(),
        (Rule::Convert, [text, ..]) => sized(parsed(e, text), size(e, text)),
        (Rule::Replace, [text, from, to, ..]) => {
            let found = replaced(size(e, text), size(e, from), size(e, to));
            sized(size(e, text).scaled(2.0 * TRAVERSAL), found)
        }
        (Rule::Split, [text, _, rest @ ..]) => {
            let most = rest.first().map_or(size(e, text).max, |limit| match e.checked.ast.expr(limit.id) {
                Expr::Literal(Literal::Int(it)) => *it as u64,
                _ => size(e, text).max,
            });
            sized(size(e, text).scaled(2.0 * TRAVERSAL), Bounds::new(0, most))
        }
        (Rule::Join, [list, rest @ ..]) => {
            let found = joined(e, list, rest.first().copied());
            sized(found.scaled(TRAVERSAL), found)
        }
        (Rule::Find, [text, pattern, ..]) => {
            let looked = size(e, text).add(Bounds::ONE).scaled(TRAVERSAL);
            let pattern = size(e, pattern).scaled(PATTERN);
            sized(looked.times(pattern), Bounds::new(0, size(e, text).max))
        }
        (Rule::ContainsIp { parses }, [_, other]) => {
            let both = ADDRESS.add(ADDRESS).scaled(TRAVERSAL);
            if parses { both.add(parsed(e, other)) } else { both }.into()
        }
        (Rule::ContainsCidr { parses }, [_, other]) => {
            let both = ADDRESS.add(ADDRESS).scaled(TRAVERSAL).add(ADDRESS.scaled(TRAVERSAL)).add(Bounds::ONE);
            if parses { both.add(parsed(e, other)) } else { both }.into()
        }
        (Rule::Validate, [_, text]) => parsed(e, text).scaled(FORMAT_PATTERN_MAX * PATTERN).into(),
        (Rule::Equals, [one, two]) => equality(e, one, two).unwrap_or_else(|| compared(one, two)).into(),
        (Rule::Compare, [one, two]) => compared(one, two).into(),
        (Rule::Either, _) => {
            let (one, two) = (call.costs[0], call.costs[1]);
            Bounds::new(one.min, one.add(two).max).into()
        }
        (Rule::Choice, [_, yes, no]) => {
            let both = e.entries(yes.id).zip(e.entries(no.id)).map(|(yes, no)| yes.union(no));
            e.set_entries(id, both);
            let size = size_or_unknown(yes).union(size_or_unknown(no));
            sized(call.costs[0].add(call.costs[1].union(call.costs[2])), size)
        }
        (Rule::Concat | Rule::AddList, [one, two]) => {
            let both = e.entries(one.id).zip(e.entries(two.id)).map(|(one, two)| one.union(two));
            e.set_entries(id, both);
            let size = size_or_unknown(one).add(size_or_unknown(two));
            let cost = if rule == Rule::AddList { Bounds::ONE } else { size.scaled(TRAVERSAL) };
            sized(cost, size)
        }
        _ => return texts(rule, &all).or_else(|| lists(e, rule, &all)),
    })
}

/// Bytes of an address.
const ADDRESS: Bounds = Bounds { min: 4, max: 16 };

/// What the standard library does with texts and lists.
fn texts(rule: Rule, all: &[&Node]) -> Option<Estimate> {
    Some(match (rule, all) {
        (Rule::Format, [format, ..]) => size_or_unknown(format).scaled(TRAVERSAL).into(),
        (Rule::ToBytes, [text]) => {
            let text = size_or_unknown(text);
            sized(text.scaled(TRAVERSAL), Bounds::new(text.min, text.max.wrapping_mul(4)))
        }
        (Rule::FromBytes, [bytes]) => {
            let bytes = size_or_unknown(bytes);
            sized(bytes.scaled(TRAVERSAL), Bounds::new(bytes.min / 4, bytes.max))
        }
        (Rule::Quote, [text]) => {
            let text = size_or_unknown(text);
            let most = text.max.wrapping_mul(2).wrapping_add(2);
            sized(text.scaled(TRAVERSAL), Bounds::new(text.min.wrapping_add(2), most))
        }
        (Rule::Affix, [_, part]) => size_or_unknown(part).scaled(TRAVERSAL).into(),
        (Rule::In, [_, list]) => size_or_unknown(list).scaled(1.0).into(),
        (Rule::Match, [text, pattern]) => {
            let text = size_or_unknown(text).add(Bounds::ONE).scaled(TRAVERSAL);
            text.times(size_or_unknown(pattern).scaled(PATTERN)).into()
        }
        (Rule::Contains, [text, part]) => {
            size_or_unknown(text).scaled(TRAVERSAL).times(size_or_unknown(part).scaled(TRAVERSAL)).into()
        }
        _ => return None,
    })
}

fn lists(e: &Estimator, rule: Rule, all: &[&Node]) -> Option<Estimate> {
    Some(match (rule, all) {
        (Rule::Sets(factor), [one, two]) => {
            size(e, one).times(size(e, two)).scaled(factor).add(Bounds::ONE).into()
        }
        (Rule::Slice, [list, start, end]) => {
            let most = size(e, list).max;
            let count = int(e, end, most).wrapping_sub(int(e, start, 0));
            allocated(1.0, Bounds::fixed(count))
        }
        (Rule::Range, [count]) => allocated(1.0, Bounds::fixed(int(e, count, u64::MAX))),
        (Rule::Reverse | Rule::Flatten, [list]) => allocated(1.0, size(e, list)),
        (Rule::FlattenTo, [list, depth]) => allocated(int(e, depth, u64::MAX) as f64, size(e, list)),
        (Rule::Distinct, [list]) => allocated(2.0, size(e, list).times(size(e, list))),
        (Rule::Sort { texts }, [list]) | (Rule::SortBy { texts }, [_, list]) => {
            let factor = if texts { 2.0 + TRAVERSAL } else { 2.0 };
            allocated(factor, size(e, list).times(size(e, list)))
        }
        _ => return None,
    })
}

fn compared(one: &Node, two: &Node) -> Bounds {
    let most = size_or_unknown(one).max.min(size_or_unknown(two).max);
    Bounds::new(u64::from(most > 0), most).scaled(TRAVERSAL)
}

fn equality(e: &Estimator, one: &Node, right: &Node) -> Option<Bounds> {
    let (one, two) = (e.type_of(one.id), e.type_of(right.id));
    if one.name() != two.name() {
        return None;
    }
    Some(match (one, one.name()) {
        (Type::Opaque(..), "net.IP" | "net.CIDR") => Bounds::ONE,
        (Type::Struct(_), "kubernetes.NamedFormat") => Bounds::new(1, FORMAT_MAX).scaled(TRAVERSAL),
        (Type::Struct(_), "kubernetes.URL") => {
            let most = right.size.map_or(1, |size| size.max);
            Bounds::new(1, most).scaled(TRAVERSAL)
        }
        (Type::Struct(it), name) if matches!(it.fields, Fields::None) && name.starts_with("kubernetes.") => {
            Bounds::ONE
        }
        _ => return None,
    })
}

/// The items of a list as a node: what the schema says of them.
fn items(e: &Estimator, list: &Node) -> Option<(Type, Bounds)> {
    let item = e.type_of(list.id).params().first().map(|item| (*item).clone())?;
    let size = if list.path.is_empty() { None } else { e.declared(&list.path.with("@items".into())) };
    Some((item, size.unwrap_or(Bounds::UNKNOWN)))
}

fn search(e: &Estimator, target: &Node) -> Bounds {
    match items(e, target) {
        Some((item, each)) => {
            let mut cost = Bounds::ONE;
            if matches!(item, Type::String | Type::Bytes) {
                cost = cost.add(each.scaled(TRAVERSAL));
            }
            size(e, target).times(cost)
        }
        None => size(e, target).scaled(TRAVERSAL),
    }
}

fn joined(e: &Estimator, target: &Node, separator: Option<&Node>) -> Bounds {
    let count = size(e, target);
    let mut found = items(e, target).map_or(Bounds::ZERO, |(_, each)| count.times(each));
    if let Some(separator) = separator {
        let between = Bounds::new(count.min.saturating_sub(1), count.max.saturating_sub(1));
        found = found.add(size(e, separator).times(between));
    }
    found
}

/// The length of a text with some of it replaced.
fn replaced(text: Bounds, from: Bounds, to: Bounds) -> Bounds {
    let (mut count, mut kept) = (Bounds::ZERO, Bounds::ZERO);
    if from.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if to.max <= from.min {
        kept.max = text.max;
    } else {
        count.max = (text.max as f64 / from.min as f64).ceil() as u64;
    }
    if from.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if from.max <= to.min {
        kept.min = text.min;
    } else {
        count.min = (text.min as f64 / from.max as f64).ceil() as u64;
    }
    count.times(to).add(kept)
}
