//! Literals that could never be right: durations, times and patterns that are none, lists and maps of several
//! types.
//!
//! Source: cel-go v0.26.0 `cel/validator.go`.

use crate::ast::{Expr, Id, Literal, children};
use crate::checker::{Checked, Reference};
use crate::issue::{Issue, Issues};
use crate::libraries::{formatting, matcher};
use crate::time;
use crate::types::Type;
use crate::value::Timestamp;

pub(crate) fn literals(checked: &Checked, issues: &mut Issues) {
    let exempt = in_formats(checked);
    for (id, expr) in checked.ast.nodes() {
        match expr {
            Expr::Call { args, .. } => call(checked, id, args, issues),
            Expr::List(items) if !exempt[id.index()] => {
                homogeneous(checked, items.iter().map(|(item, optional)| (*item, *optional)), true, issues);
            }
            Expr::Map(entries) if !exempt[id.index()] => {
                homogeneous(checked, entries.iter().map(|entry| (entry.key, false)), false, issues);
                homogeneous(
                    checked,
                    entries.iter().map(|entry| (entry.value, entry.optional)),
                    false,
                    issues,
                );
            }
            _ => {}
        }
    }
}

/// Which nodes are in a call of `format`, whose arguments may be of several types.
fn in_formats(checked: &Checked) -> Vec<bool> {
    let mut exempt = vec![false; checked.ast.len()];
    // A node comes after what it has in it, so that going backwards each is told by those above it.
    let nodes: Vec<_> = checked.ast.nodes().collect();
    for (id, expr) in nodes.into_iter().rev() {
        let is_format = matches!(expr, Expr::Call { function, .. } if &**function == "format");
        if is_format || exempt[id.index()] {
            children(expr, |child| exempt[child.index()] = true);
        }
    }
    exempt
}

fn call(checked: &Checked, id: Id, args: &[Id], issues: &mut Issues) {
    let Reference::Function { name, .. } = &checked.references[id.index()] else { return };
    if let (Expr::Call { target: Some(target), .. }, "format", [list]) = (checked.ast.expr(id), &**name, args)
        && let (Expr::Literal(Literal::String(text)), Expr::List(items)) =
            (checked.ast.expr(*target), checked.ast.expr(*list))
    {
        return format(checked, id, text, items, issues);
    }
    let Some(Expr::Literal(literal)) = args.first().map(|arg| checked.ast.expr(*arg)) else { return };
    let is_right = match (&**name, literal) {
        ("duration", Literal::String(text)) => time::duration(text).is_ok(),
        ("duration", _) => false,
        ("timestamp", Literal::String(text)) => time::timestamp(text).is_ok(),
        ("timestamp", Literal::Int(seconds)) => time::in_range(Timestamp::utc(*seconds, 0)).is_ok(),
        ("matches", Literal::String(pattern)) => matcher::is_valid(pattern),
        _ => return,
    };
    if !is_right {
        issues.push(Issue::of(&checked.ast, args[0], format!("invalid {name} argument")));
    }
}

/// Elements of one type; `once` is whether one that is not is enough.
fn homogeneous(
    checked: &Checked,
    elements: impl Iterator<Item = (Id, bool)>,
    once: bool,
    issues: &mut Issues,
) {
    let mut first: Option<&Type> = None;
    for (id, optional) in elements {
        let found = &checked.types[id.index()];
        let found = if optional { found.unwrap_optional().unwrap_or(found) } else { found };
        match first {
            None => first = Some(found),
            Some(first) if first.unwrapped() == found.unwrapped() => {}
            Some(first) => {
                let message = format!("expected type '{first}' but found '{found}'");
                issues.push(Issue::of(&checked.ast, id, message));
                if once {
                    return;
                }
            }
        }
    }
}

/// A format that is spelled out, with a list of arguments that is.
fn format(checked: &Checked, id: Id, text: &str, args: &[(Id, bool)], issues: &mut Issues) {
    let (mut seen, mut at_fault) = (0, id);
    let walked = formatting::walk(text, args.len(), |at, clause| {
        seen += 1;
        let arg = args[at].0;
        let fault =
            if clause.kind == 's' { unprintable(checked, arg) } else { not_for(checked, clause.kind, arg) };
        match fault {
            None => Ok(String::new()),
            Some(fault) => {
                at_fault = fault;
                Err(formatting::refusal(clause.kind, checked.types[fault.index()].name()))
            }
        }
    });
    let message = match walked {
        Err(why) => why.to_string(),
        Ok(_) if args.len() > seen => {
            format!("too many arguments supplied to string.format (expected {seen}, got {})", args.len())
        }
        Ok(_) => return,
    };
    issues.push(Issue::of(&checked.ast, at_fault, message));
}

fn not_for(checked: &Checked, kind: char, arg: Id) -> Option<Id> {
    let found = &checked.types[arg.index()];
    let fits = match kind {
        'd' | 'o' => matches!(found, Type::Int | Type::Uint),
        'f' | 'e' => matches!(found, Type::Double | Type::String),
        'b' => matches!(found, Type::Int | Type::Uint | Type::Bool),
        _ => matches!(found, Type::Int | Type::Uint | Type::String | Type::Bytes),
    };
    (!fits && *found != Type::Dyn).then_some(arg)
}

/// What of an argument, or in it, no text has.
fn unprintable(checked: &Checked, arg: Id) -> Option<Id> {
    if matches!(checked.types[arg.index()], Type::Opaque(..) | Type::Struct(_)) {
        return Some(arg);
    }
    match checked.ast.expr(arg) {
        Expr::List(items) => items.iter().find_map(|(item, _)| unprintable(checked, *item)),
        Expr::Map(entries) => entries
            .iter()
            .find_map(|entry| unprintable(checked, entry.key).or_else(|| unprintable(checked, entry.value))),
        _ => None,
    }
}
