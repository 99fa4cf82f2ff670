//! The resources served: names, scope, verbs, subresources, storage prefix and field labels.
//!
//! In: the lines of `data/resources.txt`, whose header describes them. Out: [`Resource`] rows, ordered as
//! discovery lists them. Never: what a verb does.

use super::parse::words;
use super::table::Table;

/// One resource of a group and version.
#[derive(Debug)]
pub struct Resource {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
    pub verbs: Verbs,
    pub(super) short_names: &'static str,
    pub(super) categories: &'static str,
    /// Where objects are stored below the store's own prefix, without slashes at the ends; `None` when the
    /// resource has no objects of its own.
    pub storage_prefix: Option<&'static str>,
    /// Ordered by name.
    pub subresources: Vec<Subresource>,
    pub(super) own_fields: Vec<FieldSelector>, // empty: name and namespace
}

/// A subresource, such as `status`.
#[derive(Debug)]
pub struct Subresource {
    pub name: &'static str,
    /// Group, version and kind of its body.
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub verbs: Verbs,
    /// Whether its requests are connections handed on (exec, proxy, ...) rather than objects.
    pub connect: bool,
}

/// A label that field selectors of a resource may name, and where its value is.
#[derive(Debug)]
pub struct FieldSelector {
    pub label: &'static str,
    pub(super) paths: &'static str,
    /// The value of an object that lacks the field.
    pub absent: &'static str,
}

/// Verbs in alphabetical order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verbs(&'static str);

const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

const NAME: FieldSelector = FieldSelector { label: "metadata.name", paths: "metadata.name", absent: "" };
const NAMESPACE: FieldSelector =
    FieldSelector { label: "metadata.namespace", paths: "metadata.namespace", absent: "" };
static DEFAULT_FIELDS: [FieldSelector; 2] = [NAME, NAMESPACE];

impl Verbs {
    pub fn iter(self) -> impl Iterator<Item = &'static str> {
        self.0.split(',')
    }
    pub fn contains(self, verb: &str) -> bool {
        self.iter().any(|v| v == verb)
    }
}

impl FieldSelector {
    /// Dotted paths into the JSON object. The value is the first that is present and not empty, as text;
    /// [`FieldSelector::absent`] when there is none. Two labels with equal paths select the same.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.paths.split('|').filter(|path| !path.is_empty())
    }
}

impl Resource {
    pub fn short_names(&self) -> impl Iterator<Item = &'static str> {
        self.short_names.split(',').filter(|name| !name.is_empty())
    }

    pub fn categories(&self) -> impl Iterator<Item = &'static str> {
        self.categories.split(',').filter(|name| !name.is_empty())
    }

    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }

    /// The labels that field selectors may name.
    pub fn fields(&self) -> &[FieldSelector] {
        if self.own_fields.is_empty() { &DEFAULT_FIELDS } else { &self.own_fields }
    }

    pub fn field(&self, label: &str) -> Option<&FieldSelector> {
        self.fields().iter().find(|field| field.label == label)
    }

    /// What kube-apiserver says of a label that is not in [`Resource::fields`].
    pub fn unsupported_field(&self, label: &str) -> String {
        if self.own_fields.is_empty() {
            let quoted = super::codec::go_quote(label);
            return format!(
                r#"{quoted} is not a known field selector: only "metadata.name", "metadata.namespace""#
            );
        }
        if self.group == "batch" {
            return format!("field label {} not supported for {}", super::codec::go_quote(label), self.kind);
        }
        format!("field label not supported: {label}")
    }
}

pub(super) fn parse_line(table: &mut Table, line: &'static str) -> Result<(), String> {
    if let Some(rest) = line.strip_prefix("resource ") {
        let resource = resource(rest)?;
        let Resource { group, version, kind, .. } = resource;
        if table.kind(group, version, kind).is_none() {
            return Err(format!("unknown kind {kind}"));
        }
        table.resources.push(resource);
        return Ok(());
    }
    if let Some(rest) = line.strip_prefix(" subresource ") {
        let subresource = subresource(rest)?;
        let Subresource { group, version, kind, .. } = subresource;
        if table.kind(group, version, kind).is_none() {
            return Err(format!("unknown kind {kind}"));
        }
        last(table)?.subresources.push(subresource);
        return Ok(());
    }
    if let Some(rest) = line.strip_prefix(" field ") {
        last(table)?.own_fields.push(field(rest)?);
        return Ok(());
    }
    Err("unknown line".into())
}

fn last(table: &mut Table) -> Result<&mut Resource, String> {
    table.resources.last_mut().ok_or_else(|| "a line of a resource before any resource".into())
}

fn resource(rest: &'static str) -> Result<Resource, String> {
    let [group, version, plural, singular, kind, scope, verbs, short_names, categories, prefix] =
        words(rest)?;
    Ok(Resource {
        group: none_if_dash(group),
        version,
        plural,
        singular,
        kind,
        namespaced: match scope {
            "namespaced" => true,
            "cluster" => false,
            _ => return Err(format!("scope {scope}")),
        },
        verbs: self::verbs(verbs),
        short_names: none_if_dash(short_names),
        categories: none_if_dash(categories),
        storage_prefix: (prefix != "-").then_some(prefix),
        subresources: Vec::new(),
        own_fields: Vec::new(),
    })
}

fn subresource(rest: &'static str) -> Result<Subresource, String> {
    let [name, group, version, kind, verbs, connect] = words(rest)?;
    let group = none_if_dash(group);
    Ok(Subresource { name, group, version, kind, verbs: self::verbs(verbs), connect: connect == "connect" })
}

fn field(rest: &'static str) -> Result<FieldSelector, String> {
    let [label, paths, of] = words(rest)?;
    let absent = match of {
        "string" => "",
        "int" => "0",
        "bool" => "false",
        _ => return Err(format!("field of type {of}")),
    };
    Ok(FieldSelector { label, paths: none_if_dash(paths), absent })
}

fn verbs(text: &'static str) -> Verbs {
    Verbs(if text == "*" { ALL_VERBS } else { text })
}

fn none_if_dash(text: &'static str) -> &'static str {
    if text == "-" { "" } else { text }
}

/// Orders the rows as lookups and discovery need them.
pub(super) fn sort(table: &mut Table) {
    table.resources.sort_by_key(|r| (r.group, r.version, r.plural));
    for resource in &mut table.resources {
        resource.subresources.sort_by_key(|s| s.name);
    }
    table.resources.shrink_to_fit();
}
