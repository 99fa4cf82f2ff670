//! What an elector does, in rows: what happened and when, and what it does then.

use forebay_rt::Clock;
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

use super::*;

/// An elector called `me` without jitter, and what it asked to be written last.
struct World {
    machine: Machine,
    began: Instant,
    ms: u64,
    asked: Option<Lease>,
    version: u64,
}

impl World {
    fn new(change: impl FnOnce(&mut Config)) -> World {
        let mut config = Config::new("ns", "it", "me");
        config.jitter = 0.0;
        change(&mut config);
        let began = Clock::manual(0).0.now();
        let machine = Machine::new(config, Arc::new(Random::seeded(1)), began);
        World { machine, began, ms: 0, asked: None, version: 100 }
    }

    /// `tick`, `cancel`, `got HOLDER DURATION TRANSITIONS RENEWED VERSION` (`-`: absent), `written` (what was
    /// asked for), `none`, `conflict`, `forbidden`; before it perhaps `123:`, the time in ms from which on it
    /// is.
    fn input(&mut self, text: &str) -> Input {
        let text = match text.split_once(": ") {
            Some((ms, rest)) => {
                self.ms = ms.parse().expect("milliseconds");
                rest
            }
            None => text,
        };
        let words: Vec<&str> = text.split(' ').collect();
        Input::Answer(match words[0] {
            "tick" => return Input::Tick,
            "cancel" => return Input::Cancel,
            "got" => Ok(Box::new(lease(&words[1..]))),
            "written" => {
                let mut lease = self.asked.take().expect("something was asked for");
                self.version += 1;
                lease.metadata.resource_version = Some(self.version.to_string());
                Ok(Box::new(lease))
            }
            "none" => Err(LeaseError::NotFound),
            "conflict" => Err(LeaseError::Conflict),
            "forbidden" => Err(LeaseError::Forbidden { message: "no".into() }),
            other => panic!("no such input: {other}"),
        })
    }

    fn step(&mut self, text: &str) -> String {
        let input = self.input(text);
        // Wall time is far away from what monotonic time says.
        let now = Now { at: self.began + Duration::from_millis(self.ms), unix_ms: 7_000_000 + self.ms };
        let effects = self.machine.step(input, now);
        let said: Vec<String> = effects.into_iter().map(|effect| self.said(effect)).collect();
        said.join(" ")
    }

    fn said(&mut self, effect: Effect) -> String {
        match effect {
            Effect::Get => "get".into(),
            Effect::Create(lease) => format!("create({})", self.wants(*lease)),
            Effect::Update(lease) => format!("update({})", self.wants(*lease)),
            Effect::Started => "STARTED".into(),
            Effect::Stopped => "STOPPED".into(),
            Effect::NewLeader(identity) => format!("new({identity})"),
            Effect::Failed(error) => format!("failed({error})"),
            Effect::WakeAt(at) => format!("wake={}", (at - self.began).as_millis()),
            Effect::Over(end) => format!("over({end:?})"),
        }
    }

    /// Holder, duration, transitions, acquired and renewed in ms of the elector's clock, and the version it
    /// is made from.
    fn wants(&mut self, lease: Lease) -> String {
        assert_eq!(
            (lease.metadata.namespace.as_deref(), lease.metadata.name.as_deref()),
            (Some("ns"), Some("it"))
        );
        let spec = lease.spec.clone().expect("a spec");
        let ms = |time: Option<MicroTime>| time.map_or(-1, |time| time.0.as_millisecond() - 7_000_000);
        let said = format!(
            "{} {} t{} a{} r{} @{}",
            spec.holder_identity.as_deref().unwrap_or("-"),
            spec.lease_duration_seconds.unwrap_or(-1),
            spec.lease_transitions.unwrap_or(-1),
            ms(spec.acquire_time),
            ms(spec.renew_time),
            lease.metadata.resource_version.as_deref().unwrap_or("-")
        );
        self.asked = Some(lease);
        said
    }
}

