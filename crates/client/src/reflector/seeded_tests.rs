//! Anything in any order, from seeds: what must never happen does not.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_rt::{Duration, Random};

use super::tests::rev;
use super::{Effect, Fault, Input, Reflector, Refusal};
use crate::Ask;
use crate::limits::BACKOFF_MIN;

const SEEDS: u64 = 300;
const STEPS: u64 = 1_000;

/// An owner that holds a reflector to its promises.
struct Owner {
    reflector: Reflector,
    now: Duration,
    under_way: Option<Ask>,
    wake_at: Option<Duration>,
    may_go_back: bool,
    asked: u64,
    /// Requests since the time last moved.
    asked_now: u64,
}

impl Owner {
    fn new(seed: u64, from: Option<Revision>) -> Owner {
        let mut owner = Owner {
            reflector: Reflector::new(Arc::new(Random::seeded(seed))),
            now: Duration::ZERO,
            under_way: None,
            wake_at: None,
            may_go_back: false,
            asked: 0,
            asked_now: 0,
        };
        owner.tell(Input::Start { from });
        owner
    }

    fn tell(&mut self, input: Input) {
        let before = self.reflector.revision();
        let is_watch = self.under_way.as_ref().is_some_and(Ask::is_watch);
        match &input {
            Input::Refused(_) | Input::Failed(_) | Input::Ended => self.under_way = None,
            Input::Page { .. } if !is_watch => self.under_way = None,
            Input::Timer => self.wake_at = None,
            _ => {}
        }
        let mut went_back = false;
        for effect in self.reflector.step(input, self.now) {
            match effect {
                Effect::Ask(ask) => {
                    assert!(self.under_way.is_none(), "two requests");
                    self.under_way = Some(ask);
                    self.asked += 1;
                    self.asked_now += 1;
                }
                Effect::HangUp => assert!(self.under_way.take().is_some(), "nothing to hang up"),
                Effect::WakeAt(at) => self.wake_at = Some(at),
                Effect::BeginState { may_go_back, .. } => self.may_go_back = may_go_back,
                Effect::EndState { revision } => {
                    assert_eq!(self.reflector.revision(), Some(revision));
                    went_back = before.is_some_and(|before| revision < before);
                    assert!(!went_back || self.may_go_back);
                }
                Effect::LetGo => went_back = true,
                _ => {}
            }
        }
        assert!(self.reflector.revision() >= before || went_back);
        assert!(self.wake_at.is_some(), "nobody would ever wake it");
        assert!(self.under_way.is_some() || self.wake_at > Some(self.now), "it waits for the past");
        assert_eq!(self.reflector.is_synced(), self.reflector.revision().is_some());
    }

    /// Time goes on, to the next wake-up or not as far.
    fn pass(&mut self, random: &Random) {
        let step = Duration::from_millis(random.below(30_000));
        self.now += step;
        self.asked_now = 0;
        if let Some(at) = self.wake_at.filter(|at| *at <= self.now || random.below(4) == 0) {
            self.now = self.now.max(at);
            self.tell(Input::Timer);
        }
    }
}

fn any_revision(random: &Random, around: Option<Revision>) -> Revision {
    let around = around.map_or(100, Revision::get);
    rev((around + random.below(9)).saturating_sub(if random.below(6) == 0 { 8 } else { 0 }).max(1))
}

fn any_refusal(random: &Random) -> Refusal {
    let codes = [400, 401, 403, 404, 408, 409, 410, 418, 422, 429, 500, 501, 502, 503, 504, 0, u16::MAX];
    let messages = ["", "etcdserver: no leader", "PrevKv=nil", "too old resource version: 1 (2)", "odd"];
    Refusal {
        code: codes[random.below(codes.len() as u64) as usize],
        reason: ["", "Expired", "InternalError"][random.below(3) as usize].into(),
        message: messages[random.below(messages.len() as u64) as usize].into(),
        too_large: random.below(6) == 0,
        retry_after: (random.below(3) == 0).then(|| Duration::from_secs(random.below(5))),
    }
}

