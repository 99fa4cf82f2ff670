//! The expressions of a policy, from their texts to what is evaluated.
//!
//! In: texts, what each has to result in, which variables it may name. Out: programs, or upstream's words for
//! what is wrong. Never: more of them than a policy may have.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/cel/compile.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_cel::{Env, Program, Type};

use crate::environment::{self, Declared, Objects};
use crate::limits::PARTS_FREE;

/// Which versions' functions an expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// It is new: those that the release before has too.
    New,
    /// It is stored already: all that there are.
    Stored,
}

/// What an expression has to result in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    Anything,
    Bool,
    Text,
    TextOrNull,
    /// `Object{…}`.
    Object,
    /// A list of `JSONPatch{…}`.
    Patches,
}

/// An expression as it is evaluated.
pub(crate) struct Compiled {
    pub program: Program,
    pub height: u32,
    pub result: Type,
}

/// Compiles the expressions of one policy, one after the other: each sees the variables before it.
pub struct Compiler {
    declared: Declared,
    types: Objects,
    variables: BTreeMap<Arc<str>, Type>,
    parts_left: usize,
}

impl Compiler {
    /// - `declared`: which variables there are for all of its expressions.
    pub fn new(declared: Declared) -> Compiler {
        Compiler::with_types(declared, Objects::unknown())
    }

    /// The same over objects of a type.
    pub(crate) fn with_types(declared: Declared, types: Objects) -> Compiler {
        Compiler { declared, types, variables: BTreeMap::new(), parts_left: PARTS_FREE }
    }

    /// What is wrong with an expression, whatever it results in, as the checker has it.
    pub(crate) fn issues(&self, text: &str, since: Since) -> Option<String> {
        self.env(since, self.declared, text).compile(text).err().map(|issues| issues.to_string())
    }

    /// Makes a variable known by its type alone.
    pub(crate) fn type_of_variable(&mut self, name: &str, text: &str) {
        let compiled = self.env(Since::Stored, self.declared, text).compile(text);
        let seen = compiled.map_or(Type::Dyn, |compiled| environment::seen(compiled.output()));
        self.variables.insert(name.into(), seen);
    }

    /// The environment of `text`, with those of the variables that it may name: all of them for each
    /// expression would be the product of the two.
    fn env(&self, since: Since, declared: Declared, text: &str) -> Env {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let named = words.filter_map(|word| self.variables.get_key_value(word));
        let variables = match declared.variables {
            true => named.map(|(name, of)| (name.clone(), of.clone())).collect(),
            false => BTreeMap::new(),
        };
        environment::env(since.minor(), declared, &self.types, variables)
    }

    /// What is wrong with an expression.
    ///
    /// - `declared`: which variables this one has.
    ///
    /// # Errors
    /// Upstream's words.
    pub fn check(
        &mut self,
        text: &str,
        returns: Returns,
        since: Since,
        declared: Declared,
    ) -> Result<(), String> {
        self.compile(text, returns, since, declared).map(drop)
    }

    /// The same of a variable, which those behind it may name from then on.
    ///
    /// # Errors
    /// Upstream's words; it may be named all the same.
    pub fn check_variable(&mut self, name: &str, text: &str, since: Since) -> Result<(), String> {
        self.variable(name, text, since).map(drop)
    }

    pub(crate) fn variable(&mut self, name: &str, text: &str, since: Since) -> Result<Compiled, String> {
        let declared = Declared { mutations: false, ..self.declared };
        let compiled = self.compile(text, Returns::Anything, since, declared);
        let seen = compiled.as_ref().map_or(Type::Dyn, |compiled| environment::seen(&compiled.result));
        self.variables.insert(name.into(), seen);
        compiled
    }

    pub(crate) fn compile(
        &mut self,
        text: &str,
        returns: Returns,
        since: Since,
        declared: Declared,
    ) -> Result<Compiled, String> {
        let too_much = || "the expressions of the policy are too many, compiled".to_owned();
        if self.parts_left == 0 {
            return Err(too_much());
        }
        let compiled = self
            .env(since, declared, text)
            .compile(text)
            .map_err(|issues| format!("compilation failed: {issues}"))?;
        self.parts_left = (self.parts_left + text.len()).saturating_sub(compiled.nodes());
        if self.parts_left == 0 {
            return Err(too_much());
        }
        let result = compiled.output().clone();
        if !returns.takes(&result) {
            return Err(format!("{} but got {result}", returns.wanted()));
        }
        let program = compiled.program().map_err(|why| format!("program instantiation failed: {why}"))?;
        Ok(Compiled { program, height: compiled.height(), result })
    }
}

impl Since {
    fn minor(self) -> u32 {
        match self {
            Since::New => 35,
            Since::Stored => u32::MAX,
        }
    }
}

impl Returns {
    fn takes(self, found: &Type) -> bool {
        match self {
            Returns::Anything => true,
            Returns::Bool => *found == Type::Bool,
            Returns::Text => *found == Type::String,
            Returns::TextOrNull => matches!(found, Type::String | Type::Null),
            Returns::Object => *found == Type::named("Object"),
            Returns::Patches => *found == Type::list(Type::named("JSONPatch")),
        }
    }

    fn wanted(self) -> &'static str {
        match self {
            Returns::Anything => "must evaluate to something",
            Returns::Bool => "must evaluate to bool",
            Returns::Text => "must evaluate to string",
            Returns::TextOrNull => "must evaluate to one of [string null_type]",
            Returns::Object => "must evaluate to Object",
            Returns::Patches => "must evaluate to list(JSONPatch)",
        }
    }
}
