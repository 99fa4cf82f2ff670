//! What plugins have in common that are off unless they are turned on by name, and look at whole objects of
//! one core resource.
//!
//! In: a name, which writes, a resource. Out: the first three members of such a plugin. Never: what it says.

/// Name, switch and writes of such a plugin, inside of its `impl Plugin`:
/// `optional! { "AlwaysPullImages", stores "pods" }`.
///
/// - `writes`: the method of `WriteAttributes` that tells which they are.
macro_rules! optional {
    ($name:literal, $writes:ident $resource:literal) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn switch(&self) -> $crate::plugin::Switch {
            $crate::plugin::Switch::IfEnabled
        }

        fn handles(&self, write: &$crate::plugin::WriteAttributes<'_>) -> bool {
            write.$writes() && write.is_of("", $resource)
        }
    };
}

pub(crate) use optional;
