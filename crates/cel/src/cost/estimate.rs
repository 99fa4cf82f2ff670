//! What an expression may cost, by what is declared of its variables.
//!
//! In: a checked tree. Out: bounds. Never: a value but a literal's.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{Comprehension, Expr, Id, Literal};
use crate::checker::{Checked, Reference};
use crate::env::Env;
use crate::macros::ACCU;
use crate::types::Type;

use super::calls::{self, Call};
use super::path::Path;
use super::{Bounds, LIST, MAP, STRUCT};

/// The variable that rules of schemas are about.
const WHOLE: &str = "self";

/// Sizes of what a container has in it.
#[derive(Clone, Copy)]
pub(crate) struct Entries {
    pub is_list: bool,
    pub key: Bounds,
    pub value: Bounds,
}

impl Entries {
    pub fn union(self, other: Entries) -> Entries {
        Entries { key: self.key.union(other.key), value: self.value.union(other.value), ..self }
    }
}

#[derive(Clone)]
struct Local {
    name: Arc<str>,
    path: Path,
    size: Option<Bounds>,
    entries: Option<Entries>,
}

/// What a call is told of a node.
pub(crate) struct Node {
    pub id: Id,
    pub path: Path,
    pub size: Option<Bounds>,
}

pub(crate) fn estimate(checked: &Checked, env: &Env) -> Bounds {
    let mut estimator = Estimator {
        checked,
        env,
        paths: HashMap::new(),
        locals: Vec::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
    };
    estimator.cost(checked.root)
}

pub(crate) struct Estimator<'c> {
    pub checked: &'c Checked,
    env: &'c Env,
    // By node.
    paths: HashMap<usize, Path>,
    sizes: HashMap<usize, Bounds>,
    entries: HashMap<usize, Entries>,
    locals: Vec<Local>,
}

