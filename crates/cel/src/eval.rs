//! One evaluation.
//!
//! In: a program, variables, a budget. Out: a value and what it cost. Never: goes on once the budget is
//! spent; recurses deeper than the program is high, which the parser bounds.
//!
//! Source: cel-go v0.26.0 `interpreter/{interpretable,attributes,runtimecost}.go`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cost::actual;
use crate::cost::{LIST, MAP, STRUCT};
use crate::error::Error;
use crate::libraries::{self, Context, Function};
use crate::messages;
use crate::program::{
    Activation, Attr, Call, Evaluation, Field, Fold, Head, Literal, Node, Op, Program, Step, StepKind,
};
use crate::value::{Map, MapKey, TextValue, Value};

type Found<'a> = Result<Value<'a>, Error>;

pub(crate) fn run<'a>(program: &'a Program, with: Activation<'a>, budget: u64) -> Evaluation<'a> {
    let context = Context::new(with.authorizer);
    let mut eval = Eval { names: &program.names, with, context, locals: Vec::new(), cost: 0, budget };
    let result = eval.node(&program.root);
    Evaluation { result, cost: eval.cost }
}

/// What a node of constants is.
pub(crate) fn constant(node: &Node) -> Result<Value<'static>, Error> {
    let context = Context::new(None);
    let mut eval = Eval {
        names: &[],
        with: Activation::default(),
        context,
        locals: Vec::new(),
        cost: 0,
        budget: u64::MAX,
    };
    eval.node(node).map(crate::libraries::owned)
}

enum Local<'a> {
    Found(Found<'a>),
    /// Evaluated when it is asked for.
    Later(&'a Node),
}

struct Eval<'a> {
    names: &'a [Arc<str>],
    with: Activation<'a>,
    context: Context<'a>,
    /// Of comprehensions, the innermost last.
    locals: Vec<Local<'a>>,
    cost: u64,
    budget: u64,
}

impl<'a> Eval<'a> {
    fn pay(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.budget { Err(Error::CostExceeded) } else { Ok(()) }
    }

    fn node(&mut self, node: &'a Node) -> Found<'a> {
        match node {
            Node::Const(value) => Ok(value.clone()),
            Node::Fail(error) => Err(error.clone()),
            Node::Attr(attr) => self.attr(attr, Paid::Head),
            Node::And(both) => self.logic(both, false),
            Node::Or(both) => self.logic(both, true),
            Node::Call(call) => self.call(call),
            Node::InConst(it) => {
                let wanted = self.node(&it.0)?;
                let is_in = match wanted.key() {
                    Some(key) => it.1.contains(&key),
                    None => is_among(&wanted, &it.2),
                };
                Ok(Value::Bool(is_in))
            }
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Struct(it) => self.message(it),
            Node::Fold(fold) => self.fold(fold),
            Node::OptionalOr(both, takes) => match self.node(&both[0])? {
                Value::Optional(Some(inner)) if *takes => Ok(Arc::unwrap_or_clone(inner)),
                some @ Value::Optional(Some(_)) => Ok(some),
                Value::Optional(None) => self.node(&both[1]),
                // Upstream passes on what is no optional.
                other => Ok(other),
            },
            Node::Grow(it) => self.grow(it.0, &it.1),
        }
    }

    /// `until` is what needs no second operand.
    fn logic(&mut self, both: &'a [Node; 2], until: bool) -> Found<'a> {
        let mut failed = None;
        for node in both {
            match self.node(node) {
                Ok(Value::Bool(it)) if it == until => return Ok(Value::Bool(until)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(Error::no_such_overload())),
                Err(Error::CostExceeded) => return Err(Error::CostExceeded),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!until)), Err)
    }

    fn call(&mut self, call: &'a Call) -> Found<'a> {
        match &call.args[..] {
            [] => self.finish(call, &[], None),
            [one] => {
                let (one, failed) = self.arg(one, None)?;
                self.finish(call, &[one], failed)
            }
            [one, two] if !call.stops => {
                let (one, failed) = self.arg(one, None)?;
                let (two, failed) = self.arg(two, failed)?;
                self.finish(call, &[one, two], failed)
            }
            many => {
                let mut args = Vec::with_capacity(many.len());
                let mut failed = None;
                for (at, node) in many.iter().enumerate() {
                    let arg;
                    (arg, failed) = self.arg(node, None)?;
                    args.push(arg);
                    // Only where the last failed is the call paid for.
                    match failed {
                        Some(error) if at + 1 < many.len() => return Err(error),
                        _ => {}
                    }
                }
                self.finish(call, &args, failed)
            }
        }
    }

    /// An argument, null where it failed: the others are evaluated all the same.
    fn arg(&mut self, node: &'a Node, failed: Option<Error>) -> Result<(Value<'a>, Option<Error>), Error> {
        match self.node(node) {
            Ok(value) => Ok((value, failed)),
            Err(Error::CostExceeded) => Err(Error::CostExceeded),
            Err(error) => Ok((Value::Null, failed.or(Some(error)))),
        }
    }

    fn finish(&mut self, call: &'a Call, args: &[Value<'a>], failed: Option<Error>) -> Found<'a> {
        let result = match failed {
            Some(error) => Err(error),
            None => match &call.op {
                Op::Equals => args[0].equals(&args[1], &self.context.steps).map(Value::Bool),
                Op::NotEquals => args[0].equals(&args[1], &self.context.steps).map(|same| Value::Bool(!same)),
                Op::Function(Function::Plain(function)) => function(args, &self.context),
                Op::Function(Function::Pattern(pattern)) => pattern.apply(args, &self.context),
            },
        };
        self.pay(actual::cost(call.rule, args, &result))?;
        match result {
            Err(Error::Unsuited) => Err(libraries::refused(&call.name, args)),
            result => result,
        }
    }

