//! The spec of a CRD as apiextensions-apiserver judges it: what all versions have alike stands at the top.
//!
//! In: a CRD. Out: views. The paths in messages follow from this: a CRD with one version has its schema at
//! `spec.validation.openAPIV3Schema`, one whose versions differ at `spec.versions[i].schema.openAPIV3Schema`.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apis/apiextensions/v1/conversion.go`.

use serde_json::Value;

use super::field::Path;
use super::props::Props;

pub(crate) struct Spec<'a> {
    pub(crate) spec: Props<'a>,
    pub(crate) names: Props<'a>,
    pub(crate) versions: Vec<Version<'a>>,
    /// What the versions share, moved up from them.
    pub(crate) top: Version<'a>,
    /// Whether a version has subresources that are not the shared ones.
    own_subresources: bool,
}

/// The parts of a version that may move to the top; `None` or empty where they did or were not there.
#[derive(Clone, Copy)]
pub(crate) struct Version<'a> {
    /// The version as written; for the top, the empty object.
    pub(crate) written: Props<'a>,
    /// `schema`, which holds `openAPIV3Schema`.
    pub(crate) validation: Option<Props<'a>>,
    pub(crate) subresources: Option<Props<'a>>,
    pub(crate) columns: &'a [Value],
    pub(crate) selectable: &'a [Value],
}

impl<'a> Version<'a> {
    fn of(written: Props<'a>) -> Self {
        Version {
            written,
            validation: written.object("schema"),
            subresources: written.object("subresources"),
            columns: written.list("additionalPrinterColumns"),
            selectable: written.list("selectableFields"),
        }
    }

    pub(crate) fn name(self) -> &'a str {
        self.written.str("name")
    }

    pub(crate) fn schema(self) -> Option<Props<'a>> {
        self.validation?.object("openAPIV3Schema")
    }

    /// The schema as the value it is.
    pub(crate) fn schema_value(self) -> Option<&'a Value> {
        self.validation?.get("openAPIV3Schema").filter(|schema| schema.is_object())
    }

    pub(crate) fn has_status(self) -> bool {
        self.subresources.is_some_and(|s| s.object("status").is_some())
    }
}

impl<'a> Spec<'a> {
    pub(crate) fn of(crd: &'a Value) -> Self {
        let spec = Props::of(crd).object("spec").unwrap_or(Props::EMPTY);
        let names = spec.object("names").unwrap_or(Props::EMPTY);
        let mut versions: Vec<Version<'a>> = spec.objects("versions").map(Version::of).collect();
        let mut top = Version::of(Props::EMPTY);
        if let Some(first) = versions.first().copied() {
            let alike =
                |key: &str| versions.iter().all(|v| v.written.filled(key) == first.written.filled(key));
            let (validation, subresources) = (alike("schema"), alike("subresources"));
            let (columns, selectable) = (alike("additionalPrinterColumns"), alike("selectableFields"));
            move_up(validation, &mut versions, &mut top, first, |v| &mut v.validation);
            move_up(subresources, &mut versions, &mut top, first, |v| &mut v.subresources);
            move_up(columns, &mut versions, &mut top, first, |v| &mut v.columns);
            move_up(selectable, &mut versions, &mut top, first, |v| &mut v.selectable);
        }
        // Once: for the whole definition.
        let own_subresources = versions.iter().any(|version| version.subresources.is_some());
        Spec { spec, names, versions, top, own_subresources }
    }

    pub(crate) fn preserve_unknown_fields(&self) -> bool {
        self.spec.flag("preserveUnknownFields")
    }

    /// All schemas, the shared one first.
    pub(crate) fn schema_values(&self) -> impl Iterator<Item = &'a Value> {
        std::iter::once(&self.top).chain(&self.versions).filter_map(|v| v.schema_value())
    }

    /// Whether `wanted` holds for any part of any schema.
    pub(crate) fn any_schema(&self, mut wanted: impl FnMut(Props<'a>) -> bool) -> bool {
        self.schema_values().any(|schema| Props::of(schema).any(&mut wanted))
    }

    /// The subresources of a version, wherever they stand.
    pub(crate) fn has_status(&self, version: Version<'a>) -> bool {
        match self.own_subresources {
            true => version.has_status(),
            false => self.top.has_status(),
        }
    }
}

fn move_up<'a, T: Default>(
    alike: bool,
    versions: &mut [Version<'a>],
    top: &mut Version<'a>,
    mut first: Version<'a>,
    part: impl for<'v> Fn(&'v mut Version<'a>) -> &'v mut T,
) {
    if alike {
        *part(top) = std::mem::take(part(&mut first));
        versions.iter_mut().for_each(|version| *part(version) = T::default());
    }
}

/// The condition of a type in the status of a CRD.
pub(crate) fn condition<'a>(crd: &'a Value, kind: &str) -> Option<Props<'a>> {
    Props::of(crd).object("status")?.objects("conditions").find(|condition| condition.str("type") == kind)
}

pub(crate) fn is_true(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|condition| condition.str("status") == "True")
}

/// Runs `step` for every schema as written, with its path `spec.versions[i].schema.openAPIV3Schema`.
pub(crate) fn each_written_schema<'a>(crd: &'a Value, mut step: impl FnMut(Props<'a>, Props<'a>, &Path<'_>)) {
    let Some(spec) = Props::of(crd).object("spec") else { return };
    let root = Path::root("spec");
    let versions = root.child("versions");
    for (i, version) in spec.objects("versions").enumerate() {
        if let Some(schema) = version.object("schema").and_then(|s| s.object("openAPIV3Schema")) {
            step(version, schema, &versions.index(i).child("schema").child("openAPIV3Schema"));
        }
    }
}
