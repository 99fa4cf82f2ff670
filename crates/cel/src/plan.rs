//! From a checked tree to a program.
//!
//! In: types and references. Out: steps: constants folded, names found, costs known. Never: a variable's
//! value.
//!
//! Source: cel-go v0.26.0 `interpreter/{planner,decorators}.go`.

use std::sync::Arc;

use crate::ast::{Comprehension, Expr, Id, Literal};
use crate::checker::{Checked, Reference};
use crate::cost::table;
use crate::env::Env;
use crate::error::Error;
use crate::eval;
use crate::libraries::{self, matcher};
use crate::program::{self, Attr, Call, Field, Fold, Head, Node, Op, Program, Step, StepKind};
use crate::value::{TextValue, Value};

pub(crate) fn plan(checked: &Checked, env: &Env) -> Result<Program, Error> {
    let mut planner = Planner { checked, env, locals: Vec::new() };
    let root = planner.node(checked.root)?;
    Ok(Program { root, names: env.names() })
}

struct Planner<'p> {
    checked: &'p Checked,
    env: &'p Env,
    /// Names of comprehensions' variables, the innermost last.
    locals: Vec<Arc<str>>,
}

impl Planner<'_> {
    fn node(&mut self, id: Id) -> Result<Node, Error> {
        let checked = self.checked;
        match (checked.ast.expr(id), &checked.references[id.index()]) {
            (Expr::Ident(_) | Expr::Select { .. }, Reference::Type(name)) if self.env.is_mutation(name) => {
                Err(Error::new(format!("reference to undefined type: {name}")))
            }
            (Expr::Ident(_) | Expr::Select { .. }, Reference::Type(name)) => {
                Ok(Node::Const(Value::Type(name.clone())))
            }
            (Expr::Ident(_) | Expr::Select { .. }, Reference::Name(name)) => self.name(name),
            (Expr::Ident(name), _) => self.name(name),
            (Expr::Literal(literal), _) => Ok(Node::Const(constant(literal))),
            (Expr::Select { operand, field, test }, _) => {
                let operand = self.node(*operand)?;
                Ok(step(operand, StepKind::Field(field.clone()), false, *test))
            }
            (Expr::Call { target, args, function }, reference) => {
                self.call(function, *target, args, reference)
            }
            (Expr::List(items), _) => {
                let mut nodes = Vec::new();
                for (item, optional) in items {
                    nodes.push((self.node(*item)?, *optional));
                }
                let is_constant = nodes.iter().all(|(node, _)| matches!(node, Node::Const(_)));
                Ok(collected(Node::List(nodes.into()), is_constant))
            }
            (Expr::Map(entries), _) => {
                let mut nodes = Vec::new();
                for entry in entries {
                    nodes.push((self.node(entry.key)?, self.node(entry.value)?, entry.optional));
                }
                let is_constant = nodes
                    .iter()
                    .all(|(key, value, _)| matches!((key, value), (Node::Const(_), Node::Const(_))));
                Ok(collected(Node::Map(nodes.into()), is_constant))
            }
            (Expr::Struct { fields, .. }, Reference::Type(name)) => {
                let mut nodes = Vec::new();
                for field in fields {
                    let value = self.node(field.value)?;
                    nodes.push(Field { name: field.name.clone(), value, optional: field.optional });
                }
                Ok(Node::Struct(Box::new(program::Literal { name: name.clone(), fields: nodes.into() })))
            }
            (Expr::Struct { name, .. }, _) => Err(Error::new(format!("unknown type: {name}"))),
            (Expr::Comprehension(it), _) => self.fold(it),
        }
    }

    fn name(&self, name: &Arc<str>) -> Result<Node, Error> {
        // Few: as many as comprehensions within each other.
        let head = match self.locals.iter().rposition(|local| local == name) {
            Some(at) => Head::Local(at),
            None => {
                let slot =
                    self.env.slot(name).ok_or_else(|| Error::new(format!("no such attribute(s): {name}")))?;
                Head::Variable(slot)
            }
        };
        Ok(attr(head))
    }

    fn call(
        &mut self,
        function: &Arc<str>,
        target: Option<Id>,
        args: &[Id],
        reference: &Reference,
    ) -> Result<Node, Error> {
        let (name, overloads, has_target) = match reference {
            Reference::Function { name, overloads, has_target } => (name, &overloads[..], *has_target),
            _ => (function, &[][..], target.is_some()),
        };
        let overload = match overloads {
            [only] => Some(&**only),
            _ => None,
        };
        let mut nodes = Vec::with_capacity(args.len() + 1);
        for arg in target.iter().filter(|_| has_target).chain(args) {
            nodes.push(self.node(*arg)?);
        }
        if matches!(&**name, "_&&_" | "_||_" | "_?_:_" | "_[_]" | "_[?_]" | "_?._") {
            return operator(name, nodes);
        }
        if (overload == Some("add_list") || &**name == "cel.@mapInsert")
            && let Some(grown) = grown(&mut nodes, self.locals.len())
        {
            return Ok(grown);
        }
        match (&**name, overload, nodes.len()) {
            ("or", None | Some("optional_or_optional"), 2) => {
                return Ok(Node::OptionalOr(pair(nodes), false));
            }
            ("orValue", None | Some("optional_orValue_value"), 2) => {
                return Ok(Node::OptionalOr(pair(nodes), true));
            }
            ("@in", Some("in_list"), 2) => {
                if let Some(found) = membership(&mut nodes) {
                    return Ok(found);
                }
            }
            _ => {}
        }
        let rule = table::rule(name, overload.unwrap_or_default());
        let op = match &**name {
            "_==_" => Op::Equals,
            "_!=_" => Op::NotEquals,
            "sum" => Op::Function(function_of(typed_sum(overload), &nodes)?),
            // A function has the name of a method.
            "ip" if has_target => Op::Function(function_of("cidr.ip", &nodes)?),
            _ => Op::Function(function_of(name, &nodes)?),
        };
        let is_conversion = matches!(
            &**name,
            "bool"
                | "bytes"
                | "double"
                | "duration"
                | "dyn"
                | "int"
                | "string"
                | "timestamp"
                | "type"
                | "uint"
        );
        let is_constant = is_conversion && matches!(nodes[..], [Node::Const(_)]);
        let stops = nodes.len() > 2
            || match &**name {
                "format" => true,
                "find" | "findAll" | "matches" => matches!(nodes.get(1), Some(Node::Const(_))),
                "indexOf" | "lastIndexOf" => overload.is_none(),
                _ => false,
            };
        folded(
            Node::Call(Box::new(Call { name: name.clone(), op, args: nodes.into(), rule, stops })),
            is_constant,
        )
    }

    fn fold(&mut self, it: &Comprehension) -> Result<Node, Error> {
        let range = self.node(it.range)?;
        let init = self.node(it.init)?;
        let depth = self.locals.len();
        self.locals.push(it.accu.clone());
        self.locals.push(it.var.clone());
        self.locals.extend(it.var2.clone());
        let condition = self.node(it.condition)?;
        let step = self.node(it.step)?;
        self.locals.truncate(depth + 1);
        let result = self.node(it.result)?;
        self.locals.truncate(depth);
        let lazy = matches!(&range, Node::Const(Value::List(list)) if list.is_empty());
        let two = it.var2.is_some();
        Ok(Node::Fold(Box::new(Fold { range, two, init, condition, step, result, lazy })))
    }
}

