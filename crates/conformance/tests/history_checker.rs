//! The judges of histories, judged: good ones pass, and each bad one is refused for what is wrong with it.

use forebay_conformance::history::{
    Call, Completion, Entry, EventKind, Log, Notification, Operation, Promise, Start, Stream, WatchEvent,
    linearizable,
};

/// `1 a=one:x` and `3 -a`: a revision, and a key with its value and label, or deleted.
fn log(text: &str) -> Log {
    Log::of(text.split("; ").map(|entry| {
        let (revision, rest) = entry.split_once(' ').expect("a revision");
        let revision = revision.parse().expect("a number");
        match rest.strip_prefix('-') {
            Some(key) => (revision, key.to_owned(), None),
            None => {
                let (key, object) = rest.split_once('=').expect("key=value:label");
                let (value, label) = object.split_once(':').expect("value:label");
                (revision, key.to_owned(), Some((value.to_owned(), label.to_owned())))
            }
        }
    }))
}

/// `+1 a=one:x`, `~..`, `-..`, `B 4` and `END 4`.
fn stream(start: Start, label: Option<&str>, text: &str) -> Stream {
    let items = text.split("; ").filter(|item| !item.is_empty()).map(|item| {
        let (head, rest) = item.split_once(' ').expect("two words");
        let kind = match &head[..1] {
            "B" => return Notification::Bookmark(rest.parse().expect("a number")),
            "E" => return Notification::InitialEnd(rest.parse().expect("a number")),
            "+" => EventKind::Added,
            "~" => EventKind::Modified,
            _ => EventKind::Deleted,
        };
        let (key, object) = rest.split_once('=').expect("key=value:label");
        let (value, label) = object.split_once(':').expect("value:label");
        let revision = head[1..].parse().expect("a number");
        let (key, value, label) = (key.to_owned(), value.to_owned(), label.to_owned());
        Notification::Event(WatchEvent { kind, revision, key, value, label })
    });
    let items = items.collect();
    Stream { name: "w".into(), start, label: label.map(str::to_owned), items, cut: false }
}

const LOG: &str = "1 a=one:x; 2 b=two:y; 3 a=three:y; 4 b=four:y; 6 a=six:x; 8 -a; 9 c=nine:x; 9 d=nine:x";

#[test]
fn a_watch_that_keeps_its_promises_passes() {
    for (start, label, text) in [
        (Start::After(0), None, ""),
        (
            Start::After(0),
            None,
            "+1 a=one:x; +2 b=two:y; B 2; ~3 a=three:y; ~4 b=four:y; B 5; ~6 a=six:x; B 7; -8 a=six:x; +9 c=nine:x; +9 d=nine:x; B 9",
        ),
        (Start::After(4), None, "~6 a=six:x; -8 a=six:x"),
        (Start::After(7), None, "B 7; -8 a=six:x; B 8"),
        // What comes into the selection and goes out of it.
        (
            Start::After(0),
            Some("x"),
            "+1 a=one:x; -3 a=one:x; B 5; +6 a=six:x; -8 a=six:x; +9 c=nine:x; +9 d=nine:x",
        ),
        (Start::After(1), Some("y"), "+2 b=two:y; +3 a=three:y; ~4 b=four:y; -6 a=three:y"),
        (Start::State, None, "+3 a=three:y; +4 b=four:y; E 5; ~6 a=six:x"),
        (Start::State, Some("x"), "E 5; +6 a=six:x"),
        // Cut off before its state was whole.
        (Start::State, None, "+3 a=three:y"),
    ] {
        let checked = stream(start, label, text).check(&log(LOG));
        assert_eq!(checked.map_err(|why| why.to_string()), Ok(()), "{text}");
    }
}

