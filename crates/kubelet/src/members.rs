//! Members of a stored object, read where it lies: no tree is made of it, however long it is.
//!
//! In: an object's text, and who says what is read of which member. Out: what they kept. Never: keeps a text,
//! fails on a member of another type: that counts as absent.

use std::borrow::Cow;

use forebay_apimachinery::Status;
use forebay_apimachinery::json::{Reader, Unexpected};

/// A pass over one value, which may take what it likes.
pub type Passed = Result<(), Unexpected>;

/// Hands each member of a stored object, which has lost its `{`, to `read`: what that does not take is passed
/// over.
///
/// # Errors
/// It is not as it was stored.
pub fn of_object<'a>(
    text: &'a [u8],
    read: impl FnMut(&[u8], &mut Reader<'a>) -> Passed,
) -> Result<(), Status> {
    let mut json = Reader::new(text);
    let passed = match json.peek() {
        Some(b'{') => members(&mut json, read),
        _ => rest(&mut json, read),
    };
    passed.map_err(Status::internal)
}

/// Hands each member of the value that comes next to `read`; none, if it is no object.
///
/// # Errors
/// No value comes.
pub fn members<'a>(json: &mut Reader<'a>, read: impl FnMut(&[u8], &mut Reader<'a>) -> Passed) -> Passed {
    match json.peek() {
        Some(b'{') => json.begin(b'{').and_then(|()| rest(json, read)),
        _ => json.skip(),
    }
}

fn rest<'a>(json: &mut Reader<'a>, mut read: impl FnMut(&[u8], &mut Reader<'a>) -> Passed) -> Passed {
    let mut index = 0;
    while let Some(name) = json.member(index)? {
        let at = json.at();
        read(&name, json)?;
        if json.at() == at {
            json.skip()?;
        }
        index += 1;
    }
    Ok(())
}

/// Hands each element of the value that comes next to `read`; none, if it is no array.
///
/// # Errors
/// No value comes.
pub fn elements<'a>(json: &mut Reader<'a>, mut read: impl FnMut(&mut Reader<'a>) -> Passed) -> Passed {
    if json.peek() != Some(b'[') {
        return json.skip();
    }
    json.begin(b'[')?;
    let mut index = 0;
    while json.element(index)? {
        let at = json.at();
        read(json)?;
        if json.at() == at {
            json.skip()?;
        }
        index += 1;
    }
    Ok(())
}

/// The text, number or boolean that comes next; empty for anything else.
///
/// # Errors
/// No value comes.
pub fn text<'a>(json: &mut Reader<'a>) -> Result<Cow<'a, str>, Unexpected> {
    Ok(json.scalar()?.unwrap_or_default())
}

/// The number that comes next.
///
/// # Errors
/// No value comes.
pub fn number(json: &mut Reader<'_>) -> Result<Option<i64>, Unexpected> {
    Ok(text(json)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_takes_is_passed_over_and_another_type_counts_as_absent() {
        let stored = br#""a":{"b":[{"c":1},{"c":"x","d":{}},7,null]},"e":[{}],"f":{},"g":-5}"#;
        let (mut found, mut number_of_g) = (Vec::new(), None);
        let read = of_object(stored, |name, json| match name {
            b"a" => members(json, |name, json| match name {
                b"b" => elements(json, |json| {
                    members(json, |name, json| match name {
                        b"c" => text(json).map(|text| found.push(text.into_owned())),
                        _ => Ok(()),
                    })
                }),
                _ => Ok(()),
            }),
            b"e" => members(json, |_, _| panic!("it is no object")),
            b"f" => elements(json, |_| panic!("it is no array")),
            b"g" => number(json).map(|number| number_of_g = number),
            _ => Ok(()),
        });
        assert_eq!((read, found, number_of_g), (Ok(()), vec!["1".to_owned(), "x".to_owned()], Some(-5)));
        assert!(of_object(b"\"a\":", |_, _| Ok(())).is_err());
    }
}
