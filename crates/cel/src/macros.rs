//! Macros: calls that are written for something longer.
//!
//! In: a call as it was read. Out: what it stands for, every node at the place of its call. Never: a name
//! that an expression could have.

use std::sync::Arc;

use crate::ast::{Comprehension, Expr, Id, Literal};
use crate::issue::Issue;
use crate::parser::Parser;

/// What a comprehension gathers in; no expression can name it.
pub(crate) const ACCU: &str = "@result";
/// The variable of a comprehension that does not iterate.
const UNUSED: &str = "#unused";
const SORT_BY_INPUT: &str = "@__sortBy_input__";

pub(crate) fn global(p: &mut Parser, name: &Arc<str>, args: Vec<Id>, at: u32) -> Result<Id, Issue> {
    if &**name != "has" || args.len() != 1 {
        return p.push(Expr::Call { function: name.clone(), target: None, args }, at);
    }
    match p.ast.expr(args[0]).clone() {
        Expr::Select { operand, field, .. } => p.push(Expr::Select { operand, field, test: true }, at),
        _ => Err(Issue::of_macro(p.ast.offset(args[0]), "invalid argument to has() macro".to_owned())),
    }
}

pub(crate) fn member(
    p: &mut Parser,
    name: &Arc<str>,
    target: Id,
    args: Vec<Id>,
    at: u32,
) -> Result<Id, Issue> {
    let mut macros = Macro { p, target, at };
    match (&**name, args.len()) {
        ("all" | "exists" | "exists_one", 2) => macros.quantifier(name, &args),
        ("map", 2 | 3) => macros.map(&args, target),
        ("filter", 2) => macros.filter(&args),
        ("optMap" | "optFlatMap", 2) if macros.p.has_optionals => macros.optional(name, &args),
        ("all" | "exists" | "exists_one" | "existsOne", 3) if macros.p.has_two_variables => {
            macros.quantifier(name, &args)
        }
        ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) if macros.p.has_two_variables => {
            macros.transform(name, &args)
        }
        ("bind", 3) if macros.p.has_bindings && macros.is_of("cel") => macros.named(&args),
        ("sortBy", 2) if macros.p.has_sort_by => macros.sort_by(&args),
        _ => p.push(Expr::Call { function: name.clone(), target: Some(target), args }, at),
    }
}

struct Macro<'p, 't> {
    p: &'p mut Parser<'t>,
    target: Id,
    at: u32,
}

type Variables = (Arc<str>, Option<Arc<str>>);

impl Macro<'_, '_> {
    fn literal(&mut self, literal: Literal) -> Result<Id, Issue> {
        self.p.push(Expr::Literal(literal), self.at)
    }

    fn ident(&mut self, name: &str) -> Result<Id, Issue> {
        self.p.push(Expr::Ident(name.into()), self.at)
    }

    fn accu(&mut self) -> Result<Id, Issue> {
        self.ident(ACCU)
    }

    fn call(&mut self, function: &str, args: Vec<Id>) -> Result<Id, Issue> {
        self.p.call(function, args, self.at)
    }

    fn method(&mut self, function: &str, target: Id, args: Vec<Id>) -> Result<Id, Issue> {
        self.p.push(Expr::Call { function: function.into(), target: Some(target), args }, self.at)
    }

    fn fail<T>(&self, id: Id, message: &str) -> Result<T, Issue> {
        Err(Issue::of_macro(self.p.ast.offset(id), message.to_owned()))
    }

    fn variable(&self, id: Id, otherwise: &str) -> Result<Arc<str>, Issue> {
        match self.p.ast.expr(id) {
            Expr::Ident(name) if &**name == "__result__" => {
                self.fail(id, "iteration variable overwrites accumulator variable")
            }
            Expr::Ident(name) => Ok(name.clone()),
            _ => self.fail(id, otherwise),
        }
    }

    fn variables(&self, first: Id, second: Id) -> Result<Variables, Issue> {
        let otherwise = "argument must be a simple name";
        let (one, two) = (self.variable(first, otherwise)?, self.variable(second, otherwise)?);
        if one == two {
            return self.fail(second, &format!("duplicate variable name: {one}"));
        }
        Ok((one, Some(two)))
    }

    fn fold(
        &mut self,
        (var, var2): Variables,
        range: Id,
        [init, condition, step, result]: [Id; 4],
    ) -> Result<Id, Issue> {
        let it = Comprehension { range, var, var2, accu: ACCU.into(), init, condition, step, result };
        self.p.push(Expr::Comprehension(Box::new(it)), self.at)
    }

    /// Whether it is a macro of that name's.
    fn is_of(&self, namespace: &str) -> bool {
        matches!(self.p.ast.expr(self.target), Expr::Ident(name) if &**name == namespace)
    }

    /// `cel.bind(name, value, body)`.
    fn named(&mut self, args: &[Id]) -> Result<Id, Issue> {
        match self.p.ast.expr(args[0]).clone() {
            Expr::Ident(name) => self.bind(name, args[1], args[2]),
            _ => self.fail(args[0], "cel.bind() variable names must be simple identifiers"),
        }
    }

    /// What binds `name` to `value` in `body`: a comprehension over nothing.
    fn bind(&mut self, name: Arc<str>, value: Id, body: Id) -> Result<Id, Issue> {
        let range = self.p.push(Expr::List(Vec::new()), self.at)?;
        let condition = self.literal(Literal::Bool(false))?;
        let step = self.ident(&name)?;
        let it = Comprehension {
            range,
            var: UNUSED.into(),
            var2: None,
            accu: name,
            init: value,
            condition,
            step,
            result: body,
        };
        self.p.push(Expr::Comprehension(Box::new(it)), self.at)
    }

