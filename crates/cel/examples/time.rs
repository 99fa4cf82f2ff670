//! What an evaluation takes: cases a line on standard input, as `go/` beside this crate reads them for its
//! mode `time`; nanoseconds out.
//!
//! `cargo run --release -p forebay-cel --example time < cases`, and `go run . time < cases` in `go/` for
//! upstream's.

use std::hint::black_box;
use std::io::stdin;
use std::time::{Duration, Instant};

use forebay_cel::{Activation, Env, Type, Value};
use serde_json::Value as Json;

/// Long enough that the clock is no part of it.
const ENOUGH: Duration = Duration::from_millis(200);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in stdin().lines() {
        let case: Json = serde_json::from_str(&line?)?;
        let expr = case["expr"].as_str().ok_or("no expression")?;
        let env = Env::new(36).with("self", Type::Dyn);
        let compile = || env.compile(expr).map_err(|issues| issues.to_string());
        let program = compile()?.program()?;
        let variables = [Some(Value::from_tree(&case["self"]))];
        let eval = || program.eval(Activation { variables: &variables, ..Activation::default() }, 1_000_000);
        let cost = eval().cost;
        println!("{expr}\n  {} ns, compiled in {} ns, cost {cost}", timed(eval), timed(compile));
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "it measures")]
fn timed<T>(mut what: impl FnMut() -> T) -> u128 {
    let mut runs = 1u32;
    loop {
        let start = Instant::now();
        for _ in 0..runs {
            black_box(what());
        }
        let took = start.elapsed();
        if took > ENOUGH {
            return took.as_nanos() / u128::from(runs);
        }
        runs = runs.saturating_mul(2);
    }
}
