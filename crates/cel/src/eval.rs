//! One evaluation.
//!
//! In: a program, variables, a budget. Out: a value and what it cost. Never: goes on once the budget is
//! spent; recurses deeper than the program is high, which the parser bounds.
//!
//! Source: cel-go v0.26.0 `interpreter/{interpretable,attributes,runtimecost}.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cost::actual;
use crate::cost::table::Rule;
use crate::cost::{LIST, MAP, STRUCT};
use crate::error::Error;
use crate::libraries::collections::taken;
use crate::libraries::{self, Context, Function};
use crate::limits::{HOLDER_BYTES, OBJECT_BYTES, TEXT_BYTES};
use crate::lookup::{index, missing};
use crate::messages;
use crate::program::{
    Activation, Attr, Call, Evaluation, Field, Fold, Head, Literal, Node, Op, Program, Step, StepKind,
};
use crate::spent::Spent;
use crate::value::{List, Map, TextValue, Value};

type Found<'a> = Result<Value<'a>, Error>;

pub(crate) fn run<'a>(program: &'a Program, with: Activation<'a>, budget: u64) -> Evaluation<'a> {
    let context = Context::new(with.authorizer, with.spent);
    let mut eval = Eval { names: &program.names, with, context, locals: Vec::new(), cost: 0, budget };
    let result = eval.node(&program.root);
    Evaluation { result, cost: eval.cost }
}

