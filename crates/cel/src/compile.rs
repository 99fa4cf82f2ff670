//! From a text to something that can be evaluated.
//!
//! In: an expression and its environment. Out: its type, its estimated cost, its program, or everything that
//! is wrong with it. Never: a value.

use crate::ast::{Expr, Literal};
use crate::checker::{self, Checked, Reference};
use crate::cost::{Bounds, estimate};
use crate::env::Env;
use crate::error::Error;
use crate::issue::Issues;
use crate::parser::{self, Syntax};
use crate::plan;
use crate::program::Program;
use crate::types::Type;
use crate::validate;

impl Env {
    /// Reads and checks an expression.
    ///
    /// # Errors
    /// What is wrong with it, all that is found.
    pub fn compile(&self, text: &str) -> Result<Compiled, Issues> {
        let mut issues = Issues::new(text);
        let syntax = Syntax {
            optionals: self.minor >= 28,
            two_variables: self.minor >= 32,
            sort_by: self.minor >= 34,
            bindings: self.bindings,
        };
        let (ast, root) = match parser::parse(text, syntax) {
            Ok(found) => found,
            Err((found, nodes)) => {
                found.into_iter().for_each(|issue| issues.push(issue));
                issues.found_after(nodes);
                return Err(issues);
            }
        };
        issues.found_after(ast.len());
        let checked = checker::check(ast, root, self, &mut issues);
        if issues.is_empty() && self.joins_to_dyn() {
            validate::literals(&checked, &mut issues);
        }
        if issues.is_empty() { Ok(Compiled { checked, env: self.clone() }) } else { Err(issues) }
    }
}

/// An expression without faults.
pub struct Compiled {
    checked: Checked,
    env: Env,
}

impl Compiled {
    /// What it results in.
    pub fn output(&self) -> &Type {
        &self.checked.types[self.checked.root.index()]
    }

    /// Whether it names a variable.
    pub fn refers_to(&self, name: &str) -> bool {
        // Once: for an expression.
        self.checked.references.iter().any(|it| matches!(it, Reference::Name(found) if &**found == name))
    }

    /// Whether it selects `field` of `variable`, be it optionally; what is asked for by an index does not
    /// count, as upstream has it.
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        let ast = &self.checked.ast;
        let is_variable = |id| matches!(ast.expr(id), Expr::Ident(name) if &**name == variable);
        let is_field = |id| matches!(ast.expr(id), Expr::Literal(Literal::String(text)) if &**text == field);
        // Once: for an expression.
        ast.nodes().any(|(_, expr)| match expr {
            Expr::Select { operand, field: selected, .. } => &**selected == field && is_variable(*operand),
            Expr::Call { function, args, .. } if &**function == "_?._" => match args.as_slice() {
                [operand, selected] => is_variable(*operand) && is_field(*selected),
                _ => false,
            },
            _ => false,
        })
    }

    /// Parts that it has, macros expanded: what keeping it takes, about 512 B each.
    pub fn nodes(&self) -> usize {
        self.checked.ast.len()
    }

    /// How high its tree is: an evaluation recurses by it.
    pub fn height(&self) -> u32 {
        self.checked.ast.height(self.checked.root)
    }

    /// What it may cost, by the sizes that its variables' schemas allow.
    pub fn estimate(&self) -> Bounds {
        estimate::estimate(&self.checked, &self.env)
    }

    /// The steps of its evaluation.
    ///
    /// # Errors
    /// If a conversion of a constant in it fails.
    pub fn program(&self) -> Result<Program, Error> {
        plan::plan(&self.checked, &self.env)
    }
}