    fn list(&mut self, items: &'a [(Node, bool)]) -> Found<'a> {
        let found = self.items(items);
        if let Err(Error::CostExceeded) = found {
            return found;
        }
        self.pay(LIST)?;
        found
    }

    fn items(&mut self, items: &'a [(Node, bool)]) -> Found<'a> {
        let mut found = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.node(item)?, optional) {
                (Value::Optional(inner), true) => found.extend(inner.map(Arc::unwrap_or_clone)),
                (_, true) => {
                    return Err(Error::new(
                        "cannot initialize optional list element from non-optional value",
                    ));
                }
                (value, false) => found.push(value),
            }
        }
        Ok(Value::list(found))
    }

    fn map(&mut self, entries: &'a [(Node, Node, bool)]) -> Found<'a> {
        let found = self.entries(entries);
        if let Err(Error::CostExceeded) = found {
            return found;
        }
        self.pay(MAP)?;
        found
    }

    fn entries(&mut self, entries: &'a [(Node, Node, bool)]) -> Found<'a> {
        let mut found = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.node(key)?;
            let value = match (self.node(value)?, optional) {
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(inner)), true) => Arc::unwrap_or_clone(inner),
                (_, true) => {
                    return Err(Error::new("cannot initialize optional entry from non-optional value"));
                }
                (value, false) => value,
            };
            let key = match key {
                Value::Double(_) => None,
                key => key.key(),
            };
            let key = key.ok_or_else(|| Error::new("unsupported key type"))?;
            found.insert(key, value);
        }
        Ok(Value::Map(Map::Owned(Arc::new(found))))
    }

    fn message(&mut self, literal: &'a Literal) -> Found<'a> {
        let found = self.fields(&literal.fields).and_then(|fields| messages::make(&literal.name, fields));
        if let Err(Error::CostExceeded) = found {
            return found;
        }
        self.pay(STRUCT)?;
        found
    }

    fn fields(&mut self, fields: &'a [Field]) -> Result<BTreeMap<Arc<str>, Value<'a>>, Error> {
        let mut found = BTreeMap::new();
        for Field { name, value, optional } in fields {
            let value = match (self.node(value)?, optional) {
                (Value::Optional(None), true) => {
                    found.remove(name);
                    continue;
                }
                (Value::Optional(Some(inner)), true) => Arc::unwrap_or_clone(inner),
                (_, true) => {
                    return Err(Error::new("cannot initialize optional entry from non-optional value"));
                }
                (value, false) => value,
            };
            found.insert(name.clone(), value);
        }
        Ok(found)
    }

    fn local(&mut self, at: usize) -> Found<'a> {
        match &self.locals[at] {
            Local::Found(found) => found.clone(),
            Local::Later(node) => {
                let node = *node;
                // It was planned where only what is outside of its comprehension is there.
                let mut inner = self.locals.split_off(at);
                let found = self.node(node);
                self.locals.truncate(at);
                self.locals.append(&mut inner);
                self.locals[at] = Local::Found(found.clone());
                found
            }
        }
    }

    /// A comprehension's list or map with more in it, in place where nobody else has it.
    fn grow(&mut self, at: usize, added: &'a [Node]) -> Found<'a> {
        self.pay(1)?;
        let (mut args, mut failed) = (Vec::with_capacity(added.len()), None);
        for node in added {
            let (arg, still) = self.arg(node, failed)?;
            args.push(arg);
            failed = still;
        }
        self.pay(1)?;
        let taken = std::mem::replace(&mut self.locals[at], Local::Found(Ok(Value::Null)));
        let accu = match taken {
            Local::Found(accu) => accu?,
            Local::Later(_) => return Err(Error::no_such_overload()),
        };
        if let Some(error) = failed {
            return Err(error);
        }
        match (accu, &args[..]) {
            (Value::List(list), [Value::List(more)]) => {
                self.context.make_elements(more.len())?;
                list.concat(more, &self.context.steps).map(Value::List)
            }
            (Value::Map(map), _) => libraries::collections::inserted(map, &args),
            _ => Err(Error::no_such_overload()),
        }
    }

    fn attr(&mut self, attr: &'a Attr, paid: Paid) -> Found<'a> {
        let found = self.resolve(attr);
        let costs = match (&attr.head, paid) {
            (Head::Conditional(_), _) | (_, Paid::Nothing) => 0,
            _ if attr.test => 0,
            _ => 1,
        };
        if let Err(Error::CostExceeded) = found {
            return found;
        }
        self.pay(costs)?;
        found
    }

    fn resolve(&mut self, attr: &'a Attr) -> Found<'a> {
        let mut at = match &attr.head {
            Head::Variable(slot) => match self.with.variables.get(*slot) {
                Some(Some(value)) => value.clone(),
                _ => return Err(Error::new(format!("no such attribute(s): {}", self.names[*slot]))),
            },
            Head::Local(local) => self.local(*local)?,
            Head::Relative(node) => self.node(node)?,
            Head::Conditional(parts) => {
                let branch = match self.node(&parts[0])? {
                    Value::Bool(true) => &parts[1],
                    Value::Bool(false) => &parts[2],
                    _ => return Err(Error::no_such_overload()),
                };
                match branch {
                    Node::Attr(attr) => self.attr(attr, Paid::Nothing)?,
                    node => self.node(node)?,
                }
            }
        };
        if attr.steps.is_empty() {
            return Ok(at);
        }
        let mut optional = false;
        if let Value::Optional(inner) = &at {
            let Some(inner) = inner else {
                return Ok(if attr.test { Value::Bool(false) } else { at });
            };
            optional = true;
            at = (**inner).clone();
        }
        let last = attr.steps.len() - 1;
        for (number, step) in attr.steps.iter().enumerate() {
            let test = attr.test && number == last;
            optional |= step.optional;
            let found = self.step(&at, step, optional)?;
            if test && let (Value::Struct(it), StepKind::Field(name)) = (&at, &step.kind) {
                return Ok(Value::Bool(it.has(name)));
            }
            match found {
                Some(_) if test => return Ok(Value::Bool(true)),
                None if test => return Ok(Value::Bool(false)),
                Some(value) => at = value,
                None if optional && attr.test => return Ok(Value::Bool(false)),
                None if optional => return Ok(Value::Optional(None)),
                None => return Err(self.missing(&at, step)),
            }
        }
        Ok(if optional { Value::some(at) } else { at })
    }

    /// What `at` has there; paid for unless it is not there and need not be.
    fn step(&mut self, at: &Value<'a>, step: &'a Step, optional: bool) -> Result<Option<Value<'a>>, Error> {
        let found = match &step.kind {
            StepKind::Field(name) => match at {
                Value::Composed => self.composed(name),
                Value::Map(map) => map.get_text(name),
                Value::Struct(it) => Ok(it.get(name)),
                _ => index(at, &Value::String(TextValue::Borrowed(name))),
            },
            StepKind::Index(value) => self.index(at, value),
            StepKind::Computed(node) => {
                let value = match node {
                    Node::Attr(attr) => self.attr(attr, Paid::Nothing),
                    node => self.node(node),
                };
                match value {
                    Err(Error::CostExceeded) => return Err(Error::CostExceeded),
                    value => value.and_then(|value| self.index(at, &value)),
                }
            }
        };
        if !optional || matches!(found, Ok(Some(_))) {
            self.pay(1)?;
        }
        found
    }

    fn index(&self, at: &Value<'a>, wanted: &Value<'a>) -> Result<Option<Value<'a>>, Error> {
        match (at, wanted) {
            (Value::Composed, Value::String(name)) => self.composed(name),
            _ => index(at, wanted),
        }
    }

    fn composed(&self, name: &str) -> Result<Option<Value<'a>>, Error> {
        self.with.composer.map_or(Ok(None), |composer| composer.compose(name, self.with))
    }

    fn missing(&mut self, at: &Value<'a>, step: &'a Step) -> Error {
        let is_list = matches!(at, Value::List(_));
        let shown: Cow<'_, str> = match &step.kind {
            StepKind::Field(name) => Cow::Borrowed(&**name),
            StepKind::Index(value) => shown(value).into(),
            StepKind::Computed(node) => {
                let cost = self.cost;
                let value = self.node(node);
                self.cost = cost;
                value.map_or_else(|_| String::new(), |value| shown(&value)).into()
            }
        };
        if is_list {
            Error::new(format!("index out of bounds: {shown}"))
        } else {
            Error::new(format!("no such key: {shown}"))
        }
    }

    fn fold(&mut self, fold: &'a Fold) -> Found<'a> {
        let range = self.node(&fold.range)?;
        let base = self.locals.len();
        let init = if fold.lazy { Local::Later(&fold.init) } else { Local::Found(self.node(&fold.init)) };
        if let Local::Found(Err(Error::CostExceeded)) = init {
            return Err(Error::CostExceeded);
        }
        self.locals.push(init);
        let found = self.iterate(fold, &range, base);
        self.locals.truncate(base);
        found
    }

    fn iterate(&mut self, fold: &'a Fold, range: &Value<'a>, base: usize) -> Found<'a> {
        let keys = match range {
            Value::Map(map) => map.keys(),
            Value::List(_) => Vec::new(),
            _ => return Err(Error::no_such_overload()),
        };
        let count = match range {
            Value::List(list) => list.len(),
            _ => keys.len(),
        };
        for at in 0..count {
            self.locals.truncate(base + 1);
            let (first, second) = item(range, &keys, at, fold.two);
            self.locals.push(Local::Found(first));
            if fold.two {
                self.locals.push(Local::Found(second));
            }
            match self.node(&fold.condition) {
                Err(Error::CostExceeded) => return Err(Error::CostExceeded),
                Ok(Value::Bool(true)) | Err(_) => {}
                Ok(_) => break,
            }
            let next = self.node(&fold.step);
            if let Err(Error::CostExceeded) = next {
                return next;
            }
            self.locals[base] = Local::Found(next);
        }
        self.locals.truncate(base + 1);
        self.node(&fold.result)
    }
}

