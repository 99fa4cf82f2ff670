//! Whose row it is: a user with a program, what it asks for, and the flow that it does so in.
//!
//! In: texts as the client sent them. Out: a hash to find a row by, and the names that are kept of it.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::text::{cut, printable};

/// Who asks for what, as one request says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who<'a> {
    pub user: &'a str,
    pub agent: &'a str,
    /// Of what the server has; empty where it has no such thing.
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    /// Empty without flow control.
    pub schema: &'a str,
    pub level: &'a str,
    pub distinguisher: &'a str,
}

/// The same, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub user: Box<str>,
    pub agent: Box<str>,
    /// `deployments.apps/scale`
    pub resource: Box<str>,
    pub schema: Box<str>,
    pub level: Box<str>,
    pub distinguisher: Box<str>,
}

impl Who<'_> {
    /// What it is found by. A client knows no `seed`, and so none with the hash of another's.
    pub(crate) fn hash(&self, seed: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        let Who { user, agent, group, resource, subresource, schema, level, distinguisher } = self;
        for text in [user, agent, group, resource, subresource, schema, level, distinguisher] {
            cut(text).hash(&mut hasher);
        }
        hasher.finish()
    }

    pub(crate) fn names(&self) -> Names {
        let kept = |text: &str| Box::from(&*printable(cut(text)));
        let mut resource = self.resource.to_string();
        for (mark, part) in [('.', self.group), ('/', self.subresource)] {
            if !part.is_empty() {
                resource.push(mark);
                resource.push_str(part);
            }
        }
        Names {
            user: kept(self.user),
            agent: kept(self.agent),
            resource: kept(&resource),
            schema: kept(self.schema),
            level: kept(self.level),
            distinguisher: kept(self.distinguisher),
        }
    }
}