fn lease(words: &[&str]) -> Lease {
    let number = |at: usize| words[at].parse::<i64>().ok();
    let mut lease = Lease::default();
    lease.metadata.namespace = Some("ns".into());
    lease.metadata.name = Some("it".into());
    lease.metadata.resource_version = Some(words[4].into());
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(words[0].to_owned()).filter(|holder| holder != "-"),
        lease_duration_seconds: number(1).map(|seconds| seconds as i32),
        lease_transitions: number(2).map(|count| count as i32),
        renew_time: number(3)
            .map(|ms| MicroTime(Timestamp::from_millisecond(ms + 7_000_000).expect("a time"))),
        ..LeaseSpec::default()
    });
    lease
}

fn check_with(change: impl FnOnce(&mut Config), rows: &[(&str, &str)]) {
    let mut world = World::new(change);
    for (at, (input, wanted)) in rows.iter().enumerate() {
        assert_eq!(world.step(input), *wanted, "row {at}: {input}");
    }
}

fn check(rows: &[(&str, &str)]) {
    check_with(|_| {}, rows);
}

/// Rows after which it leads since 0, renewed until 10,000, with the lease @101.
const LEADS: [(&str, &str); 3] = [
    ("tick", "get wake=5000"),
    ("none", "create(me 15 t0 a0 r0 @-) wake=5000"),
    ("written", "new(me) STARTED wake=2000"),
];

fn check_leader(rows: &[(&str, &str)]) {
    check(&[&LEADS, rows].concat());
}

#[test]
fn a_lease_that_is_not_there_is_made_and_renewed() {
    check_leader(&[
        ("1000: tick", "wake=2000"),
        ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
        ("2100: written", "wake=4100"),
        ("4100: tick", "update(me 15 t0 a0 r4100 @102) wake=9100"),
    ]);
}

#[test]
fn a_lease_that_another_one_makes_first_is_looked_at_after_the_period() {
    check(&[
        ("tick", "get wake=5000"),
        ("none", "create(me 15 t0 a0 r0 @-) wake=5000"),
        ("conflict", "failed(somebody else wrote the lease first) wake=2000"),
        ("2000: tick", "get wake=7000"),
        ("got b 15 0 0 5", "new(b) wake=4000"),
    ]);
}

#[test]
fn another_ones_lease_is_left_alone_until_it_was_not_seen_to_change_for_its_duration() {
    // Its times are those of a clock that is an hour ahead, and mean nothing here.
    check(&[
        ("tick", "get wake=5000"),
        ("100: got b 15 3 3600000 5", "new(b) wake=2100"),
        ("8000: tick", "get wake=13000"),
        ("8100: got b 15 3 3608000 6", "wake=10100"),
        // Somebody wrote a label: that is no renewal.
        ("20000: tick", "get wake=25000"),
        ("20000: got b 15 3 3608000 7", "wake=22000"),
        ("23099: tick", "get wake=28099"),
        ("23099: got b 15 3 3608000 7", "wake=25099"),
        ("25100: tick", "get wake=30100"),
        ("25100: got b 15 3 3608000 8", "update(me 15 t4 a25100 r25100 @8) wake=30100"),
        ("25200: written", "new(me) STARTED wake=27200"),
    ]);
}

#[test]
fn a_duration_is_that_of_who_wrote_it_and_ours_where_there_is_none() {
    for (duration, held, free) in [
        ("60", "59999", "60000"),
        ("1", "999", "1000"),
        ("-", "14999", "15000"),
        ("0", "14999", "15000"),
        ("-5", "14999", "15000"),
    ] {
        for (at, is_free) in [(held, false), (free, true)] {
            let mut world = World::new(|config| config.retry_period = Duration::from_millis(100));
            world.step("tick");
            let got = format!("got b {duration} 3 0 5");
            assert!(world.step(&got).starts_with("new(b) wake"), "{duration}");
            world.step(&format!("{at}: tick"));
            assert_eq!(world.step(&got).starts_with("update(me"), is_free, "{duration} at {at}");
        }
    }
}

