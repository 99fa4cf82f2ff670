//! Blocks that are elsewhere: what their objects say, and what comes of a place that loses bytes.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_apimachinery::{Key, Revision};

use crate::seal::{Sealer, Spiller};
use crate::{Damaged, Form, Interner, Layout, Object, Region, Scope, Segments, Spill, Text};

/// What is done to a text.
type Spoil<'a> = &'a dyn Fn(&mut Vec<u8>);

/// Texts that are held so that a test can spoil them.
#[derive(Debug, Default)]
struct Place {
    texts: Mutex<Vec<Arc<Mutex<Vec<u8>>>>>,
    held: Arc<AtomicUsize>,
    is_full: AtomicBool,
    damages: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct There {
    text: Arc<Mutex<Vec<u8>>>,
    held: Arc<AtomicUsize>,
    damages: Arc<AtomicUsize>,
}

impl Spill for Place {
    fn put(&self, text: &[u8]) -> Option<Box<dyn Region>> {
        if self.is_full.load(Ordering::Relaxed) {
            return None;
        }
        let text = Arc::new(Mutex::new(text.to_vec()));
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).push(text.clone());
        self.held.fetch_add(1, Ordering::Relaxed);
        Some(Box::new(There { text, held: self.held.clone(), damages: self.damages.clone() }))
    }
}

impl Region for There {
    fn read(&self, out: &mut [u8]) -> io::Result<()> {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        if text.len() != out.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.copy_from_slice(&text);
        Ok(())
    }

