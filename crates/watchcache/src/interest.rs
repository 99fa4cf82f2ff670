//! Which objects a LIST or a WATCH is about.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_apimachinery::selector::LabelSelector;
use forebay_object::Object;

/// Which objects a reader wants: a reach of keys, and selectors. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interest {
    pub reach: Reach,
    pub labels: Arc<LabelSelector>,
    /// All must hold.
    pub fields: Arc<[FieldTerm]>,
}

/// A part of a resource's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Every key below this prefix, which ends with `/`: a resource, or one namespace of it.
    Below(Key),
    /// One key.
    One(Key),
}

/// One requirement of a field selector, resolved to a place in the object's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    pub field: FieldSource,
    pub equal: bool,
    pub value: String,
}

/// Where a field selector's value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSource {
    Name,
    Namespace,
    /// Indexes into the layout's fields: the first that is not empty counts, else `absent`.
    Indexed {
        fields: Box<[usize]>,
        absent: &'static str,
    },
}

impl Interest {
    /// Everything in `reach`.
    pub fn all(reach: Reach) -> Interest {
        Interest { reach, labels: Arc::new(LabelSelector::everything()), fields: Arc::from([]) }
    }

    /// Whether every object in reach matches.
    pub fn is_unfiltered(&self) -> bool {
        self.fields.is_empty() && self.labels.is_everything()
    }

    /// Whether it is every object below `prefix`.
    pub(crate) fn is_all_below(&self, prefix: &Key) -> bool {
        self.is_unfiltered() && matches!(&self.reach, Reach::Below(all) if all == prefix)
    }

    /// How many looks at objects and requirements are made in one go, which takes a millisecond or less.
    /// Whoever needs more of them lets other tasks have their turn in between.
    pub const LOOKS_MAX: usize = 8 << 10;

    /// How many looks it takes to tell whether an object matches: one at the object, and one for each
    /// requirement.
    pub fn looks(&self) -> usize {
        1 + self.fields.len() + self.labels.requirements().len()
    }

    /// For how many objects `looks` are enough; at least one.
    pub fn objects_max(&self, looks: usize) -> usize {
        (looks / self.looks()).max(1)
    }

    /// Whether `object` is in reach and matches.
    pub fn matches(&self, object: &Object) -> bool {
        self.reach.contains(object.key()) && self.selects(object)
    }

    /// Whether `object`, known to be in reach, matches.
    pub fn selects(&self, object: &Object) -> bool {
        self.fields.iter().all(|term| term.holds(object))
            && (self.labels.is_everything() || self.labels.matches(|label| object.label(label)))
    }
}

impl Reach {
    pub fn contains(&self, key: &Key) -> bool {
        match self {
            Reach::Below(prefix) => key.as_str().starts_with(prefix.as_str()),
            Reach::One(one) => key == one,
        }
    }
}

impl FieldTerm {
    fn holds(&self, object: &Object) -> bool {
        (self.field.value(object) == self.value) == self.equal
    }
}

impl FieldSource {
    /// The value that `object` has for this field.
    pub(crate) fn value<'o>(&'o self, object: &'o Object) -> &'o str {
        match self {
            FieldSource::Name => object.name(),
            FieldSource::Namespace => object.namespace(),
            FieldSource::Indexed { fields, absent } => {
                let mut values = fields.iter().filter_map(|index| object.field(*index));
                values.find(|value| !value.is_empty()).unwrap_or(absent)
            }
        }
    }

    /// The field of `indexed` that always has the same value as this one, and an empty one where this one is
    /// absent.
    pub(crate) fn index(&self, indexed: &[usize]) -> Option<usize> {
        match self {
            FieldSource::Indexed { fields, absent: "" } => match **fields {
                [field] if indexed.contains(&field) => Some(field),
                _ => None,
            },
            _ => None,
        }
    }
}
