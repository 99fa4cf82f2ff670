//! What a cache says whose blocks are elsewhere than in memory: the same.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use forebay_backend::{GiveWay, Told};
use forebay_object::{Damaged, Region, Spill};
use forebay_rt::Random;

use crate::let_go_tests::put_long;
use crate::told_tests::{Scene, at};

/// Somewhere else: texts that are counted, may be lost, and may have no room.
#[derive(Debug, Default)]
struct Elsewhere {
    texts: AtomicUsize,
    // How many there may be.
    room: AtomicUsize,
    are_lost: AtomicBool,
}

#[derive(Debug)]
struct There(Mutex<Vec<u8>>, Arc<Elsewhere>);

#[derive(Debug)]
struct Door(Arc<Elsewhere>);

impl Spill for Door {
    fn put(&self, text: &[u8]) -> Option<Box<dyn Region>> {
        let has_room = |texts: usize| (texts < self.0.room.load(Ordering::Relaxed)).then_some(texts + 1);
        self.0.texts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, has_room).ok()?;
        Some(Box::new(There(Mutex::new(text.to_vec()), self.0.clone())))
    }
}

impl Region for There {
    fn read(&self, out: &mut [u8]) -> io::Result<()> {
        if self.1.are_lost.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.copy_from_slice(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    fn note_damage(&self) {}
}

impl Drop for There {
    fn drop(&mut self) {
        self.1.texts.fetch_sub(1, Ordering::Relaxed);
    }
}

fn elsewhere(room: usize) -> Arc<Elsewhere> {
    let elsewhere = Elsewhere::default();
    elsewhere.room.store(room, Ordering::Relaxed);
    Arc::new(elsewhere)
}

fn spill(to: &Arc<Elsewhere>, goal_bytes: usize) -> GiveWay {
    GiveWay::Spill { to: Arc::new(Door(to.clone())), goal_bytes }
}

/// Key, revision and bytes.
type Said = (String, u64, Vec<u8>);

/// What all say that it shows.
fn shown(scene: &Scene) -> Vec<Result<Said, Damaged>> {
    let shown = scene.cacher.snapshot().expect("ready");
    let all = crate::Reach::Below(crate::tests::PREFIX.into());
    let said = |object: &Arc<forebay_object::Object>| {
        let body = object.try_body()?.to_vec();
        Ok((object.key().as_str().to_owned(), object.revision().get(), body))
    };
    shown.range(&all, None).map(said).collect()
}

fn spilled(scene: &Scene) -> usize {
    let shown = scene.cacher.snapshot().expect("ready");
    let all = crate::Reach::Below(crate::tests::PREFIX.into());
    shown.range(&all, None).filter(|object| object.is_spilled()).count()
}

async fn filled(objects: u64) -> Scene {
    let scene = Scene::new();
    scene.begin(false);
    for number in 0..objects {
        put_long(&scene, number, number + 1);
        if number % 100 == 99 {
            scene.listened().await;
        }
    }
    scene.end(objects);
    scene.shown(objects).await;
    scene.say(Told::Progress(at(1)));
    scene.listened().await;
    scene
}

#[tokio::test]
async fn no_more_is_spilled_than_has_to_be_and_it_says_the_same() {
    let scene = filled(300).await;
    let (mut follower, before, held) = (scene.follower(), shown(&scene), scene.held());
    let to = elsewhere(usize::MAX);
    scene.give_way(spill(&to, held));
    scene.listened().await;
    assert_eq!((spilled(&scene), to.texts.load(Ordering::Relaxed)), (0, 0), "it is little enough");
    scene.give_way(spill(&to, 0));
    scene.listened().await;
    scene.put("a/other", 301);
    scene.shown(301).await;
    assert_eq!(spilled(&scene), 300);
    assert!(scene.held() < held / 4, "{} of {held}", scene.held());
    let now = shown(&scene);
    assert!(before.iter().all(|one| now.contains(one)));
    // Nothing happened: who follows is told what there is, and what came.
    let told = crate::told_tests::told(&mut follower, 302).await;
    assert!(told.iter().filter(|line| line.starts_with('+')).count() == 301, "{told:?}");
}

#[tokio::test]
async fn what_is_lost_is_an_error_and_what_is_let_go_of_gives_its_room_back() {
    let scene = filled(200).await;
    let to = elsewhere(usize::MAX);
    scene.give_way(spill(&to, 0));
    scene.listened().await;
    scene.put("a/other", 201);
    scene.shown(201).await;
    assert!(shown(&scene).iter().all(Result::is_ok));
    to.are_lost.store(true, Ordering::Relaxed);
    // But for those that were inflated last.
    assert!(shown(&scene).iter().filter(|one| **one == Err(Damaged)).count() > 20);
    scene.give_way(GiveWay::LetGo);
    scene.listened().await;
    scene.state(&[("a/one", 3)], 5);
    scene.shown(5).await;
    assert_eq!((to.texts.load(Ordering::Relaxed), shown(&scene).len()), (0, 1));
}

#[tokio::test]
async fn what_there_is_no_room_for_stays_in_memory() {
    let scene = filled(300).await;
    let (before, to) = (shown(&scene), elsewhere(2));
    scene.give_way(spill(&to, 0));
    scene.listened().await;
    scene.put("a/other", 301);
    scene.shown(301).await;
    assert!((1..300).contains(&spilled(&scene)) && to.texts.load(Ordering::Relaxed) == 2);
    let now = shown(&scene);
    assert!(before.iter().all(|one| now.contains(one)));
}

/// Changes, deletions and states that come anew on two caches, one of which spills: they say the same.
#[tokio::test]
async fn a_cache_that_spills_says_what_one_says_that_does_not() {
    let mut most = Vec::new();
    for seed in 0..4 {
        let random = Random::seeded(seed);
        let (one, other, to) = (filled(120).await, filled(120).await, elsewhere(usize::MAX));
        let mut revision = 120;
        most.push(0);
        for step in 0..40 {
            // First all of it.
            match if step == 0 { 0 } else { random.below(4) } {
                0 => {
                    other.give_way(spill(&to, random.below(200_000) as usize * usize::from(step > 0)));
                    other.listened().await;
                }
                1 => {
                    let from = revision;
                    for scene in [&one, &other] {
                        revision = from;
                        scene.begin(false);
                        // Some are gone, some are as they were, some are new.
                        for number in 0..60 {
                            put_long(
                                scene,
                                3 * number,
                                if number % 3 == 0 { from + number } else { 3 * number + 1 },
                            );
                        }
                        revision += 60;
                        scene.end(revision);
                        scene.listened().await;
                    }
                }
                _ => {
                    for _ in 0..=random.below(20) {
                        revision += 1;
                        let number = random.below(150);
                        let is_gone = random.below(4) == 0;
                        for scene in [&one, &other] {
                            match is_gone {
                                true => scene.delete(&format!("a/pod-{number:04}"), revision),
                                false => put_long(scene, number, revision),
                            }
                            scene.listened().await;
                        }
                    }
                }
            }
            revision += 1;
            for scene in [&one, &other] {
                scene.put("a/last", revision);
                scene.shown(revision).await;
            }
            assert!(shown(&one) == shown(&other), "seed {seed}, step {step}");
            assert!(shown(&other).iter().all(Result::is_ok));
            most[seed as usize] = spilled(&other).max(most[seed as usize]);
        }
    }
    assert!(most.iter().all(|most| *most > 20), "{most:?}");
}
