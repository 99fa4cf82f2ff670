//! What an update and an apply do to an object and to who owns what.
//!
//! In: the object as it is and as it is to be, who owns what, whose request it is. Out: the object, who owns
//! what then, or the conflicts. Never: takes from another manager without `force`; knows versions but by
//! their names.
//!
//! Source: structured-merge-diff v6.3.3 `merge/update.go`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use forebay_apimachinery::json::weight;
use forebay_apimachinery::lease::{Exhausted, Lease, Scope};
use serde_json::Value;

use crate::conflict::Conflicts;
use crate::fault::Faults;
use crate::index::Index;
use crate::limits::ITEM_BYTES;
use crate::managers::{Managers, Owned};
use crate::schema::TypeRef;
use crate::set::{Filter, Set};
use crate::typed::{Comparison, TypedError, TypedValue, equal};

/// Brings objects from version to version.
pub trait Converter<T> {
    /// `object` in `version`; itself if it is in it.
    ///
    /// # Errors
    /// There is no such version any more, or it went wrong.
    fn convert<'v>(
        &self,
        object: &'v TypedValue<'_, T>,
        version: &str,
    ) -> Result<TypedValue<'v, T>, ConvertError>;
}

/// Why an object is not brought to a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// It is not known any more; who owned fields of it is forgotten.
    #[error("there is no such version")]
    MissingVersion,
    #[error("{0}")]
    Failed(String),
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Conflicts(Conflicts),
    /// An object is not of its type, or not brought to a version.
    #[error("{0}")]
    Failed(String),
    #[error("{0}")]
    Exhausted(#[from] Exhausted),
}

impl Error {
    /// The same, with what was being done.
    fn within(self, doing: &str) -> Error {
        match self {
            Error::Failed(why) => Error::Failed(format!("{doing}: {why}")),
            other => other,
        }
    }
}

impl From<Faults> for Error {
    fn from(faults: Faults) -> Error {
        Error::Failed(faults.to_string())
    }
}

impl From<TypedError> for Error {
    fn from(error: TypedError) -> Error {
        match error {
            TypedError::Faults(faults) => faults.into(),
            TypedError::Exhausted(why) => Error::Exhausted(why),
        }
    }
}

/// What an apply did.
pub struct Applied<'v, T> {
    /// `None` if the object is as it was.
    pub object: Option<TypedValue<'v, T>>,
    pub managers: Managers,
}

/// Merges objects and keeps who owns what, for one kind.
pub struct Updater<'u, C> {
    pub converter: C,
    /// What counts, by version: fields that are not there for whoever writes now.
    pub filters: BTreeMap<String, Filter>,
    /// Charged for what is made, before it is; in the end, for the object.
    pub lease: &'u Lease,
}

