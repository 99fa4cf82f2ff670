//! Which objects: the resource, and what of it.

/// The objects of a resource, of all namespaces or of one, that match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collection {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// `pods`.
    pub plural: String,
    /// `None` is all namespaces, or that there are none.
    pub namespace: Option<String>,
    /// As `kubectl -l` takes it; empty is everything.
    pub label_selector: String,
    /// As `kubectl --field-selector` takes it; empty is everything.
    pub field_selector: String,
}

impl Collection {
    /// All objects of a resource.
    pub fn all(group: &str, version: &str, plural: &str) -> Collection {
        Collection {
            group: group.into(),
            version: version.into(),
            plural: plural.into(),
            ..Collection::default()
        }
    }

    /// The path that it is listed at: `/api/v1/namespaces/default/pods`.
    pub fn path(&self) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match &self.namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_has_the_group_and_the_namespace_where_there_are_some() {
        let pods = Collection::all("", "v1", "pods");
        assert_eq!(pods.path(), "/api/v1/pods");
        let here =
            Collection { namespace: Some("default".into()), ..Collection::all("apps", "v1", "deployments") };
        assert_eq!(here.path(), "/apis/apps/v1/namespaces/default/deployments");
    }
}
