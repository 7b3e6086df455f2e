//! The `lastbyte` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    lastbyte::cli::main(std::env::args_os())
}
