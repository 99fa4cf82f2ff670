//! A part of each object, chosen before it is stored.
//!
//! In: paths of fields, and an object's value as `Object::decode` reads it. Out: the value without what was
//! dropped, or with no more than was kept, its members in their order. One pass: the paths are a tree of
//! names that is gone down with the text. Never: builds a tree of the object; recurses; takes away what an
//! object is known by.

use std::collections::BTreeMap;

use forebay_apimachinery::field_path::{FieldPath, PathStep};
use forebay_apimachinery::json::{Reader, Unexpected};
use forebay_object::Form;

use super::error::{WireError, garbled};
use super::object::{ObjectText, TypeMeta};
use crate::limits::PROJECTION_PATHS_MAX;

/// Who wrote which field: of no use to most who watch.
pub const MANAGED_FIELDS: &str = "metadata.managedFields";

/// What `kubectl apply` was given: the object once more.
pub const LAST_APPLIED: &str = "metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']";

/// What every object keeps.
const IDENTITY: [&[&str]; 6] = [
    &["kind"],
    &["apiVersion"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
];

/// What stays of an object. The default is all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Projection {
    // The first one is the outermost object.
    nodes: Vec<Node>,
    whole: Stay,
}

/// A place that paths go through or end at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    // Name -> its node.
    members: BTreeMap<Box<[u8]>, usize>,
    elements: Option<usize>,
    ends: Paths,
    // Paths that go on from here into members, and into elements.
    into_members: Paths,
    into_elements: Paths,
}

/// Whether there are paths of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Paths {
    identity: bool,
    keep: bool,
    drop: bool,
}

/// What becomes of a value and of all in it that no path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// Everything stays but what is dropped.
    All,
    /// Paths that are kept go on in it; nothing else of it stays.
    Named,
    /// Everything goes but what identifies the object.
    Identity,
}

/// Paths that are no projection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionError {
    /// Elements move up when others go.
    #[error("{path} names one element of an array; [*] is all of them")]
    Element { path: FieldPath },
    #[error("a projection of {paths} paths; {PROJECTION_PATHS_MAX} are taken")]
    TooMany { paths: usize },
}

impl Default for Projection {
    fn default() -> Projection {
        Projection { nodes: vec![Node::default()], whole: Stay::All }
    }
}

impl Projection {
    /// - `drop`: what goes, with all that is in it. It goes also where it is kept.
    /// - `keep`: no more than this stays; `None` is everything. `[]` is what an object is known by: `kind`,
    ///   `apiVersion`, and in `metadata` `name`, `namespace`, `uid` and `resourceVersion`, which stay in any
    ///   case.
    ///
    /// `[*]` goes into each element of an array. A value that the paths cannot go into, such as a string or
    /// an array without `[*]`, stays as it is where they keep something of it. Objects and arrays on the way
    /// stay, empty if need be, and elements in their places.
    ///
    /// What selectors ask of an object is read from what stays: labels and indexed fields are to be kept.
    ///
    /// # Errors
    /// [`ProjectionError`] when a path has an index, or when there are too many.
    pub fn new(drop: &[FieldPath], keep: Option<&[FieldPath]>) -> Result<Projection, ProjectionError> {
        let mut all = Projection::default();
        if drop.is_empty() && keep.is_none() {
            return Ok(all);
        }
        let paths = drop.len() + keep.map_or(0, <[FieldPath]>::len);
        if paths > PROJECTION_PATHS_MAX {
            return Err(ProjectionError::TooMany { paths });
        }
        for names in IDENTITY {
            let end = names.iter().fold(0, |node, name| all.member(node, name));
            all.nodes[end].ends.identity = true;
        }
        for path in drop {
            let end = all.end_of(path)?;
            all.nodes[end].ends.drop = true;
        }
        for path in keep.into_iter().flatten() {
            let end = all.end_of(path)?;
            all.nodes[end].ends.keep = true;
        }
        if keep.is_some() {
            all.whole = Stay::Named;
        }
        all.look_ahead();
        Ok(all)
    }

    /// Only what an object is called, and what is said of it: `metadata`.
    pub fn metadata_only() -> Projection {
        let metadata = "metadata".parse().map(|path| Projection::new(&[], Some(&[path])));
        metadata.expect("a path").expect("one path without an index")
    }

    /// Whether all of an object stays.
    pub fn is_of_all(&self) -> bool {
        *self == Projection::default()
    }

    /// The value of an object of which no more stays.
    ///
    /// - `value`: without white space, as [`ObjectText::into_value`] makes it.
    ///
    /// Cost: one pass over the value, and for each member of what is gone into a search among the paths'
    /// names there.
    ///
    /// # Errors
    /// [`WireError::Garbled`] when it is no such value.
    pub fn apply(&self, value: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut out = Vec::with_capacity(value.len());
        match self.write(Reader::new(value), &mut out) {
            Ok(end) if end == value.len() => Ok(out),
            Ok(_) => garbled("bytes behind the value"),
            Err(Unexpected { what, .. }) => garbled(what),
        }
    }

    fn member(&mut self, node: usize, name: &str) -> usize {
        let next = self.nodes.len();
        let member = *self.nodes[node].members.entry(name.as_bytes().into()).or_insert(next);
        if member == next {
            self.nodes.push(Node::default());
        }
        member
    }

    fn elements(&mut self, node: usize) -> usize {
        let next = self.nodes.len();
        let elements = *self.nodes[node].elements.get_or_insert(next);
        if elements == next {
            self.nodes.push(Node::default());
        }
        elements
    }

