//! `forebay top`: who uses a server, live in the terminal, or once.
//!
//! In: what was typed. Out: a screen until a key ends it, or one table or JSON on stdout. What there is
//! to see is `usage`'s, how it is asked for and drawn is `top`'s.

use std::ffi::OsString;
use std::io::Write;

use forebay_top::{AskedServer, ServerPlace, Terminal, live};
use forebay_usage::table::{self, TableShape};

use crate::error::Error;
use crate::flags::options::{self, Given, Known, known};

/// What the command knows.
pub const KNOWN: &[Known] = &[
    known("kubeconfig", "FILE", "Which server, and who asks [$KUBECONFIG, or ~/.kube/config]"),
    known("context", "NAME", "A context of that file [the current one]"),
    known("sort", "COLUMN", "cpu, bytes, held, watches or lists [cpu]"),
    known("window", "TIME", "1m, 10m or all [1m]"),
    known("once", "", "Print it and end, as where there is no terminal"),
    Known { name: "output", short: Some("o"), value: "FORMAT", text: "With --once: table or json [table]" },
];

/// Runs the command behind `forebay top`.
///
/// # Errors
/// What was typed wrong; why the server does not say.
pub fn run(arguments: impl Iterator<Item = OsString>, out: &mut dyn Write) -> Result<(), Error> {
    let given = Given::read(arguments, KNOWN)?;
    if given.help {
        return Ok(out.write_all(help().as_bytes())?);
    }
    if let Some(argument) = given.rest.first() {
        return Err(Error::Usage(format!("unexpected argument: {argument}")));
    }
    let layout = TableShape::named(given.value("sort"), given.value("window"));
    let layout = layout.map_err(|why| Error::Usage(format!("--{why}")))?;
    let is_json = match given.value("output") {
        None | Some("table") => false,
        Some("json") => true,
        Some(_) => return Err(Error::Usage("--output must be 'table' or 'json'".to_owned())),
    };
    let is_once = given.switch("once", false)? || given.value("output").is_some() || !Terminal::is_there();
    let context = given.value("context").map(str::to_owned);
    let place = ServerPlace { kubeconfig: given.path("kubeconfig"), context };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shown = runtime.block_on(async {
        let source = AskedServer::of(&place).await?;
        if is_once { source.flows().await.map(Some) } else { live(&source, layout).await.map(|()| None) }
    });
    let Some(flows) = shown? else { return Ok(()) };
    if is_json {
        return Ok(writeln!(out, "{}", flows.to_json())?);
    }
    Ok(writeln!(out, "{}", table::lines(&flows, layout).join("\n"))?)
}

/// `forebay top --help`
pub fn help() -> String {
    format!(
        "\
Show who uses a server: by user, program, resource and flow the CPU time, what is sent and held, the
watches and whether they are behind, the 429s, and the lists and why they were lists.

Usage:
  forebay top [flags]

{}
Keys: c, b, h, w and l sort, t changes the time, q ends it. WHY says start for a program that has
begun, 410 for one that was told that its place in history is gone, and again where nothing forced
it; in brackets is which state was asked for. A server tells of itself alone: behind a load balancer
that is the one that answers.

Who asks needs the right to \"get\" the nonResourceURL /debug/forebay/flows.
",
        options::describe(KNOWN)
    )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    #[test]
    fn the_help_reads_well() {
        expect![[r#"
            Show who uses a server: by user, program, resource and flow the CPU time, what is sent and held, the
            watches and whether they are behind, the 429s, and the lists and why they were lists.

            Usage:
              forebay top [flags]

              --kubeconfig FILE             Which server, and who asks [$KUBECONFIG, or ~/.kube/config]
              --context NAME                A context of that file [the current one]
              --sort COLUMN                 cpu, bytes, held, watches or lists [cpu]
              --window TIME                 1m, 10m or all [1m]
              --once                        Print it and end, as where there is no terminal
              -o, --output FORMAT           With --once: table or json [table]

            Keys: c, b, h, w and l sort, t changes the time, q ends it. WHY says start for a program that has
            begun, 410 for one that was told that its place in history is gone, and again where nothing forced
            it; in brackets is which state was asked for. A server tells of itself alone: behind a load balancer
            that is the one that answers.

            Who asks needs the right to "get" the nonResourceURL /debug/forebay/flows.
        "#]]
        .assert_eq(&super::help());
    }
}
