//! A snapshot by itself: what it holds and what it counts, in which order it is read, and how it changes.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_object::seal::{RecentBlocks, Sealer};
use forebay_object::{Form, Interner, Layout, Object, Scope};

use crate::event::Event;
use crate::interest::{FieldSource, FieldTerm, Interest, Reach};
use crate::snapshot::{Held, Snapshot};

const PREFIX: &str = "/registry/pods/";

pub(crate) fn key(place: &str) -> Key {
    Key::from(format!("{PREFIX}{place}"))
}

/// A pod on a node, which somebody nominated for another.
pub(crate) fn pod(place: &str, revision: u64, (node, nominated): (&str, &str)) -> Arc<Object> {
    let layout = Layout {
        prefix_len: PREFIX.len(),
        scope: Scope::Namespaced,
        form: Form::Typed,
        fields: vec![
            vec!["spec".into(), "nodeName".into()],
            vec!["spec".into(), "hostname".into()],
            vec!["spec".into(), "nominated".into()],
        ],
    };
    let (namespace, name) = place.split_once('/').expect("namespace/name");
    let value = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"u"}},"spec":{{"nodeName":"{node}","nominated":"{nominated}","note":"{}"}}}}"#,
        "a pod like all the others ".repeat(80)
    );
    let (revision, interner) = (Revision::from_log(revision), &mut Interner::default());
    Arc::new(Object::decode(&layout, key(place), revision, value.as_bytes(), interner).expect("a pod"))
}

/// Nothing yet, with indexes of the first and of the third field.
fn empty() -> Snapshot {
    Snapshot::new(Revision::FIRST, 7, Arc::from([0, 2]))
}

pub(crate) fn holding(pods: &[Arc<Object>]) -> Snapshot {
    let mut snapshot = empty();
    pods.iter().for_each(|pod| assert!(snapshot.put(pod.clone()).is_none()));
    snapshot
}

/// Four pods, two of which are on the node n1.
pub(crate) fn pods() -> Vec<Arc<Object>> {
    let at = [("a/x", "n1", "m1"), ("a/y", "n2", "m1"), ("ab/x", "n1", "m2"), ("b/x", "", "n1")];
    at.iter().zip(2..).map(|((place, node, other), revision)| pod(place, revision, (node, other))).collect()
}

pub(crate) fn below(place: &str) -> Reach {
    Reach::Below(key(place))
}

fn shown<'a>(objects: impl Iterator<Item = &'a Arc<Object>>) -> String {
    let place = |object: &Arc<Object>| format!("{}/{}", object.namespace(), object.name());
    objects.map(place).collect::<Vec<_>>().join(" ")
}

/// Pods of which the field with this number says so, or does not.
fn on(field: usize, equal: bool, value: &str) -> Interest {
    let field = FieldSource::Indexed { fields: [field].into(), absent: "" };
    let term = FieldTerm { field, equal, value: value.into() };
    Interest { fields: Arc::from([term]), ..Interest::all(below("")) }
}

/// What all of these pods count for, in two indexes.
fn counted(pods: &[Arc<Object>]) -> Held {
    let mut held = Held { places: pods.len() * (12 + 2 * 24), ..Held::default() };
    for pod in pods {
        let body = pod.cost_bytes() - pod.header_bytes();
        *(if pod.is_sealed() { &mut held.blocks } else { &mut held.plain }) += body;
        held.headers += pod.header_bytes();
    }
    held
}

