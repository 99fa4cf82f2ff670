//! A catalog of the built-in resources without stores, for tests.

use forebay_catalog::{self as catalog, Catalog};
use forebay_schema::builtin;

pub fn catalog() -> Catalog {
    let resources = builtin::table().resources().iter();
    let served = |resource| catalog::table::served(resource, forebay_strategy::convert::of, None);
    Catalog::new(resources.filter_map(served), None)
}
