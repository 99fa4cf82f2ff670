//! What stands in one document: its paths, and the definitions that they need, with all that those refer to.
//!
//! In: a catalog and what the document is about. Out: routes by path, definitions by name. Never: bytes.

use std::collections::BTreeMap;

use forebay_catalog::{Catalog, Served};
use forebay_schema::builtin::{Table, TypeId, table};
use forebay_schema::openapi::{
    CustomKind, Descriptions, Dialect, Fixed, Kinds, custom_definition, custom_list_definition, definition,
    references,
};
use serde_json::Value;

use super::custom_routes;
use super::path_item::model_name;
use super::route::{Model, Route};
use super::{builtin_routes, custom};

/// What a v3 document is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// `api` or `apis`.
    Root(&'static str),
    /// `apis/<group>`.
    Group(String),
    /// `api/v1` or `apis/<group>/<version>`.
    Version { group: String, version: String },
    /// `version`.
    VersionInfo,
}

impl Subject {
    /// Where the document is, below `/openapi/v3/`.
    pub fn path(&self) -> String {
        match self {
            Subject::Root(root) => root.to_string(),
            Subject::Group(group) => format!("apis/{group}"),
            Subject::Version { group, version } if group.is_empty() => format!("api/{version}"),
            Subject::Version { group, version } => format!("apis/{group}/{version}"),
            Subject::VersionInfo => "version".to_string(),
        }
    }
}

/// The paths and definitions of one document.
pub struct Contents<'c> {
    pub table: &'static Table,
    descriptions: Descriptions,
    /// path -> its operations
    pub paths: BTreeMap<String, Vec<Route<'c>>>,
    /// name -> what it names
    pub definitions: BTreeMap<String, Definition<'c>>,
    /// The group and version that it is about, if one.
    pub within: Option<(String, String)>,
    /// About CRDs and nothing else: those documents have another head.
    pub custom: bool,
}

