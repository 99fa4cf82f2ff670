//! Lists, sets, maps and optionals.

use std::cmp::Ordering;
use std::sync::Arc;

use super::function::{Context, Found, Plain, flat, wrong};
use super::texts;
use crate::error::Error;
use crate::heights::Inner;
use crate::objects::Object;
use crate::spent::Spent;
use crate::time::SECONDS_MIN;
use crate::value::{List, Map, Value, compare};

pub(super) fn find(name: &str) -> Option<Plain> {
    of_lists(name).or_else(|| {
        Some(match name {
            "size" => |args, _| size(args),
            "@in" | "in" | "_in_" => |args, context| match args {
                [wanted, Value::List(list)] => list.contains(wanted, context.spent()).map(Value::Bool),
                [wanted, Value::Map(map)] => match wanted.key() {
                    Some(key) => Ok(Value::Bool(map.get(&key)?.is_some())),
                    None => Ok(Value::Bool(false)),
                },
                _ => wrong(),
            },
            "cel.@mapInsert" => insert,
            "sets.contains" => |args, context| sets(args, context, |one, two, spent| all_in(two, one, spent)),
            "sets.equivalent" => {
                |args, context| {
                    sets(args, context, |one, two, spent| {
                        Ok(all_in(two, one, spent)? && all_in(one, two, spent)?)
                    })
                }
            }
            "sets.intersects" => |args, context| sets(args, context, any_in),
            "optional.none" => |_, _| Ok(Value::Optional(None)),
            "optional.of" => |args, _| Value::some(args[0].clone()),
            "optional.ofNonZeroValue" => |args, _| {
                if is_zero(&args[0]) { Ok(Value::Optional(None)) } else { Value::some(args[0].clone()) }
            },
            "hasValue" => |args, _| match &args[0] {
                Value::Optional(inner) => Ok(Value::Bool(inner.is_some())),
                _ => wrong(),
            },
            "value" => |args, _| match &args[0] {
                Value::Optional(Some(inner)) => Ok((***inner).clone()),
                Value::Optional(None) => Err(Error::new("optional.none() dereference")),
                _ => wrong(),
            },
            "optional.unwrap" | "unwrapOpt" => unwrap,
            _ => return None,
        })
    })
}

fn of_lists(name: &str) -> Option<Plain> {
    Some(match name {
        "isSorted" => |args, context| on_list(args, context, is_sorted),
        "sum" => |args, context| sum(args, context, Value::Int(0)),
        "sum@uint" => |args, context| sum(args, context, Value::Uint(0)),
        "sum@double" => |args, context| sum(args, context, Value::Double(0.0)),
        "sum@duration" => |args, context| sum(args, context, Value::Duration(0)),
        "min" => {
            |args, context| on_list(args, context, |list, spent| extreme(list, Ordering::Less, "min", spent))
        }
        "max" => |args, context| {
            on_list(args, context, |list, spent| extreme(list, Ordering::Greater, "max", spent))
        },
        "indexOf" => index_of,
        "lastIndexOf" => last_index_of,
        "first" => |args, context| on_list(args, context, |list, _| Value::optional(list.get(0)?)),
        "last" => |args, context| {
            on_list(args, context, |list, _| {
                Value::optional(list.len().checked_sub(1).map_or(Ok(None), |at| list.get(at))?)
            })
        },
        "slice" => |args, context| match args {
            [Value::List(list), Value::Int(from), Value::Int(to)] => slice(list, *from, *to, context.spent()),
            _ => wrong(),
        },
        "flatten" => |args, context| match args {
            [Value::List(list)] => flatten(list, 1, context.spent()),
            [Value::List(_), Value::Int(depth)] if *depth < 0 => {
                Err(Error::new("level must be non-negative"))
            }
            [Value::List(list), Value::Int(depth)] => flatten(list, *depth, context.spent()),
            _ => wrong(),
        },
        "reverse" => |args, context| {
            on_list(args, context, |list, spent| {
                spent.make_elements(list.len())?;
                let mut items = list.to_vec()?;
                items.reverse();
                Value::list(items)
            })
        },
        "distinct" => |args, context| match args {
            [Value::List(list)] => distinct(list, context.spent()),
            _ => wrong(),
        },
        "sort" => |args, context| on_list(args, context, |list, spent| sorted(list, list, spent)),
        "@sortByAssociatedKeys" => |args, context| match args {
            [Value::List(list), Value::List(keys)] => sorted(list, keys, context.spent()),
            _ => wrong(),
        },
        "lists.range" => |args, context| match args {
            [Value::Int(count)] => {
                context.make_elements(usize::try_from(*count).unwrap_or(0))?;
                Ok(flat((0..*count).map(Value::Int).collect()))
            }
            _ => wrong(),
        },
        _ => return None,
    })
}

