//! How much a policy may take: upstream's budgets, and our own where it has none.

/// What the validations of one policy with one parameter may cost, and their messages; upstream's.
pub const EVALUATION_COST_MAX: u64 = 10_000_000;

/// What the match conditions of a policy may cost; upstream's.
pub const CONDITIONS_COST_MAX: u64 = 2_500_000;

/// Bytes that an expression may make for a message; what is longer is not told. Upstream's.
pub const MESSAGE_BYTES_MAX: usize = 5 << 10;

/// Bytes of an annotation for an audit log that are kept; upstream's.
pub const ANNOTATION_BYTES_MAX: usize = 10 << 10;

/// What all policies together may cost of one write: upstream has no such limit, and pays for each parameter
/// of each binding anew, ten seconds' worth for every ten. At the limit the policy that asks fails as one
/// that is out of its own budget, and so by its failure policy.
pub const WRITE_COST_MAX: u64 = 20 * EVALUATION_COST_MAX;

/// What asking a policy once costs of [`WRITE_COST_MAX`], whatever it asks: its variables are put together.
pub const ASKING_COST: u64 = 100;

/// Bytes of a parameter that a unit of [`WRITE_COST_MAX`] pays for, when it is read.
pub const PARAMETER_BYTES_PAID: u64 = 16;

/// Bytes of parameters as trees that are kept for the bindings that come after, while one write is judged:
/// what is beyond is read again, and paid for again.
pub const PARAMETERS_KEPT_MAX: usize = 8 << 20;

/// Parts that the expressions of a policy may have, compiled, besides one for each byte of their texts: as
/// for the rules of a CRD. A part takes some 200 B as long as the policy is there, 512 B while it is
/// compiled.
pub const PARTS_FREE: usize = 1 << 14;

/// Heights of the expressions that are within each other through variables, added up: as high as one tree may
/// be, so that an evaluation fits the same stack. A variable beyond fails.
pub const NESTED_HEIGHT_MAX: u32 = forebay_cel::limits::HEIGHT_MAX;

/// What composing a variable takes of the stack besides its tree, in levels of a tree.
pub const COMPOSED_HEIGHT: u32 = 8;

/// Bytes that one mutation may make, as a tree: what it makes more often than once counts as often.
pub const MADE_BYTES_MAX: usize = 16 << 20;

/// Causes of one refusal that are told.
pub const DENIALS_MAX: usize = 100;
