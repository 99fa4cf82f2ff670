//! The types of an expression's parts, and which overloads its calls mean.
//!
//! In: a tree and its environment. Out: a type and references by node, or what is wrong in cel-go's words.
//! Never: a value.
//!
//! Source: cel-go v0.26.0 `checker/checker.go`.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use crate::ast::{Ast, Comprehension, Entry, Expr, Field, Id, Literal};
use crate::declarations::{FUNCTIONS, Overload, type_named};
use crate::env::Env;
use crate::issue::{Issue, Issues};
use crate::limits::{TYPE_HEIGHT_MAX, TYPE_PARTS_MAX, TYPE_STEPS_EACH, TYPE_STEPS_FREE, TYPE_TEXT_MAX};
use crate::messages;
use crate::types::Type;
use crate::unify::{Bindings, Free, most_general};

/// What a node refers to.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reference {
    #[default]
    None,
    /// A variable or a name that the node spells with dots.
    Name(Arc<str>),
    /// A type as a value.
    Type(Arc<str>),
    Function {
        name: Arc<str>,
        /// Whether the target is an argument, or only part of the name.
        has_target: bool,
        overloads: Vec<Arc<str>>,
    },
}

pub(crate) struct Checked {
    pub ast: Ast,
    pub root: Id,
    pub types: Vec<Type>,
    pub references: Vec<Reference>,
}

pub(crate) fn check(ast: Ast, root: Id, env: &Env, issues: &mut Issues) -> Checked {
    let count = ast.len();
    let mut checker = Checker {
        ast: &ast,
        env,
        issues,
        types: vec![Type::Error; count],
        references: vec![Reference::None; count],
        bindings: Bindings::new(TYPE_STEPS_FREE + TYPE_STEPS_EACH * count as u64),
        locals: Vec::new(),
        fresh: 0,
        is_told: false,
    };
    checker.check(root);
    let Checker { types, references, bindings, issues, is_told, .. } = checker;
    let types = types.iter().map(|it| bindings.resolve(it, Free::Dyn)).collect();
    if bindings.is_over() && !is_told {
        issues.push(Issue::at(ast.offset(root), too_large()));
    }
    Checked { ast, root, types, references }
}

struct Checker<'c> {
    ast: &'c Ast,
    env: &'c Env,
    issues: &'c mut Issues,
    types: Vec<Type>,
    references: Vec<Reference>,
    bindings: Bindings,
    /// Variables of comprehensions, the innermost last.
    locals: Vec<(Arc<str>, Type)>,
    fresh: usize,
    /// Whether a type was complained of that is too large.
    is_told: bool,
}