fn any_failure(random: &Random) -> Input {
    match random.below(7) {
        0 => Input::Refused(any_refusal(random)),
        1 => Input::Failed(Fault::ALL[random.below(Fault::ALL.len() as u64) as usize]),
        2 => Input::StreamError(any_refusal(random)),
        3 => Input::Garbled,
        4 => Input::NotAWatch,
        5 => Input::Ended,
        _ => Input::Opened,
    }
}

fn anything(random: &Random, around: Option<Revision>) -> Input {
    let revision = any_revision(random, around);
    match random.below(12) {
        0..=3 => any_failure(random),
        4 if random.below(4) == 0 => Input::HalfFrame,
        4 => Input::Opened,
        5 if random.below(4) == 0 => Input::PastState,
        5 => Input::Event { revision },
        6 | 7 => Input::Bookmark { revision, ends_state: random.below(2) == 0 },
        8 => Input::PageBegan { revision },
        9 => Input::Item,
        10 => Input::Page { revision, next: (random.below(2) == 0).then(|| format!("{}", random.below(3))) },
        _ if random.below(9) == 0 => Input::MadeAnew,
        _ if random.below(9) == 0 => Input::ServerAnswers,
        _ if random.below(40) == 0 => Input::OverLimit,
        _ => Input::Timer,
    }
}

#[test]
fn whatever_comes_there_is_one_request_and_a_revision_that_goes_on() {
    for seed in 0..SEEDS {
        let random = Random::seeded(seed);
        let from = (seed % 2 == 0).then(|| rev(100));
        let mut owner = Owner::new(seed, from);
        for _ in 0..STEPS {
            let input = anything(&random, owner.reflector.revision());
            owner.tell(input);
            if random.below(3) == 0 {
                owner.pass(&random);
            }
        }
    }
}

#[test]
fn whatever_fails_is_not_asked_for_in_a_loop() {
    for seed in 0..SEEDS {
        let random = Random::seeded(seed);
        let mut owner = Owner::new(seed, (seed % 2 == 0).then(|| rev(100)));
        for _ in 0..STEPS {
            owner.tell(any_failure(&random));
            // One that was waited for, and the two that cost nothing: to go on, and to list.
            assert!(owner.asked_now <= 3, "seed {seed}");
            if owner.under_way.is_none() {
                owner.now = owner.now.max(owner.wake_at.expect("it waits"));
                owner.asked_now = 0;
                owner.tell(Input::Timer);
            }
        }
        let most = 3 + owner.now.as_millis() / BACKOFF_MIN.as_millis();
        assert!(u128::from(owner.asked) <= most, "seed {seed}: {} in {:?}", owner.asked, owner.now);
    }
}

#[test]
fn whatever_was_the_matter_a_server_that_is_well_brings_a_state() {
    for seed in 0..SEEDS {
        let random = Random::seeded(seed);
        let mut owner = Owner::new(seed, (seed % 2 == 0).then(|| rev(100)));
        for _ in 0..100 {
            let input = anything(&random, owner.reflector.revision());
            owner.tell(input);
            if random.below(3) == 0 {
                owner.pass(&random);
            }
        }
        let newest = rev(owner.reflector.revision().map_or(100, Revision::get) + 1_000);
        for _ in 0..20 {
            let Some(ask) = owner.under_way.clone() else {
                owner.now = owner.now.max(owner.wake_at.expect("it waits"));
                owner.tell(Input::Timer);
                continue;
            };
            owner.tell(Input::Opened);
            match ask {
                Ask::List { .. } => owner.tell(Input::Page { revision: newest, next: None }),
                Ask::WatchList { .. } => owner.tell(Input::Bookmark { revision: newest, ends_state: true }),
                Ask::Watch { .. } => owner.tell(Input::Event { revision: newest }),
            }
        }
        assert_eq!(owner.reflector.revision(), Some(newest), "seed {seed}");
        assert_eq!(owner.reflector.health().failing, None, "seed {seed}");
    }
}