impl<C> Updater<'_, C> {
    /// Who owns what once `manager` has written `new` over `live`: it owns what it changed, whoever did
    /// before.
    ///
    /// - `live`: null if there was none.
    ///
    /// # Errors
    /// One of the objects is not of its type.
    pub fn update<T: TypeRef>(
        &self,
        live: &TypedValue<'_, T>,
        new: &TypedValue<'_, T>,
        version: &str,
        managers: Managers,
        manager: &str,
    ) -> Result<Managers, Error>
    where
        C: Converter<T>,
    {
        let _scope = self.room(live, new)?;
        let managers = self.reconcile(live, managers)?;
        let (mut managers, changes) = self.take(live, new, version, managers, manager, Force::Yes)?;
        let owned = managers.remove(manager).map(|owned| owned.fields).unwrap_or_default();
        let fields = owned.difference(&changes.removed).union(&changes.modified).union(&changes.added);
        let fields = self.filtered(fields, version);
        if !fields.is_empty() {
            managers
                .insert(manager.to_owned(), Owned { fields, version: version.to_owned(), applied: false });
        }
        Ok(managers)
    }

    /// The fields that count of a new object of which nobody is known: those that [`Updater::update`] would
    /// give to whoever writes it over what its type always has, and its own type's name with them. `None` if
    /// it takes that to say.
    ///
    /// Cost: one walk, which copies nothing.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn created<T: TypeRef>(
        &self,
        new: &TypedValue<'_, T>,
        version: &str,
    ) -> Result<Option<Set>, Exhausted> {
        let _scope = self.lease.scope();
        self.lease.charge(ITEM_BYTES * items_of(&new.value))?;
        Ok(new.created().map(|fields| self.filtered(fields, version)))
    }

    /// The object once `manager` has applied `config`, and who owns what then: what it applied before and
    /// does not any more goes away, if nobody else owns it.
    ///
    /// - `live`: null if there is none.
    /// - `force`: takes what is somebody else's.
    ///
    /// # Errors
    /// [`Error::Conflicts`] without force; one of the objects is not of its type; the lease is exhausted.
    pub fn apply<T: TypeRef>(
        &self,
        live: &TypedValue<'_, T>,
        config: &TypedValue<'_, T>,
        version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<Applied<'static, T>, Error>
    where
        C: Converter<T>,
    {
        let scope = self.room(live, config)?;
        let applied = self.applied(live, config, version, managers, manager, force)?;
        drop(scope);
        if let Some(object) = &applied.object {
            self.lease.meter().charge(weight::of(&object.value))?;
        }
        Ok(applied)
    }

    /// Room for what is made of the items of two objects on the way, until the scope ends.
    fn room<T>(&self, a: &TypedValue<'_, T>, b: &TypedValue<'_, T>) -> Result<Scope<'_>, Exhausted> {
        let scope = self.lease.scope();
        self.lease.charge(ITEM_BYTES * (items_of(&a.value) + items_of(&b.value)))?;
        Ok(scope)
    }

    /// What is made on the way is charged, too.
    fn applied<T: TypeRef>(
        &self,
        live: &TypedValue<'_, T>,
        config: &TypedValue<'_, T>,
        version: &str,
        managers: Managers,
        manager: &str,
        force: bool,
    ) -> Result<Applied<'static, T>, Error>
    where
        C: Converter<T>,
    {
        let mut managers = self.reconcile(live, managers)?;
        let merged = live.merge(config, self.lease).map_err(failed("failed to merge config"))?;
        let fields = config.fields().map_err(failed("failed to get field set"))?;
        let fields = self.filtered(fields, version);
        let owned = Owned { fields, version: version.to_owned(), applied: true };
        let before = managers.insert(manager.to_owned(), owned);
        let new = match before.filter(|before| !before.fields.is_empty()) {
            Some(before) if self.gives_up_nothing(version, &managers, manager, &before) => {
                merged.pruned_of_nothing()
            }
            Some(before) => self
                .prune(merged, version, &managers, &before)
                .map_err(|why| why.within("failed to prune fields"))?,
            None => merged,
        };
        let force = if force { Force::Yes } else { Force::No };
        let (managers, _) = self.take(live, &new, version, managers, manager, force)?;
        let is_changed = !equal(&live.value, &new.value);
        Ok(Applied { object: is_changed.then_some(new), managers })
    }

    /// Takes from all but `manager` what changes from `live` to `new`; what of it changes, as far as it
    /// counts.
    fn take<T: TypeRef>(
        &self,
        live: &TypedValue<'_, T>,
        new: &TypedValue<'_, T>,
        version: &str,
        mut managers: Managers,
        manager: &str,
        force: Force,
    ) -> Result<(Managers, Comparison), Error>
    where
        C: Converter<T>,
    {
        let changes = live.compare(new).map_err(failed("failed to compare objects"))?;
        let mut by_version: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        by_version.insert(version.to_owned(), Some(changes.filtered(self.filters.get(version))));
        for owned in managers.iter().filter(|(other, _)| *other != manager).map(|(_, owned)| owned) {
            if !by_version.contains_key(&owned.version) {
                by_version.insert(owned.version.clone(), self.changes_in(live, new, &owned.version)?);
            }
        }
        managers.retain(|other, owned| other == manager || by_version[&owned.version].is_some());
        let known =
            || by_version.iter().filter_map(|(version, changes)| Some((&**version, changes.as_ref()?)));
        let written: BTreeMap<&str, Set> =
            known().map(|(version, changes)| (version, changes.modified.union(&changes.added))).collect();
        let written = self.indexed(written.iter().map(|(version, set)| (*version, set)))?;
        let removed = self.indexed(known().map(|(version, changes)| (version, &changes.removed)))?;
        let mut conflicts: BTreeMap<String, Set> = BTreeMap::new();
        for (other, owned) in managers.iter().filter(|(other, _)| *other != manager) {
            let Some(written) = written.get(&*owned.version) else { continue };
            let taken = written.intersection(&owned.fields);
            if !taken.is_empty() {
                conflicts.insert(other.clone(), taken);
            }
        }
        if force == Force::No && !conflicts.is_empty() {
            return Err(Error::Conflicts(Conflicts(conflicts.into_iter().collect())));
        }
        for (other, owned) in managers.iter_mut().filter(|(other, _)| *other != manager) {
            if let Some(taken) = conflicts.get(other) {
                owned.fields = owned.fields.difference(taken);
            }
            if let Some(removed) = removed.get(&*owned.version) {
                owned.fields = removed.taken_from(&owned.fields);
            }
        }
        managers.retain(|_, owned| !owned.fields.is_empty());
        let changes = by_version.remove(version).flatten().unwrap_or_default();
        Ok((managers, changes))
    }

    /// The sets in which something is, for many to be held against.
    fn indexed<'s>(
        &self,
        by_version: impl Iterator<Item = (&'s str, &'s Set)>,
    ) -> Result<BTreeMap<&'s str, Index<'s>>, Exhausted> {
        let mut indexed = BTreeMap::new();
        for (version, set) in by_version.filter(|(_, set)| !set.is_empty()) {
            self.lease.charge(Index::bytes_of(set))?;
            indexed.insert(version, Index::of(set));
        }
        Ok(indexed)
    }

    /// What changes in a version, as far as it counts; `None` if there is no such version any more.
    fn changes_in<T: TypeRef>(
        &self,
        live: &TypedValue<'_, T>,
        new: &TypedValue<'_, T>,
        version: &str,
    ) -> Result<Option<Comparison>, Error>
    where
        C: Converter<T>,
    {
        let Some(live) = self.convert(live, version, "failed to convert old object")? else {
            return Ok(None);
        };
        let Some(new) = self.convert(new, version, "failed to convert new object")? else { return Ok(None) };
        let changes = live.compare(&new).map_err(failed("failed to compare objects"))?;
        Ok(Some(changes.filtered(self.filters.get(version))))
    }

    /// Whether pruning would take nothing out, for sure: all that the manager applied before it still does,
    /// in the one version that all fields are of. What is applied has with each field the items and keys
    /// around it, unless a filter leaves them out; so whatever pruning takes out with something around it is
    /// somebody's, and is added back.
    fn gives_up_nothing(&self, version: &str, managers: &Managers, manager: &str, before: &Owned) -> bool {
        let one_version =
            before.version == version && managers.values().all(|owned| owned.version == version);
        let applied =
            || managers.get(manager).is_some_and(|owned| before.fields.difference(&owned.fields).is_empty());
        one_version && !self.filters.contains_key(version) && applied()
    }

    /// Takes out of `merged` what the manager applied `before` and now does not, and nobody else owns.
    fn prune<T: TypeRef>(
        &self,
        merged: TypedValue<'static, T>,
        version: &str,
        managers: &Managers,
        before: &Owned,
    ) -> Result<TypedValue<'static, T>, Error>
    where
        C: Converter<T>,
    {
        let doing = "failed to convert merged object to last applied version";
        let Some(converted) = self.convert(&merged, &before.version, doing)? else { return Ok(merged) };
        let last = before.fields.with_declared_fields(converted.ty);
        let pruned = converted.without(&last, self.lease)?;
        let pruned = self.add_back_owned(&converted, pruned, &before.version, managers);
        let pruned = pruned.map_err(|why| why.within("failed add back owned items"))?;
        let pruned = self.add_back_dangling(&converted, &pruned, before);
        let pruned = pruned.map_err(|why| why.within("failed add back dangling items"))?;
        let pruned = self.converter.convert(&pruned, version).map(owned);
        pruned.map_err(|why| Error::Failed(why.to_string()))
    }

    /// Adds back what others own, or the manager still does. The version in which it was pruned comes first,
    /// as what was pruned may be needed for the others.
    fn add_back_owned<T: TypeRef>(
        &self,
        merged: &TypedValue<'_, T>,
        mut pruned: TypedValue<'static, T>,
        pruned_version: &str,
        managers: &Managers,
    ) -> Result<TypedValue<'static, T>, Error>
    where
        C: Converter<T>,
    {
        let mut by_version: BTreeMap<&str, Vec<&Set>> = BTreeMap::new();
        for owned in managers.values() {
            by_version.entry(&owned.version).or_default().push(&owned.fields);
        }
        let first = by_version.remove_entry(pruned_version);
        // What it was brought to last, if that is another tree.
        let mut current: Option<TypedValue<'static, T>> = None;
        for (version, fields) in first.into_iter().chain(by_version) {
            let doing = format!("failed to convert merged object at version {version}");
            let Some(merged) = self.convert(current.as_ref().unwrap_or(merged), version, &doing)? else {
                continue;
            };
            let doing = format!("failed to convert pruned object at version {version}");
            let Some(converted) = self.convert(&pruned, version, &doing)? else { continue };
            let doing = |what| format!("failed to create field set from {what} object at version {version}");
            let of_merged = fields_of(&merged, &doing("merged"))?.with_declared_fields(merged.ty);
            let of_pruned = fields_of(&converted, &doing("pruned"))?.with_declared_fields(merged.ty);
            let stays = of_pruned.union(&Set::union_of(&fields).with_declared_fields(merged.ty));
            let next = merged.without(&of_merged.difference(&stays), self.lease)?;
            self.lease.give_back(weight::of(&pruned.value));
            pruned = next;
            if matches!(merged.value, Cow::Owned(_)) {
                current = Some(owned(merged));
            }
        }
        Ok(pruned)
    }

    /// Adds back what was taken out with something around it and was never the manager's.
    fn add_back_dangling<T: TypeRef>(
        &self,
        merged: &TypedValue<'_, T>,
        pruned: &TypedValue<'_, T>,
        before: &Owned,
    ) -> Result<TypedValue<'static, T>, Error>
    where
        C: Converter<T>,
    {
        let doing = "failed to convert pruned object to last applied version";
        let Some(pruned) = self.convert(pruned, &before.version, doing)? else {
            return Ok(owned(merged.clone()));
        };
        let doing = |what| format!("failed to create field set from {what} object in last applied version");
        let of_pruned = fields_of(&pruned, &doing("pruned"))?.with_declared_fields(merged.ty);
        let of_merged = fields_of(merged, &doing("merged"))?.with_declared_fields(merged.ty);
        let last = before.fields.with_declared_fields(merged.ty);
        Ok(merged.without(&of_merged.difference(&of_pruned).intersection(&last), self.lease)?)
    }

    /// Who owns what, as it would be had the types always been what they are; whoever owns of a version that
    /// is not known any more is forgotten.
    fn reconcile<T: TypeRef>(&self, live: &TypedValue<'_, T>, managers: Managers) -> Result<Managers, Error>
    where
        C: Converter<T>,
    {
        let mut types: BTreeMap<String, Option<T>> = BTreeMap::new();
        for owned in managers.values() {
            if !types.contains_key(&owned.version) {
                let ty = match self.converter.convert(live, &owned.version) {
                    Ok(converted) => Some(converted.ty),
                    Err(ConvertError::MissingVersion) => None,
                    Err(ConvertError::Failed(why)) => return Err(Error::Failed(why)),
                };
                types.insert(owned.version.clone(), ty);
            }
        }
        let mut reconciled = Managers::new();
        for (name, mut owned) in managers {
            let Some(ty) = types[&owned.version] else { continue };
            let fields = owned.fields.reconciled(ty);
            owned.fields =
                fields.map_err(failed("errors reconciling field set with schema"))?.unwrap_or(owned.fields);
            reconciled.insert(name, owned);
        }
        Ok(reconciled)
    }

    /// `object` in a version; `None` if there is no such version any more.
    fn convert<'v, T>(
        &self,
        object: &'v TypedValue<'_, T>,
        version: &str,
        doing: &str,
    ) -> Result<Option<TypedValue<'v, T>>, Error>
    where
        C: Converter<T>,
    {
        match self.converter.convert(object, version) {
            Ok(converted) => Ok(Some(converted)),
            Err(ConvertError::MissingVersion) => Ok(None),
            Err(ConvertError::Failed(why)) => Err(Error::Failed(why).within(doing)),
        }
    }

    fn filtered(&self, fields: Set, version: &str) -> Set {
        match self.filters.get(version) {
            Some(filter) => filter.of(&fields),
            None => fields,
        }
    }
}

/// Items of all lists in a value.
fn items_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len() + items.iter().map(items_of).sum::<usize>(),
        Value::Object(members) => members.values().map(items_of).sum(),
        _ => 0,
    }
}

/// Whether what is somebody else's is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Force {
    Yes,
    No,
}

fn owned<T>(object: TypedValue<'_, T>) -> TypedValue<'static, T> {
    TypedValue { value: Cow::Owned(object.value.into_owned()), ty: object.ty }
}

/// All fields of an object.
fn fields_of<T: TypeRef>(object: &TypedValue<'_, T>, doing: &str) -> Result<Set, Error> {
    object.fields().map_err(failed(doing))
}

fn failed<E: Into<Error>>(doing: &str) -> impl Fn(E) -> Error {
    move |why| why.into().within(doing)
}
