//! URLs as expressions have them: absolute, or a path from the root.

use std::collections::BTreeMap;

use forebay_apimachinery::go_url;
use forebay_apimachinery::options::Query;

/// A URL that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Url {
    pub(crate) parts: go_url::Url,
    pub text: String,
}

impl Url {
    /// Keys of the query with their values, those left out that cannot be read.
    pub(crate) fn pairs(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in Query::parse(&self.parts.query).iter() {
            found.entry(key.to_owned()).or_default().push(value.to_owned());
        }
        found
    }
}

/// Reads a URL: it is one of a request, and then read once more, since that knows no fragment.
///
/// # Errors
/// Go's text.
pub(crate) fn read(text: &str) -> Result<Url, String> {
    go_url::Url::parse_request(text)?;
    Ok(Url { parts: go_url::Url::parse(text)?, text: text.into() })
}
