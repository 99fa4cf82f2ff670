//! Who waits for room, who is given it, and who is refused.

use tokio::task::JoinHandle;

use super::*;

fn room(bytes: usize) -> Room {
    Room::new(Clock::system(), Limit::Strict(bytes))
}

/// Asks in a task of its own, and lets it come to its wait.
async fn ask(room: &Room, user: &'static str, bytes: usize) -> JoinHandle<Result<Held, Full>> {
    let room = room.clone();
    let task = tokio::spawn(async move { room.take(user, bytes).await });
    tokio::task::yield_now().await;
    task
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_bounded_and_the_others_wait_in_turn_by_user() {
    let room = room(100);
    let first = room.take("a", 100).await.expect("room");
    // One user came with three, another with one: the second user's goes second.
    let tasks = [ask(&room, "a", 60).await, ask(&room, "a", 60).await, ask(&room, "a", 60).await];
    let other = ask(&room, "b", 60).await;
    assert_eq!(room.totals(), Totals { held: 100, limit: 100, waiting: 4, waited: 4, refused: 0 });
    drop(first);
    let [one, two, three] = tasks;
    let one = one.await.expect("no panic").expect("its turn");
    assert!(!other.is_finished() && !two.is_finished());
    drop(one);
    let other = other.await.expect("no panic").expect("its turn");
    assert!(!two.is_finished());
    drop(other);
    let two = two.await.expect("no panic").expect("its turn");
    assert!(!three.is_finished());
    drop((two, three.await.expect("no panic")));
    assert_eq!(room.totals().held, 0);
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_refused_and_holds_nobody_up() {
    let room = room(100);
    let held = room.take("a", 50).await.expect("room");
    let large = ask(&room, "a", 80).await;
    let small = ask(&room, "b", 40).await;
    assert!(!small.is_finished(), "nobody passes a large one");
    tokio::time::advance(ROOM_WAIT).await;
    assert_eq!(large.await.expect("no panic").err(), Some(Full));
    assert!(small.await.expect("no panic").is_ok(), "and then it is its turn");
    assert_eq!((room.totals().waiting, room.totals().refused), (0, 1));
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_the_queue_gives_up_its_place() {
    let room = room(10);
    let held = room.take("a", 10).await.expect("room");
    let leaves = ask(&room, "a", 10).await;
    let stays = ask(&room, "b", 5).await;
    leaves.abort();
    assert!(leaves.await.is_err());
    assert_eq!(room.totals().waiting, 1);
    drop(held);
    assert!(stays.await.expect("no panic").is_ok());
    assert_eq!(room.totals().held, 0);
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_bounded_for_a_user_and_for_all() {
    let room = room(1);
    let _held = room.take("a", 1).await.expect("room");
    let mut tasks = Vec::new();
    for user in ["a", "b"] {
        for _ in 0..ROOM_WAITING_PER_USER_MAX {
            tasks.push(ask(&room, user, 1).await);
        }
        assert_eq!(room.take(user, 1).await.err(), Some(Full), "{user}");
    }
    assert_eq!(room.totals().waiting, ROOM_WAITING_MAX.min(2 * ROOM_WAITING_PER_USER_MAX));
    assert_eq!(room.take("c", 1).await.err(), Some(Full));
}

#[tokio::test(start_paused = true)]
async fn the_limit_moves_and_one_always_fits_unless_it_is_closed() {
    let room = room(100);
    let held = room.take("a", 100).await.expect("room");
    let waits = ask(&room, "a", 50).await;
    room.set_limit(Limit::Strict(150));
    assert!(waits.await.expect("no panic").is_ok());
    room.set_limit(Limit::Strict(0));
    drop(held);
    let one = room.take("a", ROOM_ONE_BYTES).await.expect("nothing else is held");
    assert!(room.try_take(1).is_none());
    drop(one);
    let too_large = ask(&room, "a", ROOM_ONE_BYTES + 1).await;
    tokio::time::advance(ROOM_WAIT + Duration::from_millis(1)).await;
    assert_eq!(too_large.await.expect("no panic").err(), Some(Full));
    room.set_limit(Limit::Closed);
    assert_eq!(room.take("a", 1).await.err(), Some(Full), "at once");
}

#[tokio::test(start_paused = true)]
async fn where_memory_is_not_short_the_largest_goes_alone() {
    let room = room(0);
    room.set_limit(Limit::Loose(100));
    let mut body = room.take("a", 30).await.expect("room");
    room.take_more("a", 1000, &mut body).await.expect("nothing else is held");
    assert_eq!((body.bytes(), room.totals().held), (100, 100));
    let waits = ask(&room, "b", 10).await;
    assert!(!waits.is_finished());
    drop(body);
    let mut other = waits.await.expect("no panic").expect("its turn");
    let held = room.charge(50);
    assert_eq!(room.take_more("b", 90, &mut other).await.err(), Some(Full), "not alone");
    drop(held);
    assert!(room.take_more("b", 90, &mut other).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_may_be_left_out_leaves_half_of_the_room_to_others() {
    let room = room(100);
    let mut held = room.try_take_beside(30).expect("room");
    assert!(room.try_take_beside(21).is_none());
    held.merge(room.try_take_beside(20).expect("room"));
    assert_eq!((held.bytes(), room.totals().held), (50, 50));
    let other = room.try_take(50).expect("the other half");
    drop(held);
    assert!(room.try_take_beside(1).is_none(), "others have theirs");
    drop(other);
    assert_eq!(room.totals().held, 0);
}

/// Asks for more in a task of its own, and lets it come to its wait. It ends with what it has.
async fn ask_more(room: &Room, mut held: Held, bytes: usize) -> JoinHandle<Result<Held, Full>> {
    let room = room.clone();
    let task = tokio::spawn(async move { room.take_more("a", bytes, &mut held).await.map(|()| held) });
    tokio::task::yield_now().await;
    task
}

#[tokio::test(start_paused = true)]
async fn who_holds_the_most_goes_first_and_before_who_holds_nothing() {
    let room = room(100);
    let works = room.take("a", 40).await.expect("room");
    let (less, more) = (room.take("a", 20).await.expect("room"), room.take("a", 30).await.expect("room"));
    let new = ask(&room, "b", 10).await;
    assert!(new.await.expect("no panic").is_ok());
    let (new, less) = (ask(&room, "b", 60).await, ask_more(&room, less, 20).await);
    let more = ask_more(&room, more, 20).await;
    drop(works);
    let (more, less) = (more.await.expect("no panic"), less.await.expect("no panic"));
    assert!(more.is_ok() && less.is_ok() && !new.is_finished());
    drop((more, less));
    assert!(new.await.expect("no panic").is_ok());
}

#[tokio::test(start_paused = true)]
async fn when_all_who_hold_something_wait_the_one_with_the_least_gives_way_at_once() {
    let room = room(100);
    let clock = Clock::system();
    let began = clock.now();
    let mut held = Vec::new();
    for bytes in [33, 34, 33] {
        held.push(room.take("a", bytes).await.expect("room"));
    }
    let mut tasks = Vec::new();
    for held in held {
        tasks.push(ask_more(&room, held, 10).await);
    }
    let done =
        async |task: JoinHandle<Result<Held, Full>>| task.await.expect("no panic").map(|held| held.bytes());
    let newest = tasks.pop().expect("three");
    assert_eq!(done(newest).await, Err(Full), "of those with the least");
    for (task, bytes) in tasks.into_iter().zip([43, 44]) {
        assert_eq!(done(task).await, Ok(bytes));
    }
    assert_eq!((clock.now() - began, room.totals().held, room.totals().refused), (Duration::ZERO, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn nobody_gives_way_to_one_that_would_fill_half_of_the_room() {
    let room = room(100);
    let (large, small) = (room.take("a", 60).await.expect("room"), room.take("b", 40).await.expect("room"));
    let large = ask_more(&room, large, 30).await;
    let small = ask_more(&room, small, 5).await;
    assert_eq!(large.await.expect("no panic").err(), Some(Full));
    assert!(small.await.expect("no panic").is_ok());
}

#[tokio::test(start_paused = true)]
async fn those_who_are_in_a_full_room_may_grow_a_little_where_memory_is_not_short() {
    let room = Room::new(Clock::system(), Limit::Loose(80));
    let mut held = room.take("a", 40).await.expect("room");
    let other = room.take("b", 40).await.expect("room");
    let waits = ask(&room, "c", 10).await;
    assert!(room.try_take_more(10, &mut held), "an eighth of it");
    assert!(!room.try_take_more(1, &mut held));
    drop(other);
    let third = waits.await.expect("no panic").expect("room");
    room.set_limit(Limit::Strict(50));
    assert!(!room.try_take_more(1, &mut held), "there is no more memory than that");
    drop((held, third));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_needed_any_more_is_given_back_early() {
    let room = room(100);
    let mut held = room.take("a", 90).await.expect("room");
    let waits = ask(&room, "a", 80).await;
    held.set(20);
    assert!(waits.await.expect("no panic").is_ok());
    held.set(50);
    assert_eq!((held.bytes(), room.totals().held), (50, 50), "more may be needed than was foreseen");
    let charged = room.charge(1000);
    assert_eq!(room.totals().held, 1050);
    drop((held, charged));
    assert_eq!(room.totals().held, 0);
}
