//! Followers of a cache over the embedded engine.

use std::collections::BTreeMap;

use forebay_apimachinery::Key;

use crate::interest::Reach;
use crate::limits::PACE;
use crate::tests::{PREFIX, World, labelled};
use crate::{Changed, Followed, Follower, Interest};

fn everything() -> Interest {
    Interest::all(Reach::Below(PREFIX.into()))
}

/// What it has now, in short.
pub(crate) fn told(follower: &mut Follower) -> Vec<String> {
    let short = |told| match told {
        Followed::Change(Changed { previous, current, .. }) => {
            let sign = match (&previous, &current) {
                (None, _) => '+',
                (_, None) => '-',
                _ => '~',
            };
            format!("{sign}{}", current.or(previous).expect("one of them").name())
        }
        Followed::Synced(_) => "synced".into(),
        Followed::Relisted(_) => "relisted".into(),
        Followed::LetGo => "let go".into(),
        Followed::Ended => "ended".into(),
    };
    std::iter::from_fn(|| follower.try_next()).map(short).collect()
}

#[tokio::test]
async fn what_there_is_is_told_first_then_what_happens_to_it() {
    let world = World::new().await;
    world.put("a/one", "app=web").await;
    world.put("a/other", "app=db").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    let mut follower = world.cacher.follow(labelled("app=web"));
    assert_eq!(told(&mut follower), ["+one", "synced"]);
    world.put("a/other", "app=web").await;
    world.put("a/one", "app=web").await;
    world.put("a/one", "app=db").await;
    world.put("a/never", "app=db").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    assert_eq!(told(&mut follower), ["+other", "~one", "-one"], "what matches no more is gone");
    world.delete("a/other").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    assert_eq!(told(&mut follower), ["-other"]);
    assert_eq!(follower.conflated(), 0);
}

#[tokio::test]
async fn a_slow_one_is_told_the_sum_of_what_the_window_has_forgotten() {
    let world = World::new().await;
    world.put("a/gone", "").await;
    world.put("a/one", "").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    let (mut slow, mut quick) = (world.cacher.follow(everything()), world.cacher.follow(everything()));
    assert_eq!(told(&mut slow), ["+gone", "+one", "synced"]);
    told(&mut quick);
    // The half that it takes is of its state, too.
    world.put("a/one", "").await;
    world.put("a/two", "").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    assert!(matches!(slow.try_next(), Some(Followed::Change(_))));
    world.cacher.cap_window(Some(1));
    let mut events = 0;
    for number in 0..64 {
        world.put("a/busy", &format!("n={number}")).await;
        world.cacher.fresh(world.soon()).await.expect("fresh");
        events += told(&mut quick).len();
    }
    world.delete("a/gone").await;
    world.cacher.fresh(world.soon()).await.expect("fresh");
    assert_eq!(events, 64 + 2, "nobody else is told less");
    let lines = told(&mut slow);
    // Two, and what became of busy, each once, however often it was changed; and what is gone.
    assert!(lines.contains(&"-gone".to_owned()) && lines.contains(&"+two".to_owned()), "{lines:?}");
    assert_eq!(lines.iter().filter(|line| *line == "~one").count(), 0, "it was told of that: {lines:?}");
    assert_eq!((lines.len(), slow.conflated()), (3, 2), "{lines:?}");
}

#[tokio::test]
async fn what_was_told_adds_up_where_the_window_forgets_all_the_time() {
    let world = World::paced(PACE).await;
    world.cacher.cap_window(Some(1));
    let mut follower = world.cacher.follow(everything());
    let (mut sum, mut model) = (BTreeMap::new(), BTreeMap::new());
    let random = forebay_rt::Random::seeded(5);
    for round in 0..400 {
        let place = format!("a/{}", random.below(40));
        if model.contains_key(&place) && random.below(3) == 0 {
            world.delete(&place).await;
            model.remove(&place);
        } else {
            let revision = world.put(&place, "app=web").await;
            model.insert(place, revision);
        }
        world.cacher.fresh(world.soon()).await.expect("fresh");
        if round % 37 != 0 && round != 399 {
            continue;
        }
        while let Some(next) = follower.try_next() {
            let Followed::Change(Changed { previous, current, .. }) = next else { continue };
            let object = current.as_ref().or(previous.as_ref()).expect("one of them");
            let place = object.key().as_str()[PREFIX.len()..].to_owned();
            let before = match &current {
                Some(current) => sum.insert(place, current.revision()),
                None => sum.remove(&place),
            };
            assert_eq!(before, previous.map(|previous| previous.revision()));
        }
        assert_eq!(sum, model, "round {round}");
    }
}

#[tokio::test]
async fn who_follows_is_told_when_the_cache_ends() {
    let world = World::new().await;
    let one = Interest::all(Reach::One(Key::from(format!("{PREFIX}a/one"))));
    let mut follower = world.cacher.follow(one);
    assert_eq!(told(&mut follower), ["synced"]);
    world.cacher.stop();
    world.tasks.stop(forebay_rt::Duration::from_secs(5)).await;
    assert!(matches!(follower.next().await, Followed::Ended));
    assert!(follower.try_next().is_none());
}
