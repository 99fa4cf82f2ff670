//! What a read is expected to come to, beside what it comes to.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_apimachinery::selector::LabelSelector;
use forebay_object::Object;
use forebay_object::seal::{RecentBlocks, Sealer};

use crate::estimate::Estimate;
use crate::interest::{FieldSource, FieldTerm, Interest, Reach};
use crate::snapshot::Snapshot;
use crate::snapshot_tests::{below, holding, key, pod, pods};

fn on_node(node: &str) -> Interest {
    let field = FieldSource::Indexed { fields: [0].into(), absent: "" };
    let term = FieldTerm { field, equal: true, value: node.into() };
    Interest { fields: Arc::from([term]), ..Interest::all(below("")) }
}

/// These pods, at rest.
fn sealed(plain: &[Arc<Object>]) -> Snapshot {
    let mut state = holding(plain);
    for (old, new) in plain.iter().zip(Sealer::new(Arc::new(RecentBlocks::default())).seal(plain)) {
        assert!(state.replace(old, new));
    }
    state
}

/// 6,000 pods, a third of them on each of three nodes.
fn many_pods() -> Vec<Arc<Object>> {
    let node = |at: u64| format!("n{}", at % 3);
    (0..6_000).map(|at| pod(&format!("a/{at:05}"), 2 + at, (&node(at), &format!("m{at}")))).collect()
}

fn many() -> Snapshot {
    holding(&many_pods())
}

#[test]
fn a_page_is_as_long_as_its_own_objects() {
    let state = many();
    let all = Interest::all(below(""));
    let whole = state.estimate(&all, None, None);
    assert_eq!(
        (whole.objects, whole.selected, whole.bytes),
        (6_000, 6_000, state.plain_bytes(&below(""), None))
    );
    assert_eq!((whole.selected_bytes, whole.inflated_bytes), (whole.bytes, 0), "nothing is at rest");
    let page = |after: Option<&Key>, limit| {
        let of = state.estimate(&all, after, Some(limit));
        (of.selected, of.selected_bytes)
    };
    let bytes = |places: std::ops::Range<usize>| {
        state.range(&below(""), None).skip(places.start).take(places.len()).map(|pod| pod.body_len()).sum()
    };
    assert_eq!(page(None, 500), (500, bytes(0..500)));
    let after = key("a/05899");
    assert_eq!(page(Some(&after), 50), (50, bytes(5_900..5_950)));
    assert_eq!(page(Some(&after), 500), (100, bytes(5_900..6_000)));
    assert_eq!(page(None, 0), (0, 0));
}

#[test]
fn what_a_selector_finds_is_known_from_a_sample_and_what_an_index_has_from_that() {
    let state = many();
    let of = state.estimate(&on_node("n1"), None, None);
    let whole = state.plain_bytes(&below(""), None);
    assert_eq!((of.objects, of.selected), (2_000, 2_000), "the index has them");
    assert!(of.bytes.abs_diff(whole / 3) < whole / 100, "{of:?} of {whole}");
    // The second field has no index: some of all are looked at.
    let FieldTerm { equal, .. } = on_node("").fields[0];
    let field = FieldSource::Indexed { fields: [1].into(), absent: "" };
    let none = FieldTerm { field, equal, value: "h".into() };
    let interest = Interest { fields: Arc::from([none]), ..Interest::all(below("")) };
    let of = state.estimate(&interest, None, Some(10));
    assert_eq!((of.objects, of.selected, of.inflated_bytes), (6_000, 0, 0));
    let name = FieldTerm { field: FieldSource::Name, equal: false, value: "x".into() };
    let interest = Interest {
        fields: Arc::from([name]),
        labels: Arc::new(LabelSelector::everything()),
        reach: below(""),
    };
    let of = state.estimate(&interest, None, Some(60));
    assert_eq!((of.objects, of.selected), (60, 60), "as many as a page of them looks at");
}

#[test]
fn who_reads_what_is_at_rest_inflates_its_block() {
    let state = sealed(&pods());
    let plain = state.plain_bytes(&below(""), None);
    let whole = state.estimate(&Interest::all(below("")), None, None);
    let Estimate { deflated_bytes, inflated_bytes, .. } = whole;
    assert!(
        inflated_bytes == deflated_bytes && (1..plain / 2).contains(&deflated_bytes),
        "{whole:?} of {plain}"
    );
    let one = state.estimate(&Interest::all(Reach::One(key("a/x"))), None, None);
    assert_eq!((one.objects, one.inflated_bytes), (1, inflated_bytes), "its neighbours with it");
    assert!(one.deflated_bytes < deflated_bytes);
}

#[test]
fn what_an_index_finds_lies_in_the_blocks_of_others() {
    let state = sealed(&many_pods());
    let whole = state.estimate(&Interest::all(below("")), None, None);
    let third = state.estimate(&on_node("n1"), None, None);
    assert_eq!((whole.selected, third.selected, third.objects), (6_000, 2_000, 2_000));
    assert!(third.deflated_bytes < whole.deflated_bytes / 2, "{third:?} of {whole:?}");
    assert_eq!(third.inflated_bytes, whole.inflated_bytes, "it is in each of them");
}

#[test]
fn what_is_labelled_in_turn_is_found_in_its_part() {
    let state = many();
    let (len, sample) = state.sample(&Interest::all(below("")), 500);
    let places: Vec<usize> = sample.map(|pod| pod.name().parse().expect("a number")).collect();
    assert_eq!((len, places.len()), (6_000, 500));
    assert!(
        places.iter().enumerate().all(|(part, place)| (12 * part..12 * (part + 1)).contains(place)),
        "{places:?}"
    );
    for turns in [2, 3, 4, 6, 12] {
        let found = places.iter().filter(|place| *place % turns == 0).count();
        assert!(found.abs_diff(500 / turns) <= 500 / turns / 5, "{found} of every {turns}th");
    }
    let (_, all) = state.sample(&Interest::all(below("")), 6_001);
    assert_eq!(all.count(), 6_000);
}

#[test]
fn of_what_is_shown_a_part_is_known_from_a_few() {
    let state = many();
    let made = |object: &Object| object.message_made(1).is_some();
    let of = |interest: &Interest, count| state.part_of(interest, count, made);
    let all = Interest::all(below(""));
    assert_eq!((of(&all, 6_000), state.part_of(&all, 6_000, |object| !made(object))), (0, 6_000));
    // Those of one node have theirs.
    let counted = Arc::default();
    for pod in state.candidates(&on_node("n1"), None) {
        drop(pod.message(1, (&counted, forebay_object::Keep::Always), || vec![0]));
    }
    assert_eq!((of(&on_node("n1"), 2_000), of(&on_node("n2"), 2_000), of(&on_node("n9"), 0)), (2_000, 0, 0));
    assert!((1_000..3_500).contains(&of(&all, 6_000)), "{}", of(&all, 6_000));
}