/// Whether an attribute is paid for where it begins.
#[derive(Clone, Copy)]
enum Paid {
    Head,
    /// A branch of a condition, an index: only its steps are.
    Nothing,
}

fn item<'a>(range: &Value<'a>, keys: &[Value<'a>], at: usize, two: bool) -> (Found<'a>, Found<'a>) {
    let null = || Ok(Value::Null);
    match range {
        Value::List(list) => {
            let found = list.get(at).and_then(|found| found.ok_or_else(Error::no_such_overload));
            if two { (Ok(Value::Int(at as i64)), found) } else { (found, null()) }
        }
        Value::Map(map) if two => {
            let value = keys[at].key().map_or(Ok(None), |key| map.get(&key));
            (Ok(keys[at].clone()), value.map(|value| value.unwrap_or(Value::Null)))
        }
        _ => (Ok(keys[at].clone()), null()),
    }
}

fn is_among(wanted: &Value<'_>, others: &[Value<'static>]) -> bool {
    let Value::Double(wanted) = wanted else { return false };
    // Few: numbers with a fraction that an expression spells out.
    others.iter().any(|other| matches!(other, Value::Double(other) if other == wanted))
}

/// What a container has at an index, if it has.
fn index<'a>(at: &Value<'a>, wanted: &Value<'a>) -> Result<Option<Value<'a>>, Error> {
    match at {
        Value::Map(map) => match wanted.key() {
            Some(key) => map.get(&key),
            None => Ok(None),
        },
        Value::List(list) => {
            let at = match wanted {
                Value::Int(at) => i128::from(*at),
                Value::Uint(at) => i128::from(*at),
                Value::Double(at) if at.fract() == 0.0 => *at as i128,
                Value::Double(at) => return Err(Error::new(format!("unsupported index value {at} in list"))),
                other => {
                    return Err(Error::new(format!(
                        "unsupported index type '{}' in list",
                        other.type_name()
                    )));
                }
            };
            usize::try_from(at).map_or(Ok(None), |at| list.get(at))
        }
        _ => Ok(None),
    }
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Double(it) => it.to_string(),
        _ => value.key().map(|key: MapKey<'_>| key.shown().into_owned()).unwrap_or_default(),
    }
}