#[test]
fn what_a_state_takes_is_counted_as_it_changes() {
    let (plain, mut snapshot) = (pods(), empty());
    assert!(snapshot.is_empty());
    assert_eq!((snapshot.len(), snapshot.bytes(), snapshot.loose_bytes()), (0, 0, 0));
    assert_eq!(snapshot.held(), Held::default());
    for pod in &plain {
        snapshot.put(pod.clone());
    }
    let body: usize = plain.iter().map(|pod| pod.body_len()).sum();
    let whole = |snapshot: &Snapshot| snapshot.plain_bytes(&below(""), None);
    let check = |snapshot: &Snapshot, pods: &[Arc<Object>]| {
        let held = snapshot.held();
        assert_eq!(held, counted(pods));
        assert_eq!(held.total(), held.plain + held.blocks + held.headers + held.places);
        let cost: usize = pods.iter().map(|pod| pod.cost_bytes()).sum();
        assert_eq!((snapshot.len(), snapshot.bytes()), (pods.len(), cost));
        assert_eq!(snapshot.loose_bytes(), pods.iter().map(|pod| pod.loose_bytes()).sum::<usize>());
    };
    check(&snapshot, &plain);
    assert!(!snapshot.is_empty() && snapshot.loose_bytes() == body);
    assert_eq!(whole(&snapshot), body);
    // At rest they take less, and are as long as they were.
    let sealed = Sealer::new(Arc::new(RecentBlocks::default())).seal(&plain);
    assert!(sealed.iter().all(|pod| pod.is_sealed()), "they are alike");
    for (old, new) in plain.iter().zip(&sealed) {
        assert!(snapshot.replace(old, new.clone()));
    }
    check(&snapshot, &sealed);
    let held = snapshot.held();
    assert!(held.plain == 0 && held.blocks > 0 && held.blocks < body && snapshot.loose_bytes() == 0);
    assert_eq!(whole(&snapshot), body);
    // One is changed, and is plain again; then they go.
    let changed = pod("a/y", 9, ("n3", ""));
    assert!(snapshot.put(changed.clone()).is_some_and(|before| Arc::ptr_eq(&before, &sealed[1])));
    check(&snapshot, &[sealed[0].clone(), changed, sealed[2].clone(), sealed[3].clone()]);
    for pod in &plain {
        assert!(snapshot.remove(pod.key()).is_some());
        assert!(snapshot.remove(pod.key()).is_none());
    }
    assert_eq!((snapshot.held(), snapshot.bytes(), snapshot.loose_bytes()), (Held::default(), 0, 0));
    assert_eq!((snapshot.index_len(), whole(&snapshot)), (0, 0));
}

#[test]
fn a_reach_is_read_in_key_order_from_where_one_was() {
    let pods = pods();
    let snapshot = holding(&pods);
    let range = |reach: &Reach, after: Option<&str>| {
        let after = after.map(key);
        let range = snapshot.range(reach, after.as_ref());
        let (count, text) = (range.len(), shown(range));
        assert_eq!(shown(snapshot.candidates(&Interest::all(reach.clone()), after.as_ref())), text);
        let mut back: Vec<_> = snapshot.range(reach, after.as_ref()).rev().collect();
        back.reverse();
        assert_eq!((back.len(), shown(back.iter().copied())), (count, text.clone()));
        let bytes = back.iter().map(|object| object.body_len()).sum::<usize>();
        assert_eq!(snapshot.plain_bytes(reach, after.as_ref()), bytes);
        text
    };
    assert_eq!(range(&below(""), None), "a/x a/y ab/x b/x");
    assert_eq!(range(&below(""), Some("a/y")), "ab/x b/x");
    assert_eq!(range(&below("a/"), None), "a/x a/y");
    assert_eq!(range(&below("a/"), Some("a/x")), "a/y");
    assert_eq!(range(&below("a/"), Some("b/x")), "", "that is behind all of it");
    assert_eq!(range(&below("ab/"), Some("a/x")), "ab/x", "and that before");
    assert_eq!(range(&below("c/"), None), "");
    let one = Reach::One(key("a/y"));
    assert_eq!((range(&one, None), range(&one, Some("a/x"))), ("a/y".into(), "a/y".into()));
    assert_eq!(
        (range(&one, Some("a/y")), range(&Reach::One(key("a/z")), None)),
        (String::new(), String::new())
    );
    let found = snapshot.get(&key("ab/x")).expect("there");
    assert!(Arc::ptr_eq(found, &pods[2]) && snapshot.get(&key("ab/y")).is_none());
}