    fn end_of(&mut self, path: &FieldPath) -> Result<usize, ProjectionError> {
        path.steps().iter().try_fold(0, |node, step| match step {
            PathStep::Member(name) => Ok(self.member(node, name)),
            PathStep::Elements => Ok(self.elements(node)),
            PathStep::Element(_) => Err(ProjectionError::Element { path: path.clone() }),
        })
    }

    /// Tells each node what is below it. A node was made before those below it.
    fn look_ahead(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let into_members =
                node.members.values().fold(Paths::default(), |all, at| all.and(self.nodes[*at].all()));
            let into_elements = node.elements.map_or(Paths::default(), |at| self.nodes[at].all());
            let node = &mut self.nodes[at];
            (node.into_members, node.into_elements) = (into_members, into_elements);
        }
    }
}

impl Paths {
    fn and(self, other: Paths) -> Paths {
        Paths {
            identity: self.identity | other.identity,
            keep: self.keep | other.keep,
            drop: self.drop | other.drop,
        }
    }

    /// Whether something stays in a value of which so much does.
    fn leave_some(self, stay: Stay) -> bool {
        match stay {
            Stay::All => true,
            Stay::Named => self.identity || self.keep,
            Stay::Identity => self.identity,
        }
    }
}

impl Node {
    /// Paths that end here or go on.
    fn all(&self) -> Paths {
        self.ends.and(self.into_members).and(self.into_elements)
    }

    /// How much stays of a value here, in one of which `outer` stays; `None` when it goes. It depends on
    /// where the value stands and not on what it is, so that of two members with one name both stay or both
    /// go.
    fn stay(&self, outer: Stay) -> Option<Stay> {
        let stay = match outer {
            _ if self.ends.identity => return Some(Stay::All),
            Stay::Identity => Stay::Identity,
            _ if self.ends.drop => Stay::Identity,
            Stay::Named if !self.ends.keep => Stay::Named,
            _ => Stay::All,
        };
        self.into_members.and(self.into_elements).leave_some(stay).then_some(stay)
    }

    /// How a value that begins so is gone into; `None` when all of it stays.
    fn enter(&self, stay: Stay, first: Option<u8>) -> Option<Stay> {
        let into = match first {
            // The name of an object is never dropped.
            _ if self.ends.identity => return None,
            Some(b'{') => self.into_members,
            Some(b'[') => self.into_elements,
            _ => return None,
        };
        match into.leave_some(stay) {
            true if stay == Stay::All && !into.drop => None,
            true => Some(stay),
            // It is not what the paths are for.
            false if stay == Stay::Named && into.drop => Some(Stay::All),
            false => None,
        }
    }
}

/// An object or array that was gone into.
struct Open {
    node: usize,
    stay: Stay,
    closing: u8,
    // Members or elements that came, and whether one of them stayed.
    came: usize,
    has_some: bool,
}

impl Projection {
    /// Appends what stays; returns where the value ends.
    fn write(&self, mut text: Reader<'_>, out: &mut Vec<u8>) -> Result<usize, Unexpected> {
        let whole = Open { node: 0, stay: self.whole, closing: b'}', came: 0, has_some: false };
        text.begin(b'{')?;
        out.push(b'{');
        // At most as many as the longest path has steps.
        let mut opened = vec![whole];
        while let Some(open) = opened.last_mut() {
            let from = text.at() + usize::from(open.came > 0);
            let Some(node) = self.comes(&mut text, open)? else {
                out.push(open.closing);
                opened.pop();
                continue;
            };
            open.came += 1;
            let stay = match node {
                Some(node) => self.nodes[node].stay(open.stay),
                None => Some(Stay::All).filter(|_| open.stay == Stay::All),
            };
            let Some(stay) = stay else {
                text.skip()?;
                continue;
            };
            if std::mem::replace(&mut open.has_some, true) {
                out.push(b',');
            }
            let first = text.peek();
            let entered = node.and_then(|node| Some((node, self.nodes[node].enter(stay, first)?)));
            match (entered, first) {
                (Some((node, stay)), Some(bracket)) => {
                    text.begin(bracket)?;
                    let closing = if bracket == b'{' { b'}' } else { b']' };
                    opened.push(Open { node, stay, closing, came: 0, has_some: false });
                }
                _ => text.skip()?,
            }
            out.extend_from_slice(&text.bytes()[from..text.at()]);
        }
        Ok(text.at())
    }

    /// The node of the value that comes, if paths go there; `None` when all came.
    fn comes(&self, text: &mut Reader<'_>, open: &Open) -> Result<Option<Option<usize>>, Unexpected> {
        let node = &self.nodes[open.node];
        Ok(match open.closing {
            b'}' => text.member(open.came)?.map(|name| node.members.get(&*name).copied()),
            _ => text.element(open.came)?.then_some(node.elements),
        })
    }
}

impl ObjectText {
    /// As [`ObjectText::into_value`], of what stays of the object.
    ///
    /// # Errors
    /// As [`Projection::apply`]: an object's grammar is looked at where paths go into it.
    pub fn into_projected(
        self,
        form: Form,
        of: &TypeMeta,
        projection: &Projection,
    ) -> Result<Vec<u8>, WireError> {
        let value = self.into_value(form, of);
        if projection.is_of_all() { Ok(value) } else { projection.apply(&value) }
    }
}
