//! What was heard of the objects of a kind: which there are, so that those are known that are gone when all
//! of them are listed again.
//!
//! In: objects, as a list or a watch tells them; where a whole list begins and ends. Out: notices, of those
//! that matter to who follows owners. Pure. Never: keeps more of an object than its uid and whether it was
//! told of; says that one is gone before a list has ended.

use std::collections::HashMap;

use forebay_api::{NoticeElsewhere, ObjectElsewhere};

use crate::limits::{FOLLOWED_OBJECT_BYTES, FOLLOWED_OWNER_BYTES};

/// See the module's doc.
#[derive(Default)]
pub struct HeardObjects {
    // Bounded by whoever asks for `len` and `bytes`.
    by_uid: HashMap<Box<str>, Known>,
    // The list that is under way, or was last.
    round: u32,
    bytes: usize,
}

struct Known {
    round: u32,
    // What the one who was told of it may hold of it; 0: nobody was told.
    told_bytes: usize,
}

impl HeardObjects {
    /// Objects that there are.
    pub fn len(&self) -> usize {
        self.by_uid.len()
    }

    /// What they take here, and there where they were told of, from above.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A list of all of them begins. One that had begun counts for nothing.
    pub fn begin(&mut self) {
        self.round += 1;
    }

    /// One is there, and is so now. A notice if that is to be told.
    pub fn put(&mut self, object: ObjectElsewhere) -> Option<NoticeElsewhere> {
        let matters = object.is_deleting || !object.owners.is_empty();
        let told_bytes = if matters { told_bytes(&object) } else { 0 };
        let (round, own) = (self.round, own_bytes(&object.uid));
        let before = self.by_uid.insert(object.uid.clone(), Known { round, told_bytes });
        let was_told = before.as_ref().map(|known| known.told_bytes);
        self.bytes += told_bytes + if before.is_none() { own } else { 0 };
        self.bytes -= was_told.unwrap_or(0);
        (matters || was_told.is_some_and(|bytes| bytes > 0)).then_some(NoticeElsewhere::Put(object))
    }

    /// One is gone.
    pub fn gone(&mut self, uid: Box<str>) -> NoticeElsewhere {
        if let Some(known) = self.by_uid.remove(&uid) {
            self.bytes -= own_bytes(&uid) + known.told_bytes;
        }
        NoticeElsewhere::Gone(uid)
    }

    /// The list is whole: those that were not in it are gone.
    pub fn end(&mut self) -> Vec<NoticeElsewhere> {
        let round = self.round;
        let gone = self.by_uid.extract_if(|_, known| known.round != round).map(|(uid, known)| {
            self.bytes -= own_bytes(&uid) + known.told_bytes;
            NoticeElsewhere::Gone(uid)
        });
        let mut notices: Vec<NoticeElsewhere> = gone.collect();
        notices.push(NoticeElsewhere::Synced);
        notices
    }

    /// Nothing is known any more.
    pub fn let_go(&mut self) -> NoticeElsewhere {
        *self = HeardObjects { round: self.round, ..HeardObjects::default() };
        NoticeElsewhere::LetGo
    }
}

fn own_bytes(uid: &str) -> usize {
    FOLLOWED_OBJECT_BYTES + uid.len()
}

/// What the graph of who follows owners holds of it.
fn told_bytes(object: &ObjectElsewhere) -> usize {
    let owners: usize = object.owners.iter().map(|owner| FOLLOWED_OWNER_BYTES + owner.uid.len()).sum();
    FOLLOWED_OBJECT_BYTES + object.namespace.len() + object.name.len() + object.uid.len() + owners
}

#[cfg(test)]
mod tests {
    use forebay_api::OwnerElsewhere;

    use super::*;

    fn object(uid: &str, owners: &[&str]) -> ObjectElsewhere {
        let owner = |uid: &&str| OwnerElsewhere { uid: (*uid).to_owned(), ..OwnerElsewhere::default() };
        ObjectElsewhere {
            uid: uid.into(),
            name: "n".into(),
            owners: owners.iter().map(owner).collect(),
            ..ObjectElsewhere::default()
        }
    }

    /// `[` and `]` are a list's beginning and end, `uid`, `uid<owner`, `-uid`. Says what is told.
    fn feed(heard: &mut HeardObjects, text: &str) -> String {
        let mut told = Vec::new();
        for word in text.split_whitespace() {
            match word.split_at(1) {
                ("[", _) => heard.begin(),
                ("]", _) => told.extend(heard.end()),
                ("-", uid) => told.push(heard.gone(uid.into())),
                ("!", _) => told.push(heard.let_go()),
                _ => {
                    let (uid, owner) = word.split_once('<').map_or((word, None), |(uid, of)| (uid, Some(of)));
                    told.extend(heard.put(object(uid, owner.as_slice())));
                }
            }
        }
        let mut told: Vec<String> = told
            .iter()
            .map(|notice| match notice {
                NoticeElsewhere::Put(object) => format!("+{}{}", object.uid, object.owners.len()),
                NoticeElsewhere::Gone(uid) => format!("-{uid}"),
                NoticeElsewhere::Synced => "synced".to_owned(),
                NoticeElsewhere::LetGo => "none".to_owned(),
            })
            .collect();
        told.sort();
        told.join(" ")
    }

    #[test]
    fn what_a_whole_list_does_not_have_is_gone_and_what_half_of_one_does_not_have_is_not() {
        let mut heard = HeardObjects::default();
        assert_eq!(feed(&mut heard, "[ a b<a ]"), "+b1 synced");
        assert_eq!(feed(&mut heard, "[ a"), "", "half of a list");
        assert_eq!(feed(&mut heard, "[ b<a ]"), "+b1 -a synced");
        assert_eq!(feed(&mut heard, "b"), "+b0", "what was told is told once more without its owner");
        assert_eq!(feed(&mut heard, "b c"), "");
        assert_eq!(feed(&mut heard, "-b -c -d"), "-b -c -d");
        assert_eq!((heard.len(), heard.bytes()), (0, 0));
    }

    #[test]
    fn bytes_are_those_of_what_is_there() {
        let mut heard = HeardObjects::default();
        feed(&mut heard, "[ a b<a b<c ]");
        let own = FOLLOWED_OBJECT_BYTES + 1;
        assert_eq!(heard.bytes(), 2 * own + (own + 1 + FOLLOWED_OWNER_BYTES + 1));
        assert_eq!(feed(&mut heard, "!"), "none");
        assert_eq!((heard.len(), heard.bytes()), (0, 0));
        assert_eq!(feed(&mut heard, "[ b ]"), "synced", "nothing of before is gone that was let go of");
    }
}