impl Estimator<'_> {
    fn cost(&mut self, id: Id) -> Bounds {
        let checked = self.checked;
        // A name with dots that is a variable is one name to the checker.
        if let (Expr::Select { .. }, Reference::Name(name) | Reference::Type(name)) =
            (checked.ast.expr(id), &checked.references[id.index()])
        {
            return self.ident(id, &name.clone());
        }
        match checked.ast.expr(id) {
            Expr::Literal(_) => Bounds::ZERO,
            Expr::Ident(name) => self.ident(id, name),
            Expr::Select { operand, field, test } => self.select(id, *operand, field, *test),
            Expr::Call { target, args, .. } => self.call(id, *target, args),
            Expr::List(items) => {
                let (mut sum, mut size) = (Bounds::ZERO, empty_union(items.is_empty()));
                for (item, _) in items {
                    sum = sum.add(self.cost(*item));
                    size = size.union(self.size_or_unknown(*item));
                }
                self.set_entries(id, Some(Entries { is_list: true, key: Bounds::ONE, value: size }));
                sum.add(Bounds::fixed(LIST))
            }
            Expr::Map(entries) => {
                let mut sum = Bounds::ZERO;
                let (mut keys, mut values) =
                    (empty_union(entries.is_empty()), empty_union(entries.is_empty()));
                for entry in entries {
                    sum = sum.add(self.cost(entry.key)).add(self.cost(entry.value));
                    keys = keys.union(self.size_or_unknown(entry.key));
                    values = values.union(self.size_or_unknown(entry.value));
                }
                self.set_entries(id, Some(Entries { is_list: false, key: keys, value: values }));
                sum.add(Bounds::fixed(MAP))
            }
            Expr::Struct { fields, .. } => {
                let sum = fields.iter().fold(Bounds::ZERO, |sum, field| sum.add(self.cost(field.value)));
                sum.add(Bounds::fixed(STRUCT))
            }
            Expr::Comprehension(it) if self.is_bind(it) => self.bind(id, it),
            Expr::Comprehension(it) => self.comprehension(id, it),
        }
    }

    fn ident(&mut self, id: Id, name: &Arc<str>) -> Bounds {
        let path = match self.local(name) {
            Some(local) => local.path.clone(),
            None => Path::of(name.strip_prefix('.').unwrap_or(name)),
        };
        self.paths.insert(id.index(), path);
        Bounds::ONE
    }

    fn select(&mut self, id: Id, operand: Id, field: &Arc<str>, test: bool) -> Bounds {
        let sum = self.cost(operand);
        if test {
            return sum;
        }
        let path = self.path(operand).with(field.clone());
        self.paths.insert(id.index(), path);
        match self.type_of(operand) {
            Type::Map(_) | Type::Struct(_) | Type::Param(_) => sum.add(Bounds::ONE),
            _ => sum,
        }
    }

    fn call(&mut self, id: Id, target: Option<Id>, args: &[Id]) -> Bounds {
        let checked = self.checked;
        let Reference::Function { name, has_target, overloads } = &checked.references[id.index()] else {
            return args.iter().fold(Bounds::ZERO, |_, arg| {
                self.cost(*arg);
                Bounds::ZERO
            });
        };
        if &**name == "dyn" {
            let cost = self.cost(args[0]);
            self.copy_sizes(id, args[0]);
            return cost.add(Bounds::ONE);
        }
        let (mut costs, mut nodes) = (Vec::new(), Vec::new());
        for arg in args {
            costs.push(self.cost(*arg));
            nodes.push(self.node(*arg));
        }
        let (mut sum, mut receiver) = (Bounds::ZERO, None);
        if let Some(target) = target.filter(|_| *has_target) {
            sum = self.cost(target);
            receiver = Some(self.node(target));
        }
        let mut total = Bounds::new(u64::MAX, 0);
        let mut size: Option<Bounds> = None;
        for overload in overloads {
            let call =
                Call { function: name, overload, target: receiver.as_ref(), args: &nodes, costs: &costs };
            let found = calls::cost(self, id, &call);
            total = total.union(found.cost);
            size = match (size, found.size) {
                (Some(one), Some(two)) => Some(one.union(two)),
                (one, two) => one.or(two),
            };
            if let "index_list" | "index_map" = &**overload {
                size = self.entries(args[0]).map(|entries| entries.value);
                let step = if &**overload == "index_list" { "@items" } else { "@values" };
                let path = self.path(args[0]).with(step.into());
                self.paths.insert(id.index(), path);
            }
            size = size.or_else(|| self.size(id));
        }
        if let Some(size) = size {
            self.sizes.insert(id.index(), size);
        }
        sum.add(total)
    }

    fn is_bind(&self, it: &Comprehension) -> bool {
        let ast = &self.checked.ast;
        matches!(ast.expr(it.range), Expr::List(items) if items.is_empty())
            && matches!(ast.expr(it.condition), Expr::Literal(Literal::Bool(false)))
    }

    fn bind(&mut self, id: Id, it: &Comprehension) -> Bounds {
        let mut sum = self.cost(it.range).add(self.cost(it.init));
        self.push_accu(it);
        sum = sum.add(self.cost(it.result));
        // As long as its name is in scope, what it results in is known by it.
        self.locals.pop();
        self.copy_sizes(id, it.result);
        sum
    }

    fn push_accu(&mut self, it: &Comprehension) {
        let local = Local {
            name: it.accu.clone(),
            path: self.path(it.init),
            size: self.size(it.init),
            entries: self.entries(it.init),
        };
        self.locals.push(local);
    }

    fn push_item(&mut self, name: &Arc<str>, range: Id, wants: Wants) {
        let entries = self.entries(range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.type_of(range), Type::List(_)),
        };
        let (step, is_value) = match (wants, is_list) {
            (Wants::Key, true) => ("@indices", false),
            (Wants::Key, false) => ("@keys", false),
            (Wants::Value, true) => ("@items", true),
            (Wants::Value, false) => ("@values", true),
            (Wants::Single, true) => ("@items", true),
            (Wants::Single, false) => ("@keys", false),
        };
        let size = entries.map(|entries| if is_value { entries.value } else { entries.key });
        let path = self.path(range).with(step.into());
        self.locals.push(Local { name: name.clone(), path, size, entries: None });
    }

    fn comprehension(&mut self, id: Id, it: &Comprehension) -> Bounds {
        let mut sum = self.cost(it.range).add(self.cost(it.init));
        let depth = self.locals.len();
        self.push_accu(it);
        match &it.var2 {
            Some(second) => {
                self.push_item(&it.var, it.range, Wants::Key);
                self.push_item(second, it.range, Wants::Value);
            }
            None => self.push_item(&it.var, it.range, Wants::Single),
        }
        let condition = self.cost(it.condition);
        let step = self.cost(it.step);
        self.locals.truncate(depth + 1);
        sum = sum.add(self.cost(it.result));
        self.locals.truncate(depth);
        let count = self.size_or_unknown(it.range);
        sum = sum.add(count.times(step.add(condition)));
        match self.checked.ast.expr(it.init) {
            Expr::Literal(_) => {
                if let Some(size) = self.size(it.init) {
                    self.sizes.insert(id.index(), size);
                }
            }
            Expr::List(_) | Expr::Map(_) => {
                self.sizes.insert(id.index(), count);
                let entries = self.entries(it.step);
                self.set_entries(id, entries);
            }
            _ => {}
        }
        sum
    }

    fn local(&self, name: &str) -> Option<&Local> {
        // Few: as many as comprehensions within each other.
        self.locals.iter().rev().find(|local| &*local.name == name)
    }

    fn local_of(&self, id: Id) -> Option<&Local> {
        match self.checked.ast.expr(id) {
            Expr::Ident(name) => self.local(name),
            _ => None,
        }
    }

    fn path(&self, id: Id) -> Path {
        match self.local_of(id) {
            Some(local) => local.path.clone(),
            None => self.paths.get(&id.index()).cloned().unwrap_or_default(),
        }
    }

    pub fn type_of(&self, id: Id) -> &Type {
        &self.checked.types[id.index()]
    }

    fn node(&mut self, id: Id) -> Node {
        let mut path = self.path(id);
        if path.variable().is_some_and(|variable| &*variable == ACCU) {
            path = Path::default();
        }
        Node { id, path, size: self.size(id) }
    }

    pub fn size(&mut self, id: Id) -> Option<Bounds> {
        if let Some(size) = self.sizes.get(&id.index()) {
            return Some(*size);
        }
        if let Some(size) = literal_size(self.checked.ast.expr(id)) {
            return Some(Bounds::fixed(size));
        }
        if let Some(size) = self.declared(&self.path(id)) {
            self.sizes.insert(id.index(), size);
            return Some(size);
        }
        if is_scalar(self.type_of(id)) {
            return Some(Bounds::ONE);
        }
        self.local_of(id).and_then(|local| local.size)
    }

    /// What the schema of the variable that a path begins with says.
    pub fn declared(&self, path: &Path) -> Option<Bounds> {
        let (variable, steps) = (path.variable()?, path.steps());
        // Kubernetes' estimator takes the first name of a path for that of the whole, and the path of what a
        // literal or a choice holds begins with a step.
        let variable = if self.env.slot(&variable).is_some() { &*variable } else { WHOLE };
        let most = self.env.elements_at(variable, &steps[1..])?;
        Some(Bounds::new(0, most))
    }

    fn size_or_unknown(&mut self, id: Id) -> Bounds {
        self.size(id).unwrap_or(Bounds::UNKNOWN)
    }

    pub fn set_entries(&mut self, id: Id, entries: Option<Entries>) {
        if let Some(entries) = entries {
            self.entries.insert(id.index(), entries);
        }
    }

    pub fn entries(&self, id: Id) -> Option<Entries> {
        let known = self.entries.get(&id.index()).copied();
        known.or_else(|| self.local_of(id).and_then(|local| local.entries))
    }

    fn copy_sizes(&mut self, to: Id, from: Id) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.index(), size);
        }
        let entries = self.entries(from);
        self.set_entries(to, entries);
    }
}

#[derive(Clone, Copy)]
enum Wants {
    Key,
    Value,
    /// The only variable: a list's items, a map's keys.
    Single,
}

fn empty_union(is_empty: bool) -> Bounds {
    Bounds::new(if is_empty { 0 } else { u64::MAX }, 0)
}

fn literal_size(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::Literal(Literal::String(text)) => Some(text.chars().count() as u64),
        Expr::Literal(Literal::Bytes(bytes)) => Some(bytes.len() as u64),
        Expr::Literal(_) => Some(1),
        Expr::List(items) => Some(items.len() as u64),
        Expr::Map(entries) => Some(entries.len() as u64),
        _ => None,
    }
}

fn is_scalar(it: &Type) -> bool {
    match it {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        _ => it.unwrap_optional().is_some_and(is_scalar),
    }
}