#[test]
fn a_watch_that_breaks_a_promise_is_refused_for_that_one() {
    for (promise, start, label, text) in [
        (Promise::Filter, Start::After(0), Some("x"), "+1 a=one:x; +2 b=two:y"),
        (Promise::Filter, Start::After(4), None, "~4 b=four:y"),
        (Promise::Filter, Start::After(0), None, "+1 a=one:x; +2 z=two:y"),
        (Promise::Ordered, Start::After(0), None, "+1 a=one:x; +2 b=two:y; ~3 a=three:y; ~2 a=two:y"),
        (Promise::Unique, Start::After(0), None, "+1 a=one:x; +1 a=one:x"),
        (Promise::Unique, Start::After(0), None, "+1 a=one:x; +2 b=two:y; +1 a=one:x"),
        (Promise::Atomic, Start::After(8), None, "+9 c=nine:x"),
        (Promise::Atomic, Start::After(8), None, "+9 d=nine:x"),
        (Promise::Resumable, Start::After(0), None, "+2 b=two:y"),
        (Promise::Reliable, Start::After(0), None, "+1 a=one:x; ~3 a=three:y"),
        (Promise::Reliable, Start::After(0), Some("x"), "+1 a=one:x; +6 a=six:x"),
        (Promise::Bookmarkable, Start::After(0), None, "B 1"),
        (Promise::Bookmarkable, Start::After(0), None, "+1 a=one:x; B 2; +2 b=two:y"),
        (Promise::Bookmarkable, Start::After(3), None, "~4 b=four:y; B 3"),
        (Promise::Bookmarkable, Start::After(4), None, "B 5; B 4"),
        (Promise::Transition, Start::After(0), None, "~1 a=one:x"),
        (Promise::Transition, Start::After(0), Some("x"), "+1 a=one:x; ~3 a=one:x"),
        (Promise::Transition, Start::After(4), Some("x"), "~6 a=six:x"),
        (Promise::State, Start::After(0), None, "+1 a=other:x"),
        // The state before the last.
        (Promise::State, Start::After(6), None, "-8 a=three:y"),
        // Its new state, where it has left the selection.
        (Promise::State, Start::After(1), Some("x"), "-3 a=three:y"),
        (Promise::Initial, Start::State, None, "+3 a=three:y; E 5"),
        (Promise::Initial, Start::State, None, "+4 b=four:y; +3 a=three:y; E 5"),
        (Promise::Initial, Start::State, None, "+1 a=one:x; +2 b=two:y; E 4"),
        (Promise::Initial, Start::State, None, "+3 a=three:y; ~4 b=four:y; E 5"),
        (Promise::Reliable, Start::State, None, "E 0; +1 a=one:x; ~3 a=three:y"),
    ] {
        let why = stream(start, label, text).check(&log(LOG)).expect_err(text);
        assert_eq!(why.promise, promise, "{text}: {why}");
    }
}

#[test]
fn watchers_have_to_agree() {
    let one = stream(Start::After(0), None, "+1 a=one:x; ~3 a=three:y");
    let other = stream(Start::After(1), None, "+2 b=two:y; ~3 a=four:y");
    let good = stream(Start::After(1), None, "+2 b=two:y; ~3 a=three:y");
    let gathered = Log::gather(&[one.clone(), good]).expect("they agree");
    assert_eq!(gathered, log("1 a=one:x; 2 b=two:y; 3 a=three:y"));
    let previous = Some(("one".to_owned(), "x".to_owned()));
    let last = gathered.entries.last().map(|Entry { previous, .. }| previous.clone());
    assert_eq!(last, Some(previous));
    assert_eq!(Log::gather(&[one, other]).expect_err("they do not").promise, Promise::Agreed);
}

/// `0-1 a create one @1`: from and to (`?` is never), key, call, value or expected revision, answer.
fn history(text: &str) -> Vec<Operation> {
    let operation = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (begun, ended) = words[0].split_once('-').expect("from-to");
        let value = words[3].to_owned();
        let expect = words[3].strip_prefix('@').map(|revision| revision.parse().expect("a number"));
        let call = match words[2] {
            "get" => Call::Get,
            "create" => Call::Create { value: value.clone() },
            // `new@3` expects revision 3.
            "update" => match words[3].split_once('@') {
                Some((value, expect)) => {
                    Call::Update { value: value.to_owned(), expect: expect.parse().ok() }
                }
                None => Call::Update { value: value.clone(), expect: None },
            },
            _ => Call::Delete { expect },
        };
        let revision = words[4].strip_prefix('@').and_then(|revision| revision.parse().ok());
        let answer = match (words[4], revision) {
            (_, Some(revision)) if call == Call::Get => Completion::Found { value, revision },
            (_, Some(revision)) => Completion::Written { revision },
            ("deleted", _) => Completion::Deleted,
            ("conflict", _) => Completion::Conflict,
            ("exists", _) => Completion::AlreadyExists,
            ("none", _) => Completion::NotFound,
            _ => Completion::Unknown,
        };
        Operation {
            key: words[1].to_owned(),
            call,
            answer,
            begun: begun.parse().expect("a tick"),
            ended: ended.parse().ok(),
        }
    };
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(operation).collect()
}

