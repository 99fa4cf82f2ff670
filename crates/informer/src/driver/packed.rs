//! What comes in runs of deflate: the objects of a run that are neighbours in a state are told with it, and
//! kept as they came.
//!
//! In: a run, and the frames that it is. Out: [`Told::Packed`] where each of them is an object of the state
//! that is kept whole, and what the frames say one by one everywhere else. Never: takes what the reflector
//! does not.

use forebay_apimachinery::Revision;
use forebay_backend::{Change, Told};
use forebay_client::reflector::Input;
use forebay_client::wire::{Frame, FrameAt, FrameKind, Run, TypeMeta};
use forebay_object::{Came, Packed};

use super::{Driver, UnderWay};
use crate::change::{Of, change, key};
use crate::encoding::Object;

/// A run as the frames that it is, each with the place of its object in it.
pub(super) struct Framed {
    pub(super) run: Run,
    pub(super) frames: Vec<FrameAt>,
}

impl Framed {
    /// Its objects, if they are to be kept as they came.
    fn packed(&self) -> Option<Packed> {
        let came = |(Frame { kind, object }, span): &FrameAt| {
            let revision = object.revision().and_then(Revision::new).filter(|_| *kind == FrameKind::Added)?;
            Some(Came {
                key: key(&object.namespace(), &object.name()),
                revision,
                span: span.clone(),
                marks: object.marks()?,
            })
        };
        let objects = self.frames.iter().map(came).collect::<Option<Vec<Came>>>()?;
        Packed::new(self.run.plain.clone(), self.run.deflated.clone(), objects)
    }
}

impl Driver {
    /// Takes the frames of a run.
    pub(super) fn take_framed(&mut self, framed: Framed, told: &mut Vec<Told>) {
        // What is kept in part is cut before it is told.
        let is_whole = self.of == Of::Whole && self.stored.whole.is_of_all();
        let packed = if self.is_in_state && is_whole { framed.packed() } else { None };
        match packed {
            Some(packed) => self.take_packed(packed, framed, told),
            None => {
                for (frame, _) in framed.frames {
                    // What the one before said may have ended it.
                    if let UnderWay::Answer(_) = self.under_way {
                        self.take_frame(frame.map(Object::Text), told);
                    }
                }
            }
        }
    }

    fn take_packed(&mut self, packed: Packed, framed: Framed, told: &mut Vec<Told>) {
        let from = told.len();
        for Came { key, revision, .. } in packed.objects() {
            if let UnderWay::Answer(_) = self.under_way {
                self.current = Some(Change { key: key.clone(), revision: *revision, value: None });
                self.step(Input::Event { revision: *revision }, told);
            }
        }
        let are_taken = told[from..].iter().all(|one| matches!(one, Told::Change(_)));
        if are_taken && told.len() - from == packed.objects().len() {
            told.truncate(from);
            self.progress.took_packed(packed.objects().len());
            told.push(Told::Packed(packed));
            return;
        }
        // Some were not, and the others are told one by one. They are in order.
        let mut frames = packed.objects().iter().zip(framed.frames);
        for one in &mut told[from..] {
            let Told::Change(taken) = one else { continue };
            let own = frames.find(|(came, _)| came.key == taken.key);
            if let Some((came, (frame, _))) = own
                && let Ok(whole) =
                    change(frame.object, came.revision, &TypeMeta::default(), &self.stored.whole, Of::Whole)
            {
                *taken = whole;
            }
        }
    }
}
