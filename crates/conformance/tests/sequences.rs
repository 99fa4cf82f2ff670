//! Sequences of writes by several managers, to ours and to kube-apiserver: the same answers, and the same
//! managedFields after each.
//!
//! In: `FOREBAY_SEQUENCES` sequences from seed `FOREBAY_SEQUENCES_FROM` on, and `FOREBAY_SEQUENCES_PAUSED`
//! more that pause between steps; `cargo xtask sequences` sets them. `FOREBAY_SEQUENCES_KIND` is a plural
//! that alone is written; with `FOREBAY_SEQUENCES_SAME` kube-apiserver is compared with itself, which shows
//! what the comparison takes for a difference, and with `FOREBAY_SEQUENCES_ALL` what is known is shown, too.
//! `FOREBAY_SEQUENCES_REDEFINED` are sent of each kind whose schema becomes another one meanwhile.
//! `FOREBAY_SEQUENCES_AT_ONCE` are in flight. A long run writes what became of each to the file
//! `FOREBAY_SEQUENCES_STATE`, begins nothing after `FOREBAY_SEQUENCES_SECONDS`, and goes on from that file.
//! Out: what differs, by category, the shortest of each shrunk; held against `allowed/sequences.txt`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use forebay_clients::needs;
use forebay_clients::server::Implementation;
use forebay_conformance::sequences::{
    Became, Compared, Mismatch, Running, SentSequences, Sequence, WrittenKind, draw, draw_of, kinds, prepare,
    redefine, redefined_kinds, run, shrunk,
};
use forebay_conformance::{Allowed, Pair};
use forebay_rt::{Clock, Instant};
use futures_util::{StreamExt, TryStreamExt};

/// Sequences of a run that nobody asked more of.
const COUNT: u64 = 200;
const PAUSED: u64 = 12;
const REDEFINED: u64 = 8;
/// Sequences in flight: most of one's time is spent waiting for one server while the other is idle.
const AT_ONCE: u64 = 16;
/// The same of those that wait most of the time.
const PAUSED_AT_ONCE: usize = 200;
/// Categories of which one is shrunk.
const SHRUNK_MAX: usize = 60;
/// A line says how far it is after so many.
const PROGRESS: usize = 500;

struct Different {
    sequence: Sequence,
    mismatch: Mismatch,
}

