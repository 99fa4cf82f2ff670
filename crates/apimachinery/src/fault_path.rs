//! Where a fault is, in the words of upstream's `field.Path`: `spec.items[2].name`, `data[key]`.
//!
//! In: steps, while an object is walked. Out: text, when something is wrong. Never: allocates while nothing
//! is; reads a path, which [`FieldPath`](crate::FieldPath) does.

use std::fmt;

/// A field path as a chain of stack frames: nothing is allocated until it is printed.
#[derive(Clone, Copy, Debug)]
pub struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Nil,
    Child(&'p str),
    Key(&'p str),
    Index(usize),
}

impl<'p> Path<'p> {
    /// The absent path; it prints as `<nil>`, and its children as if they were roots.
    pub const NIL: Path<'static> = Path { parent: None, step: Step::Nil };

    pub const fn root(name: &'p str) -> Path<'p> {
        Path { parent: None, step: Step::Child(name) }
    }

    pub const fn child<'a>(&'a self, name: &'a str) -> Path<'a> {
        self.then(Step::Child(name))
    }

    pub const fn key<'a>(&'a self, key: &'a str) -> Path<'a> {
        self.then(Step::Key(key))
    }

    pub const fn index(&self, index: usize) -> Path<'_> {
        self.then(Step::Index(index))
    }

    const fn then<'a>(&'a self, step: Step<'a>) -> Path<'a> {
        let parent = match self.step {
            Step::Nil => None,
            _ => Some(self),
        };
        Path { parent, step }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
        }
        match self.step {
            Step::Nil => f.write_str("<nil>"),
            Step::Child("") => f.write_str("[]"),
            Step::Child(name) if self.parent.is_some() => write!(f, ".{name}"),
            Step::Child(name) => f.write_str(name),
            Step::Key(key) => write!(f, "[{key}]"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_names_keys_and_indexes() {
        let spec = Path::root("spec");
        assert_eq!(spec.child("items").index(2).child("name").to_string(), "spec.items[2].name");
        assert_eq!(spec.child("labels").key("foo").to_string(), "spec.labels[foo]");
        assert_eq!(Path::NIL.to_string(), "<nil>");
        assert_eq!(Path::NIL.child("spec").child("a").to_string(), "spec.a");
        assert_eq!(spec.child("").to_string(), "spec[]");
        assert_eq!(Path::root("").to_string(), "[]");
    }

    #[test]
    fn paths_show_members_keys_and_indexes() {
        let spec = Path::root("spec");
        assert_eq!(spec.child("ports").index(2).child("name").to_string(), "spec.ports[2].name");
        assert_eq!(Path::root("data").key(".a").to_string(), "data[.a]");
    }
}