#[test]
fn objects_have_places_and_neighbours() {
    let snapshot = holding(&pods());
    let places = ["a/x", "a/y", "ab/x", "b/x", "b/y"].map(|place| snapshot.place_of(&key(place)));
    assert_eq!(places, [Some(0), Some(1), Some(2), Some(3), None]);
    let at = |place| snapshot.at_place(place).map(|object| object.key().clone());
    assert_eq!([at(0), at(3), at(4), at(9)], [Some(key("a/x")), Some(key("b/x")), None, None]);
    let middle = key("ab/x");
    let (from, before) = snapshot.around(&middle);
    assert_eq!((shown(from), shown(before)), ("ab/x b/x".into(), "a/y a/x".into()));
}

#[test]
fn what_pins_an_indexed_field_is_found_by_its_value() {
    let mut snapshot = holding(&pods());
    let found = |snapshot: &Snapshot, interest: &Interest, after: Option<&str>| {
        let after = after.map(key);
        shown(snapshot.candidates(interest, after.as_ref()))
    };
    assert_eq!(found(&snapshot, &on(0, true, "n1"), None), "a/x ab/x");
    assert_eq!(found(&snapshot, &on(0, true, "n1"), Some("a/x")), "ab/x");
    assert_eq!(found(&snapshot, &on(2, true, "m1"), None), "a/x a/y");
    assert_eq!(found(&snapshot, &on(2, true, "n1"), None), "b/x", "each index is of its own field");
    assert_eq!(found(&snapshot, &on(0, true, ""), None), "b/x");
    let in_ab = Interest { reach: below("ab/"), ..on(0, true, "n1") };
    assert_eq!(found(&snapshot, &in_ab, None), "ab/x");
    // Nothing else is looked for in an index.
    let one = Interest { reach: Reach::One(key("a/y")), ..on(0, true, "n1") };
    for interest in [on(0, false, "n1"), on(1, true, "n1"), one.clone()] {
        assert!(snapshot.indexed_term(&interest).is_none());
    }
    assert_eq!(found(&snapshot, &on(0, false, "n1"), None), "a/x a/y ab/x b/x");
    assert_eq!(found(&snapshot, &one, None), "a/y");
    assert!(snapshot.indexed_term(&on(2, true, "m1")).is_some_and(|term| term.value == "m1"));
    // It moves to another node, another one goes, and what was there says the same in another form.
    snapshot.put(pod("a/x", 9, ("n2", "m1")));
    assert_eq!(found(&snapshot, &on(0, true, "n1"), None), "ab/x");
    assert_eq!(found(&snapshot, &on(0, true, "n2"), None), "a/x a/y");
    assert_eq!(snapshot.index_len(), 8);
    let new = pod("a/y", 10, ("n2", "m9"));
    snapshot.put(new.clone());
    assert!(snapshot.candidates(&on(0, true, "n2"), None).any(|object| Arc::ptr_eq(object, &new)));
    snapshot.remove(&key("a/x"));
    assert_eq!((found(&snapshot, &on(0, true, "n2"), None), snapshot.index_len()), ("a/y".into(), 6));
    // All at once comes to the same.
    let mut placed = empty();
    pods().into_iter().for_each(|pod| drop(placed.place(pod)));
    assert_eq!(placed.index_len(), 0);
    let placed = placed.with_indexes();
    assert_eq!((found(&placed, &on(0, true, "n1"), None), placed.index_len()), ("a/x ab/x".into(), 8));
    assert_eq!(found(&placed, &on(2, true, "m1"), None), "a/x a/y");
}

#[test]
fn another_form_takes_the_place_of_what_is_still_there() {
    let (pods, mut snapshot) = (pods(), holding(&pods()));
    let (same, other) = (pod("a/x", 2, ("n1", "m1")), pod("a/x", 8, ("n1", "m1")));
    assert!(!snapshot.replace(&pods[0], same.clone()), "these are not the ones that it was made of");
    let there = snapshot.get(&key("a/x")).expect("there").clone();
    assert!(snapshot.replace(&there, same.clone()));
    assert!(!snapshot.replace(&there, other), "it is gone");
    assert!(snapshot.get(&key("a/x")).is_some_and(|object| Arc::ptr_eq(object, &same)));
    snapshot.remove(&key("a/x"));
    assert!(!snapshot.replace(&same, same.clone()) && snapshot.len() == 3);
}