/// What a node of constants is.
pub(crate) fn constant(node: &Node) -> Result<Value<'static>, Error> {
    let context = Context::new(None, None);
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
    fn spent(&self) -> &Spent {
        self.context.spent()
    }

    fn pay(&mut self, cost: u64) -> Result<(), Error> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.budget { Err(Error::CostExceeded) } else { Ok(()) }
    }

    fn node(&mut self, node: &'a Node) -> Found<'a> {
        self.spent().walk(0)?;
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
                Value::Optional(Some(inner)) if *takes => Ok(taken(inner)),
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
        let is_of_result = actual::is_of_result(call.rule);
        // What it costs by its arguments is paid before it is carried out.
        if !is_of_result {
            self.pay_for(call, args, None)?;
        }
        let result = match failed {
            Some(error) => Err(error),
            None => self.carry_out(call, args),
        };
        if is_of_result {
            self.pay_for(call, args, Some(&result))?;
        }
        match result {
            Err(Error::Unsuited) => Err(libraries::refused(&call.name, args)),
            Ok(made) => self.spent().make(held_in(&made)).map(|()| made),
            Err(error) => Err(error),
        }
    }

    fn pay_for(&mut self, call: &Call, args: &[Value<'a>], result: Option<&Found<'a>>) -> Result<(), Error> {
        let left = self.budget.saturating_sub(self.cost);
        let cost = actual::cost(call.rule, args, result, (left, self.context.spent()))?;
        self.pay(cost)
    }

    fn carry_out(&self, call: &'a Call, args: &[Value<'a>]) -> Found<'a> {
        let (context, spent) = (&self.context, self.context.spent());
        let function = match &call.op {
            Op::Equals => return args[0].equals(&args[1], spent).map(Value::Bool),
            Op::NotEquals => return args[0].equals(&args[1], spent).map(|same| Value::Bool(!same)),
            Op::Function(function) => function,
        };
        let bytes = args.iter().fold(0_usize, |sum, arg| sum.saturating_add(arg.bytes()));
        if bytes > 0 {
            // Of two that are in an order the longer is looked at no further than the other is long.
            let looked_at = match (call.rule, args) {
                (Rule::Compare, [one, two]) => one.bytes().min(two.bytes()),
                _ => bytes,
            };
            spent.walk(looked_at)?;
            spent.make(made_of(call.rule, args, bytes))?;
        }
        match function {
            Function::Plain(function) => function(args, context),
            Function::Pattern(pattern) => pattern.apply(args, context),
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
        self.spent().make_list(items.len())?;
        let mut found = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.node(item)?, optional) {
                (Value::Optional(inner), true) => found.extend(inner.map(taken)),
                (_, true) => {
                    return Err(Error::new(
                        "cannot initialize optional list element from non-optional value",
                    ));
                }
                (value, false) => found.push(value),
            }
        }
        Value::list(found)
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
        self.spent().make_map(entries.len())?;
        let mut found = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.node(key)?;
            let value = match (self.node(value)?, optional) {
                (Value::Optional(None), true) => continue,
                (Value::Optional(Some(inner)), true) => taken(inner),
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
            self.spent().walk(key.bytes())?;
            found.insert(key, value);
        }
        Value::map(found)
    }

    fn message(&mut self, literal: &'a Literal) -> Found<'a> {
        let fields = self.fields(&literal.fields);
        let found = fields.and_then(|fields| messages::make(&literal.name, fields, self.spent()));
        if let Err(Error::CostExceeded) = found {
            return found;
        }
        self.pay(STRUCT)?;
        found
    }

    fn fields(&mut self, fields: &'a [Field]) -> Result<BTreeMap<Arc<str>, Value<'a>>, Error> {
        // Those of a patch that are not set are there all the same.
        self.spent().make_map(fields.len())?;
        let mut found = BTreeMap::new();
        for Field { name, value, optional } in fields {
            let value = match (self.node(value)?, optional) {
                (Value::Optional(None), true) => {
                    found.remove(name);
                    continue;
                }
                (Value::Optional(Some(inner)), true) => taken(inner),
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
                list.concat(more, self.spent()).map(Value::List)
            }
            (Value::Map(map), _) => libraries::collections::inserted(map, &args, self.spent()),
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
            at = (***inner).clone();
        }
        let last = attr.steps.len() - 1;
        for (number, step) in attr.steps.iter().enumerate() {
            let test = attr.test && number == last;
            optional |= step.optional;
            let (found, key) = self.step(&at, step, optional)?;
            if test && let (Value::Struct(it), StepKind::Field(name)) = (&at, &step.kind) {
                return Ok(Value::Bool(it.has(name)));
            }
            match found {
                Some(_) if test => return Ok(Value::Bool(true)),
                None if test => return Ok(Value::Bool(false)),
                Some(value) => at = value,
                None if optional && attr.test => return Ok(Value::Bool(false)),
                None if optional => return Ok(Value::Optional(None)),
                None => return Err(missing(&at, step, key.as_ref())),
            }
        }
        if !optional {
            return Ok(at);
        }
        self.spent().make(HOLDER_BYTES)?;
        Value::some(at)
    }

    /// What `at` has there, and the key where it was put together; paid for unless it is not there and need
    /// not be.
    fn step(&mut self, at: &Value<'a>, step: &'a Step, optional: bool) -> Result<Stepped<'a>, Error> {
        let mut key = None;
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
                    Err(error) => Err(error),
                    Ok(value) => {
                        let found = self.index(at, &value);
                        key = Some(value);
                        found
                    }
                }
            }
        };
        if let Ok(Some(found)) = &found {
            self.take(at, found)?;
        }
        if !optional || matches!(found, Ok(Some(_))) {
            self.pay(1)?;
        }
        Ok((found?, key))
    }

    /// Notes that `found` was taken out of `of`: bytes are made of the text that a tree has of them.
    fn take(&self, of: &Value<'a>, found: &Value<'a>) -> Result<(), Error> {
        match (of, found) {
            (Value::List(List::Tree(..)) | Value::Map(Map::Tree(..)), Value::Bytes(bytes)) => {
                self.spent().make(bytes.len())
            }
            _ => Ok(()),
        }
    }

    fn index(&self, at: &Value<'a>, wanted: &Value<'a>) -> Result<Option<Value<'a>>, Error> {
        self.spent().walk(wanted.bytes())?;
        match (at, wanted) {
            (Value::Composed, Value::String(name)) => self.composed(name),
            _ => index(at, wanted),
        }
    }

    fn composed(&self, name: &str) -> Result<Option<Value<'a>>, Error> {
        self.with.composer.map_or(Ok(None), |composer| composer.compose(name, self.with))
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
        match range {
            Value::List(list) => {
                for at in 0..list.len() {
                    let found = list.get(at).and_then(|found| found.ok_or_else(Error::no_such_overload));
                    if let Ok(found) = &found {
                        self.take(range, found)?;
                    }
                    let variables = match fold.two {
                        true => (Ok(Value::Int(at as i64)), Some(found)),
                        false => (found, None),
                    };
                    if !self.pass(fold, variables, base)? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                let counted = Spent::of_steps(u64::MAX);
                for key in map.keys(&counted) {
                    self.spent().walk_all(counted.take_steps())?;
                    let key = key?;
                    let value = fold.two.then(|| {
                        let value = key.key().map_or(Ok(None), |key| map.get(&key));
                        value.map(|value| value.unwrap_or(Value::Null))
                    });
                    if let Some(Ok(value)) = &value {
                        self.take(range, value)?;
                    }
                    if !self.pass(fold, (Ok(key), value), base)? {
                        break;
                    }
                }
            }
            _ => return Err(Error::no_such_overload()),
        }
        self.locals.truncate(base + 1);
        self.node(&fold.result)
    }

    /// One round of a comprehension; whether there may be another.
    fn pass(
        &mut self,
        fold: &'a Fold,
        (first, second): (Found<'a>, Option<Found<'a>>),
        base: usize,
    ) -> Result<bool, Error> {
        self.locals.truncate(base + 1);
        self.locals.push(Local::Found(first));
        self.locals.extend(second.map(Local::Found));
        match self.node(&fold.condition) {
            Err(Error::CostExceeded) => return Err(Error::CostExceeded),
            Ok(Value::Bool(true)) | Err(_) => {}
            Ok(_) => return Ok(false),
        }
        let next = self.node(&fold.step);
        if let Err(Error::CostExceeded) = next {
            return Err(Error::CostExceeded);
        }
        self.locals[base] = Local::Found(next);
        Ok(true)
    }
}

