//! What a store that tells makes a cache do with all that it holds: let go of it, or hold less of each
//! object.

use forebay_backend::{Change, GiveWay, Rewrite, Told};

use crate::told_tests::{Scene, at, key, told};

/// A rewrite that leaves `more` out.
fn without_more() -> GiveWay {
    GiveWay::Rewrite(Rewrite::new(|body| {
        let text = str::from_utf8(body).ok()?;
        let (_, name) = text.split_once(r#""name":""#)?;
        let (name, rest) = name.split_once('"')?;
        rest.contains(r#""more""#).then(|| {
            let metadata = format!(r#"{{"name":"{name}","namespace":"a","uid":"u"}}"#);
            format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata},"spec":{{}}}}"#).into_bytes()
        })
    }))
}

/// A pod of some KB that no other is like.
pub(crate) fn put_long(scene: &Scene, number: u64, revision: u64) {
    let name = format!("pod-{number:04}");
    let mut x = revision;
    let more: String = (0..400).fold(String::new(), |text, _| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text + &format!("{x:016x}")
    });
    let value = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"a","uid":"u"}},"spec":{{"more":"{more}"}}}}"#
    );
    let (key, revision) = (key(&format!("a/{name}")), at(revision));
    scene.say(Told::Change(Change { key, revision, value: Some(value.into()) }));
}

fn bodies(scene: &Scene) -> Vec<usize> {
    let shown = scene.cacher.snapshot().expect("ready");
    let all = crate::Reach::Below(crate::tests::PREFIX.into());
    shown.range(&all, None).map(|object| object.body().len()).collect()
}

#[tokio::test]
async fn what_is_let_go_of_is_shown_and_held_by_nobody_and_told_anew_later() {
    let scene = Scene::new();
    scene.state(&[("a/one", 3), ("a/two", 4)], 9);
    let (mut follower, mut late) = (scene.follower(), scene.follower());
    assert_eq!(told(&mut follower, 3).await, ["+a/one@3", "+a/two@4", "synced 9"]);
    let object = scene.cacher.snapshot().expect("ready").get(&key("a/one")).map(std::sync::Arc::downgrade);
    scene.give_way(GiveWay::LetGo);
    assert_eq!(told(&mut follower, 1).await, ["let go"]);
    assert!(scene.cacher.snapshot().is_err() && follower.revision().is_none());
    assert!(late.try_next().is_none(), "who was told nothing is told nothing");
    assert!(object.expect("it was there").upgrade().is_none(), "nobody holds it");
    scene.state(&[("a/two", 4)], 5);
    assert_eq!(told(&mut follower, 2).await, ["+a/two@4", "synced 5"]);
    assert_eq!(told(&mut late, 2).await, ["+a/two@4", "synced 5"]);
    scene.put("a/two", 6);
    assert_eq!(told(&mut follower, 1).await, ["~a/two@4 to 6"]);
}

#[tokio::test]
async fn a_state_that_is_let_go_of_while_it_comes_leaves_nothing() {
    let scene = Scene::new();
    scene.begin(false);
    scene.put("a/one", 3);
    scene.give_way(GiveWay::LetGo);
    scene.listened().await;
    scene.state(&[("a/two", 4)], 5);
    assert_eq!(scene.shown(5).await, ["a/two@4"]);
}

#[tokio::test]
async fn what_is_rewritten_while_it_comes_and_after_is_smaller_and_nobody_is_told() {
    for while_it_comes in [true, false] {
        let scene = Scene::new();
        scene.begin(false);
        for number in 0..100 {
            put_long(&scene, number, 3 + number);
        }
        if while_it_comes {
            scene.listened().await;
            scene.give_way(without_more());
            scene.listened().await;
        }
        scene.end(200);
        scene.shown(200).await;
        let mut follower = scene.follower();
        told(&mut follower, 101).await;
        let mut before = scene.held();
        if !while_it_comes {
            assert!(bodies(&scene).iter().all(|len| *len > 6_000));
            scene.give_way(without_more());
            scene.listened().await;
        }
        scene.put("b/last", 300);
        scene.shown(300).await;
        assert_eq!(told(&mut follower, 1).await, ["+b/last@300"], "nothing happened to the others");
        assert!(bodies(&scene).iter().all(|len| *len < 200), "{:?}", bodies(&scene));
        if while_it_comes {
            before = 100 * 6_400;
        }
        assert!(scene.held() * 3 < before, "{} of {before}", scene.held());
        scene.state(&[("a/pod-0000", 3), ("a/pod-0001", 4), ("b/last", 300)], 400);
        let lines = told(&mut follower, 99).await;
        assert_eq!((lines[0].as_str(), lines[98].as_str()), ("-a/pod-0002@5", "relisted 98"));
    }
}
