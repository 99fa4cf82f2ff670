//! How much an expression may be, and how deep.

/// Code points of an expression, as cel-go's parser has it; a longer one is refused before it is read.
pub const EXPRESSION_CHARS_MAX: usize = 100_000;

/// Expressions within each other that the parser enters, as cel-go's has it. It recurses no deeper than this,
/// by a few frames a level.
pub const NESTED_MAX: usize = 250;

/// Height of a tree after its macros are expanded: the checker, the planner and the evaluator recurse by it.
/// A chain of 250 operators in 250 parentheses would be allowed by cel-go and is not here: what an evaluation
/// of 400 takes fits the 2 MiB that a thread of the runtime has
/// (`the_highest_tree_is_evaluated_within_the_stack_of_a_thread`).
pub const HEIGHT_MAX: u32 = 400;

/// Nodes that an expression may have besides one for each of its characters: `optMap` has its target twice,
/// and so doubles when nested, nine times or so. A node takes about 512 B until it is planned: 768 KiB that
/// no length pays for.
pub const NODES_FREE: usize = 1536;

/// Errors of one compilation that are told; the others are counted, as cel-go does.
pub const ISSUES_MAX: usize = 100;

/// What one evaluation may cost unless its caller says less: apiserver's limit for a call.
pub const PER_CALL_COST_MAX: u64 = 1_000_000;

/// Patterns that are values and that one evaluation keeps compiled, of those that it asked for last. What it
/// compiles counts among what it makes, [`MADE_BYTES_MAX`]: some three thousand of the usual size.
pub const PATTERNS_OF_VALUES_MAX: usize = 8;

/// Digits after the point that `format` writes: what a double can have is far less.
pub const PRECISION_MAX: usize = 1000;

/// Bytes of values that one evaluation makes: of literals and functions, whose result may be far longer than
/// what they are given, and cost. Asked before they are made. At the limit it ends as if its budget were
/// spent. Upstream has none. The variables of a policy and the expressions that name them have it together;
/// what came of an expression that has nothing left of it is given back.
pub const MADE_BYTES_MAX: u64 = 64 << 20;

/// Bytes that an element of a list is taken for.
pub const ELEMENT_BYTES: usize = 64;

/// Bytes that an entry of a map is taken for, its key with it.
pub const ENTRY_BYTES: usize = 160;

/// Bytes that what has values in it is taken for besides: a list, an optional.
pub const HOLDER_BYTES: usize = 96;

/// The same of a text.
pub const TEXT_BYTES: usize = 32;

/// The same of a map: its first entry takes a place for eleven.
pub const MAP_BYTES: usize = 1_200;

/// The same of what a library makes: a URL in its parts.
pub const OBJECT_BYTES: usize = 256;

/// Steps that one evaluation takes: each part of the program that it comes by, each value that it looks at on
/// its way through another, each [`STEP_BYTES`] of a text. Ten for each unit of what a call may cost; by its
/// cost alone it would take three or so. Upstream has no such bound: there a list of lists costs as
/// much to compare as it has lists. At the limit it ends as if its budget were spent.
pub const STEPS_MAX: u64 = 10 * PER_CALL_COST_MAX;

/// The same of evaluations that belong together, of all rules about one object or all expressions of a
/// policy, besides those that their cost pays for: one for each unit of their budget, as they are taken
/// without a pause.
pub const SHARED_STEPS_MAX: u64 = 10 * PER_CALL_COST_MAX;

/// Steps that a unit of cost pays for, once an evaluation is over: as many as it takes where values are
/// flat. So what upstream's budgets allow is never refused for its steps.
pub const STEPS_PAID: u64 = 3;

/// Bytes of a text that one step looks at.
pub const STEP_BYTES: usize = 64;

/// How often values may be within each other, of those that an expression makes; the trees that it is given
/// are as deep as JSON may be. More than expressions within each other can spell out. Whoever goes through a
/// value recurses by it (`values_as_high_as_they_may_be_fit_the_stack_of_a_thread`). One that would be higher
/// is an error of whatever makes it.
pub const VALUE_HEIGHT_MAX: u16 = 256;

/// The same of types.
pub const TYPE_HEIGHT_MAX: u32 = 256;

/// Parts of a type, those that it has more than once counted as often: `{a: a}` doubles it. An expression
/// with a larger one does not compile.
pub const TYPE_PARTS_MAX: usize = 1_000;

/// Parts of types that a check looks at, besides [`TYPE_STEPS_EACH`] for each node of the expression: at the
/// limit the expression does not compile.
pub const TYPE_STEPS_FREE: u64 = 1_000_000;

/// See above. A call of a function with thirty overloads looks at a hundred or so.
pub const TYPE_STEPS_EACH: u64 = 256;

/// Bytes of types that one error has.
pub const TYPE_TEXT_MAX: usize = 16 << 10;

/// Names on a way from a variable to what it has that a schema is asked for: more than JSON is deep.
pub const PATH_STEPS_MAX: u32 = 1_024;

/// Bytes of an error: it may quote a key, and is copied by whatever absorbs it.
pub const ERROR_BYTES_MAX: usize = 4 << 10;

/// Names with dots between them that may be one: of a type, or of a function and its library. A longer chain
/// is selections.
pub const NAME_PARTS_MAX: usize = 16;