#[test]
fn a_state_goes_on_goes_back_and_begins_anew() {
    let before = pods();
    let mut snapshot = holding(&before);
    snapshot.set_revision(Revision::from_log(5));
    let changed = pod("a/y", 6, ("n1", ""));
    let event = |revision, previous: Option<&Arc<Object>>, current: Option<&Arc<Object>>| {
        let revision = Revision::from_log(revision);
        let (previous, current) = (previous.cloned(), current.cloned());
        Arc::new(Event { revision, previous, current, is_of_hole: false, hidden: None })
    };
    let (old, new) = (snapshot.clone(), pod("c/x", 8, ("n1", "")));
    snapshot.put(changed.clone());
    snapshot.remove(&key("b/x"));
    snapshot.put(new.clone());
    snapshot.set_revision(Revision::from_log(8));
    assert_eq!(
        (shown(snapshot.range(&below(""), None)), snapshot.revision().get()),
        ("a/x a/y ab/x c/x".into(), 8)
    );
    assert_eq!((shown(old.range(&below(""), None)), old.revision().get()), ("a/x a/y ab/x b/x".into(), 5));
    let (two, five) = (old.get(&key("a/y")), old.get(&key("b/x")));
    let events = [event(8, None, Some(&new)), event(7, five, None), event(6, two, Some(&changed))];
    snapshot.undo(&events);
    snapshot.went_back_to(Revision::from_log(5));
    let all = |snapshot: &Snapshot| snapshot.range(&below(""), None).cloned().collect::<Vec<_>>();
    assert!(all(&snapshot).iter().zip(all(&old)).all(|(one, other)| Arc::ptr_eq(one, &other)));
    assert_eq!((snapshot.len(), snapshot.held(), snapshot.revision()), (4, old.held(), old.revision()));
    assert!(snapshot.shares_history(&old) && snapshot.fill() == 7);
    let anew = snapshot.begun_at(Revision::from_log(3), 9);
    assert!(!anew.shares_history(&old) && anew.fill() == 9);
    assert_eq!((anew.revision().get(), anew.len()), (3, 4));
}

#[test]
fn what_cannot_be_read_is_known_until_it_can_or_is_gone() {
    let mut snapshot = holding(&pods());
    let known = |snapshot: &Snapshot, place: &str| {
        let reach = below(place);
        let keys = snapshot.unreadable(&reach).map(|key| key.as_str()[PREFIX.len()..].to_owned());
        let keys = keys.collect::<Vec<_>>().join(" ");
        assert_eq!(snapshot.may_have_unreadable(&reach), !keys.is_empty());
        keys
    };
    assert_eq!((known(&snapshot, ""), snapshot.unreadable_len()), (String::new(), 0));
    ["a/p", "a/q", "b/p"].into_iter().for_each(|place| snapshot.note_unreadable(key(place)));
    assert_eq!((known(&snapshot, ""), snapshot.unreadable_len()), ("a/p a/q b/p".into(), 3));
    assert_eq!((known(&snapshot, "b/"), known(&snapshot, "c/")), ("b/p".into(), String::new()));
    assert!(snapshot.may_hide(&key("a/p")) && !snapshot.may_hide(&key("a/x")));
    snapshot.put(pod("a/p", 9, ("", "")));
    snapshot.note_gone(&key("a/q"));
    assert_eq!(known(&snapshot, ""), "b/p");
    assert!(!snapshot.may_hide(&key("a/p")) && !snapshot.may_hide(&key("a/q")));
    snapshot.forget_unreadable();
    assert_eq!((known(&snapshot, ""), snapshot.unreadable_len()), (String::new(), 0));
}