fn on_list<'a>(
    args: &[Value<'a>],
    context: &Context<'a>,
    what: fn(&List<'a>, &Spent) -> Found<'a>,
) -> Found<'a> {
    match args {
        [Value::List(list)] => what(list, context.spent()),
        _ => wrong(),
    }
}

fn order(one: &Value<'_>, two: &Value<'_>, spent: &Spent) -> Result<Ordering, Error> {
    spent.walk(one.bytes())?;
    compare(one, two).ok_or_else(Error::no_such_overload)
}

fn is_sorted<'a>(list: &List<'a>, spent: &Spent) -> Found<'a> {
    let mut before: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if let Some(before) = &before
            && order(before, &item, spent)?.is_gt()
        {
            return Ok(Value::Bool(false));
        }
        before = Some(item);
    }
    Ok(Value::Bool(true))
}

fn size<'a>(args: &[Value<'a>]) -> Found<'a> {
    match args {
        [it @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(it.size().unwrap_or(0) as i64))
        }
        _ => wrong(),
    }
}

/// - `nothing`: what the sum of nothing is.
fn sum<'a>(args: &[Value<'a>], context: &Context<'a>, nothing: Value<'a>) -> Found<'a> {
    let [Value::List(list)] = args else { return wrong() };
    let mut items = list.iter();
    let Some(first) = items.next() else { return Ok(nothing) };
    let Some(super::function::Function::Plain(add)) = super::find("_+_") else { return wrong() };
    items.try_fold(first?, |sum, item| {
        context.spent().walk(0)?;
        add(&[sum, item?], context)
    })
}

fn extreme<'a>(list: &List<'a>, wanted: Ordering, name: &str, spent: &Spent) -> Found<'a> {
    let mut best: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        let is_better = match &best {
            Some(best) => order(&item, best, spent)? == wanted,
            None => true,
        };
        if is_better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn index_of<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    match args {
        [Value::String(text), Value::String(part)] => texts::index_of(text, part, 0).map(Value::Int),
        [Value::String(text), Value::String(part), Value::Int(from)] => {
            texts::index_of(text, part, *from).map(Value::Int)
        }
        [Value::List(list), wanted] => position(list, wanted, 0..list.len(), context.spent()),
        _ => wrong(),
    }
}

fn last_index_of<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    match args {
        [Value::String(text), Value::String(part)] => texts::last_index_of(text, part, None).map(Value::Int),
        [Value::String(text), Value::String(part), Value::Int(until)] => {
            texts::last_index_of(text, part, Some(*until)).map(Value::Int)
        }
        [Value::List(list), wanted] => position(list, wanted, (0..list.len()).rev(), context.spent()),
        _ => wrong(),
    }
}

fn position<'a>(
    list: &List<'a>,
    wanted: &Value<'a>,
    places: impl Iterator<Item = usize>,
    spent: &Spent,
) -> Found<'a> {
    for at in places {
        if let Some(found) = list.get(at)?
            && found.equals(wanted, spent)?
        {
            return Ok(Value::Int(at as i64));
        }
    }
    Ok(Value::Int(-1))
}

fn slice<'a>(list: &List<'a>, from: i64, to: i64, spent: &Spent) -> Found<'a> {
    let why = match (from, to) {
        _ if from < 0 || to < 0 => "negative indexes not supported".to_owned(),
        _ if from > to => "start index must be less than or equal to end index".to_owned(),
        _ if to > list.len() as i64 => format!("list is length {}", list.len()),
        _ => {
            spent.make_elements((to - from) as usize)?;
            let mut items = Vec::new();
            for at in from as usize..to as usize {
                items.extend(list.get(at)?);
            }
            return Value::list(items);
        }
    };
    Err(Error::new(format!("cannot slice({from}, {to}), {why}")))
}

/// Lists in it are as deep as a tree or a value may be, which is bounded; one that is in it many times is
/// gathered as often.
fn flatten<'a>(list: &List<'a>, depth: i64, spent: &Spent) -> Found<'a> {
    fn gather<'a>(
        list: &List<'a>,
        depth: i64,
        into: &mut Vec<Value<'a>>,
        spent: &Spent,
    ) -> Result<(), Error> {
        for item in list.iter() {
            spent.walk(0)?;
            match item? {
                Value::List(inner) if depth > 0 => gather(&inner, depth - 1, into, spent)?,
                other => {
                    spent.make_elements(1)?;
                    into.push(other);
                }
            }
        }
        Ok(())
    }
    let mut items = Vec::new();
    gather(list, depth, &mut items, spent)?;
    Value::list(items)
}

fn distinct<'a>(list: &List<'a>, spent: &Spent) -> Found<'a> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for item in list.iter() {
        let item = item?;
        let mut is_new = true;
        for other in &kept {
            if other.equals(&item, spent)? {
                is_new = false;
                break;
            }
        }
        if is_new {
            spent.make_elements(1)?;
            kept.push(item);
        }
    }
    Value::list(kept)
}

