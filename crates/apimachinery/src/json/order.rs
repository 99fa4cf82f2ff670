//! What is wrong with a body's fields, in the order in which a decoder of the body comes upon it.
//!
//! In: the text, and what is told of fields by their paths, `unknown field "spec.x"`. Out: the same, ordered.
//! Never: builds a tree; goes into what nothing is told of.
//!
//! Source: `sigs.k8s.io/json` (`saveStrictError`), as of Kubernetes 1.36.

use std::fmt;
use std::ops::Range;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::quote::go_quote;

/// Orders `faults` as they stand in `body`: a field that is unknown where it stands first, one that is there
/// twice where it stands the second time. What is not found there comes last.
///
/// Cost: one pass over the text; where something is told, each name is looked up among the faults.
pub fn in_order(body: &[u8], faults: &mut Vec<String>) {
    let told = faults.iter().enumerate().filter_map(|(fault, text)| {
        let (words, path) = text.split_once(" field \"")?;
        let path = path.strip_suffix('"')?;
        Some(Told { path, fault, passes: usize::from(words == "duplicate") })
    });
    let mut told: Vec<Told<'_>> = told.collect();
    told.sort_unstable_by_key(|told| told.path);
    let longest = told.iter().map(|told| told.path.len()).max().unwrap_or(0);
    let mut walk = Walk { places: vec![usize::MAX; faults.len()], told, longest, next: 0 };
    let all = Place { range: 0..walk.told.len(), len: 0 };
    let mut json = serde_json::Deserializer::from_slice(body);
    // A text that is nested too deep for it is ordered up to there.
    let _ = (Seed { walk: &mut walk, at: all }).deserialize(&mut json);
    let Walk { places, .. } = walk;
    let mut ordered: Vec<(usize, String)> = places.into_iter().zip(std::mem::take(faults)).collect();
    ordered.sort_by_key(|(place, _)| *place);
    faults.extend(ordered.into_iter().map(|(_, fault)| fault));
}

struct Walk<'f> {
    told: Vec<Told<'f>>, // by path
    /// Bytes of the longest path.
    longest: usize,
    /// Where each fault was come upon.
    places: Vec<usize>,
    next: usize,
}

struct Told<'f> {
    /// As it is quoted.
    path: &'f str,
    fault: usize,
    /// How often the field is passed before it is one.
    passes: usize,
}

impl<'f> Told<'f> {
    /// What its path has behind that of a place above it.
    fn behind(&self, place: &Place) -> &'f [u8] {
        self.path.as_bytes().get(place.len..).unwrap_or_default()
    }
}

/// A place in the text: those of the faults whose paths begin with its own, and the length of that.
struct Place {
    range: Range<usize>,
    len: usize,
}

impl Walk<'_> {
    /// A step deeper; those that are told of what is there are come upon.
    fn step(&mut self, from: &Place, step: &str) -> Place {
        let told = &self.told[from.range.clone()];
        let start = told.partition_point(|told| told.behind(from) < step.as_bytes());
        let count = told[start..].partition_point(|told| told.behind(from).starts_with(step.as_bytes()));
        let (mut start, len) = (from.range.start + start, from.len + step.len());
        let end = start + count;
        while start < end && self.told[start].path.len() == len {
            let found = &mut self.told[start];
            if found.passes == 0 && self.places[found.fault] == usize::MAX {
                self.places[found.fault] = self.next;
                self.next += 1;
            }
            found.passes = found.passes.saturating_sub(1);
            start += 1;
        }
        Place { range: start..end, len }
    }
}

/// The value at a place, which is gone into where something is told of what is in it.
struct Seed<'w, 'f> {
    walk: &'w mut Walk<'f>,
    at: Place,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.at.range.is_empty() {
            true => IgnoredAny::deserialize(from).map(drop),
            false => from.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            let at = self.walk.step(&self.at, &format!("[{index}]"));
            if items.next_element_seed(Seed { walk: &mut *self.walk, at })?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(at) = members.next_key_seed(Name { walk: &mut *self.walk, of: &self.at })? {
            members.next_value_seed(Seed { walk: &mut *self.walk, at })?;
        }
        Ok(())
    }
}

/// The name of a member of what is at a place.
struct Name<'w, 'f> {
    walk: &'w mut Walk<'f>,
    of: &'w Place,
}

impl<'de> DeserializeSeed<'de> for Name<'_, '_> {
    type Value = Place;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Place, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name<'_, '_> {
    type Value = Place;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Place, E> {
        let Name { walk, of } = self;
        // Nothing is told of what has a longer name than any path.
        if name.len() > walk.longest {
            return Ok(Place { range: 0..0, len: 0 });
        }
        let quoted = go_quote(name);
        let step = format!("{}{}", if of.len == 0 { "" } else { "." }, &quoted[1..quoted.len() - 1]);
        Ok(walk.step(of, &step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, faults: &[&str], want: &[&str]) {
        let mut faults: Vec<String> = faults.iter().map(|fault| (*fault).to_owned()).collect();
        in_order(body.as_bytes(), &mut faults);
        assert_eq!(faults, want, "{body}");
    }

    #[test]
    fn faults_are_told_as_they_stand_in_the_text() {
        check(
            r#"{"spec":{"x":1,"replicas":1,"replicas":2,"a":[{"z":0},{"b":1}]},"a":1}"#,
            &[
                r#"duplicate field "spec.replicas""#,
                r#"unknown field "a""#,
                r#"unknown field "spec.a[1].b""#,
                r#"unknown field "spec.x""#,
            ],
            &[
                r#"unknown field "spec.x""#,
                r#"duplicate field "spec.replicas""#,
                r#"unknown field "spec.a[1].b""#,
                r#"unknown field "a""#,
            ],
        );
    }

    #[test]
    fn a_field_is_there_twice_where_it_stands_the_second_time() {
        check(
            r#"{"a":1,"b":2,"a":3,"c":4}"#,
            &[
                r#"duplicate field "a""#,
                r#"unknown field "a""#,
                r#"unknown field "b""#,
                r#"unknown field "c""#,
            ],
            &[
                r#"unknown field "a""#,
                r#"unknown field "b""#,
                r#"duplicate field "a""#,
                r#"unknown field "c""#,
            ],
        );
    }

    #[test]
    fn names_are_found_as_they_are_quoted_and_what_is_not_found_comes_last() {
        check(
            r#"{"a.b":{"\u0007\"":1},"a":{"b":2}}"#,
            &[r#"unknown field "x""#, r#"unknown field "a.b""#, r#"unknown field "a.b.\a\"""#, "else"],
            &[r#"unknown field "a.b""#, r#"unknown field "a.b.\a\"""#, r#"unknown field "x""#, "else"],
        );
        check("[", &[r#"unknown field "b""#, "else"], &[r#"unknown field "b""#, "else"]);
    }
}