/// What is there, and the key that it was asked for by.
type Stepped<'a> = (Option<Value<'a>>, Option<Value<'a>>);

/// What holds the value that a call made, in bytes.
fn held_in(made: &Value<'_>) -> usize {
    match made {
        Value::String(TextValue::Shared(_)) | Value::Bytes(_) | Value::Type(_) => TEXT_BYTES,
        Value::Optional(Some(_)) => HOLDER_BYTES,
        Value::Object(_) => OBJECT_BYTES,
        _ => 0,
    }
}

/// What a call makes of texts, in bytes: a rule is of functions that make a text of another. What makes more
/// asks by itself.
///
/// - `bytes`: of its arguments.
fn made_of(rule: Rule, args: &[Value<'_>], bytes: usize) -> usize {
    match rule {
        _ if matches!(args.first(), Some(Value::Object(_) | Value::Struct(_))) => bytes,
        Rule::Convert | Rule::Parse(_) | Rule::FromBytes | Rule::ToBytes | Rule::Quote => {
            bytes.saturating_mul(2)
        }
        Rule::Find => bytes,
        _ => 0,
    }
}

/// Whether an attribute is paid for where it begins.
#[derive(Clone, Copy)]
enum Paid {
    Head,
    /// A branch of a condition, an index: only its steps are.
    Nothing,
}

fn is_among(wanted: &Value<'_>, others: &[Value<'static>]) -> bool {
    let Value::Double(wanted) = wanted else { return false };
    // Few: numbers with a fraction that an expression spells out.
    others.iter().any(|other| matches!(other, Value::Double(other) if other == wanted))
}
