//! Has the program's relocations written in the short form (RELR), where it will be understood: 36 KB
//! instead of 3.4 MB, all of which is read whenever the program starts, in a guest page by page.

use std::env;
use std::process::Command;

/// The first glibc whose loader reads them (its NEWS).
const LOADER: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if is_read_here() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the program is for machines like this one. What names a linker may be for an older glibc,
/// as packages are.
fn is_read_here() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var("TARGET") == env::var("HOST")
        && env::var_os("RUSTC_LINKER").is_none()
        && glibc().is_some_and(|version| version >= LOADER)
}

fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    let (major, rest) = answer.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = rest.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
