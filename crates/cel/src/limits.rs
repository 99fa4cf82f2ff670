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

/// Bytes of values that one evaluation makes by functions whose result may be far longer than what they are
/// given, and cost: what `replace` puts in, a list added to itself. At the limit it ends as if its budget
/// were spent. Upstream has none.
pub const MADE_BYTES_MAX: u64 = 64 << 20;

/// Bytes that an element of a list is taken for.
pub const ELEMENT_BYTES: usize = 64;

/// Comparisons that one evaluation makes, of 64 bytes each: a list of lists costs as much as it has lists.
/// Ten times what its budget pays for where lists are flat; upstream has no such bound. At the limit it ends
/// as if its budget were spent.
pub const COMPARED_MAX: u64 = 100_000_000;

/// Names with dots between them that may be one: of a type, or of a function and its library. A longer chain
/// is selections.
pub const NAME_PARTS_MAX: usize = 16;