#[test]
fn a_lease_that_nobody_holds_is_taken_at_once_whatever_it_lacks() {
    check(&[
        ("tick", "get wake=5000"),
        ("got - - - - 5", "update(me 15 t1 a0 r0 @5) wake=5000"),
        ("written", "new(me) STARTED wake=2000"),
    ]);
    let mut world = World::new(|_| {});
    world.step("tick");
    let mut bare = lease(&["-", "-", "-", "-", "5"]);
    bare.spec = None;
    let now = Now { at: world.began, unix_ms: 7_000_000 };
    let effects = world.machine.step(Input::Answer(Ok(Box::new(bare))), now);
    let said: Vec<_> = effects.into_iter().map(|effect| world.said(effect)).collect();
    assert_eq!(said, ["update(me 15 t1 a0 r0 @5)", "wake=5000"]);
}

#[test]
fn what_is_not_about_leadership_is_kept() {
    let mut world = World::new(|_| {});
    world.step("tick");
    let mut old = lease(&["b", "15", "2147483647", "0", "5"]);
    old.metadata.labels = Some([("team".to_owned(), "blue".to_owned())].into());
    old.spec.as_mut().expect("a spec").strategy = Some("OldestEmulationVersion".into());
    let now = |ms| Now { at: world.began + Duration::from_millis(ms), unix_ms: ms };
    world.machine.step(Input::Answer(Ok(Box::new(old.clone()))), now(0));
    world.machine.step(Input::Tick, now(20_000));
    let effects = world.machine.step(Input::Answer(Ok(Box::new(old.clone()))), now(20_000));
    let Effect::Update(mut new) = effects.into_iter().next().expect("an effect") else { panic!("no update") };
    let spec = new.spec.as_mut().expect("a spec");
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("me"), Some(i32::MAX)));
    let before = old.spec.clone().expect("a spec");
    (spec.holder_identity, spec.acquire_time) = (before.holder_identity, before.acquire_time);
    spec.renew_time = before.renew_time;
    assert_eq!(*new, old);
}

#[test]
fn an_elector_that_comes_back_goes_on_with_its_own_lease() {
    check(&[
        ("tick", "get wake=5000"),
        ("got me 15 3 -500 5", "new(me) update(me 15 t3 a0 r0 @5) wake=5000"),
        ("written", "STARTED wake=2000"),
    ]);
}

#[test]
fn a_renewal_is_seen_also_where_the_clock_stands_still_or_back() {
    check(&[
        ("tick", "get wake=5000"),
        ("got me 15 3 5000 5", "new(me) update(me 15 t3 a0 r5000 @5) wake=5000"),
    ]);
    let config = Config::new("ns", "it", "me");
    let first = record::new(&config, 1_000);
    let second = record::held(&first, &config, 1_000);
    let third = record::held(&second, &config, 0);
    assert!(first.spec != second.spec && second.spec != third.spec);
}

#[test]
fn a_renewal_that_fails_is_tried_again_with_a_look_at_the_lease() {
    check_leader(&[
        ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
        ("conflict", "failed(somebody else wrote the lease first) get wake=7000"),
        // It wrote that itself: the renewal came through although the answer did not.
        ("got me 15 0 2000 102", "update(me 15 t0 a2000 r2000 @102) wake=7000"),
        ("3000: forbidden", "failed(not allowed: no) wake=5000"),
        ("5000: tick", "get wake=10000"),
        ("5000: got me 15 0 2000 102", "update(me 15 t0 a5000 r5000 @102) wake=10000"),
        ("9000: written", "wake=11000"),
        // Counted from when it was asked for.
        ("11000: tick", "update(me 15 t0 a5000 r11000 @102) wake=15000"),
        ("14999: tick", "wake=15000"),
        ("15000: tick", "STOPPED wake=15000"),
    ]);
}

