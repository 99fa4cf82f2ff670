//! All rows, a file each, by what they are about.

use super::row::{Row, Rows};

/// The rows of these files, with the names of the files.
macro_rules! rows {
    ($($name:ident),+ $(,)?) => { &[$((stringify!($name), &$name::ROW)),+] };
}

mod aggregated;
mod audit;
mod authorizers;
mod conversions;
mod definitions;
mod encryption;
mod headers;
mod http1;
mod http2;
mod json;
mod objects;
mod patches;
mod policies;
mod protobuf;
mod queries;
mod requests;
mod signers;
mod tls;
mod tokens;
mod webhooks;
mod websocket;
mod yaml;

/// Families with their names.
pub const FAMILIES: [(&str, Rows); 22] = [
    ("yaml", yaml::ROWS),
    ("json", json::ROWS),
    ("protobuf", protobuf::ROWS),
    ("objects", objects::ROWS),
    ("patches", patches::ROWS),
    ("definitions", definitions::ROWS),
    ("queries", queries::ROWS),
    ("headers", headers::ROWS),
    ("tokens", tokens::ROWS),
    ("requests", requests::ROWS),
    ("webhooks", webhooks::ROWS),
    ("conversions", conversions::ROWS),
    ("aggregated", aggregated::ROWS),
    ("policies", policies::ROWS),
    ("audit", audit::ROWS),
    ("authorizers", authorizers::ROWS),
    ("encryption", encryption::ROWS),
    ("signers", signers::ROWS),
    ("http1", http1::ROWS),
    ("websocket", websocket::ROWS),
    ("http2", http2::ROWS),
    ("tls", tls::ROWS),
];

/// Every row there is.
pub fn all() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().flat_map(|(_, family)| family.iter().map(|(_, row)| *row))
}

/// Those of one family.
pub fn of(family: &str) -> impl Iterator<Item = &'static Row> {
    let known = FAMILIES.iter().find(|(name, _)| *name == family);
    known.into_iter().flat_map(|(_, family)| family.iter().map(|(_, row)| *row))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_catalogue_has_eighty_rows_or_more_each_named_as_its_file_and_no_two_alike() {
        for (family, rows) in FAMILIES {
            for (file, row) in rows {
                let name = format!("{family}-{}", file.replace('_', "-"));
                assert_eq!(row.name, name, "the row in {family}/{file}.rs");
            }
        }
        let names: BTreeSet<&str> = all().map(|row| row.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(names.len() >= 80, "{} rows", names.len());
    }

    #[test]
    fn the_rows_that_the_law_was_written_for_are_there() {
        let sources: BTreeSet<&str> = all().map(|row| row.from).collect();
        for from in
            ["CVE-2019-11253", "CVE-2019-11254", "CVE-2022-21698", "CVE-2023-44487", "CVE-2023-45288", "ours"]
        {
            assert!(sources.contains(from), "{from} is in no row");
        }
    }
}