/// Where a definition comes from.
#[derive(Clone, Copy)]
pub enum Definition<'c> {
    BuiltIn(TypeId),
    Fixed(Fixed),
    Custom(&'c Served),
    CustomList(&'c Served),
}

impl<'c> Contents<'c> {
    /// The contents of a v3 document.
    pub fn of(catalog: &'c Catalog, subject: &Subject) -> Contents<'c> {
        let table = table();
        let (served, routes, within): (Vec<&Served>, Vec<Route<'c>>, _) = match subject {
            Subject::Root(root) => {
                (Vec::new(), builtin_routes::root_route(table, root).into_iter().collect(), None)
            }
            Subject::Group(group) => {
                (Vec::new(), builtin_routes::group_route(table, group).into_iter().collect(), None)
            }
            Subject::VersionInfo => (Vec::new(), vec![builtin_routes::version_route()], None),
            Subject::Version { group, version } => {
                let served: Vec<&Served> = in_version(catalog, group, version).collect();
                let lists = served.iter().any(|served| !served.is_custom());
                let list =
                    lists.then(|| builtin_routes::resource_list_route(table, group, version)).flatten();
                (served, list.into_iter().collect(), Some((group.clone(), version.clone())))
            }
        };
        let custom = !served.is_empty() && served.iter().all(|served| served.is_custom());
        Contents::new(table, &served, routes, within, custom)
    }

    /// The contents of the v2 document: everything.
    pub fn of_all(catalog: &'c Catalog, subjects: &[Subject]) -> Contents<'c> {
        let table = table();
        let served: Vec<&Served> = catalog.iter().map(AsRef::as_ref).collect();
        let routes = subjects.iter().filter_map(|subject| match subject {
            Subject::Root(root) => builtin_routes::root_route(table, root),
            Subject::Group(group) => builtin_routes::group_route(table, group),
            Subject::VersionInfo => Some(builtin_routes::version_route()),
            Subject::Version { group, version } => in_version(catalog, group, version)
                .any(|served| !served.is_custom())
                .then(|| builtin_routes::resource_list_route(table, group, version))
                .flatten(),
        });
        let routes = routes.collect();
        Contents::new(table, &served, routes, None, false)
    }

    fn new(
        table: &'static Table,
        served: &[&'c Served],
        mut routes: Vec<Route<'c>>,
        within: Option<(String, String)>,
        custom: bool,
    ) -> Contents<'c> {
        for served in served {
            routes.extend(match served.is_custom() {
                true => custom_routes::routes(table, served),
                false => builtin_routes::routes(table, served),
            });
        }
        let mut contents = Contents {
            table,
            descriptions: Descriptions::of(table),
            paths: BTreeMap::new(),
            definitions: BTreeMap::new(),
            within,
            custom,
        };
        for route in &routes {
            let models = route.responses.iter().map(|(_, model)| model);
            for model in models.chain(route.body.as_ref().map(|body| &body.model)) {
                contents.define(model, served);
            }
        }
        for route in routes {
            contents.paths.entry(route.path.clone()).or_default().push(route);
        }
        contents
    }

    fn define(&mut self, model: &Model<'c>, served: &[&'c Served]) {
        let Some(name) = model_name(self.table, model) else { return };
        match model {
            Model::BuiltIn(ty) => self.define_built_in(*ty),
            Model::Fixed(fixed) => {
                self.definitions.insert(name, Definition::Fixed(*fixed));
            }
            Model::Custom { group, version, kind } => {
                let is_it = |served: &&&'c Served| {
                    (&*served.gvr.group, &*served.gvr.version) == (*group, *version)
                        && (&*served.gvk.kind == *kind || &*served.list_kind == *kind)
                };
                let Some(served) = served.iter().find(is_it) else { return };
                let (meta, what) = match &*served.gvk.kind == *kind {
                    true => ("ObjectMeta", Definition::Custom(served)),
                    false => ("ListMeta", Definition::CustomList(served)),
                };
                self.definitions.insert(name, what);
                if let Some(ty) = self.table.type_named("meta/v1", meta) {
                    self.define_built_in(ty);
                }
            }
            Model::Text => {}
        }
    }

    /// A type and all that it refers to.
    fn define_built_in(&mut self, ty: TypeId) {
        let mut open = vec![ty];
        while let Some(ty) = open.pop() {
            let Some(name) = self.table.openapi_name(ty) else { continue };
            if self.definitions.insert(name, Definition::BuiltIn(ty)).is_none() {
                open.extend(references(self.table, ty));
            }
        }
    }

    /// The definition of that name, if there is one.
    pub fn definition(&self, kinds: &Kinds, name: &str, dialect: Dialect) -> Option<Value> {
        self.definitions.get(name).map(|what| self.schema(kinds, *what, dialect))
    }

    /// One definition, spelled out.
    pub fn schema(&self, kinds: &Kinds, what: Definition<'_>, dialect: Dialect) -> Value {
        match what {
            Definition::BuiltIn(ty) => {
                let within = self.within.as_ref().map(|(group, version)| (&**group, &**version));
                definition(self.table, kinds, &self.descriptions, ty, dialect, within)
            }
            Definition::Fixed(fixed) => fixed.definition(dialect),
            Definition::Custom(served) => {
                let schema = custom::schema(served);
                let fields = custom::selectable_fields(served);
                custom_definition(&custom_kind(served, &fields), schema.as_ref(), &self.descriptions, dialect)
            }
            Definition::CustomList(served) => {
                let fields = custom::selectable_fields(served);
                custom_list_definition(&custom_kind(served, &fields), &self.descriptions, dialect)
            }
        }
    }
}

/// The subjects of the v3 documents of a catalog, ordered by path.
pub fn subjects(catalog: &Catalog) -> Vec<Subject> {
    let mut subjects = vec![Subject::Root("api"), Subject::Root("apis"), Subject::VersionInfo];
    for served in catalog.iter() {
        let (group, version) = (served.group().to_string(), served.gvr.version.to_string());
        // The group of CRDs has no document; nor has the core group, which is the root.
        if !served.is_custom() && !group.is_empty() {
            subjects.push(Subject::Group(group.clone()));
        }
        subjects.push(Subject::Version { group, version });
    }
    subjects.sort_by_key(Subject::path);
    subjects.dedup();
    subjects
}

/// What is served in a group and version.
pub fn in_version<'c>(catalog: &'c Catalog, group: &str, version: &str) -> impl Iterator<Item = &'c Served> {
    let is_in = move |served: &&Served| served.group() == group && &*served.gvr.version == version;
    catalog.iter().map(AsRef::as_ref).filter(is_in)
}

fn custom_kind<'a>(served: &'a Served, selectable_fields: &'a [String]) -> CustomKind<'a> {
    CustomKind {
        group: served.group(),
        version: &served.gvr.version,
        kind: &served.gvk.kind,
        list_kind: &served.list_kind,
        selectable_fields,
    }
}