#[test]
fn leadership_ends_at_the_deadline_of_what_was_asked_for_and_not_answered() {
    check_leader(&[
        ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
        ("7000: tick", "failed(not answered in time) get wake=10000"),
        ("9999: tick", "wake=10000"),
        ("10000: tick", "STOPPED wake=10000"),
        // Given back once what it did has ended; it may have been renewed, so it looks first.
        ("10500: tick", "get wake=15500"),
        ("11000: got me 15 0 2000 102", "update(- 1 t0 a11000 r11000 @102) wake=16000"),
        ("11100: written", "over(Lost)"),
        ("20000: tick", ""),
        ("cancel", ""),
    ]);
}

#[test]
fn a_server_that_is_away_ends_leadership_and_the_attempts_to_give_it_back() {
    check_leader(&[
        ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
        ("3000: forbidden", "failed(not allowed: no) get wake=8000"),
        ("3000: forbidden", "failed(not allowed: no) wake=5000"),
        ("5000: tick", "get wake=10000"),
        ("10000: tick", "STOPPED wake=10000"),
        ("10000: tick", "get wake=15000"),
        ("15000: tick", "failed(not answered in time) over(Lost)"),
    ]);
}

#[test]
fn a_leader_that_slept_stops_with_whatever_it_hears_first() {
    check_leader(&[("30000: tick", "STOPPED wake=30000")]);
    check_leader(&[
        ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
        ("30000: written", "STOPPED wake=30000"),
    ]);
    // Granted, but too long ago to be used.
    check(&[
        ("tick", "get wake=5000"),
        ("none", "create(me 15 t0 a0 r0 @-) wake=5000"),
        ("10000: written", "new(me) wake=12000"),
        ("12000: tick", "get wake=17000"),
        ("got me 15 0 0 101", "update(me 15 t0 a12000 r12000 @101) wake=17000"),
        ("written", "STARTED wake=14000"),
    ]);
}

#[test]
fn a_leader_that_sees_a_lease_it_does_not_hold_stops_at_once() {
    for (holder, new) in [("b", "new(b) "), ("-", "")] {
        let got = format!("2100: got {holder} 15 1 0 102");
        check_leader(&[
            ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
            ("conflict", "failed(somebody else wrote the lease first) get wake=7000"),
            (&got, &format!("{new}STOPPED wake=2100")),
            // There is nothing to give back.
            ("2100: tick", "over(Lost)"),
        ]);
    }
}

#[test]
fn a_lease_that_was_deleted_is_made_again_unless_another_one_did() {
    check_leader(&[
        ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
        ("none", "failed(there is no such lease) get wake=7000"),
        ("none", "create(me 15 t0 a2000 r2000 @-) wake=7000"),
        ("written", "wake=4000"),
    ]);
    check_leader(&[
        ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
        ("none", "failed(there is no such lease) get wake=7000"),
        ("none", "create(me 15 t0 a2000 r2000 @-) wake=7000"),
        ("conflict", "failed(somebody else wrote the lease first) wake=4000"),
        ("4000: tick", "get wake=9000"),
        ("got b 15 0 0 7", "new(b) STOPPED wake=4000"),
    ]);
}

#[test]
fn a_leader_that_is_cancelled_stops_and_then_gives_the_lease_back() {
    check_leader(&[
        ("1000: cancel", "STOPPED wake=1000"),
        ("1500: tick", "update(- 1 t0 a1500 r1500 @101) wake=6500"),
        ("cancel", "wake=6500"),
        ("written", "over(Cancelled)"),
    ]);
    check_with(
        |config| config.on_end = OnEnd::RunOut,
        &[&LEADS[..], &[("cancel", "STOPPED over(Cancelled)")]].concat(),
    );
}

