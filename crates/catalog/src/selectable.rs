//! What field selectors may name besides an object's own name and namespace.

/// A label that field selectors may name.
#[derive(Clone, Debug)]
pub struct SelectableField {
    pub label: String,
    /// Indexes into the layout's fields; the first that is not empty counts.
    pub fields: Box<[usize]>,
    pub absent: &'static str,
}