    fn quantifier(&mut self, name: &str, args: &[Id]) -> Result<Id, Issue> {
        let variables = match args {
            [var, _] => (self.variable(*var, "argument must be a simple name")?, None),
            _ => self.variables(args[0], args[1])?,
        };
        let predicate = args[args.len() - 1];
        let parts = match name {
            "all" => {
                let init = self.literal(Literal::Bool(true))?;
                let accu = self.accu()?;
                let condition = self.call("@not_strictly_false", vec![accu])?;
                let accu = self.accu()?;
                let step = self.call("_&&_", vec![accu, predicate])?;
                [init, condition, step, self.accu()?]
            }
            "exists" => {
                let init = self.literal(Literal::Bool(false))?;
                let accu = self.accu()?;
                let not = self.call("!_", vec![accu])?;
                let condition = self.call("@not_strictly_false", vec![not])?;
                let accu = self.accu()?;
                let step = self.call("_||_", vec![accu, predicate])?;
                [init, condition, step, self.accu()?]
            }
            _ => {
                let init = self.literal(Literal::Int(0))?;
                let condition = self.literal(Literal::Bool(true))?;
                let (accu, one) = (self.accu()?, self.literal(Literal::Int(1))?);
                let more = self.call("_+_", vec![accu, one])?;
                let same = self.accu()?;
                let step = self.call("_?_:_", vec![predicate, more, same])?;
                let (accu, one) = (self.accu()?, self.literal(Literal::Int(1))?);
                [init, condition, step, self.call("_==_", vec![accu, one])?]
            }
        };
        self.fold(variables, self.target, parts)
    }

    /// Gathers `step` of those that pass `filter`.
    fn gather(
        &mut self,
        variables: Variables,
        range: Id,
        init: Expr,
        step: Id,
        filter: Option<Id>,
    ) -> Result<Id, Issue> {
        let init = self.p.push(init, self.at)?;
        let condition = self.literal(Literal::Bool(true))?;
        let step = match filter {
            Some(filter) => {
                let same = self.accu()?;
                self.call("_?_:_", vec![filter, step, same])?
            }
            None => step,
        };
        let result = self.accu()?;
        self.fold(variables, range, [init, condition, step, result])
    }

    fn append(&mut self, item: Id) -> Result<Id, Issue> {
        let accu = self.accu()?;
        let list = self.p.push(Expr::List(vec![(item, false)]), self.at)?;
        self.call("_+_", vec![accu, list])
    }

    fn map(&mut self, args: &[Id], range: Id) -> Result<Id, Issue> {
        let var = self.variable(args[0], "argument is not an identifier")?;
        let step = self.append(args[args.len() - 1])?;
        let filter = (args.len() == 3).then(|| args[1]);
        self.gather((var, None), range, Expr::List(Vec::new()), step, filter)
    }

    fn filter(&mut self, args: &[Id]) -> Result<Id, Issue> {
        let var = self.variable(args[0], "argument is not an identifier")?;
        let step = self.append(args[0])?;
        self.gather((var, None), self.target, Expr::List(Vec::new()), step, Some(args[1]))
    }

    fn transform(&mut self, name: &str, args: &[Id]) -> Result<Id, Issue> {
        let variables = self.variables(args[0], args[1])?;
        let (filter, item) = if args.len() == 4 { (Some(args[2]), args[3]) } else { (None, args[2]) };
        if name == "transformList" {
            let step = self.append(item)?;
            return self.gather(variables, self.target, Expr::List(Vec::new()), step, filter);
        }
        let accu = self.accu()?;
        let insert = if name == "transformMap" {
            let key = self.ident(&variables.0)?;
            vec![accu, key, item]
        } else {
            vec![accu, item]
        };
        let step = self.call("cel.@mapInsert", insert)?;
        self.gather(variables, self.target, Expr::Map(Vec::new()), step, filter)
    }

    fn optional(&mut self, name: &str, args: &[Id]) -> Result<Id, Issue> {
        let var = match self.p.ast.expr(args[0]) {
            Expr::Ident(var) => var.clone(),
            _ => return self.fail(args[0], &format!("{name}() variable name must be a simple identifier")),
        };
        let has = self.method("hasValue", self.target, Vec::new())?;
        let copy = self.p.copy(self.target)?;
        let value = self.method("value", copy, Vec::new())?;
        let mut some = self.bind(var, value, args[1])?;
        if name == "optMap" {
            some = self.call("optional.of", vec![some])?;
        }
        let none = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![has, some, none])
    }

    fn sort_by(&mut self, args: &[Id]) -> Result<Id, Issue> {
        if matches!(self.p.ast.expr(self.target), Expr::Literal(_) | Expr::Map(_) | Expr::Struct { .. }) {
            let why =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return self.fail(self.target, why);
        }
        let input = self.ident(SORT_BY_INPUT)?;
        let keys = self.map(args, input)?;
        let input = self.ident(SORT_BY_INPUT)?;
        let sorted = self.method("@sortByAssociatedKeys", input, vec![keys])?;
        self.bind(SORT_BY_INPUT.into(), self.target, sorted)
    }
}
