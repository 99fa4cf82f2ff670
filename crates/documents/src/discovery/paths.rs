//! The list of paths at the root.
//!
//! In: a catalog, and the paths that are not the API's. Out: `{"paths":[...]}`, indented as kube-apiserver
//! does for every client.

use forebay_catalog::Catalog;
use serde::Serialize;

use super::{Extension, groups};

/// What is there besides groups and versions whatever is served.
const ALWAYS: [&str; 6] = ["/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/version"];

#[derive(Serialize)]
struct Paths<'a> {
    paths: Vec<&'a str>,
}

/// `/`: every path, sorted.
///
/// - `others`: the health checks, metrics and the like.
/// - `extensions`: what other servers serve.
pub fn root_paths<'a>(
    catalog: &Catalog,
    extensions: &[Extension],
    others: impl IntoIterator<Item = &'a str>,
) -> Vec<u8> {
    let mut paths: Vec<String> = ALWAYS.into_iter().chain(others).map(String::from).collect();
    for group in groups(catalog, extensions) {
        let prefix = match group.name {
            "" => "/api".to_string(),
            name => format!("/apis/{name}"),
        };
        paths.extend(group.versions.iter().map(|version| format!("{prefix}/{}", version.name)));
        paths.push(prefix);
    }
    paths.sort();
    paths.dedup();
    let document = Paths { paths: paths.iter().map(String::as_str).collect() };
    // A struct of texts cannot fail to be written into memory.
    serde_json::to_vec_pretty(&document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_lists_groups_versions_and_what_else_there_is() {
        let text = String::from_utf8(root_paths(&crate::built_ins(), &[], ["/livez", "/api"])).unwrap();
        assert!(text.starts_with(
            "{\n  \"paths\": [\n    \"/api\",\n    \"/api/v1\",\n    \"/apis\",\n    \"/apis/\",\n"
        ));
        for path in ["/apis/apps", "/apis/apps/v1", "/livez", "/openapi/v3/", "/version"] {
            assert_eq!(text.matches(&format!("\"{path}\"")).count(), 1, "{path}");
        }
        assert!(text.ends_with("\"/version\"\n  ]\n}"));
    }
}