fn asked(name: &str, default: u64) -> u64 {
    let text = std::env::var(format!("FOREBAY_SEQUENCES{name}")).unwrap_or_default();
    if text.is_empty() { default } else { text.parse().unwrap_or_else(|e| panic!("{name}: {text}: {e}")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_writes_leave_the_same_owners_of_fields() {
    if !needs::peers_or_skip() {
        return;
    }
    let (count, from, paused) = (asked("", COUNT), asked("_FROM", 1), asked("_PAUSED", PAUSED));
    let is_same = asked("_SAME", 0) == 1;
    let ours = if is_same { Implementation::KubeApiserver } else { Implementation::Forebay };
    let mut kinds = kinds().expect("the kinds");
    let wanted = std::env::var("FOREBAY_SEQUENCES_KIND").unwrap_or_default();
    kinds.retain(|kind| wanted.is_empty() || kind.plural == wanted);
    let shows_all = is_same || asked("_ALL", 0) == 1;
    let known = if shows_all { "" } else { include_str!("../allowed/sequences.txt") };
    let mut ledger = Ledger::open(Allowed::parse(known).expect("the allowed differences"));
    let pair = Arc::new(Pair::start_with(ours).await.expect("both servers"));
    prepare(&pair, &kinds).await.unwrap_or_else(|why| panic!("{why}"));

    let kinds = Arc::new(kinds);
    let at_once = asked("_AT_ONCE", AT_ONCE) as usize;
    differences(&pair, &kinds, false, from..from + count, at_once, &mut ledger).await;
    differences(&pair, &kinds, true, from..from + paused, PAUSED_AT_ONCE, &mut ledger).await;

    let redefined = redefined(&pair, from..from + asked("_REDEFINED", REDEFINED), &wanted, &mut ledger).await;
    let redefined = redefined.unwrap_or_else(|why| panic!("{why}"));

    let counts = ledger.sent.counts(false, from..from + count);
    let counts = counts.and(ledger.sent.counts(true, from..from + paused));
    println!(
        "figure: {} of {} sequences are equal, {} differ as is known, {} differ, {} were not sent",
        counts.equal,
        count + paused,
        counts.known,
        counts.different,
        count + paused - counts.sent()
    );
    println!("figure: {} of {} sequences of kinds that change are equal", redefined.equal, redefined.all);
    println!("figure: steps by kube-apiserver's answer: {:?}", ledger.codes);
    let report = report(&pair, &kinds, &ledger.found).await + &redefined.report;
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, &report).expect("the report");
    }
    // Others than the sample need not find all that is known.
    let is_sample =
        wanted.is_empty() && (count, from, paused) == (COUNT, 1, PAUSED) && ledger.state.is_none();
    let stale = if is_sample { ledger.allowed.stale() } else { Vec::new() };
    let is_equal = ledger.found.is_empty() && redefined.report.is_empty();
    assert!(is_equal, "{} sequences differ:\n{report}", counts.different);
    assert!(stale.is_empty(), "no longer different: {stale:#?}");
}

/// What became of sequences, and where a long run writes it.
struct Ledger {
    sent: SentSequences,
    state: Option<std::fs::File>,
    allowed: Allowed,
    /// When nothing more is begun.
    over: Option<Instant>,
    // what kube-apiserver answered -> steps
    codes: BTreeMap<u16, usize>,
    // category, with its kind -> the sequences; none that is allowed
    found: BTreeMap<String, Vec<Different>>,
}

impl Ledger {
    fn open(allowed: Allowed) -> Ledger {
        let mut ledger = Ledger {
            sent: SentSequences::default(),
            state: None,
            allowed,
            over: match asked("_SECONDS", 0) {
                0 => None,
                seconds => Some(Clock::system().now() + Duration::from_secs(seconds)),
            },
            codes: BTreeMap::new(),
            found: BTreeMap::new(),
        };
        if let Some(path) = std::env::var_os("FOREBAY_SEQUENCES_STATE") {
            ledger.sent = SentSequences::of_text(&std::fs::read_to_string(&path).unwrap_or_default());
            let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
            let mut file = file.expect("the file of what was sent");
            // A line may have been cut off.
            file.write_all(b"\n").expect("the file of what was sent");
            ledger.state = Some(file);
        }
        ledger
    }

    fn note(&mut self, plural: &str, sequence: Sequence, mismatch: Option<Mismatch>) {
        let category = mismatch.as_ref().map(|mismatch| format!("{plural}: {}", mismatch.category));
        let became = match &category {
            None => Became::Equal,
            Some(category) if self.allowed.permits(category) => Became::Known,
            Some(_) => Became::Different,
        };
        let category = category.unwrap_or_default();
        let line = self.sent.note(sequence.pauses, sequence.seed, became, &category);
        if let Some(file) = &mut self.state {
            file.write_all(line.as_bytes()).expect("the file of what was sent");
        }
        if let (Became::Different, Some(mismatch)) = (became, mismatch) {
            self.found.entry(category).or_default().push(Different { sequence, mismatch });
        }
    }
}

/// Sends those of `seeds` that are not settled, so many at once.
async fn differences(
    pair: &Arc<Pair>,
    kinds: &Arc<Vec<WrittenKind>>,
    pauses: bool,
    seeds: std::ops::Range<u64>,
    at_once: usize,
    ledger: &mut Ledger,
) {
    let left: Vec<u64> = seeds.clone().filter(|seed| !ledger.sent.is_settled(pauses, *seed)).collect();
    let over = ledger.over;
    let in_time = move |_: &u64| over.is_none_or(|over| Clock::system().now() < over);
    // Each is a task of its own: answers are compared on as many threads as there are.
    let runs = left.into_iter().take_while(in_time).map(|seed| {
        let (pair, kinds) = (pair.clone(), kinds.clone());
        tokio::spawn(async move {
            let sequence = draw(&kinds, seed, pauses);
            let kind = &kinds[sequence.kind];
            let name = format!("s{seed}{}", if pauses { "p" } else { "" });
            let outcome = run(&pair, kind, &sequence, &name).await;
            (outcome.unwrap_or_else(|why| panic!("{name}: {why}\n{}", sequence.shown(kind))), sequence)
        })
    });
    let mut answers = futures_util::stream::iter(runs).buffer_unordered(at_once).enumerate();
    while let Some((at, done)) = answers.next().await {
        let (outcome, sequence) = done.unwrap_or_else(|why| panic!("{why}"));
        outcome.codes.iter().for_each(|code| *ledger.codes.entry(*code).or_default() += 1);
        ledger.note(&kinds[sequence.kind].plural, sequence, outcome.mismatch);
        if (at + 1).is_multiple_of(PROGRESS) {
            let counts = ledger.sent.counts(pauses, seeds.clone());
            eprintln!(
                "{} of {}: {} equal, {} as is known, {} differ",
                counts.sent(),
                seeds.end - seeds.start,
                counts.equal,
                counts.known,
                counts.different
            );
        }
    }
}

/// What became of sequences of kinds that change.
#[derive(Default)]
struct Redefined {
    equal: usize,
    all: usize,
    /// Those that differ and may not.
    report: String,
}

/// Sends the sequences of `seeds` of each kind that changes: half of each before, half of it after.
async fn redefined(
    pair: &Pair,
    seeds: std::ops::Range<u64>,
    wanted: &str,
    ledger: &mut Ledger,
) -> Result<Redefined, String> {
    let mut kinds = redefined_kinds()?;
    kinds.retain(|kind| wanted.is_empty() || kind.plural == wanted);
    if seeds.is_empty() || kinds.is_empty() {
        return Ok(Redefined::default());
    }
    prepare(pair, &kinds).await?;
    let numbers = (0..kinds.len()).flat_map(|kind| seeds.clone().map(move |seed| (kind, seed)));
    let sequences: Vec<(Sequence, String)> =
        numbers.map(|(kind, seed)| (draw_of(&kinds, kind, seed), format!("s{seed}"))).collect();
    let begun =
        sequences.iter().map(|(sequence, name)| Running::begin(pair, &kinds[sequence.kind], sequence, name));
    let mut running: Vec<Running<'_>> = begun.collect();
    let halves = running.iter_mut().zip(&sequences);
    at_once(halves.map(|(running, (sequence, _))| running.advance(sequence.len() / 2))).await?;
    redefine(pair, &kinds).await?;
    at_once(running.iter_mut().map(|running| running.advance(usize::MAX))).await?;
    let mut done = Redefined { all: sequences.len(), ..Redefined::default() };
    for (running, (sequence, _)) in running.into_iter().zip(&sequences) {
        let Compared { mismatch, codes } = running.end().await?;
        codes.iter().for_each(|code| *ledger.codes.entry(*code).or_default() += 1);
        let kind = &kinds[sequence.kind];
        match mismatch {
            None => done.equal += 1,
            Some(found) if ledger.allowed.permits(&format!("{}: {}", kind.plural, found.category)) => {}
            Some(found) => {
                let _ = write!(done.report, "\n{}, which changes half-way: ", kind.plural);
                describe(&mut done.report, kind, sequence, &found);
            }
        }
    }
    Ok(done)
}

async fn at_once(all: impl Iterator<Item = impl Future<Output = Result<(), String>>>) -> Result<(), String> {
    futures_util::stream::iter(all).buffer_unordered(AT_ONCE as usize).try_collect().await
}

async fn report(pair: &Pair, kinds: &[WrittenKind], categories: &BTreeMap<String, Vec<Different>>) -> String {
    let mut text = String::new();
    // category -> the kinds
    let mut summary: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for (category, all) in categories {
        let (plural, category) = category.split_once(": ").unwrap_or(("", category));
        let (count, plurals) = summary.entry(category).or_default();
        *count += all.len();
        plurals.push(plural);
    }
    let mut summary: Vec<_> = summary.into_iter().collect();
    summary.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (category, (count, plurals)) in &summary {
        let _ = writeln!(text, "{count:5} {category}: {}", plurals.join(" "));
    }
    for (at, (category, (_, plurals))) in summary.iter().take(SHRUNK_MAX).enumerate() {
        let all =
            plurals.iter().filter_map(|plural| categories.get(&format!("{plural}: {category}"))).flatten();
        let shown = |different: &Different| different.sequence.shown(&kinds[different.sequence.kind]);
        // The shortest needs least shrinking. One that pauses would take minutes.
        let shortest = all.min_by_key(|different| (different.sequence.pauses, shown(different).len()));
        let Some(Different { sequence, mismatch }) = shortest else { continue };
        let kind = &kinds[sequence.kind];
        let (mut sequence, mut mismatch) = (sequence.clone(), mismatch.clone());
        if !sequence.pauses {
            match shrunk(pair, kind, &sequence, mismatch.clone(), &format!("shrunk-{at}")).await {
                Ok(less) => (sequence, mismatch) = less,
                Err(why) => {
                    let _ = writeln!(text, "\n{category}: cannot be shrunk: {why}");
                }
            }
        }
        let _ = write!(text, "\n{}: ", kind.plural);
        describe(&mut text, kind, &sequence, &mismatch);
    }
    text
}

fn describe(text: &mut String, kind: &WrittenKind, sequence: &Sequence, mismatch: &Mismatch) {
    let _ = writeln!(
        text,
        "{}\n  seed {}{}\n{}  {}\n  ours   {}\n  theirs {}",
        mismatch.category,
        sequence.seed,
        if sequence.pauses { ", pauses" } else { "" },
        sequence.shown(kind),
        mismatch.request,
        mismatch.ours,
        mismatch.theirs
    );
}
