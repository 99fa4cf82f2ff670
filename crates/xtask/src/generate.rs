//! `cargo xtask gen`: the schema table, made by the Go program in `crates/schema/gen` from the Kubernetes
//! modules' types.
//!
//! In: what that program prints, from the modules it pins. Out: `crates/schema/data/builtin.txt`.
//! Never: a table written by `--check`, or half a one by a generator that failed.

use std::fs;
use std::process::Command;

use crate::run::{self, Done};

const TABLE: &str = "crates/schema/data/builtin.txt";

/// What to do about a table that is not what the generator prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Write,
    Check,
}

/// Runs the generator, and writes its table or fails when the checkout holds another.
pub fn generate(mode: Mode) -> Done {
    run::need_go("generating the schema table")?;
    let made = run::output(
        Command::new("go").current_dir(run::root().join("crates/schema/gen")).args(["run", "."]),
    )?;
    let path = run::root().join(TABLE);
    let held = fs::read_to_string(&path).unwrap_or_default();
    match (difference(&held, &made), mode) {
        (None, _) => println!("{TABLE} is up to date"),
        (Some(what), Mode::Check) => {
            return Err(format!("{TABLE} is not what its generator prints ({what}); run `cargo xtask gen`"));
        }
        (Some(what), Mode::Write) => {
            fs::write(&path, &made).map_err(|e| format!("cannot write {TABLE}: {e}"))?;
            println!("{TABLE} written: {what}");
        }
    }
    Ok(())
}

/// Where the two texts part, if they do.
fn difference(held: &str, made: &str) -> Option<String> {
    if held == made {
        return None;
    }
    let (held, made): (Vec<_>, Vec<_>) = (held.lines().collect(), made.lines().collect());
    let same = held.iter().zip(&made).take_while(|(held, made)| held == made).count();
    let (now, then) = (made.get(same).unwrap_or(&"the end"), held.get(same).unwrap_or(&"the end"));
    Some(format!(
        "{} lines, were {}; from line {} on: {now:?}, was {then:?}",
        made.len(),
        held.len(),
        same + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let shown = difference("a\nb\n", "a\nc\nd\n").unwrap();
        assert_eq!(shown, r#"3 lines, were 2; from line 2 on: "c", was "b""#);
        let shown = difference("a\nb\n", "a\n").unwrap();
        assert_eq!(shown, r#"1 lines, were 2; from line 2 on: "the end", was "b""#);
        assert!(difference("", "a\n").is_some());
        assert!(difference("a", "a\n").is_some());
    }
}
