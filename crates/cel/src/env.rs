//! What an expression may name: variables, and the functions of a version.
//!
//! In: declarations. Out: what a name is. Never: a variable's value.

use std::sync::Arc;

use crate::decl::Decl;
use crate::declarations::Overload;
use crate::messages;
use crate::types::Type;

/// The most elements of what a way from a variable leads to, if it leads to something of a known size.
pub type Sizes = fn(&[Arc<str>]) -> Option<u64>;

/// The environment of one place where expressions are written.
#[derive(Clone)]
pub struct Env {
    pub(crate) minor: u32,
    /// Whether objects and patches can be spelled out.
    mutations: bool,
    /// Whether there is `cel.bind`.
    pub(crate) bindings: bool,
    // A few, in the order of their slots.
    variables: Vec<Variable>,
}

#[derive(Clone)]
struct Variable {
    name: Arc<str>,
    checked: Type,
    size: Size,
}

/// Who says how much there may be of a variable.
#[derive(Clone)]
enum Size {
    Unknown,
    Declared(Arc<Decl>),
    Told(Sizes),
}

impl Env {
    /// The base environment of Kubernetes 1.`minor`: no variables.
    pub fn new(minor: u32) -> Env {
        Env { minor, mutations: false, bindings: false, variables: Vec::new() }
    }

    /// With the literals of mutating policies: `Object{…}` and `JSONPatch{…}`.
    pub fn with_mutations(mut self) -> Env {
        self.mutations = true;
        self
    }

    /// With the macro `cel.bind`, which names a value for an expression.
    pub fn with_bindings(mut self) -> Env {
        self.bindings = true;
        self
    }

    /// With a variable of a type, whose slot is the number of variables before it.
    pub fn with(mut self, name: &str, checked: Type) -> Env {
        self.variables.push(Variable { name: name.into(), checked, size: Size::Unknown });
        self
    }

    /// With a variable that a schema describes, or that may be what it describes.
    ///
    /// - `checked`: what [`Decl::checked`] says, or an optional of it.
    pub fn with_declared(mut self, name: &str, checked: Type, decl: Arc<Decl>) -> Env {
        self.variables.push(Variable { name: name.into(), checked, size: Size::Declared(decl) });
        self
    }

    /// With a variable of which `sizes` says how much there may be.
    pub fn with_sized(mut self, name: &str, checked: Type, sizes: Sizes) -> Env {
        self.variables.push(Variable { name: name.into(), checked, size: Size::Told(sizes) });
        self
    }

    pub(crate) fn variable(&self, name: &str) -> Option<(&Arc<str>, &Type)> {
        // Few: an environment has a dozen variables at most.
        self.variables.iter().find(|it| &*it.name == name).map(|it| (&it.name, &it.checked))
    }

    /// By slot.
    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        self.variables.iter().map(|it| it.name.clone()).collect()
    }

    pub(crate) fn slot(&self, name: &str) -> Option<usize> {
        // Few: as above.
        self.variables.iter().position(|it| &*it.name == name)
    }

    /// The most elements of what `way` leads to from the variable.
    pub(crate) fn elements_at(&self, name: &str, way: &[Arc<str>]) -> Option<u64> {
        // Few: as above.
        match &self.variables.iter().find(|it| &*it.name == name)?.size {
            Size::Unknown => None,
            Size::Declared(decl) => decl.elements_at(way),
            Size::Told(sizes) => sizes(way),
        }
    }

    pub(crate) fn has(&self, overload: &Overload) -> bool {
        overload.since <= self.minor && (self.mutations || !overload.is_of_mutations)
    }

    /// Whether elements of several types are what validators complain of, and not the checker.
    pub(crate) fn joins_to_dyn(&self) -> bool {
        self.minor >= 29
    }

    /// Whether a name is that of a literal alone, and no value.
    pub(crate) fn is_mutation(&self, name: &str) -> bool {
        self.mutations && messages::of_mutations(name).is_some()
    }

    pub(crate) fn struct_named(&self, name: &str) -> Option<Type> {
        if self.mutations
            && let Some(found) = messages::of_mutations(name)
        {
            return Some(found);
        }
        // Few: as above; each is asked for its own name.
        self.variables
            .iter()
            .map(|it| &it.checked)
            .find(|it| matches!(it, Type::Struct(_)) && it.name() == name)
            .cloned()
    }
}