/// The sum whose nothing is of the type that the checker knew.
fn typed_sum(overload: Option<&str>) -> &'static str {
    match overload {
        Some("list_uint_sum_uint") => "sum@uint",
        Some("list_double_sum_double") => "sum@double",
        Some("list_duration_sum_duration") => "sum@duration",
        _ => "sum",
    }
}

fn function_of(name: &str, nodes: &[Node]) -> Result<libraries::Function, Error> {
    // A pattern that is a constant is compiled here, once.
    if let [_, Node::Const(Value::String(pattern)), ..] = nodes
        && let Some(found) = matcher::of_constant(name, pattern)
    {
        return found;
    }
    libraries::find(name).ok_or_else(|| Error::new(format!("no such overload: {name}()")))
}

fn pair(nodes: Vec<Node>) -> Box<[Node; 2]> {
    let mut nodes = nodes.into_iter();
    let null = || Node::Const(Value::Null);
    Box::new(std::array::from_fn(|_| nodes.next().unwrap_or_else(null)))
}

fn attr(head: Head) -> Node {
    Node::Attr(Box::new(Attr { head, steps: Vec::new(), test: false }))
}

/// One step further from `operand`.
fn step(operand: Node, kind: StepKind, optional: bool, test: bool) -> Node {
    let mut attr = match operand {
        Node::Attr(attr) if !attr.test => attr,
        other => Box::new(Attr { head: Head::Relative(other), steps: Vec::new(), test: false }),
    };
    attr.steps.push(Step { kind, optional });
    attr.test = test;
    Node::Attr(attr)
}

