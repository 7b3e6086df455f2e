//! What the guest kernel is made of, apart from the source.

use super::digest::sha256;

/// Counts the changes of how `build.rs` makes a kernel that change the kernel.
const VERSION: u32 = 1;

/// What turns a source of Linux into the guest kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recipe {
    /// Options that are on, all others being off: a fragment of a `.config`.
    pub(super) config: &'static str,
    /// In the order in which they are applied.
    pub(super) patches: &'static [Patch],
}

/// A change of the source, as `patch` reads it, below its reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patch {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
}

macro_rules! patches {
    ($($name:literal),* $(,)?) => {
        &[$(Patch {
            name: $name,
            text: include_str!(concat!("../../kernel/patches/", $name, ".patch")),
        }),*]
    };
}

/// This version of Lastbyte's.
pub(super) const RECIPE: Recipe = Recipe {
    config: include_str!("../../kernel/config"),
    patches: patches![
        "0001-hz-1000",
        "0002-amx-state",
        "0003-seeded-randomness",
        "0004-clock-resolution",
        "0005-processor-counter",
        "0006-timer-registers",
        "0007-floating-point-on-switch",
        "0008-time-without-call",
        "0009-fault-around",
        "0010-computing",
        "0011-killed-dentries",
    ],
};

impl Recipe {
    /// Names the recipe: a digest of all of it.
    pub(super) fn digest(&self) -> String {
        let patches = self.patches.iter().map(|patch| patch.text);
        let mut all = format!("lastbyte kernel {VERSION}\n");
        for text in [self.config].into_iter().chain(patches) {
            all.push_str(&format!("{}\n{text}", text.len()));
        }
        sha256(all.as_bytes())
    }

    /// Names the kernel that this recipe makes of a source.
    pub(super) fn key(&self, source_sha256: &str) -> String {
        let mut key = sha256(format!("{} {source_sha256}", self.digest()).as_bytes());
        key.truncate(16);
        key
    }

    /// The options that a `.config` should have and hasn't. Kconfig leaves out silently what
    /// a source doesn't know or what lacks a dependency.
    pub(super) fn missing_options(&self, config: &str) -> Vec<&'static str> {
        let has = |option: &str| match option.strip_suffix("=n") {
            Some(name) => !config.lines().any(|line| {
                let value = line.strip_prefix(name);
                value.is_some_and(|value| value.starts_with('='))
            }),
            None => config.lines().any(|line| line == option),
        };
        let options = self.config.lines().map(str::trim);
        let options = options.filter(|line| !line.is_empty() && !line.starts_with('#'));
        options.filter(|option| !has(option)).collect()
    }
}
