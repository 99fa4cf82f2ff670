//! What is saved is what is read, in the texts that it was kept in; what was spoiled or cut is nothing.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::Told;
use forebay_object::seal::Sealer;
use forebay_object::{Form, Interner, Layout, Object, Scope};

use super::records::{self, Next, Records};

fn object(number: usize, text_bytes: usize) -> Arc<Object> {
    let revision = Revision::from_log(number as u64 + 1);
    let value = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"map-{number:04}","namespace":"a"}},"data":{{"text":"{}"}}}}"#,
        "word ".repeat(text_bytes / 5)
    );
    decoded(Key::from(format!("/a/map-{number:04}")), revision, value.as_bytes())
}

fn layout() -> Layout {
    Layout { prefix_len: 1, scope: Scope::Namespaced, form: Form::Whole, fields: Vec::new() }
}

fn decoded(key: Key, revision: Revision, value: &[u8]) -> Arc<Object> {
    let decoded = Object::decode(&layout(), key, revision, value, &mut Interner::default());
    Arc::new(decoded.expect("an object"))
}

fn written(objects: &[Arc<Object>]) -> Vec<u8> {
    let (mut out, count) = Records::new(Vec::new()).write(objects.iter()).expect("into memory");
    out.extend(records::end(count));
    out
}

/// How many came packed, and how many by themselves, as key and bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct All {
    packed: usize,
    objects: Vec<(Key, u64, Bytes)>,
}

fn read(file: &[u8]) -> io::Result<All> {
    let (mut file, mut all) = (file, All::default());
    let count = loop {
        let mut told = Vec::new();
        match records::next(&mut file)? {
            Next::Record(record) => super::told(&record, &mut told)?,
            Next::End(count) => break count,
        }
        for one in told {
            match one {
                Told::Packed(packed) => {
                    all.packed += packed.objects().len();
                    let objects = packed.at_rest(&layout(), Arc::default(), &mut Interner::default());
                    all.objects.extend(objects.expect("objects").iter().map(said));
                }
                Told::Change(change) => {
                    let value = change.value.expect("it is there");
                    all.objects.push(said(&decoded(change.key, change.revision, &value)));
                }
                _ => panic!("a state has objects"),
            }
        }
    };
    let is_all = count == all.objects.len() as u64 && file.is_empty();
    if is_all { Ok(all) } else { Err(io::ErrorKind::InvalidData.into()) }
}

fn said(object: &Object) -> (Key, u64, Bytes) {
    let body = Bytes::copy_from_slice(&object.try_body().expect("it is in memory"));
    (object.key().clone(), object.revision().get(), body)
}

#[test]
fn what_is_at_rest_is_saved_as_it_is_and_is_at_rest_again() {
    let plain: Vec<_> = (0..200).map(|number| object(number, 2_000)).collect();
    let rested = Sealer::new(Arc::default()).seal(&plain);
    assert!(rested.iter().all(|object| object.kept().is_some()));
    let all = read(&written(&rested)).expect("what was written");
    assert_eq!((all.packed, all.objects.len()), (200, 200));
    assert_eq!(all.objects, plain.iter().map(|object| said(object)).collect::<Vec<_>>());
}

#[test]
fn what_is_kept_by_itself_and_blocks_with_holes_are_saved_in_order() {
    let plain: Vec<_> = (0..400).map(|number| object(number, 500)).collect();
    let rested = Sealer::new(Arc::default()).seal(&plain);
    // Some were changed since, and some are gone.
    let mixed = |(number, (plain, rested)): (usize, (&Arc<Object>, &Arc<Object>))| match number % 50 {
        17 => None,
        20..30 => Some(plain.clone()),
        _ if number > 350 => Some(plain.clone()),
        _ => Some(rested.clone()),
    };
    let objects: Vec<_> = plain.iter().zip(&rested).enumerate().filter_map(mixed).collect();
    let all = read(&written(&objects)).expect("what was written");
    assert_eq!(all.objects, objects.iter().map(|object| said(object)).collect::<Vec<_>>());
    assert!(all.packed > 40, "{}", all.packed);
    assert_eq!(read(&written(&[])).expect("nothing"), All::default());
    let long = [object(0, 3), object(1, 3 << 20), object(2, 3)];
    assert_eq!(read(&written(&long)).expect("what was written").objects, long.each_ref().map(|it| said(it)));
}

#[test]
fn what_was_spoiled_or_cut_is_nothing() {
    let rested =
        Sealer::new(Arc::default()).seal(&(0..40).map(|number| object(number, 400)).collect::<Vec<_>>());
    let file = written(&rested);
    for at in 0..file.len() {
        assert!(read(&file[..at]).is_err(), "cut at {at}");
        let mut spoiled = file.clone();
        spoiled[at] ^= 0x10;
        assert!(read(&spoiled).is_err(), "spoiled at {at}");
    }
}
