//! The `forebay` command. Everything is in the library, so that it can be tested.

use std::process::ExitCode;

/// Gives memory back to the system when a storm is over, and does not fragment under many sizes (docs/adr).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    forebay::memory::keep_to_small_pages();
    forebay::cli::main()
}