fn operator(name: &str, nodes: Vec<Node>) -> Result<Node, Error> {
    Ok(match name {
        "_&&_" => Node::And(pair(nodes)),
        "_||_" => Node::Or(pair(nodes)),
        "_?_:_" => {
            let mut nodes = nodes.into_iter();
            let parts = std::array::from_fn(|_| nodes.next().unwrap_or(Node::Const(Value::Null)));
            attr(Head::Conditional(Box::new(parts)))
        }
        _ => {
            let [operand, index] = *pair(nodes);
            let kind = match index {
                Node::Const(Value::String(text)) => StepKind::Field((*text).into()),
                Node::Const(value) => StepKind::Index(qualifier(value)?),
                index => StepKind::Computed(index),
            };
            step(operand, kind, name != "_[_]", false)
        }
    })
}

/// A constant that something may be asked for.
fn qualifier(value: Value<'static>) -> Result<Value<'static>, Error> {
    let kind = match value {
        Value::Bytes(_) => "types.Bytes",
        Value::Null => "types.Null",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        Value::List(_) => "*types.baseList",
        Value::Map(_) => "*types.baseMap",
        _ => return Ok(value),
    };
    Err(Error::new(format!("invalid qualifier type: {kind}")))
}

/// What is put behind a comprehension's own variable, which may grow in place: nothing else has it meanwhile.
fn grown(nodes: &mut Vec<Node>, locals: usize) -> Option<Node> {
    let Node::Attr(first) = nodes.first()? else { return None };
    let Attr { head: Head::Local(at), steps, .. } = &**first else { return None };
    // The variable stands before those that iterate, and no expression can name it.
    if !steps.is_empty() || *at + 1 >= locals {
        return None;
    }
    let at = *at;
    let added = nodes.drain(1..).collect();
    Some(Node::Grow(Box::new((at, added))))
}

/// A value in a list of constants, looked up.
fn membership(nodes: &mut Vec<Node>) -> Option<Node> {
    let Node::Const(Value::List(list)) = &nodes[1] else { return None };
    if list.is_empty() {
        return Some(Node::Const(Value::Bool(false)));
    }
    let (mut keys, mut others) = (std::collections::BTreeSet::new(), Vec::new());
    for item in list.to_vec().ok()? {
        match (&item, item.key()) {
            (
                Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_) | Value::Double(_),
                Some(key),
            ) => {
                keys.insert(key);
            }
            (Value::Double(_), None) => others.push(item),
            _ => return None,
        }
    }
    nodes.truncate(1);
    Some(Node::InConst(Box::new((nodes.pop()?, keys, others))))
}

/// What has only constants in it is one.
fn folded(node: Node, is_constant: bool) -> Result<Node, Error> {
    if !is_constant { Ok(node) } else { eval::constant(&node).map(Node::Const) }
}

/// A list or map: one of constants is one, or a failure when it is evaluated.
fn collected(node: Node, is_constant: bool) -> Node {
    if !is_constant {
        return node;
    }
    match eval::constant(&node) {
        Ok(value) => Node::Const(value),
        Err(error) => Node::Fail(error),
    }
}

pub(crate) fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(it) => Value::Bool(*it),
        Literal::Int(it) => Value::Int(*it),
        Literal::Uint(it) => Value::Uint(*it),
        Literal::Double(it) => Value::Double(*it),
        Literal::String(it) => Value::String(TextValue::Shared(it.clone())),
        Literal::Bytes(it) => Value::Bytes(it.clone()),
    }
}