fn sorted<'a>(list: &List<'a>, keys: &List<'a>, spent: &Spent) -> Found<'a> {
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    spent.make_elements(list.len().saturating_mul(3))?;
    let mut pairs: Vec<_> = keys.to_vec()?.into_iter().zip(list.to_vec()?).collect();
    let Some((first, _)) = pairs.first() else { return Ok(flat(Vec::new())) };
    if compare(first, first).is_none() && !matches!(first, Value::Double(_)) {
        return Err(Error::new("list elements must be comparable"));
    }
    if pairs.iter().any(|(key, _)| key.type_name() != first.type_name()) {
        return Err(Error::new("list elements must have the same type"));
    }
    let mut walked = Ok(());
    pairs.sort_by(|(one, _), (two, _)| {
        if walked.is_ok() {
            walked = spent.walk(one.bytes());
        }
        // What is not looked at any more is of one order.
        if walked.is_err() { Ordering::Equal } else { compare(one, two).unwrap_or(Ordering::Equal) }
    });
    walked?;
    Value::list(pairs.into_iter().map(|(_, item)| item).collect())
}

fn insert<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    match args.split_first() {
        Some((Value::Map(map), added)) => {
            context.spent().make_map(map.len())?;
            inserted(map.clone(), added, context.spent())
        }
        _ => wrong(),
    }
}

/// A map with a key and a value more, or another map's: in place where nobody else has it.
pub(crate) fn inserted<'a>(map: Map<'a>, added: &[Value<'a>], spent: &Spent) -> Found<'a> {
    let Map::Owned(mut entries) = map else { return wrong() };
    if entries.is_empty() {
        spent.make_map(0)?;
    }
    let into = Arc::make_mut(&mut entries);
    let mut put = |key: &Value<'a>, value: Value<'a>| {
        spent.walk(key.bytes())?;
        spent.make_entries(1)?;
        let key = key.key().ok_or_else(|| Error::new("unsupported key type"))?;
        if into.contains_key(&key) {
            return Err(Error::new(format!("insert failed: key {} already exists", key.shown())));
        }
        into.insert(key, value)
    };
    match added {
        [Value::Map(added)] => {
            for key in added.keys(spent) {
                let key = key?;
                let value = key.key().map_or(Ok(None), |key| added.get(&key))?;
                put(&key, value.unwrap_or(Value::Null))?;
            }
        }
        [key, value] => put(key, value.clone())?,
        _ => return wrong(),
    }
    Ok(Value::Map(Map::Owned(entries)))
}

type Lists<'a> = fn(&List<'a>, &List<'a>, &Spent) -> Result<bool, Error>;

fn sets<'a>(args: &[Value<'a>], context: &Context<'a>, is: Lists<'a>) -> Found<'a> {
    match args {
        [Value::List(one), Value::List(two)] => is(one, two, context.spent()).map(Value::Bool),
        _ => wrong(),
    }
}

fn all_in<'a>(these: &List<'a>, list: &List<'a>, spent: &Spent) -> Result<bool, Error> {
    for item in these.iter() {
        if !list.contains(&item?, spent)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn any_in<'a>(these: &List<'a>, list: &List<'a>, spent: &Spent) -> Result<bool, Error> {
    for item in these.iter() {
        if list.contains(&item?, spent)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn unwrap<'a>(args: &[Value<'a>], context: &Context<'a>) -> Found<'a> {
    let [Value::List(list)] = args else { return wrong() };
    context.spent().walk_all(list.len())?;
    context.make_elements(list.len())?;
    let mut items = Vec::new();
    for (at, item) in list.iter().enumerate() {
        match item? {
            Value::Optional(inner) => items.extend(inner.map(taken)),
            // The first is what upstream judges a list by.
            _ if at == 0 => return wrong(),
            _ => return Err(Error::new("value is not optional")),
        }
    }
    Value::list(items)
}

/// What an optional has, taken out of it.
pub(crate) fn taken<'a>(inner: Arc<Inner<'a>>) -> Value<'a> {
    Arc::unwrap_or_clone(inner).into_value()
}

fn is_zero(it: &Value<'_>) -> bool {
    match it {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Int(it) | Value::Duration(it) => *it == 0,
        Value::Uint(it) => *it == 0,
        Value::Double(it) => *it == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Optional(it) => it.is_none(),
        // The first second of the year 1.
        Value::Timestamp(at) => at.seconds == SECONDS_MIN && at.nanos == 0,
        Value::Type(_) | Value::Composed => false,
        Value::Struct(it) => it.fields.is_empty(),
        Value::Object(it) => match &**it {
            Object::Ip(it) => it.is_unspecified(),
            _ => false,
        },
    }
}