    fn note_damage(&self) {
        self.damages.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for There {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Place {
    fn spoil(&self, spoil: impl Fn(&mut Vec<u8>)) {
        for text in self.texts.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            spoil(&mut text.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

fn object(number: u64) -> Arc<Object> {
    with_note(number, &format!("of {number} ").repeat(700))
}

fn with_note(number: u64, note: &str) -> Arc<Object> {
    let layout = Layout { prefix_len: 10, scope: Scope::Namespaced, form: Form::Typed, fields: Vec::new() };
    let value = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p{number:03}","namespace":"n","uid":"u"}},"note":"{note}"}}"#
    );
    let key = Key::from(format!("/registry/n/p{number:03}"));
    let made =
        Object::decode(&layout, key, Revision::from_log(number), value.as_bytes(), &mut Interner::default());
    Arc::new(made.expect("valid"))
}

fn objects() -> Vec<Arc<Object>> {
    (1..=60).map(object).collect()
}

fn spilled(objects: &[Arc<Object>], place: &Arc<Place>) -> Vec<Arc<Object>> {
    let mut spiller = Spiller::new(place.clone(), Arc::default());
    let sealed = Sealer::new(Arc::default()).seal(objects);
    sealed.iter().map(|object| spiller.spill(object).expect("there is room")).collect()
}

#[test]
fn what_is_spilled_says_what_it_did_and_each_block_is_put_once() {
    let (place, plain) = (Arc::<Place>::default(), objects());
    let sealed = Sealer::new(Arc::default()).seal(&plain);
    let spilled = spilled(&plain, &place);
    let blocks = sealed.iter().filter(|object| object.part().is_some_and(|part| part.is_first())).count();
    assert!(blocks > 2 && place.held.load(Ordering::Relaxed) == blocks);
    for (plain, spilled) in plain.iter().zip(&spilled) {
        assert!(spilled.is_spilled() && !plain.is_spilled());
        assert_eq!(&*plain.body(), &*spilled.try_body().expect("it is there"));
        assert_eq!(&*plain.metadata(), &*spilled.try_metadata().expect("it is there"));
        assert_eq!((plain.key(), plain.body_len()), (spilled.key(), spilled.body_len()));
    }
    let cost =
        |objects: &[Arc<Object>]| objects.iter().map(|it| it.cost_bytes() - it.header_bytes()).sum::<usize>();
    assert!(cost(&spilled) < blocks * 256 && cost(&spilled) * 4 < cost(&sealed), "{}", cost(&spilled));
    assert!(Spiller::new(place.clone(), Arc::default()).spill(&spilled[0]).is_none(), "it is there already");
    assert!(Spiller::new(place.clone(), Arc::default()).spill(&plain[0]).is_none(), "it is in no block");
    drop(spilled);
    assert_eq!(place.held.load(Ordering::Relaxed), 0, "the room is given back");
}

#[test]
fn no_list_is_put_together_from_what_is_spilled_and_sealing_reads_it() {
    let place = Arc::<Place>::default();
    let spilled = spilled(&objects(), &place);
    let mut segments = Segments::new(spilled.iter());
    let first = segments.next_segment().expect("some");
    assert!(first.deflated.is_none() && first.objects.len() == 1);
    // Without its first the block is one anew, in memory.
    let anew = Sealer::new(Arc::default()).seal(&spilled[1..]);
    assert!(!anew[0].is_spilled());
    assert_eq!(&*anew[0].body(), &*spilled[1].try_body().expect("it is there"));
}

#[test]
fn an_object_behind_one_that_is_spilled_is_read_through_it() {
    let place = Arc::<Place>::default();
    let (old, run) = (object(1), spilled(&objects(), &place));
    let behind = Sealer::new(Arc::default()).put_behind(&old, &run[0], 0).expect("worth it");
    assert_eq!(&*behind.try_body().expect("it is there"), &*old.body());
    let lost = Sealer::new(Arc::default()).put_behind(&old, &spilled(&objects(), &place)[1], 0);
    let lost = lost.expect("worth it");
    place.spoil(Vec::clear);
    assert_eq!(lost.try_body().err(), Some(Damaged));
}

#[test]
fn bytes_that_were_lost_are_an_error_and_never_other_bytes() {
    let flip = |text: &mut Vec<u8>| {
        let middle = text.len() / 2;
        text[middle] ^= 1;
    };
    let spoils: [Spoil<'_>; 4] =
        [&flip, &|text| text.fill(0), &Vec::clear, &|text| text.iter_mut().for_each(|byte| *byte = !*byte)];
    for spoil in spoils {
        let place = Arc::<Place>::default();
        let spilled = spilled(&objects(), &place);
        place.spoil(spoil);
        for object in &spilled {
            assert_eq!(object.try_body().err(), Some(Damaged));
        }
        assert!(object(1).try_body().is_ok_and(|body| matches!(body, Text::Held(_))));
        assert_eq!(place.damages.load(Ordering::Relaxed), spilled.len());
        // Nobody puts it at rest anew.
        let again = Sealer::new(Arc::default()).seal(&spilled[1..]);
        assert!(again.iter().zip(&spilled[1..]).all(|(one, other)| Arc::ptr_eq(one, other)));
    }
}

#[test]
fn what_does_not_get_smaller_is_put_there_as_it_is() {
    let place = Arc::<Place>::default();
    let mut noise = 1u64;
    let mut letter = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + (noise >> 58) as u8 % 74)
    };
    let text: String =
        (0..200_000).map(|_| letter()).filter(|letter| !matches!(letter, '"' | '\\')).collect();
    let dense = Sealer::new(Arc::default()).seal(&[with_note(1, &text)]).remove(0);
    assert!(dense.is_dense());
    let spilled = Spiller::new(place.clone(), Arc::default()).spill(&dense).expect("there is room");
    assert!(spilled.is_spilled() && spilled.cost_bytes() < spilled.header_bytes() + 256);
    assert_eq!(&*spilled.try_body().expect("it is there"), &*dense.body());
    let again = Sealer::new(Arc::default()).seal(std::slice::from_ref(&spilled));
    assert!(Arc::ptr_eq(&again[0], &spilled), "it is a block already");
    place.spoil(|text| text[100_000] ^= 1);
    let anew = Spiller::new(place.clone(), Arc::default()).spill(&dense).expect("there is room");
    place.spoil(|text| text[100_000] ^= 1);
    assert_eq!(anew.try_body().err(), Some(Damaged));
}

#[test]
fn what_there_is_no_room_for_stays_where_it_is() {
    let place = Arc::<Place>::default();
    place.is_full.store(true, Ordering::Relaxed);
    let sealed = Sealer::new(Arc::default()).seal(&objects());
    assert!(Spiller::new(place, Arc::default()).spill(&sealed[0]).is_none());
}
