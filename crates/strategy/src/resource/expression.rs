//! Expressions that select devices.
//!
//! In: an expression in CEL about `device`. Out: what is wrong with it, in upstream's words. Never: evaluates
//! one; who allocates devices does.
//!
//! Macros multiply: sixty characters may be a thousand parts, and a claim may have thousands of expressions.
//! All those of an object share an [`Allowance`], as the rules of a CRD do (ADR 66).
//!
//! Source: dynamic-resource-allocation v0.36.3 `cel/compile.go`, with DRAConsumableCapacity on and
//! DRAListTypeAttributes off, as they are in v1.36.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_cel::{Compiled, Env, Fields, Issues, StructType, Type};

use super::config::Origin;
use crate::field::{Causes, Path};

const BYTES_MAX: usize = 10 << 10;

/// What one evaluation may cost, by estimate.
const COST_MAX: u64 = 1_000_000;

/// Characters of a driver's name, and of the domain before an attribute's.
const DOMAIN_MAX: u64 = 63;
/// Characters of an attribute's name behind its domain.
const ID_MAX: u64 = 32;
/// Characters of an attribute's value.
const VALUE_MAX: u64 = 64;
/// Attributes and capacities of a device.
const ATTRIBUTES_MAX: u64 = 32;

/// The release before, whose functions a new expression may use.
const MINOR_BEFORE: u32 = 35;

/// What is said of an expression that says nothing.
const NOTHING: &str = "compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>' expecting \
                       {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
                       BYTES, IDENTIFIER}";

/// Parts that the expressions of an object may have besides one for each of their bytes: as many as the rules
/// of a CRD. What is more is refused. Upstream has no such bound.
const PARTS_FREE: usize = 16_384;

/// How many parts the expressions of an object may still have.
pub struct Allowance(Cell<usize>);

impl Allowance {
    /// For all expressions of an object.
    pub fn new() -> Allowance {
        Allowance(Cell::new(PARTS_FREE))
    }

    /// Takes the parts that an expression has, its bytes paying for some; false once there are none left.
    fn takes(&self, parts: usize, bytes: usize) -> bool {
        let left = (self.0.get() + bytes).saturating_sub(parts);
        self.0.set(left);
        left > 0
    }
}

pub fn validate(expression: &str, origin: Origin, allowance: &Allowance, at: &Path<'_>, causes: &mut Causes) {
    const TOO_MUCH: &str = "the expressions of the object are too many, compiled";
    if !allowance.takes(0, 0) {
        return causes.forbidden(at, TOO_MUCH);
    }
    if expression.len() > BYTES_MAX {
        return causes.too_long(at, BYTES_MAX);
    }
    if expression.is_empty() {
        return causes.invalid(at, expression, NOTHING);
    }
    let compiled = env(origin).compile(expression);
    let parts = compiled.as_ref().map_or_else(Issues::nodes, Compiled::nodes);
    let is_allowed = allowance.takes(parts, expression.len());
    let compiled = match compiled {
        Err(issues) => return causes.invalid(at, expression, &format!("compilation failed: {issues}")),
        Ok(_) if !is_allowed => return causes.forbidden(at, TOO_MUCH),
        Ok(compiled) => compiled,
    };
    let output = compiled.output();
    // An attribute's type is known when it is there.
    if !matches!(output, Type::Bool | Type::Any) {
        let detail = format!("must evaluate to bool or the unknown type, not {}", output.declared());
        return causes.invalid(at, expression, &detail);
    }
    if let Err(error) = compiled.program() {
        return causes.internal(at, &format!("program instantiation failed: {error}"));
    }
    if compiled.estimate().max > COST_MAX {
        causes.forbidden(at, "too complex, exceeds cost limit");
    }
}

fn env(origin: Origin) -> Env {
    let minor = match origin {
        Origin::New => MINOR_BEFORE,
        Origin::Stored => u32::MAX,
    };
    let of_domains = |values| Type::map(Type::String, Type::map(Type::String, values));
    let fields: BTreeMap<Arc<str>, Type> = BTreeMap::from([
        ("driver".into(), Type::String),
        ("allowMultipleAllocations".into(), Type::Bool),
        ("attributes".into(), of_domains(Type::Any)),
        ("capacity".into(), of_domains(Type::named("kubernetes.Quantity"))),
    ]);
    let device = StructType { name: "kubernetes.DRADevice".into(), fields: Fields::Known(fields) };
    Env::new(minor).with_bindings().with_sized("device", Type::Struct(Arc::new(device)), sizes)
}

/// How much there may be of what `way` leads to from the device. Keys are `@keys`, values `@values` or, where
/// an attribute is selected, its name.
fn sizes(way: &[Arc<str>]) -> Option<u64> {
    let way: Vec<&str> = way.iter().map(|step| &**step).collect();
    Some(match way[..] {
        [] => 0,
        ["driver"] => DOMAIN_MAX,
        ["allowMultipleAllocations"] => 1,
        ["attributes" | "capacity"] => ATTRIBUTES_MAX,
        ["attributes" | "capacity", "@keys"] => DOMAIN_MAX,
        ["attributes" | "capacity", "@values"] => ATTRIBUTES_MAX,
        ["attributes" | "capacity", "@values", "@keys"] => ID_MAX,
        ["attributes", "@values", _] => VALUE_MAX,
        // Nobody says how long a quantity is.
        ["capacity", "@values", "@values"] => 0,
        _ => return None,
    })
}