#[test]
fn operations_that_have_an_order_pass() {
    for (text, known) in [
        (
            "0-1 a create one @1\n 2-3 a get one @1\n 4-5 a update two@1 @2\n 6-7 a delete - deleted\n 8-9 a get - none",
            "1 a=one:x; 2 a=two:x; 3 -a",
        ),
        // A read beside a write sees either.
        (
            "0-1 a create one @1\n 2-9 a update two @2\n 3-4 a get one @1\n 5-6 a get two @2\n 7-8 a get two @2",
            "1 a=one:x; 2 a=two:x",
        ),
        // Who is first is not who called first.
        ("0-9 a create one exists\n 1-8 a create two @1\n 10-11 a get two @1", "1 a=two:x"),
        (
            "0-1 a create one @1\n 2-9 a update two@1 conflict\n 3-8 a update three@1 @2",
            "1 a=one:x; 2 a=three:x",
        ),
        // Unanswered and done, long after its call.
        (
            "0-1 a create one @1\n 2-? a update two ?\n 3-4 a get one @1\n 5-6 a get two @2",
            "1 a=one:x; 2 a=two:x",
        ),
        // Unanswered and never done.
        ("0-1 a create one @1\n 2-? a update two ?\n 3-4 a get one @1", "1 a=one:x"),
        (
            "0-1 a create one @1\n 2-? a delete - ?\n 3-4 a get one @1\n 5-6 a get - none\n 7-8 a create two @3",
            "1 a=one:x; 2 -a; 3 a=two:x",
        ),
        // Keys have nothing to do with each other, but for their revisions.
        ("0-5 a create one @2\n 1-4 b create two @1", "1 b=two:x; 2 a=one:x"),
    ] {
        let (operations, known) = (history(text), log(known));
        let checked = linearizable(&operations, &known).and_then(|()| known.holds(&operations));
        assert_eq!(checked.map_err(|why| why.to_string()), Ok(()), "{text}");
    }
}

#[test]
fn operations_without_an_order_are_refused() {
    for (promise, text, known) in [
        // A stale read.
        (
            Promise::Linearizable,
            "0-1 a create one @1\n 2-3 a update two @2\n 4-5 a get one @1",
            "1 a=one:x; 2 a=two:x",
        ),
        (Promise::Linearizable, "0-1 a create one @1\n 2-3 a get - none", "1 a=one:x"),
        // Seen, and then not.
        (
            Promise::Linearizable,
            "0-1 a create one @1\n 2-9 a update two @2\n 3-4 a get two @2\n 5-6 a get one @1",
            "1 a=one:x; 2 a=two:x",
        ),
        // Two are first.
        (Promise::Linearizable, "0-9 a create one @1\n 1-8 a create two @2", "1 a=one:x; 2 a=two:x"),
        // A lost update: both were based on the same revision.
        (
            Promise::Linearizable,
            "0-1 a create one @1\n 2-9 a update two@1 @2\n 3-8 a update three@1 @3",
            "1 a=one:x; 2 a=two:x; 3 a=three:x",
        ),
        (Promise::Linearizable, "0-1 a create one @1\n 2-3 a update two@1 conflict", "1 a=one:x"),
        // Read from the future.
        (
            Promise::Linearizable,
            "0-1 a create one @1\n 2-3 a get two @2\n 4-5 a update two @2",
            "1 a=one:x; 2 a=two:x",
        ),
        // Deleted, and there.
        (
            Promise::Linearizable,
            "0-1 a create one @1\n 2-3 a delete - deleted\n 4-5 a get one @1",
            "1 a=one:x; 2 -a",
        ),
        // Unanswered, and seen before it was called.
        (
            Promise::Linearizable,
            "0-1 a create one @1\n 2-3 a get two @2\n 4-? a update two ?",
            "1 a=one:x; 2 a=two:x",
        ),
        // The revision went back between two keys.
        (Promise::RealTime, "0-1 a create one @5\n 2-3 b create two @4", "4 b=two:x; 5 a=one:x"),
        (Promise::RealTime, "0-1 a create one @5\n 2-3 b create two @5", "5 a=one:x; 5 b=two:x"),
        // Acknowledged, and lost.
        (Promise::Durable, "0-1 a create one @1\n 2-3 b create two @2", "1 a=one:x"),
        (Promise::Durable, "0-1 a create one @1\n 2-3 a delete - deleted", "1 a=one:x"),
        // Nobody's.
        (Promise::Asked, "0-1 a create one @1", "1 a=one:x; 2 a=two:x"),
        (Promise::Asked, "0-1 a create one @1", "1 a=one:x; 2 -a"),
    ] {
        let (operations, known) = (history(text), log(known));
        let checked = linearizable(&operations, &known).and_then(|()| known.holds(&operations));
        let why = checked.expect_err(text);
        assert_eq!(why.promise, promise, "{text}: {why}");
    }
}

/// Sixteen clients at once, over and over: it must not take for ever.
#[test]
fn a_long_history_of_many_clients_is_judged_in_time() {
    let (mut operations, mut entries, mut tick) = (Vec::new(), Vec::new(), 0);
    for round in 0..60_u64 {
        for client in 0..16_u64 {
            let revision = round * 16 + client + 1;
            let value = format!("v{revision}");
            entries.push((revision, "a".to_owned(), Some((value.clone(), "x".to_owned()))));
            let call = match revision {
                1 => Call::Create { value },
                _ => Call::Update { value, expect: None },
            };
            let (begun, ended) = (tick + (client * 7) % 16, Some(tick + 16 + (client * 5) % 16));
            let answer = Completion::Written { revision };
            operations.push(Operation { key: "a".to_owned(), call, answer, begun, ended });
        }
        tick += 40;
    }
    let log = Log::of(entries);
    assert_eq!(linearizable(&operations, &log).map_err(|why| why.to_string()), Ok(()));
}