#[test]
fn a_leader_that_is_cancelled_in_the_middle_of_a_renewal_looks_before_it_gives_the_lease_back() {
    check_leader(&[
        ("2000: tick", "update(me 15 t0 a0 r2000 @101) wake=7000"),
        ("cancel", "STOPPED wake=2000"),
        ("tick", "get wake=7000"),
        ("got me 15 0 2000 102", "update(- 1 t0 a2000 r2000 @102) wake=7000"),
        ("written", "over(Cancelled)"),
    ]);
}

#[test]
fn a_release_that_fails_looks_again_and_ends_after_a_few() {
    check_leader(&[
        ("1000: cancel", "STOPPED wake=1000"),
        ("tick", "update(- 1 t0 a1000 r1000 @101) wake=6000"),
        ("conflict", "failed(somebody else wrote the lease first) get wake=6000"),
        ("got me 15 0 900 102", "update(- 1 t0 a1000 r1000 @102) wake=6000"),
        ("conflict", "failed(somebody else wrote the lease first) get wake=6000"),
        ("got me 15 0 950 103", "update(- 1 t0 a1000 r1000 @103) wake=6000"),
        ("conflict", "failed(somebody else wrote the lease first) over(Cancelled)"),
    ]);
    check_leader(&[
        ("1000: cancel", "STOPPED wake=1000"),
        ("tick", "update(- 1 t0 a1000 r1000 @101) wake=6000"),
        ("conflict", "failed(somebody else wrote the lease first) get wake=6000"),
        ("got b 15 1 0 102", "new(b) over(Cancelled)"),
    ]);
}

#[test]
fn a_candidate_that_is_cancelled_gives_back_only_what_it_may_be_given() {
    check(&[("tick", "get wake=5000"), ("cancel", "over(Cancelled)")]);
    check(&[
        ("tick", "get wake=5000"),
        ("none", "create(me 15 t0 a0 r0 @-) wake=5000"),
        ("cancel", "wake=0"),
        ("tick", "get wake=5000"),
        ("got me 15 0 0 7", "new(me) update(- 1 t0 a0 r0 @7) wake=5000"),
        ("written", "over(Cancelled)"),
    ]);
}

#[test]
fn each_new_leader_is_told_once() {
    check(&[
        ("tick", "get wake=5000"),
        ("got b 15 3 0 5", "new(b) wake=2000"),
        ("2000: tick", "get wake=7000"),
        ("got b 15 3 2000 6", "wake=4000"),
        ("4000: tick", "get wake=9000"),
        ("got c 15 4 4000 7", "new(c) wake=6000"),
        ("6000: tick", "get wake=11000"),
        ("got - 1 4 6000 8", "update(me 15 t5 a6000 r6000 @8) wake=11000"),
        ("conflict", "failed(somebody else wrote the lease first) wake=8000"),
        ("8000: tick", "get wake=13000"),
        ("got c 15 5 7000 9", "new(c) wake=10000"),
    ]);
}

#[test]
fn a_candidate_waits_longer_by_chance_and_a_leader_does_not() {
    let waits = |rows: &[&str]| {
        let mut world = World::new(|config| config.jitter = 1.2);
        let mut last = String::new();
        rows.iter().for_each(|row| last = world.step(row));
        last.rsplit_once("wake=").expect("it wakes").1.parse::<u64>().expect("milliseconds")
    };
    assert_eq!(waits(&["tick", "none", "written"]), 2_000);
    let mut world = World::new(|config| config.jitter = 1.2);
    let mut seen = std::collections::BTreeSet::new();
    for round in 0..200_u64 {
        let at = round * 10_000;
        world.step(&format!("{at}: tick"));
        let said = world.step(&format!("{at}: got b 15 3 {at} {round}"));
        let wake: u64 = said.rsplit_once("wake=").expect("it wakes").1.parse().expect("milliseconds");
        seen.insert(wake - at);
    }
    assert!(seen.len() > 100, "{seen:?}");
    assert!(seen.iter().all(|wait| (2_000..=4_400).contains(wait)), "{seen:?}");
    assert!(seen.first() < Some(&2_200) && seen.last() > Some(&4_200), "{seen:?}");
}
