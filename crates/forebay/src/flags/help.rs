//! The help texts, written from the table.

use std::fmt::Write as _;

use super::spec::{Flag, Heading};
use super::table;

/// Lines are no longer than this, so that they fit a terminal beside an editor.
const COLUMNS: usize = 100;
/// Where the text of a flag begins.
const TEXT_COLUMN: usize = 44;

/// `forebay --help`
pub const COMMANDS: &str = "\
A Kubernetes API server in one binary, with its store inside.

Usage:
  forebay <command> [flags]

Commands:
  serve        Run the API server
  top          Show who uses a server, and why there are lists, live in the terminal
  snapshot     Save the store to a file, look at such a file, or make a store of it
  migrate      Move all objects from a data directory into etcd, or back
  envtest      Print how to run controller-runtime's envtest on it
  version      Print the version; -o json or -o yaml for programs
  completion   Print a completion script: bash, elvish, fish, powershell or zsh

Two lines to begin with:
  forebay serve &
  kubectl --kubeconfig forebay-data/admin.kubeconfig get namespaces

\"forebay serve --help\" lists the flags.
";

const SERVE_HEAD: &str = "\
Run the API server. Without flags it keeps its data in ./forebay-data, listens on 127.0.0.1:6443,
makes its own certificates, and writes a kubeconfig to ./forebay-data/admin.kubeconfig.

Usage:
  forebay serve [flags]
";

const SERVE_TAIL: &str = "
A flag can also be set in the environment (--data-dir is FOREBAY_DATA_DIR) or in the --config file;
what is typed wins over the environment, and that over the file. Defaults are in brackets.

The other flags of kube-apiserver are known too. Those without which nothing gets weaker are
accepted and listed in a warning; those that protect something, such as
--etcd-servers-overrides, are refused until they are served.
";

const APISERVER_HEAD: &str = "\
Run the API server under kube-apiserver's name, for manifests and for envtest.

With --tls-cert-file, or with etcd behind TLS or on another machine, it is a cluster's, as kubeadm's
manifest starts it: it listens on all addresses, runs no controllers, and makes and writes nothing of
its own where certificates, keys and etcd are given.

Else it is envtest's: its data is in a new directory below --cert-dir, it serves the apiserver.crt
that is there, takes no flag from the environment, does not use --etcd-servers, and ends with its
parent.

Usage:
  kube-apiserver [flags]
";

const APISERVER_TAIL: &str = "
The other flags of kube-apiserver are known too. Those without which nothing gets weaker are
accepted and listed in a warning; those that protect something, such as
--etcd-servers-overrides, are refused until they are served.
";

/// `forebay serve --help`
pub fn serve() -> String {
    with_flags(SERVE_HEAD, SERVE_TAIL)
}

/// `kube-apiserver --help`
pub fn kube_apiserver() -> String {
    with_flags(APISERVER_HEAD, APISERVER_TAIL)
}

fn with_flags(head: &str, tail: &str) -> String {
    let mut text = head.to_owned();
    for heading in Heading::ALL {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{}:", heading.title());
        for flag in table::served().filter(|flag| flag.help().is_some_and(|help| help.heading == heading)) {
            describe(flag, &mut text);
        }
    }
    text.push_str(tail);
    text
}

fn describe(flag: &Flag, out: &mut String) {
    let Some(help) = flag.help() else { return };
    let dash = if flag.name == "v" { "-v, " } else { "" };
    let mut head = format!("  {dash}--{}", flag.name);
    if !help.value.is_empty() {
        let _ = write!(head, " {}", help.value);
    }
    let text = help.text.trim_end_matches('.');
    let text = match help.default {
        "" | "false" | "0" | "0s" => text.to_owned(),
        default => format!("{text} [{default}]"),
    };
    let mut column = head.len();
    out.push_str(&head);
    // A head that reaches into the text's column has its text on the next line.
    if column + 2 > TEXT_COLUMN {
        out.push('\n');
        column = 0;
    }
    for word in text.split(' ') {
        if column > TEXT_COLUMN && column + 1 + word.len() > COLUMNS {
            out.push('\n');
            column = 0;
        }
        if column < TEXT_COLUMN {
            out.extend(std::iter::repeat_n(' ', TEXT_COLUMN - column));
            column = TEXT_COLUMN;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn the_help_reads_well() {
        expect_file!["help.serve.txt"].assert_eq(&serve());
    }

    #[test]
    fn every_line_fits_and_every_served_flag_is_there() {
        let text = serve();
        for line in text.lines().chain(COMMANDS.lines()) {
            assert!(line.len() <= COLUMNS, "{line}");
        }
        for flag in table::served() {
            assert!(text.contains(&format!("--{}", flag.name)), "{}", flag.name);
        }
    }
}
