//! Every limit of this module, with its arithmetic. At a limit the input is refused; nothing is cut short in
//! silence.

/// JSON nesting that a CRD or a custom resource may have. A schema level costs two (`properties` and the
/// name), and the JSON decoder in front stops at 128, so this is reached only by values that were composed
/// later, such as patches.
pub const DEPTH_MAX: usize = 256;

/// Bytes of all patterns of one CRD, compiled: 1,024 of the usual, four of the largest. A CRD with more is
/// refused. To compile so many takes some tenths of a second.
pub const PATTERNS_BYTES_MAX: usize = 16 << 20;

/// Selectable fields of one version.
pub const SELECTABLE_FIELDS_MAX: usize = 8;

/// Bytes of a version's deprecation warning.
pub const DEPRECATION_WARNING_BYTES_MAX: usize = 256;

/// Bytes of the names to all defaults of a schema together: the object around each default is made of them.
pub const DEFAULT_PATHS_BYTES_MAX: usize = 16 << 20;

/// Values looked at to judge one object, or all defaults of a schema, each time that a schema is laid to one:
/// branches (`anyOf` and so on) multiply with items, and 3 MB of each could ask for more than an hour. An
/// object of 3 MB has some 100,000 values.
pub const VISITS_MAX: u32 = 1 << 24;

/// Choices of an `enum` from which on they are looked up by hash.
pub const CHOICES_SEARCHED_MAX: usize = 16;

/// Bytes of all annotations of one object together.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;

/// Characters of a field manager's name and bytes of a subresource's, in `managedFields`.
pub const FIELD_MANAGER_CHARS_MAX: usize = 128;
pub const SUBRESOURCE_BYTES_MAX: usize = 256;

/// Bytes of a schema that is repeated in a message; Kubernetes prints it whole, which for the largest schema
/// would be hundreds of megabytes. Beyond this, nested schemas print as null.
pub const PRINTED_BYTES_MAX: usize = 256 << 10;

/// Bytes of a request, by which rules in CEL are estimated: how often a value may be in an object, how long a
/// text may be that no schema limits. Upstream's, whatever a request may have here.
pub const RULE_REQUEST_BYTES_MAX: u64 = 3 << 20;

/// What one rule may cost by estimate, for as many values as there may be; upstream's.
pub const RULE_COST_MAX: u64 = 10_000_000;

/// What all rules of a schema may cost by estimate; upstream's.
pub const SCHEMA_RULES_COST_MAX: u64 = 100_000_000;

/// Rules that are named when all of a schema's cost too much; upstream's.
pub const DEAR_RULES_MAX: usize = 4;

/// What all rules of one object may cost when they are evaluated; upstream's.
pub const OBJECT_RULES_COST_MAX: i64 = 10_000_000;

/// Bytes that a rule's expression may make for a message; what is longer is not told. Upstream's.
pub const RULE_MESSAGE_BYTES_MAX: usize = 5 << 10;

/// Parts that the rules of a CRD may have, compiled, besides one for each byte of their texts: an expression
/// has fewer than it has bytes, unless its macros multiply. A part takes some 200 B as long as the CRD is
/// served, 512 B while it is compiled.
pub const RULE_PARTS_FREE: usize = 1 << 14;
