//! DefaultStorageClass and DefaultIngressClass: a claim or an Ingress that says nothing of its class gets the
//! default one.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/{storage/storageclass/setdefault,network/defaultingressclass}`.

use forebay_strategy::value::{Members, child_made, child_or_empty, set};
use serde_json::Value;

use super::fill::name_of;
use crate::plugin::{Admitted, Plugin, ReadFrom, Tools, WriteAttributes};

/// Fills in the class of new objects of one kind.
pub struct DefaultClass {
    name: &'static str,
    /// Whose class is filled in: group and plural.
    of: (&'static str, &'static str),
    classes: &'static [ReadFrom; 1],
    /// The member of the spec that names a class.
    member: &'static str,
    /// The annotation that named a class before there was a member.
    older: &'static str,
    /// The annotations that mark a default.
    marks: &'static [&'static str],
}

pub static STORAGE: DefaultClass = DefaultClass {
    name: "DefaultStorageClass",
    of: ("", "persistentvolumeclaims"),
    classes: &[("storage.k8s.io", "storageclasses")],
    member: "storageClassName",
    older: "volume.beta.kubernetes.io/storage-class",
    marks: &[
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ],
};

pub static INGRESS: DefaultClass = DefaultClass {
    name: "DefaultIngressClass",
    of: ("networking.k8s.io", "ingresses"),
    classes: &[("networking.k8s.io", "ingressclasses")],
    member: "ingressClassName",
    older: "kubernetes.io/ingress.class",
    marks: &["ingressclass.kubernetes.io/is-default-class"],
};

impl Plugin for DefaultClass {
    fn name(&self) -> &'static str {
        self.name
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.creates() && write.is_of(self.of.0, self.of.1)
    }

    fn decides_by(&self) -> &'static [ReadFrom] {
        self.classes
    }

    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        write.filled(object, |object| self.fill_in(object, tools))
    }
}

impl DefaultClass {
    fn fill_in(&self, object: &mut Members, tools: &Tools<'_>) -> Result<(), String> {
        let annotations = child_or_empty(child_or_empty(object, "metadata"), "annotations");
        if annotations.contains_key(self.older) {
            return Ok(());
        }
        let spec = child_made(object, "spec");
        // The classes are looked through for those alone who name none.
        if !spec.contains_key(self.member)
            && let Some(class) = self.default(tools)?
        {
            set(spec, self.member, Some(class.into()));
        }
        Ok(())
    }

    /// The newest class that is marked as the default; of equally new ones the first by name.
    ///
    /// # Errors
    /// The classes are not known yet.
    fn default(&self, tools: &Tools<'_>) -> Result<Option<String>, String> {
        let marked = tools.marked_classes(self.classes[0], "/is-default-class\":\"true\"");
        let mut marked = marked.map_err(|status| status.message)?;
        let annotated = |class: &Value, mark: &str| class["metadata"]["annotations"][mark] == "true";
        // Few: the annotations that mark a default.
        marked.retain(|class| self.marks.iter().any(|mark| annotated(class, mark)));
        let newest = marked
            .iter()
            .filter_map(|class| Some((class["metadata"]["creationTimestamp"].as_str()?, name_of(class)?)));
        // RFC 3339 in UTC sorts as time does.
        let newest = newest.min_by(|a, b| b.0.cmp(a.0).then(a.1.cmp(b.1)));
        Ok(newest.map(|(_, name)| name.to_string()))
    }
}
