//! A question as rules are asked it, and marks by which most rules that do not match are passed over.
//!
//! In: attributes. Out: the same with marks. Never: allocates.

use forebay_apimachinery::{About, Attributes, ResourceAttributes};

/// Bits of verbs, and of what they are done to and its API groups. Where two have none in common, one does
/// not match the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    pub verbs: u64,
    pub groups: u64,
    pub resources: u64,
    /// Whether there are paths.
    pub paths: bool,
}

impl Marks {
    /// What matches everything.
    pub const EVERYTHING: Marks =
        Marks { verbs: u64::MAX, groups: u64::MAX, resources: u64::MAX, paths: true };

    pub fn and(self, other: Marks) -> Marks {
        Marks {
            verbs: self.verbs | other.verbs,
            groups: self.groups | other.groups,
            resources: self.resources | other.resources,
            paths: self.paths || other.paths,
        }
    }
}

/// See the module's doc.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub verb: &'a str,
    pub about: About<'a>,
    marks: Marks,
}

impl<'a> Question<'a> {
    pub fn of(asked: &Attributes<'a>) -> Question<'a> {
        let verb = asked.verb.as_str();
        let (groups, resources, paths) = match asked.about {
            About::Resource(of) => (mark(&[of.group]), resource_marks(&of), false),
            About::Path(_) => (0, 0, true),
        };
        Question { verb, about: asked.about, marks: Marks { verbs: mark(&[verb]), groups, resources, paths } }
    }

    /// The namespace that it is about; empty for none.
    pub fn namespace(&self) -> &'a str {
        match self.about {
            About::Resource(of) => of.namespace,
            About::Path(_) => "",
        }
    }

    /// Whether what has these marks may match.
    pub fn may_match(&self, marks: Marks) -> bool {
        let own = self.marks;
        let is_of = marks.groups & own.groups != 0 && marks.resources & own.resources != 0;
        marks.verbs & own.verbs != 0 && (is_of || marks.paths && own.paths)
    }
}

fn resource_marks(of: &ResourceAttributes<'_>) -> u64 {
    match of.subresource {
        "" => mark(&[of.resource]),
        subresource => mark(&[of.resource, "/", subresource]) | mark(&["*/", subresource]),
    }
}

/// The mark of a text that is put together from `parts`: one bit of 64.
pub(crate) fn mark(parts: &[&str]) -> u64 {
    // FNV-1a; who finds texts of one mark has them looked at, and no more.
    let bytes = parts.iter().flat_map(|part| part.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    1 << (hash >> 58)
}
