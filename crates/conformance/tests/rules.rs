//! The rules of operators' definitions, to ours and to kube-apiserver: the same definitions are accepted, and
//! the same objects, or refused for the same causes.
//!
//! In: `FOREBAY_RULES=all` for all definitions, or a text that their names hold; else a sample that is drawn.
//! `cargo xtask rules` sets it. Out: what differs, held against `allowed/rules.txt`, and how many rules an
//! object was found for that passes and one that fails.

use std::collections::BTreeMap;

use forebay_clients::needs;
use forebay_conformance::rules::ask::Served;
use forebay_conformance::rules::operators::{Operator, operators};
use forebay_conformance::rules::search::{Expected, Searched};
use forebay_conformance::rules::site::sites;
use forebay_conformance::{Pair, allowed};
use forebay_rt::Random;
use futures_util::StreamExt;
use serde_json::Value;

/// Definitions of an operator in the sample, and rules of a definition there.
const DEFINITIONS: usize = 1;
const RULES: usize = 4;
/// Bytes of a definition there: kube-apiserver takes seconds to publish what is longer.
const BYTES_MAX: usize = 200_000;
/// Definitions in flight.
const AT_ONCE: usize = 3;
const SEED: u64 = 30;

/// What came of a definition.
#[derive(Default)]
struct Outcome {
    lines: Vec<String>,
    rules: usize,
    passed: usize,
    failed: usize,
    both: usize,
    writes: usize,
    /// Rules for which an object was not found.
    wanting: Vec<String>,
}

/// A definition, and how many of its rules are asked.
struct Chosen<'a> {
    operator: &'static str,
    definition: &'a Value,
    rules_max: usize,
}

fn name(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or("")
}

fn chosen<'a>(operators: &'a [Operator], asked: &str) -> Vec<Chosen<'a>> {
    let random = Random::seeded(SEED);
    let mut all = Vec::new();
    for operator in operators {
        let is_wanted = |definition: &&Value| match asked {
            "" | "all" => true,
            text => operator.name == text || name(definition).contains(text),
        };
        let mut definitions: Vec<&Value> = operator.definitions.iter().filter(is_wanted).collect();
        let mut rules_max = usize::MAX;
        if asked.is_empty() {
            definitions.retain(|definition| definition.to_string().len() <= BYTES_MAX);
            while definitions.len() > DEFINITIONS {
                definitions.remove(random.below(definitions.len() as u64) as usize);
            }
            rules_max = RULES;
        }
        let operator = operator.name;
        all.extend(definitions.into_iter().map(|definition| Chosen { operator, definition, rules_max }));
    }
    all
}

async fn outcome(pair: &Pair, chosen: &Chosen<'_>) -> Result<Outcome, String> {
    let definition = chosen.definition;
    let title = format!("{} {}", chosen.operator, name(definition));
    let mut outcome = Outcome::default();
    let say = |lines: Vec<String>, what: &str| {
        lines.into_iter().map(|line| format!("{title}: {what}: {line}")).collect::<Vec<_>>()
    };
    let served = match Served::define(pair, definition).await? {
        Ok(served) => served,
        Err(lines) => {
            outcome.lines = say(lines, "definition");
            return Ok(outcome);
        }
    };
    let searched = Searched::new(definition);
    let mut sites = sites(definition);
    let random = Random::seeded(SEED);
    while sites.len() > chosen.rules_max {
        sites.remove(random.below(sites.len() as u64) as usize);
    }
    for (at, site) in sites.iter().enumerate() {
        outcome.rules += 1;
        let mut found = (false, false);
        for (number, case) in searched.cases(site, SEED + at as u64).iter().enumerate() {
            let compared = served.ask(site.version, case, &format!("r{at}-{number}")).await?;
            outcome.writes += 1;
            found.0 |= case.expected == Expected::Passes && compared.code < 300;
            found.1 |= case.expected == Expected::Fails && compared.code >= 400;
            let what = format!("{} {:?}", site.title(definition), case.expected);
            if !compared.lines.is_empty() && std::env::var_os("FOREBAY_RULES_SHOW").is_some() {
                eprintln!("{what}: {}\n  stored {:?}\n  object {}", site.text(), case.stored, case.object);
            }
            outcome.lines.extend(say(compared.lines, &what));
        }
        outcome.passed += usize::from(found.0);
        outcome.failed += usize::from(found.1);
        outcome.both += usize::from(found.0 && found.1);
        if found != (true, true) {
            outcome.wanting.push(format!("{} {found:?}: {}", site.title(definition), site.text()));
        }
    }
    served.remove().await?;
    Ok(outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_of_operators_are_judged_as_by_kube_apiserver() {
    if !needs::peers_or_skip() {
        return;
    }
    let Some(operators) = operators().unwrap_or_else(|why| panic!("{why}")) else { return };
    let asked = std::env::var("FOREBAY_RULES").unwrap_or_default();
    let chosen = chosen(&operators, &asked);
    let pair = Pair::start().await.expect("both servers");
    let pair = &pair;
    let runs = chosen.iter().map(|chosen| async move {
        let outcome = outcome(pair, chosen).await;
        (
            chosen,
            outcome.unwrap_or_else(|why| panic!("{} {}: {why}", chosen.operator, name(chosen.definition))),
        )
    });
    let mut lines = Vec::new();
    // operator -> rules, of them with an object that passes, that fails, with both; writes
    let mut figures: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    let mut runs = futures_util::stream::iter(runs).buffer_unordered(AT_ONCE);
    while let Some((chosen, outcome)) = runs.next().await {
        let figures = figures.entry(chosen.operator).or_default();
        let counts = [outcome.rules, outcome.passed, outcome.failed, outcome.both, outcome.writes];
        figures.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        if !asked.is_empty() {
            outcome
                .wanting
                .iter()
                .for_each(|line| eprintln!("not found: {}: {line}", name(chosen.definition)));
        }
        lines.extend(outcome.lines);
    }
    for (operator, [rules, passed, failed, both, writes]) in &figures {
        println!(
            "figure: {operator}: {rules} rules, {passed} passed, {failed} failed, {both} both, {writes} writes"
        );
    }
    let sum = |at: usize| figures.values().map(|of| of[at]).sum::<usize>();
    println!(
        "figure: {} rules of {} operators, {} with both, {} writes",
        sum(0),
        figures.len(),
        sum(3),
        sum(4)
    );
    lines.sort();
    allowed::check(include_str!("../allowed/rules.txt"), &lines);
}
