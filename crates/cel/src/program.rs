//! An expression as it is evaluated: steps, with names found and costs known.
//!
//! In: variables in their slots, a budget. Out: a value or why there is none, and what it cost. Never:
//! changed by an evaluation.

use crate::authorizer::Authorizer;
use crate::cost::table::Rule;
use crate::error::Error;
use crate::eval;
use crate::libraries::Function;
use crate::spent::Spent;
use crate::value::{MapKey, Value};

/// A compiled expression, for any number of evaluations on any threads.
pub struct Program {
    pub(crate) root: Node,
    /// By slot.
    pub(crate) names: Vec<std::sync::Arc<str>>,
}

/// What an evaluation is given.
#[derive(Clone, Copy, Default)]
pub struct Activation<'a> {
    /// By slot; what is `None` is an error to ask for.
    pub variables: &'a [Option<Value<'a>>],
    /// Whom `authorizer` asks.
    pub authorizer: Option<&'a dyn Authorizer>,
    /// Who makes what is selected of [`Value::Composed`].
    pub composer: Option<&'a dyn Composer<'a>>,
    /// What evaluations that belong to it have spent; nothing yet if there are none.
    pub spent: Option<&'a Spent>,
}

/// Makes values when they are first asked for: the variables of a policy. It counts itself what they cost.
pub trait Composer<'a> {
    /// What `name` is; `None` where nothing is called so.
    ///
    /// # Errors
    /// Why it has no value.
    fn compose(&'a self, name: &str, with: Activation<'a>) -> Result<Option<Value<'a>>, Error>;
}

/// What came of an evaluation.
#[derive(Debug)]
pub struct Evaluation<'a> {
    pub result: Result<Value<'a>, Error>,
    pub cost: u64,
}

impl Program {
    /// Evaluates; `budget` is what it may cost.
    pub fn eval<'a>(&'a self, with: Activation<'a>, budget: u64) -> Evaluation<'a> {
        eval::run(self, with, budget)
    }
}

pub(crate) enum Node {
    Const(Value<'static>),
    /// A list or map of constants that cannot be.
    Fail(Error),
    Attr(Box<Attr>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Call(Box<Call>),
    /// A value in a list of constants.
    InConst(Box<(Node, std::collections::BTreeSet<MapKey<'static>>, Vec<Value<'static>>)>),
    List(Box<[(Node, bool)]>),
    Map(Box<[(Node, Node, bool)]>),
    Struct(Box<Literal>),
    Fold(Box<Fold>),
    /// The second where the first has no value; whether what the first has is taken out.
    OptionalOr(Box<[Node; 2]>, bool),
    /// The variable that a comprehension gathers in, and what it grows by: a list, or a map's keys and
    /// values.
    Grow(Box<(usize, Box<[Node]>)>),
}

/// A literal with a type's name before it.
pub(crate) struct Literal {
    pub name: std::sync::Arc<str>,
    pub fields: Box<[Field]>,
}

pub(crate) struct Field {
    pub name: std::sync::Arc<str>,
    pub value: Node,
    pub optional: bool,
}

/// Something with selections after it, which are costed by themselves.
pub(crate) struct Attr {
    pub head: Head,
    pub steps: Vec<Step>,
    /// Whether the last step is only asked for.
    pub test: bool,
}

pub(crate) enum Head {
    Variable(usize),
    /// A variable of a comprehension, counted from the outermost.
    Local(usize),
    Relative(Node),
    Conditional(Box<[Node; 3]>),
}

pub(crate) struct Step {
    pub kind: StepKind,
    pub optional: bool,
}

pub(crate) enum StepKind {
    Field(std::sync::Arc<str>),
    Index(Value<'static>),
    Computed(Node),
}

pub(crate) enum Op {
    Equals,
    NotEquals,
    Function(Function),
}

pub(crate) struct Call {
    pub name: std::sync::Arc<str>,
    pub op: Op,
    pub args: Box<[Node]>,
    pub rule: Rule,
    /// Whether a failed argument is the last that is evaluated, and the call costs nothing then: as upstream
    /// calls those of any number.
    pub stops: bool,
}

pub(crate) struct Fold {
    pub range: Node,
    pub two: bool,
    pub init: Node,
    pub condition: Node,
    pub step: Node,
    pub result: Node,
    /// Whether `init` is evaluated when it is first asked for.
    pub lazy: bool,
}
