//! A document that was read, written out as JSON: aliases and merges followed.
//!
//! In: a [`Tape`]. Out: JSON. What an alias stands for is written as often as it is named, and each time counted. Never: goes
//! deeper than [`YAML_DEPTH_MAX`].

use std::collections::HashSet;

use forebay_apimachinery::lease::{Lease, Meter};

use super::read::YamlError;
use super::tape::{Node, Place, Tape, Text};
use crate::limits::{YAML_DEPTH_MAX, YAML_JSON_BYTES_MAX, YAML_NODES_MAX};

/// The document of `tape`, which has one.
///
/// - `lease`: what is held meanwhile is charged to it.
///
/// # Errors
/// [`YamlError`].
pub(super) fn written_out(tape: &Tape, lease: &Lease) -> Result<Vec<u8>, YamlError> {
    let mut writer = Writer { tape, out: Vec::new(), meter: lease.meter(), visited: 0 };
    writer.node(0, 0)?;
    Ok(writer.out)
}

struct Writer<'t> {
    tape: &'t Tape,
    out: Vec<u8>,
    meter: Meter,
    visited: usize,
}

/// A member of a mapping: its name, and where its value stands.
type Member = (Text, Place);

impl<'t> Writer<'t> {
    /// Counts one more node. There are no more than may be read but for aliases.
    fn visit(&mut self, depth: usize) -> Result<(), YamlError> {
        self.visited += 1;
        match (self.visited > YAML_NODES_MAX, depth > YAML_DEPTH_MAX) {
            (true, _) => Err(YamlError::Aliasing),
            (_, true) => Err(YamlError::TooLarge),
            _ => Ok(()),
        }
    }

    fn text(&mut self, text: Text) -> Result<(), YamlError> {
        let json = self.tape.text(text);
        if self.out.len() + json.len() > YAML_JSON_BYTES_MAX {
            return Err(YamlError::Aliasing);
        }
        // With the comma or colon behind it, in a row that doubles.
        self.meter.charge(2 * (json.len() + 1))?;
        self.out.extend_from_slice(json);
        Ok(())
    }

    fn node(&mut self, place: Place, depth: usize) -> Result<(), YamlError> {
        self.visit(depth)?;
        let place = self.tape.followed(place);
        match self.tape.nodes[place as usize] {
            Node::Scalar(text) | Node::Key { scalar: text, .. } => self.text(text),
            Node::Sequence { end } => {
                let items = self.tape.items(place + 1..end);
                self.collection((b'[', b']'), items, |writer, item| writer.node(item, depth + 1))
            }
            Node::Mapping { end, merges: false } => {
                let members = self.tape.members(place + 1..end);
                let members = members.filter_map(|(name, value)| Some((name?, value)));
                self.collection((b'{', b'}'), members, |writer, member| writer.member(member, depth))
            }
            Node::Mapping { merges: true, .. } => {
                let members = self.merged(place, depth)?;
                self.collection((b'{', b'}'), members, |writer, member| writer.member(member, depth))
            }
            // Neither stands where a value does.
            Node::Alias(_) | Node::Merge => Err(YamlError::Key),
        }
    }

    fn member(&mut self, (name, value): Member, depth: usize) -> Result<(), YamlError> {
        self.text(name)?;
        self.out.push(b':');
        self.node(value, depth + 1)
    }

    fn collection<T>(
        &mut self,
        (open, close): (u8, u8),
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<(), YamlError>,
    ) -> Result<(), YamlError> {
        self.meter.charge(4)?;
        self.out.push(open);
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write(self, item)?;
        }
        self.out.push(close);
        Ok(())
    }

    /// The members of a mapping that takes over others': its own, then of each other one those whose names are new.
    fn merged(&mut self, mapping: Place, depth: usize) -> Result<Vec<Member>, YamlError> {
        let tape = self.tape;
        let (mut members, mut sources) = (Vec::new(), Vec::new());
        for (name, value) in tape.members(mapping + 1..tape.end(mapping)) {
            match name {
                Some(name) => members.push((name, value)),
                None => sources.push(value),
            }
        }
        let mut known = HashSet::new();
        let mut from = 0;
        for source in sources {
            for source in self.sources(source)? {
                let more = self.members_of(source, depth + 1)?;
                known.extend(members[from..].iter().map(|(name, _)| tape.text(*name)));
                from = members.len();
                members.extend(more.into_iter().filter(|(name, _)| !known.contains(tape.text(*name))));
            }
        }
        Ok(members)
    }

    /// The mappings that the value of a `<<` names: itself, or those in a sequence.
    fn sources(&mut self, value: Place) -> Result<Vec<Place>, YamlError> {
        let value = self.tape.followed(value);
        let sources = match self.tape.nodes[value as usize] {
            Node::Mapping { .. } => return Ok(vec![value]),
            Node::Sequence { end } => self.tape.items(value + 1..end),
            _ => return Err(YamlError::Merge),
        };
        let sources: Vec<Place> = sources.map(|source| self.tape.followed(source)).collect();
        for source in &sources {
            self.visit(0)?;
            if !matches!(self.tape.nodes[*source as usize], Node::Mapping { .. }) {
                return Err(YamlError::Merge);
            }
        }
        Ok(sources)
    }

    /// All members of a mapping, those that it takes over itself with them. Each is counted: somebody looks at it.
    fn members_of(&mut self, mapping: Place, depth: usize) -> Result<Vec<Member>, YamlError> {
        self.visit(depth)?;
        let members = self.merged(mapping, depth)?;
        for _ in &members {
            self.visit(depth)?;
        }
        self.meter.charge(members.len() * size_of::<Member>())?;
        Ok(members)
    }
}
