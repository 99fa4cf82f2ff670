//! A document that was read, written out as JSON: aliases and merges followed.
//!
//! In: a [`Tape`]. Out: JSON, and which keys a mapping has more than once. What an alias stands for is
//! written as often as it is named, and each time counted. Never: goes deeper than [`DEPTH_MAX`].
//!
//! Source: go.yaml.in/yaml/v2 v2.4.3 `decode.go` (`mapping`, `merge`, `setMapIndex`).

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::lease::{Lease, Meter};

use crate::limits::{DEPTH_MAX, JSON_BYTES_MAX, NODES_MAX, REPEATED_BYTES_MAX};
use crate::read::YamlError;
use crate::tape::{Key, Node, Place, Tape, Text};

/// What a key takes in the set of those that a mapping has, which doubles as it grows.
const KEY_BYTES: usize = 3 * size_of::<&[u8]>();

/// What a document is.
#[derive(Default)]
pub(super) struct Written {
    pub json: Vec<u8>,
    /// A line for each key that its mapping has already.
    pub repeated: String,
}

/// The document of `tape`, which has one.
///
/// - `lease`: what is held meanwhile is charged to it.
///
/// # Errors
/// [`YamlError`].
pub(super) fn written_out(tape: &Tape, lease: &Lease) -> Result<Written, YamlError> {
    let mut writer =
        Writer { tape, out: Vec::new(), repeated: String::new(), meter: lease.meter(), visited: 0 };
    writer.node(0, 0)?;
    Ok(Written { json: writer.out, repeated: writer.repeated })
}

struct Writer<'t> {
    tape: &'t Tape,
    out: Vec<u8>,
    repeated: String, // about <= REPEATED_BYTES_MAX
    meter: Meter,
    visited: usize,
}

/// A member of a mapping: its name, and where its value stands.
type Member = (Text, Place);

/// What a mapping that takes over others' members has: each once, and where it is by its key.
#[derive(Default)]
struct Members<'t> {
    all: Vec<Member>,
    places: HashMap<&'t [u8], usize>,
}

impl<'t> Writer<'t> {
    /// Counts one more node. There are no more than may be read but for aliases.
    fn visit(&mut self, depth: usize) -> Result<(), YamlError> {
        self.visited += 1;
        match (self.visited > NODES_MAX, depth > DEPTH_MAX) {
            (true, _) => Err(YamlError::Aliasing),
            (_, true) => Err(YamlError::TooLarge),
            _ => Ok(()),
        }
    }

    fn text(&mut self, text: Text) -> Result<(), YamlError> {
        let json = self.tape.text(text);
        if self.out.len() + json.len() > JSON_BYTES_MAX {
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
                let members = members.filter_map(|(key, value)| Some((key?, value)));
                let mut keys = HashSet::new();
                self.collection((b'{', b'}'), members, |writer, (key, value)| {
                    writer.meter.charge(KEY_BYTES)?;
                    writer.member((key.name, value), depth)?;
                    let is_new = keys.insert(writer.tape.text(key.scalar));
                    if is_new { Ok(()) } else { writer.repeated(key, value) }
                })
            }
            Node::Mapping { merges: true, .. } => {
                let mut members = Members::default();
                self.merge(place, depth, &mut members)?;
                self.collection((b'{', b'}'), members.all, |writer, member| writer.member(member, depth))
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

    /// Tells of a key that its mapping has already, as long as there is not too much told.
    fn repeated(&mut self, key: Key, value: Place) -> Result<(), YamlError> {
        if self.repeated.len() > REPEATED_BYTES_MAX {
            return Ok(());
        }
        let scalar = String::from_utf8_lossy(self.tape.text(key.scalar));
        let shown = serde_json::from_str::<String>(&scalar).map_or(scalar.into(), |text| go_quote(&text));
        let line = self.tape.lines[value as usize];
        let told = format!("\n  line {line}: key {shown} already set in map");
        self.meter.charge(2 * told.len())?;
        self.repeated.push_str(&told);
        Ok(())
    }

    /// Sets the members of a mapping in the order of its text, and in the place of each `<<` those of the
    /// mappings that it names. What is set last counts. Each is counted: somebody looks at it.
    fn merge(&mut self, mapping: Place, depth: usize, into: &mut Members<'t>) -> Result<(), YamlError> {
        let tape = self.tape;
        for (key, value) in tape.members(mapping + 1..tape.end(mapping)) {
            let Some(key) = key else {
                for source in self.sources(value)? {
                    self.visit(depth + 1)?;
                    self.merge(source, depth + 1, into)?;
                }
                continue;
            };
            self.visit(depth)?;
            self.meter.charge(2 * KEY_BYTES + size_of::<Member>())?;
            match into.places.entry(tape.text(key.scalar)) {
                Entry::Vacant(place) => {
                    place.insert(into.all.len());
                    into.all.push((key.name, value));
                }
                Entry::Occupied(place) => {
                    into.all[*place.get()].1 = value;
                    self.repeated(key, value)?;
                }
            }
        }
        Ok(())
    }

    /// The mappings that the value of a `<<` names: itself, or those in a sequence, of which the first count
    /// most.
    fn sources(&mut self, value: Place) -> Result<Vec<Place>, YamlError> {
        let value = self.tape.followed(value);
        let sources = match self.tape.nodes[value as usize] {
            Node::Mapping { .. } => return Ok(vec![value]),
            Node::Sequence { end } => self.tape.items(value + 1..end),
            _ => return Err(YamlError::Merge),
        };
        let mut sources: Vec<Place> = sources.map(|source| self.tape.followed(source)).collect();
        for source in &sources {
            self.visit(0)?;
            if !matches!(self.tape.nodes[*source as usize], Node::Mapping { .. }) {
                return Err(YamlError::Merge);
            }
        }
        sources.reverse();
        Ok(sources)
    }
}
