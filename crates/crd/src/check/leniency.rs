//! Which rules hold for an update: what is stored already may break rules that came after it.

use forebay_apimachinery::seen::Seen;

use super::expressions::Stored;

/// Which rules hold. A stored CRD may break a rule that came after it; then its updates may, too.
pub(super) struct Leniency<'a> {
    pub(super) require_recognized_review_version: bool,
    pub(super) require_schema: bool,
    pub(super) require_valid_type: bool,
    pub(super) require_structural: bool,
    pub(super) require_pruned_defaults: bool,
    pub(super) require_atomic_set: bool,
    pub(super) require_list_map_keys: bool,
    pub(super) allow_bad_ca: bool,
    /// Names of the versions (empty for the top) that keep more selectable fields than there may be.
    pub(super) too_many_selectable: Seen<String>,
    pub(super) stored: Stored<'a>,
}
