//! The `forebay` command. Everything is in the library, so that it can be tested.

use std::process::ExitCode;

fn main() -> ExitCode {
    forebay::cli::main()
}