impl Checker<'_> {
    fn fail(&mut self, id: Id, message: String) {
        self.issues.push(Issue::at(self.ast.offset(id), message));
    }

    /// What is larger than a type may be is complained of, once, and ends the check.
    fn set(&mut self, id: Id, to: Type) {
        let was_over = self.is_told;
        if !self.bindings.is_small(&to) || self.bindings.is_over() {
            self.is_told = true;
            self.types[id.index()] = Type::Error;
            if !was_over {
                self.fail(id, too_large());
            }
            return;
        }
        self.types[id.index()] = to;
    }

    fn type_of(&self, id: Id) -> Type {
        self.types[id.index()].clone()
    }

    fn resolve(&self, it: &Type) -> Type {
        self.bindings.resolve(it, Free::Kept)
    }

    fn fresh(&mut self) -> Type {
        self.fresh += 1;
        Type::Param(format!("_var{}", self.fresh - 1).into())
    }

    fn mismatch(&mut self, id: Id, expected: &Type, found: &Type) {
        let (expected, found) = (shown(expected), shown(found));
        self.fail(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.fail(id, format!("undeclared reference to '{name}' (in container '')"));
        self.set(id, Type::Error);
    }

    fn check(&mut self, id: Id) {
        if self.is_told {
            return;
        }
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Literal(literal) => self.set(id, type_of_literal(literal)),
            Expr::Ident(name) => match self.lookup(name) {
                Some((found, reference)) => self.refer(id, found, reference),
                None => self.undeclared(id, name),
            },
            Expr::Select { operand, field, test } => self.select(id, *operand, field, *test),
            Expr::Call { function, target, args } => self.call(id, function, *target, args),
            Expr::List(items) => self.list(id, items),
            Expr::Map(entries) => self.map(id, entries),
            Expr::Struct { name, fields } => self.message(id, name, fields),
            Expr::Comprehension(it) => self.comprehension(id, it),
        }
    }

    fn refer(&mut self, id: Id, found: Type, reference: Reference) {
        self.set(id, found);
        self.references[id.index()] = reference;
    }

    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        // Few: as many as comprehensions within each other.
        if let Some((name, found)) = self.locals.iter().rev().find(|(local, _)| &**local == name) {
            return Some((found.clone(), Reference::Name(name.clone())));
        }
        if let Some((name, found)) = self.env.variable(name) {
            return Some((found.clone(), Reference::Name(name.clone())));
        }
        let found = type_named(name).or_else(|| self.env.struct_named(name))?;
        Some((Type::Type(Some(Arc::new(found))), Reference::Type(name.into())))
    }

    fn select(&mut self, id: Id, operand: Id, field: &str, test: bool) {
        if !test
            && let Some(name) = self.ast.qualified_name(id)
            && let Some((found, reference)) = self.lookup(&name)
        {
            return self.refer(id, found, reference);
        }
        let mut found = self.field(id, operand, field, false);
        if test {
            found = Type::Bool;
        }
        let found = self.resolve(&found);
        self.set(id, found);
    }

    fn field(&mut self, id: Id, operand: Id, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand = self.resolve(&self.type_of(operand));
        let target = operand.unwrap_optional().unwrap_or(&operand);
        let found = match target {
            Type::Map(both) => both.1.clone(),
            Type::Struct(it) => self.struct_field(id, it, field),
            Type::Param(_) => {
                self.bindings.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            _ => {
                self.fail(id, format!("type '{target}' does not support field selection"));
                Type::Dyn
            }
        };
        if optional || operand.unwrap_optional().is_some() { Type::optional(found) } else { found }
    }

    fn struct_field(&mut self, id: Id, it: &crate::types::StructType, field: &str) -> Type {
        match it.field(field) {
            Some(found) => found,
            None => {
                self.fail(id, format!("undefined field '{field}'"));
                Type::Error
            }
        }
    }

    fn call(&mut self, id: Id, function: &Arc<str>, target: Option<Id>, args: &[Id]) {
        if &**function == "_?._" {
            return self.optional_select(id, args);
        }
        for arg in args {
            self.check(*arg);
        }
        let Some(target) = target else {
            let name: Arc<str> = function.strip_prefix('.').unwrap_or(function).into();
            return match self.function(&name) {
                Some(overloads) => self.resolve_call(id, &name, overloads, None, args),
                None => self.undeclared(id, function),
            };
        };
        if let Some(prefix) = self.ast.qualified_name(target) {
            let name: Arc<str> = format!("{}.{function}", prefix.strip_prefix('.').unwrap_or(&prefix)).into();
            if let Some(overloads) = self.function(&name) {
                return self.resolve_call(id, &name, overloads, None, args);
            }
        }
        self.check(target);
        match self.function(function) {
            Some(overloads) => self.resolve_call(id, function, overloads, Some(target), args),
            None => self.undeclared(id, function),
        }
    }

    /// The overloads of a function, if the environment has one of them.
    fn function(&self, name: &str) -> Option<&'static [Overload]> {
        let overloads = FUNCTIONS.get(name)?;
        overloads.iter().any(|it| self.env.has(it)).then_some(overloads)
    }

    fn optional_select(&mut self, id: Id, args: &[Id]) {
        let Expr::Literal(Literal::String(field)) = self.ast.expr(args[1]) else {
            return self.fail(args[1], "unsupported optional field selection".to_owned());
        };
        let found = self.field(id, args[0], field, true);
        let found = self.resolve(&found);
        let overloads = vec!["select_optional_field".into()];
        self.refer(id, found, Reference::Function { name: "_?._".into(), has_target: false, overloads });
    }

    fn resolve_call(
        &mut self,
        id: Id,
        name: &Arc<str>,
        overloads: &'static [Overload],
        target: Option<Id>,
        args: &[Id],
    ) {
        let given: Vec<Type> = target.iter().chain(args).map(|arg| self.type_of(*arg)).collect();
        if matches!(&**name, "_&&_" | "_||_") {
            return self.logic(id, name, &overloads[0], args, &given);
        }
        let (mut result, mut ids): (Option<Type>, Vec<Arc<str>>) = (None, Vec::new());
        for overload in overloads {
            if !self.env.has(overload) || overload.is_member != target.is_some() {
                continue;
            }
            let (wanted, returned) = self.instance(overload);
            if !self.bindings.assign_all(&given, &wanted) {
                continue;
            }
            ids.push(overload.id.clone());
            let returned = self.resolve(&returned);
            result = Some(match result {
                None => returned,
                Some(before) if before == Type::Dyn || before == returned => before,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(result) => {
                let reference =
                    Reference::Function { name: name.clone(), has_target: target.is_some(), overloads: ids };
                self.refer(id, result, reference);
            }
            None => self.no_overload(id, name, target, &given),
        }
    }

    fn no_overload(&mut self, id: Id, name: &str, target: Option<Id>, given: &[Type]) {
        let (mut types, mut bytes) = (Vec::new(), 0);
        for it in given {
            // As many as anybody reads.
            if bytes > TYPE_TEXT_MAX {
                types.push("…".to_owned());
                break;
            }
            let text = shown(&self.bindings.resolve(it, Free::Dyn));
            bytes += text.len();
            types.push(text);
        }
        let (receiver, rest) = match target {
            Some(_) => (format!("{}.", types[0]), &types[1..]),
            None => (String::new(), &types[..]),
        };
        let message =
            format!("found no matching overload for '{name}' applied to '{receiver}({})'", rest.join(", "));
        self.fail(id, message);
        self.set(id, Type::Error);
    }

    fn logic(&mut self, id: Id, name: &Arc<str>, overload: &Overload, args: &[Id], given: &[Type]) {
        let mut is_right = true;
        for (arg, found) in args.iter().zip(given) {
            if !self.bindings.assign(found, &Type::Bool) {
                self.mismatch(*arg, &Type::Bool, found);
                is_right = false;
            }
        }
        if !is_right {
            return self.set(id, Type::Error);
        }
        let overloads = vec![overload.id.clone()];
        self.refer(id, Type::Bool, Reference::Function { name: name.clone(), has_target: false, overloads });
    }

    /// An overload with parameters of its own: what it takes and returns.
    fn instance(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        let mut names = Vec::new();
        for it in overload.args.iter().chain([&overload.result]) {
            collect_params(it, &mut names);
        }
        if names.is_empty() {
            return (overload.args.clone(), overload.result.clone());
        }
        // A signature is small.
        let mut own = Bindings::new(u64::MAX);
        for name in names {
            let fresh = self.fresh();
            own.bind(name, fresh);
        }
        let args = overload.args.iter().map(|arg| own.resolve(arg, Free::Kept)).collect();
        (args, own.resolve(&overload.result, Free::Kept))
    }

    /// The type of an element, and whether it is right, where it may be optional.
    fn element(&mut self, id: Id, optional: bool) -> Type {
        self.check(id);
        let found = self.type_of(id);
        if !optional {
            return found;
        }
        match found.unwrap_optional() {
            Some(inner) => inner.clone(),
            None => {
                if !matches!(found, Type::Dyn | Type::Any) {
                    self.mismatch(id, &Type::optional(found.clone()), &found);
                }
                found
            }
        }
    }

    fn join(&mut self, id: Id, before: Option<Type>, found: Type) -> Option<Type> {
        let Some(before) = before else { return Some(found) };
        if self.bindings.assign(&before, &found) {
            return Some(most_general(&before, &found).clone());
        }
        // From 1.29 on it is a validator that complains.
        if self.env.joins_to_dyn() {
            return Some(Type::Dyn);
        }
        self.mismatch(id, &before, &found);
        Some(Type::Error)
    }

    fn list(&mut self, id: Id, items: &[(Id, bool)]) {
        let mut joined = None;
        for (item, optional) in items {
            let found = self.element(*item, *optional);
            joined = self.join(*item, joined, found);
        }
        let item = joined.unwrap_or_else(|| self.fresh());
        self.set(id, Type::list(item));
    }

    fn map(&mut self, id: Id, entries: &[Entry]) {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(entry.key);
            let key = self.type_of(entry.key);
            keys = self.join(entry.key, keys, key);
            let value = self.element(entry.value, entry.optional);
            values = self.join(entry.value, values, value);
        }
        let (key, value) = match (keys, values) {
            (Some(key), Some(value)) => (key, value),
            _ => (self.fresh(), self.fresh()),
        };
        self.set(id, Type::map(key, value));
    }

    fn message(&mut self, id: Id, name: &Arc<str>, fields: &[Field]) {
        let it = match self.lookup(name) {
            None => return self.undeclared(id, name),
            Some((Type::Type(Some(it)), _)) => it,
            Some((found, _)) => {
                self.fail(id, format!("'{}' is not a type", found.name()));
                Arc::new(Type::Error)
            }
        };
        self.references[id.index()] = Reference::Type(name.strip_prefix('.').unwrap_or(name).into());
        let is_message = messages::is_message(&it);
        if !is_message && *it != Type::Error {
            self.fail(id, format!("'{}' is not a message type", it.name()));
        }
        self.set(id, if is_message { (*it).clone() } else { Type::Error });
        for field in fields {
            let found = self.element(field.value, field.optional);
            let message = match messages::field(&it, &field.name) {
                _ if !is_message => format!("unexpected failed resolution of '{name}'"),
                None if it.name() == messages::JSON_PATCH => {
                    format!("expected type of field '{}' is '' but provided type is '{found}'", field.name)
                }
                None => format!("undefined field '{}'", field.name),
                Some(wanted) if self.bindings.assign(&wanted, &found) => continue,
                Some(wanted) => format!(
                    "expected type of field '{}' is '{wanted}' but provided type is '{found}'",
                    field.name
                ),
            };
            self.issues.push(Issue::at(field.offset, message));
        }
    }

    fn comprehension(&mut self, id: Id, it: &Comprehension) {
        self.check(it.range);
        self.check(it.init);
        let range = self.resolve(&self.type_of(it.range));
        let accu = self.type_of(it.init);
        let two = it.var2.is_some();
        let (var, var2) = match &range {
            Type::List(item) if two => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(both) => both.as_ref().clone(),
            Type::Dyn | Type::Error | Type::Param(_) => {
                self.bindings.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.fail(it.range, message);
                (Type::Error, Type::Error)
            }
        };
        let depth = self.locals.len();
        self.locals.push((it.accu.clone(), accu.clone()));
        self.locals.push((it.var.clone(), var));
        if let Some(name) = &it.var2 {
            self.locals.push((name.clone(), var2));
        }
        self.check(it.condition);
        self.assert(it.condition, &Type::Bool);
        self.check(it.step);
        self.assert(it.step, &accu);
        self.locals.truncate(depth + 1);
        self.check(it.result);
        self.locals.truncate(depth);
        let found = self.resolve(&self.type_of(it.result));
        self.set(id, found);
    }

    fn assert(&mut self, id: Id, wanted: &Type) {
        let found = self.type_of(id);
        if !self.bindings.assign(wanted, &found) {
            self.mismatch(id, wanted, &found);
        }
    }
}

fn too_large() -> String {
    format!("its type has more than {TYPE_PARTS_MAX} parts, or more than {TYPE_HEIGHT_MAX} within each other")
}

/// A type as an error has it, as much of it as anybody reads.
fn shown(it: &Type) -> String {
    let mut text = Short(String::new());
    match write!(text, "{it}") {
        Ok(()) => text.0,
        Err(_) => text.0 + "…",
    }
}

struct Short(String);

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > TYPE_TEXT_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn type_of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

fn collect_params(it: &Type, names: &mut Vec<Arc<str>>) {
    match it {
        // Few: a signature has three parameters at most.
        Type::Param(name) if !names.contains(name) => names.push(name.clone()),
        Type::Type(Some(inner)) => collect_params(inner, names),
        _ => it.params().into_iter().for_each(|inner| collect_params(inner, names)),
    }
}
